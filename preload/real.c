// Looks for the functions that this library stands before.
//
// dlsym and not glibc's __libc_malloc: then another allocator may stand behind,
// for the small blocks, or a recorder, and the C library need not be glibc. The
// price is that dlsym may itself ask for memory before it has answered. One
// thread looks, and is the only one: the C library allocates before a program
// can have a second. While it looks, calls get pages of a fixed buffer. Whole
// pages, so that a free recognises them by the same look at an address as
// blocks of the pool.
//
//   real.malloc ─► find_malloc ─► look ─► the function found
//                       ▲           │
//                       └── dlsym ──┘  a page of the buffer
#include "preload/real.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

enum { PAGE = 4096, EARLY_PAGES = 32 };

// ---------------------------------------------------------------------------
// Memory while nothing is found
// ---------------------------------------------------------------------------

static _Alignas(PAGE) unsigned char early[EARLY_PAGES * PAGE];
static _Atomic size_t early_used;  // pages
static size_t early_sizes[EARLY_PAGES];

// Zeroed. NULL: the buffer was all there is.
static void *early_take(size_t size) {
  size_t count = size / PAGE + 1;
  if (count > EARLY_PAGES) return NULL;
  size_t first = atomic_fetch_add(&early_used, count);
  if (first > EARLY_PAGES - count) return NULL;
  early_sizes[first] = count * PAGE;
  return early + first * PAGE;
}

bool real_early_owns(const void *address) {
  return (uintptr_t)address - (uintptr_t)early < sizeof early;
}

size_t real_early_size(const void *address) {
  return early_sizes[((uintptr_t)address - (uintptr_t)early) / PAGE];
}

// ---------------------------------------------------------------------------
// Looking
// ---------------------------------------------------------------------------

static bool look(void);

static void *find_malloc(size_t size) {
  return look() ? real.malloc(size) : early_take(size);
}

static void find_free(void *address) {
  if (!real_early_owns(address) && look()) real.free(address);
}

static void *find_calloc(size_t count, size_t size) {
  size_t bytes;
  if (look()) return real.calloc(count, size);
  return __builtin_mul_overflow(count, size, &bytes) ? NULL : early_take(bytes);
}

static void *find_realloc(void *address, size_t size) {
  if (look()) return real.realloc(address, size);
  return address == NULL ? early_take(size) : NULL;
}

static int find_posix_memalign(void **out, size_t align, size_t size) {
  if (look()) return real.posix_memalign(out, align, size);
  *out = align <= PAGE ? early_take(size) : NULL;
  return *out != NULL ? 0 : ENOMEM;
}

static void *find_aligned_alloc(size_t align, size_t size) {
  if (look()) return real.aligned_alloc(align, size);
  return align <= PAGE ? early_take(size) : NULL;
}

static void *find_memalign(size_t align, size_t size) {
  if (look()) return real.memalign(align, size);
  return align <= PAGE ? early_take(size) : NULL;
}

static void *find_valloc(size_t size) {
  return look() ? real.valloc(size) : early_take(size);
}

static void *find_pvalloc(size_t size) {
  return look() ? real.pvalloc(size) : early_take(size);
}

static size_t find_usable_size(void *address) {
  if (real_early_owns(address)) return real_early_size(address);
  return look() ? real.malloc_usable_size(address) : 0;
}

real_functions real = {
    .malloc = find_malloc,
    .free = find_free,
    .calloc = find_calloc,
    .realloc = find_realloc,
    .posix_memalign = find_posix_memalign,
    .aligned_alloc = find_aligned_alloc,
    .memalign = find_memalign,
    .valloc = find_valloc,
    .pvalloc = find_pvalloc,
    .malloc_usable_size = find_usable_size,
};

#define FIND(name) \
  found.name = __extension__(__typeof__(found.name)) dlsym(RTLD_NEXT, #name)

// Whether they are found by now; false to a call out of dlsym itself.
static bool look(void) {
  static bool looking;
  if (looking) return false;
  looking = true;
  real_functions found = {NULL};
  FIND(malloc);
  FIND(free);
  FIND(calloc);
  FIND(realloc);
  FIND(posix_memalign);
  FIND(aligned_alloc);
  FIND(memalign);
  FIND(valloc);
  FIND(pvalloc);
  FIND(malloc_usable_size);
  real = found;
  looking = false;
  return true;
}
