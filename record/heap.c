// The functions of the heap, as the program sees them.
//
// A free is recorded if the usable bytes at its address reach the threshold:
// the reader passes over frees of blocks whose birth was not recorded.
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/events.h"
#include "record/file.h"
#include "record/real.h"
#include "record/settings.h"

#define EXPORT __attribute__((visibility("default")))

// Calls that an allocator makes by itself are not the program's.
static inline bool is_wanted(size_t size) {
  return settings_wants(size) && events_inside == 0;
}

static inline void *born(void *address, size_t size) {
  if (is_wanted(size)) {
    if (address == NULL) {
      events_oom(size);
    } else {
      events_alloc(address, size);
    }
  }
  return address;
}

static inline bool was_wanted(void *address) {
  return record_settings.threshold != SIZE_MAX &&
         is_wanted(real_found.malloc_usable_size(address));
}

// |call| of the real allocator.
#define INSIDE(result, call)    \
  do {                          \
    events_inside++;            \
    (result) = real_found.call; \
    events_inside--;            \
  } while (0)

// ---------------------------------------------------------------------------
// Births
// ---------------------------------------------------------------------------

EXPORT void *malloc(size_t size) {
  void *address;
  if (!real_are_known()) return real_early_alloc(size, 0);
  INSIDE(address, malloc(size));
  return born(address, size);
}

EXPORT void *calloc(size_t count, size_t size) {
  size_t bytes;
  void *address;
  bool fits = !__builtin_mul_overflow(count, size, &bytes);
  if (!real_are_known()) return fits ? real_early_alloc(bytes, 0) : NULL;
  INSIDE(address, calloc(count, size));
  return fits ? born(address, bytes) : address;
}

EXPORT void *memalign(size_t alignment, size_t size) {
  void *address;
  if (!real_are_known()) return real_early_alloc(size, alignment);
  INSIDE(address, memalign(alignment, size));
  return born(address, size);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size) {
  void *address;
  if (!real_are_known()) return real_early_alloc(size, alignment);
  INSIDE(address, aligned_alloc(alignment, size));
  return born(address, size);
}

EXPORT int posix_memalign(void **out_address, size_t alignment, size_t size) {
  int error;
  if (!real_are_known()) {
    *out_address = real_early_alloc(size, alignment);
    return *out_address != NULL ? 0 : ENOMEM;
  }
  INSIDE(error, posix_memalign(out_address, alignment, size));
  if (error == 0) {
    born(*out_address, size);
  } else if (error == ENOMEM) {
    born(NULL, size);
  }
  return error;
}

EXPORT void *valloc(size_t size) {
  void *address;
  if (!real_are_known()) return real_early_alloc(size, 4096);
  INSIDE(address, valloc(size));
  return born(address, size);
}

EXPORT void *pvalloc(size_t size) {
  void *address;
  if (!real_are_known()) return real_early_alloc(size, 4096);
  INSIDE(address, pvalloc(size));
  return born(address, size);
}

// ---------------------------------------------------------------------------
// Deaths
// ---------------------------------------------------------------------------

EXPORT void free(void *address) {
  if (address == NULL || !real_are_known() || real_early_owns(address)) return;
  if (was_wanted(address)) events_free(address);
  events_inside++;
  real_found.free(address);
  events_inside--;
}

// ---------------------------------------------------------------------------
// Both
// ---------------------------------------------------------------------------

static void *move_from_early(void *address, size_t size) {
  size_t room = real_early_room(address);
  void *moved = malloc(size);
  if (moved != NULL) memcpy(moved, address, size < room ? size : room);
  return moved;
}

// The old block's end is written once it is sure, with a number from before.
static void *reallocate(void *address, size_t size) {
  void *moved;
  uint64_t number = was_wanted(address) ? file_number() : 0;
  INSIDE(moved, realloc(address, size));
  if (moved == NULL && size != 0) return born(NULL, size);
  if (number != 0) {
    events_note(&(happening){
        .kind = TARN__LOG_FREE, .number = number, .address = address});
  }
  return size != 0 ? born(moved, size) : moved;
}

EXPORT void *realloc(void *address, size_t size) {
  if (address == NULL) return malloc(size);
  if (!real_are_known() || real_early_owns(address))
    return move_from_early(address, size);
  return reallocate(address, size);
}

EXPORT void *reallocarray(void *address, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return NULL;
  }
  return realloc(address, bytes);
}
