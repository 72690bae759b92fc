// Looks for the functions that the recorder stands before.
//
// One thread looks, and is the only one: the C library itself allocates before
// a program can have a second. While it looks, calls get memory of a fixed
// buffer. |dlsym| is set last, and says that all others are.
#include "record/real.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>

real_functions real_found;

// ---------------------------------------------------------------------------
// Memory while nothing is found
// ---------------------------------------------------------------------------

enum { EARLY_BYTES = 16384 };

static _Alignas(4096) unsigned char early[EARLY_BYTES];
static _Atomic size_t early_used;

void *real_early_alloc(size_t size, size_t alignment) {
  size_t used = atomic_load(&early_used);
  size_t begin;
  if (alignment < 16) alignment = 16;
  if (size > EARLY_BYTES || alignment > 4096) return NULL;
  do {
    begin = (used + alignment - 1) & ~(alignment - 1);
    if (begin > EARLY_BYTES || size > EARLY_BYTES - begin) return NULL;
  } while (!atomic_compare_exchange_weak(&early_used, &used, begin + size));
  return early + begin;
}

bool real_early_owns(const void *address) {
  return (uintptr_t)address - (uintptr_t)early < EARLY_BYTES;
}

size_t real_early_room(const void *address) {
  return EARLY_BYTES - (size_t)((uintptr_t)address - (uintptr_t)early);
}

// ---------------------------------------------------------------------------
// Looking
// ---------------------------------------------------------------------------

typedef void *find_function(void *handle, const char *name);

// The recorder has a dlsym of its own, so the C library's is asked for by the
// version that it has had since it moved out of libdl, or before.
static find_function *find_dlsym(void) {
  static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17",
                                         "GLIBC_2.2.5"};
  void *found = NULL;
  for (size_t i = 0; i < 3 && found == NULL; i++)
    found = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
  return __extension__(find_function *) found;
}

#define FIND(name)  \
  real_found.name = \
      __extension__(__typeof__(real_found.name)) find(RTLD_NEXT, #name)

static void find_heap(find_function *find) {
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
}

static void find_system(find_function *find) {
  FIND(mmap);
  FIND(munmap);
  FIND(mremap);
  FIND(dl_iterate_phdr);
  FIND(dlclose);
#ifdef DLFO_STRUCT_HAS_EH_DBASE
  FIND(_dl_find_object);
#endif
}

void real_find(void) {
  static bool looking;
  if (looking) return;
  looking = true;
  find_function *find = find_dlsym();
  if (find != NULL) {
    find_heap(find);
    find_system(find);
    real_found.dlsym = find;
  }
  looking = false;
}
