// A hashed map of names.
#include "base/names.h"

#include <stdio.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/intern.h"
#include "base/status.h"

enum { FIRST_CAPACITY = 8 };

static uint64_t hash_of(const char *name) {
  return tarn__hash(0, name, strlen(name));
}

static size_t slot_count(const tarn__names *names) {
  return names->capacity * 2;
}

static void place(tarn__names *names, size_t index) {
  size_t mask = slot_count(names) - 1;
  size_t slot = names->entries[index].hash & mask;
  while (names->slots[slot] != 0)
    slot = (slot + 1) & mask;
  names->slots[slot] = (uint32_t)(index + 1);
}

static tarn_status grow(tarn__names *names) {
  size_t capacity = names->capacity ? names->capacity * 2 : FIRST_CAPACITY;
  if (capacity > UINT32_MAX / 2) {
    return tarn__fail(TARN_E_NOMEM, "names: too many");
  }
  uint32_t *slots = tarn__host_array(capacity * 2, sizeof *slots);
  if (slots == NULL) return TARN_E_NOMEM;
  tarn__name *entries = tarn__host_resize(names->entries, names->capacity,
                                          capacity, sizeof *entries);
  if (entries == NULL) {
    tarn__host_free_array(slots, capacity * 2, sizeof *slots);
    return TARN_E_NOMEM;
  }
  tarn__host_free_array(names->slots, slot_count(names), sizeof *slots);
  names->entries = entries;
  names->slots = slots;
  names->capacity = capacity;
  for (size_t i = 0; i < names->count; i++)
    place(names, i);
  return TARN_OK;
}

void tarn__names_deinit(tarn__names *names) {
  for (size_t i = 0; i < names->count; i++) {
    tarn__host_free_text(names->entries[i].name);
  }
  tarn__host_free_array(names->slots, slot_count(names), sizeof(uint32_t));
  tarn__host_free_array(names->entries, names->capacity, sizeof(tarn__name));
  *names = (tarn__names){0};
}

tarn_status tarn__names_add(tarn__names *names, const char *name, void *value) {
  if (name == NULL || *name == '\0') {
    return tarn__fail(TARN_E_INVALID, "names: an empty name");
  }
  if (tarn__names_find(names, name) != NULL) {
    return tarn__fail(TARN_E_INVALID, "names: '%s' is there already", name);
  }
  char *copy = tarn__host_text(name);
  if (copy == NULL) return TARN_E_NOMEM;
  tarn_status status = names->count == names->capacity ? grow(names) : TARN_OK;
  if (status != TARN_OK) {
    tarn__host_free_text(copy);
    return status;
  }
  names->entries[names->count] =
      (tarn__name){.name = copy, .value = value, .hash = hash_of(name)};
  place(names, names->count++);
  return TARN_OK;
}

tarn__name *tarn__names_find(const tarn__names *names, const char *name) {
  if (names->count == 0 || name == NULL) return NULL;
  uint64_t hash = hash_of(name);
  size_t mask = slot_count(names) - 1;
  for (size_t slot = hash & mask; names->slots[slot] != 0;
       slot = (slot + 1) & mask) {
    tarn__name *entry = &names->entries[names->slots[slot] - 1];
    if (entry->hash == hash && strcmp(entry->name, name) == 0) return entry;
  }
  return NULL;
}

void tarn__names_text(const tarn__names *names, char *out, size_t out_size) {
  size_t used = 0;
  out[0] = '\0';
  for (size_t i = 0; i < names->count && used < out_size; i++) {
    int n = snprintf(out + used, out_size - used, "%s%s", i ? ", " : "",
                     names->entries[i].name);
    used += n > 0 ? (size_t)n : 0;
  }
}
