// The functions of the heap, as the program sees them.
//
// A request that is large is the pool's, unless the pool has no room for it,
// or it comes from inside the pool: then it is the C library's, like all small
// ones. So a program gets what it would get without this library, and where it
// gets nothing, that is the C library's answer.
//
//   malloc ── small, or left ─► the C library
//      └───── large ──────────► the pool: whole pages
//   free ──── not at a page ──► the C library
//      └───── at a page ─ a block of the pool? a page of the early buffer?
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "preload/large.h"
#include "preload/pages.h"
#include "preload/real.h"
#include "preload/settings.h"

#define EXPORT __attribute__((visibility("default")))

void cfree(void *address);

// ---------------------------------------------------------------------------
// Births
// ---------------------------------------------------------------------------

// The C library had nothing for |call|: it is asked once more if the pool had
// something idle to give back to the system.
#define AGAIN_IF_NULL(address, call) \
  (__builtin_expect((address) == NULL, 0) && again(&errno) ? (call) : (address))

// |errno| stays.
__attribute__((cold, noinline)) static bool again(int *error) {
  int before = *error;
  bool trimmed = before == ENOMEM && large_trim();
  *error = before;
  return trimmed;
}

static void *real_malloc(size_t size) {
  void *address = real.malloc(size);
  return AGAIN_IF_NULL(address, real.malloc(size));
}

static void *real_calloc(size_t count, size_t size) {
  void *address = real.calloc(count, size);
  return AGAIN_IF_NULL(address, real.calloc(count, size));
}

static void *real_memalign(size_t align, size_t size) {
  void *address = real.memalign(align, size);
  return AGAIN_IF_NULL(address, real.memalign(align, size));
}

static void *real_realloc(void *old, size_t size) {
  void *address = real.realloc(old, size);
  return AGAIN_IF_NULL(address, real.realloc(old, size));
}

__attribute__((noinline)) static void *take_large(size_t size) {
  void *address = large_take(size, 1, false);
  return address != NULL ? address : real_malloc(size);
}

EXPORT void *malloc(size_t size) {
  return settings_wants(size) ? take_large(size) : real_malloc(size);
}

EXPORT void *calloc(size_t count, size_t size) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes) || !settings_wants(bytes)) {
    return real_calloc(count, size);
  }
  void *address = large_take(bytes, 1, true);
  return address != NULL ? address : real_calloc(count, size);
}

// NULL: not large, or left; the C library also finds what is wrong with
// |align|.
static void *take_aligned(size_t align, size_t size) {
  bool wanted = settings_wants(size) && tarn_is_power_of_two(align);
  return wanted ? large_take(size, align, false) : NULL;
}

EXPORT void *memalign(size_t align, size_t size) {
  void *address = take_aligned(align, size);
  return address != NULL ? address : real_memalign(align, size);
}

EXPORT void *aligned_alloc(size_t align, size_t size) {
  void *address = take_aligned(align, size);
  return address != NULL ? address : real.aligned_alloc(align, size);
}

EXPORT int posix_memalign(void **out_address, size_t align, size_t size) {
  void *address =
      align % sizeof(void *) == 0 ? take_aligned(align, size) : NULL;
  if (address == NULL) return real.posix_memalign(out_address, align, size);
  *out_address = address;
  return 0;
}

EXPORT void *valloc(size_t size) {
  void *address = take_aligned(PAGES_SIZE, size);
  return address != NULL ? address : real.valloc(size);
}

EXPORT void *pvalloc(size_t size) {
  void *address = take_aligned(PAGES_SIZE, size);
  return address != NULL ? address : real.pvalloc(size);
}

// ---------------------------------------------------------------------------
// Deaths
// ---------------------------------------------------------------------------

// NULL, too, comes here.
__attribute__((noinline)) static void free_at_page(const char *call,
                                                   void *address) {
  if (address == NULL || large_give(address)) return;
  if (real_early_owns(address)) return;
  if (large_is_lost(address)) large_refuse(call, address);
  real.free(address);
}

EXPORT void free(void *address) {
  if (__builtin_expect(pages_is_first(address), 0)) {
    free_at_page("free()", address);
  } else {
    real.free(address);
  }
}

EXPORT void cfree(void *address) {
  free(address);
}

// ---------------------------------------------------------------------------
// Both
// ---------------------------------------------------------------------------

// To a block of its own, of which the first bytes are those of the old one.
static void *move(void *address, size_t old, size_t size) {
  void *moved = malloc(size);
  if (moved == NULL) return NULL;
  memcpy(moved, address, old < size ? old : size);
  free(address);
  return moved;
}

static void *resize_large(void *address, size_t old, size_t size) {
  if (settings_wants(size) && large_resize(address, old, size)) return address;
  return move(address, old, size);
}

// A block of the C library that becomes large moves to the pool.
static void *resize_foreign(void *address, size_t size) {
  if (!settings_wants(size)) return real_realloc(address, size);
  size_t old = real.malloc_usable_size(address);
  if (old >= size) return real_realloc(address, size);
  void *moved = large_take(size, 1, false);
  if (moved == NULL) return real_realloc(address, size);
  memcpy(moved, address, old);
  real.free(address);
  return moved;
}

static void *resize_at_page(void *address, size_t size) {
  size_t old = pages_block(address);
  if (old != 0) return resize_large(address, old, size);
  if (real_early_owns(address)) {
    return move(address, real_early_size(address), size);
  }
  if (large_is_lost(address)) large_refuse("realloc()", address);
  return resize_foreign(address, size);
}

EXPORT void *realloc(void *address, size_t size) {
  if (address == NULL) return malloc(size);
  if (size == 0) {
    free(address);
    return NULL;
  }
  return pages_is_first(address) ? resize_at_page(address, size)
                                 : resize_foreign(address, size);
}

EXPORT void *reallocarray(void *address, size_t count, size_t size) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return NULL;
  }
  return realloc(address, bytes);
}

EXPORT size_t malloc_usable_size(void *address) {
  if (address == NULL) return 0;
  size_t size = pages_block(address);
  if (size != 0) return size;
  return real_early_owns(address) ? real_early_size(address)
                                  : real.malloc_usable_size(address);
}
