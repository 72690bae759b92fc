// fuzz.h - what targets have in common: they end at the first thing that does
// not hold, and they count the library's memory, of which readers promise how
// much they take of an input.
#ifndef TARN_FUZZ_FUZZ_H_
#define TARN_FUZZ_FUZZ_H_

#include <stdio.h>
#include <stdlib.h>

#include "tarn/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static inline void require(int holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "fuzz: %s: %s\n", what, tarn_last_error());
  abort();
}

static size_t fuzz_held;
static size_t fuzz_peak;

static inline void *fuzz_allocate(void *context, size_t size, size_t align) {
  void *ptr = NULL;
  (void)context;
  if (posix_memalign(&ptr, align, size) != 0) return NULL;
  fuzz_held += size;
  if (fuzz_held > fuzz_peak) fuzz_peak = fuzz_held;
  return ptr;
}

static inline void fuzz_deallocate(void *context, void *ptr, size_t size,
                                   size_t align) {
  (void)context;
  (void)align;
  fuzz_held -= size;
  free(ptr);
}

// Nothing is held yet; counts from here on.
static inline void fuzz_memory_begin(void) {
  static const tarn_host_allocator allocator = {.allocate = fuzz_allocate,
                                                .deallocate = fuzz_deallocate};
  require(tarn_host_allocator_set(&allocator) == TARN_OK, "a leak before");
  fuzz_peak = 0;
}

// No more was taken than is promised of an input of |size| bytes.
static inline void fuzz_memory_check(size_t size) {
  require(fuzz_peak <= 64 * size + (1 << 20), "more memory than was promised");
}

static inline void fuzz_memory_end(void) {
  require(fuzz_held == 0 && tarn_host_memory() == 0, "a leak");
}

#endif  // TARN_FUZZ_FUZZ_H_
