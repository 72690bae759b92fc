// pages.h - memory of a device: a file in memory, and the addresses under which
// it is mapped.
#ifndef TARN_TESTS_CUDA_STANDIN_PAGES_H_
#define TARN_TESTS_CUDA_STANDIN_PAGES_H_

#include <stdbool.h>
#include <stddef.h>

enum { STANDIN_PAGE = 4096 };

// |mirror| is where the stand-in reads and writes; what a program calls the
// address is mapped apart.
typedef struct standin_store {
  int file;  // -1: not kept
  unsigned char *mirror;
  size_t size;  // a multiple of a page
  int device;
} standin_store;

// False if there is no memory. The beginning holds no zeros, since a device's
// memory does not either. |keeps_file|: it may be exported.
bool standin_store_make(size_t size, int device, bool keeps_file,
                        standin_store *out);

// The store behind |file|, which another process may have made. False: it is no
// store. The descriptor stays the caller's.
bool standin_store_open(int file, standin_store *out);

// The mappings that there are keep the memory.
void standin_store_close(standin_store *store);

// Pages that fault, at a multiple of |align|. NULL: no room.
unsigned char *standin_pages_reserve(size_t size, size_t align);

// Maps the |size| bytes of |store| from |offset| at |address|, which is
// reserved. The host reaches them unless |closed|. False: no room.
bool standin_pages_show(const standin_store *store, size_t offset,
                        unsigned char *address, size_t size, bool closed);

// Makes them reserved again.
void standin_pages_hide(unsigned char *address, size_t size);

// What the host may do with them.
void standin_pages_open(unsigned char *address, size_t size, bool writes);
void standin_pages_shut(unsigned char *address, size_t size);

// Ends the reservation.
void standin_pages_forget(unsigned char *address, size_t size);

#endif  // TARN_TESTS_CUDA_STANDIN_PAGES_H_
