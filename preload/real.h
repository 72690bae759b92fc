// real.h - the functions that this library stands before.
//
// They are those that the program would have called: of the C library, or of
// another allocator that is preloaded behind this one. They are looked for at
// the first call of any, which is before main; a program that calls them
// through these pointers pays no check.
#ifndef TARN_PRELOAD_REAL_H_
#define TARN_PRELOAD_REAL_H_

#include <stdbool.h>
#include <stddef.h>

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
} real_functions;

extern real_functions real;

// A block that was handed out while the functions were looked for: it begins at
// a page, and is never given back.
bool real_early_owns(const void *address);
size_t real_early_size(const void *address);

#endif  // TARN_PRELOAD_REAL_H_
