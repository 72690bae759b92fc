// large.h - blocks of the pool, by their addresses.
//
// Every block begins at a page and has whole pages, so that a free recognises
// it (pages.h).
#ifndef TARN_PRELOAD_LARGE_H_
#define TARN_PRELOAD_LARGE_H_

#include <stdbool.h>
#include <stddef.h>

// |size| bytes at a multiple of |align|, a power of two; zeroed if |zero|.
// NULL: the C library is to serve the request; errno stays.
void *large_take(size_t size, size_t align, bool zero);

// Frees the block of the pool at |address|; false if there is none.
bool large_give(void *address);

// Whether |address| is in memory of the pool, though no block begins there:
// what is to be freed there is no block, or not any more.
bool large_is_lost(const void *address);

// Ends the program as the C library does, after a line that says what is wrong
// with |address|, of which large_is_lost holds.
void large_refuse(const char *call, void *address) __attribute__((noreturn));

// Gives the block of |old| bytes at |address| |size| of them where it stands.
// False: it is as it was.
bool large_resize(void *address, size_t old, size_t size);

// Gives what the pool holds idle back to the system. False: there was nothing,
// or this thread is inside the pool.
bool large_trim(void);

#endif  // TARN_PRELOAD_LARGE_H_
