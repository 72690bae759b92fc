#include "synced_outside.h"

#include <stdlib.h>
#include <string.h>

#include "support/run.h"

enum { OUTSIDES = 24 };

static sm_outside outsides[OUTSIDES];

void *so_pointer(const sm_outside *x) {
  if (sm_places[x->place].kind == TARN_PLACE_DEVICE) return NULL;
  return (void *)(uintptr_t)x->address;
}

static void allocate(sm_outside *x) {
  size_t size = x->size > 0 ? x->size : 1;
  if (x->place == 0) {
    x->address = (tarn_addr)(uintptr_t)malloc(size);
    sm_require(x->address != 0);
    return;
  }
  sm_status(tarn_device_allocate(sm_places[x->place], size, &x->address),
            TARN_OK);
}

static void give_back(sm_outside *x) {
  size_t size = x->size > 0 ? x->size : 1;
  if (x->place == 0) {
    free((void *)(uintptr_t)x->address);
  } else {
    sm_status(tarn_device_deallocate(sm_places[x->place], x->address, size),
              TARN_OK);
  }
  x->used = false;
}

static void set_bytes(const sm_outside *x) {
  if (x->size == 0) return;
  void *pointer = so_pointer(x);
  if (pointer != NULL) {
    memcpy(pointer, x->shadow, x->size);
    return;
  }
  sm_status(tarn_copy_h2d(sm_places[x->place].device, x->address, x->shadow,
                          x->size, NULL),
            TARN_OK);
}

sm_outside *so_take(unsigned place, size_t size, uint32_t flags, bool deleter) {
  sm_outside *x = NULL;
  for (size_t i = 0; i < OUTSIDES && x == NULL; i++) {
    if (!outsides[i].used) x = &outsides[i];
  }
  if (x == NULL) return NULL;
  memset(x, 0, sizeof *x);
  x->used = true;
  x->place = place;
  x->size = size;
  x->flags = flags;
  x->deleter = deleter;
  for (size_t i = 0; i < size; i++) {
    x->shadow[i] = (unsigned char)sg_random();
    x->known[i] = true;
  }
  allocate(x);
  set_bytes(x);
  return x;
}

static void deleted(void *context, tarn_place place, tarn_addr address,
                    size_t size) {
  sm_outside *x = context;
  sm_require(x->used && x->deleter && !x->deleted);
  sm_require(sm_place_index(place) == x->place);
  sm_require(address == x->address && size == x->size);
  x->deleted = true;
}

tarn_wrap_options so_options(sm_outside *x) {
  tarn_wrap_options options = {.struct_size = sizeof options,
                               .flags = x->flags};
  if (x->deleter) {
    options.deleter = deleted;
    options.context = x;
  }
  return options;
}

void so_drop(sm_outside *x) {
  sm_require(!x->deleted && !x->let_go);
  give_back(x);
}

// No work is under way there any more, and the bytes are the expected ones.
static void look_at(sm_outside *x) {
  unsigned char bytes[SM_SIZE];
  void *pointer = so_pointer(x);
  if (pointer != NULL) {
    memcpy(bytes, pointer, x->size);
  } else if (x->size > 0) {
    sm_status(tarn_copy_d2h(sm_places[x->place].device, bytes, x->address,
                            x->size, NULL),
              TARN_OK);
  }
  for (size_t i = 0; i < x->size; i++) {
    if (!x->known[i] || bytes[i] == x->shadow[i]) continue;
    sm_fail("byte %zu of outside memory (place %u, flags %u) is %u, not %u", i,
            x->place, x->flags, bytes[i], x->shadow[i]);
  }
}

void so_settle(void) {
  for (size_t i = 0; i < OUTSIDES; i++) {
    sm_outside *x = &outsides[i];
    if (!x->used) continue;
    sm_require(x->deleted == (x->let_go && x->deleter));
    if (!x->let_go) continue;
    look_at(x);
    give_back(x);
  }
}

size_t so_count(void) {
  size_t count = 0;
  for (size_t i = 0; i < OUTSIDES; i++)
    count += outsides[i].used;
  return count;
}
