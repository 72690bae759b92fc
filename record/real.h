// real.h - the functions that the recorder stands before.
//
// They are those that the program would have called: of the C library, or of
// another allocator that is preloaded behind the recorder. They are looked for
// at the first call of any, which is before main.
#ifndef TARN_RECORD_REAL_H_
#define TARN_RECORD_REAL_H_

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct real_functions {
  void *(*malloc)(size_t);
  void (*free)(void *);
  void *(*calloc)(size_t, size_t);
  void *(*realloc)(void *, size_t);
  int (*posix_memalign)(void **, size_t, size_t);
  void *(*aligned_alloc)(size_t, size_t);
  void *(*memalign)(size_t, size_t);
  void *(*valloc)(size_t);
  void *(*pvalloc)(size_t);
  size_t (*malloc_usable_size)(void *);
  void *(*mmap)(void *, size_t, int, int, int, off_t);
  int (*munmap)(void *, size_t);
  void *(*mremap)(void *, size_t, size_t, int, void *);
  int (*dl_iterate_phdr)(int (*)(struct dl_phdr_info *, size_t, void *),
                         void *);
  int (*dlclose)(void *);
#ifdef DLFO_STRUCT_HAS_EH_DBASE
  int (*_dl_find_object)(void *, struct dl_find_object *);
#endif
  void *(*dlsym)(void *, const char *);
} real_functions;

// Not to be read but through real(), and real_are_known().
extern real_functions real_found;

void real_find(void);

static inline const real_functions *real(void) {
  if (__builtin_expect(real_found.dlsym == NULL, 0)) real_find();
  return &real_found;
}

// False while they are being looked for: the C library's own look-up may ask
// for memory, which it then gets from real_early_alloc.
static inline bool real_are_known(void) {
  if (__builtin_expect(real_found.dlsym == NULL, 0)) real_find();
  return __builtin_expect(real_found.dlsym != NULL, 1);
}

// Zeroed bytes that are never given back. NULL: a few KiB were all there is.
void *real_early_alloc(size_t size, size_t alignment);
bool real_early_owns(const void *address);
// Bytes from |address| to the end of what real_early_alloc has.
size_t real_early_room(const void *address);

#endif  // TARN_RECORD_REAL_H_
