// Interning: open addressing over numbers, strings in one growing block.
//
//   slots   [ . 2 . . 1 . 3 . ]     number + 1
//   spans   0: first, size   1: ...
//   bytes   main.c\0forward\0...
//
// Invariants: at most half of the slots are taken; a string's bytes never
// change once they are in, they only move when |bytes| grows.
#include "base/intern.h"

#include <assert.h>
#include <string.h>

#include "base/os.h"
#include "base/status.h"

// --- hashing ---------------------------------------------------------------

uint64_t tarn__hash(uint64_t seed, const void *bytes, size_t size) {
  const uint64_t odd = 0x9e3779b97f4a7c15u;  // 2^64 over the golden ratio
  const char *from = bytes;
  uint64_t hash = seed ^ tarn__hash_fold(seed ^ size, odd);
  while (size != 0) {
    uint64_t word = 0;
    size_t part = size < sizeof word ? size : sizeof word;
    memcpy(&word, from, part);
    hash = tarn__hash_fold(hash ^ word, seed ^ odd);
    from += part;
    size -= part;
  }
  return tarn__hash_fold(hash, odd);
}

uint64_t tarn__hash_seed(void) {
  uint64_t now = tarn__os_now_ns();
  return tarn__hash(now, &(uint64_t *){&now}, sizeof(uint64_t *));
}

// --- byte strings ----------------------------------------------------------

void tarn__intern_init(tarn__intern *set) {
  *set = (tarn__intern){.seed = tarn__hash_seed(),
                        .bytes = TARN__ARRAY_OF(char),
                        .spans = TARN__ARRAY_OF(tarn__string),
                        .slots = TARN__ARRAY_OF(uint32_t)};
}

void tarn__intern_deinit(tarn__intern *set, tarn__budget *budget) {
  tarn__array_free(budget, &set->slots);
  tarn__array_free(budget, &set->spans);
  tarn__array_free(budget, &set->bytes);
}

static const tarn__string *span_of(const tarn__intern *set, uint32_t number) {
  return (const tarn__string *)set->spans.items + number;
}

// The slot that holds the string, or the empty one where it would stand.
static uint32_t *find_slot(const tarn__intern *set, uint32_t hash,
                           const void *bytes, size_t size) {
  const char *all = set->bytes.items;
  uint32_t *slots = set->slots.items;
  size_t mask = set->slots.count - 1;
  assert(slots != NULL);
  size_t at = hash & mask;
  for (; slots[at] != 0; at = (at + 1) & mask) {
    const tarn__string *span = span_of(set, slots[at] - 1);
    if (span->hash != hash || span->size != size) continue;
    if (memcmp(all + span->first, bytes, size) == 0) break;
  }
  return &slots[at];
}

// Strings in their slots are all different: no bytes need to be looked at.
static void fill_slots(tarn__intern *set) {
  uint32_t *slots = set->slots.items;
  size_t mask = set->slots.count - 1;
  assert(slots != NULL);
  for (uint32_t i = 0; i < set->spans.count; i++) {
    size_t at = span_of(set, i)->hash & mask;
    while (slots[at] != 0)
      at = (at + 1) & mask;
    slots[at] = i + 1;
  }
}

// Keeps half of the slots empty when one more string comes.
static tarn_status widen(tarn__intern *set, tarn__budget *budget) {
  enum { LEAST_SLOTS = 16 };
  void *unused = NULL;
  if ((set->spans.count + 1) * 2 <= set->slots.count) return TARN_OK;
  size_t count = set->slots.count == 0 ? LEAST_SLOTS : set->slots.count * 2;
  tarn__array wider = TARN__ARRAY_OF(uint32_t);
  TARN__TRY(tarn__array_grow(budget, &wider, count, &unused));
  tarn__array_free(budget, &set->slots);
  set->slots = wider;
  fill_slots(set);
  return TARN_OK;
}

static tarn_status append(tarn__intern *set, tarn__budget *budget,
                          uint32_t hash, const void *bytes, size_t size) {
  if (size > UINT32_MAX || set->spans.count >= UINT32_MAX - 1) {
    return tarn__fail(TARN_E_UNSUPPORTED,
                      "%s: a name of %zu bytes behind %zu others", budget->name,
                      size, set->spans.count);
  }
  const tarn__string span = {
      .first = set->bytes.count, .size = (uint32_t)size, .hash = hash};
  TARN__TRY(tarn__array_reserve(budget, &set->spans, 1));
  TARN__TRY(tarn__array_append(budget, &set->bytes, bytes, size));
  return tarn__array_append(budget, &set->spans, &span, 1);
}

tarn_status tarn__intern_put(tarn__intern *set, tarn__budget *budget,
                             const void *bytes, size_t size,
                             uint32_t *out_number) {
  *out_number = 0;
  TARN__TRY(widen(set, budget));
  uint32_t hash = (uint32_t)tarn__hash(set->seed, bytes, size);
  uint32_t *slot = find_slot(set, hash, bytes, size);
  if (*slot == 0) {
    TARN__TRY(append(set, budget, hash, bytes, size));
    *slot = (uint32_t)set->spans.count;
  }
  *out_number = *slot - 1;
  return TARN_OK;
}

bool tarn__intern_find(const tarn__intern *set, const void *bytes, size_t size,
                       uint32_t *out_number) {
  *out_number = 0;
  if (set->slots.count == 0) return false;
  uint32_t hash = (uint32_t)tarn__hash(set->seed, bytes, size);
  const uint32_t *slot = find_slot(set, hash, bytes, size);
  if (*slot == 0) return false;
  *out_number = *slot - 1;
  return true;
}
