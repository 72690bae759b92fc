// hostmem.h - the library's own memory, through the swappable allocator.
//
// Frees are sized: the caller always knows what it asked for, so nothing is
// written in front of a block, and tarn_host_memory() is exact.
#ifndef TARN_BASE_HOSTMEM_H_
#define TARN_BASE_HOSTMEM_H_

#include "tarn/base.h"

// |size| bytes (at least 1), zeroed, aligned for any type; NULL with the last
// error set.
void *tarn__host_alloc(size_t size);

// |count| elements of |size| bytes each, zeroed; NULL also on overflow.
void *tarn__host_array(size_t count, size_t size);

// Grows or shrinks an array in place or by copy; new elements are zeroed. On
// failure NULL, and |ptr| still holds |old_count| elements.
void *tarn__host_resize(void *ptr, size_t old_count, size_t new_count,
                        size_t size);

// Grows an array of |*count| elements by doubling, from |first| on, to |wanted|
// at least, and |*count| with it. On failure NULL, and nothing has changed.
void *tarn__host_grow(void *ptr, size_t *count, size_t wanted, size_t first,
                      size_t size);

// Gives back what one of the above returned. NULL is allowed.
void tarn__host_free(void *ptr, size_t size);

// Gives back an array of |count| elements of |size| bytes each.
void tarn__host_free_array(void *ptr, size_t count, size_t size);

// A copy of |text|; freed by tarn__host_free_text. NULL if out of memory.
char *tarn__host_text(const char *text);
void tarn__host_free_text(char *text);

// The text that printf would write, likewise.
__attribute__((format(printf, 1, 2))) char *tarn__host_format(
    const char *format, ...);

#endif  // TARN_BASE_HOSTMEM_H_
