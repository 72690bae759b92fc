// os_pages.h - memory behind files in memory, and what pages it is on.
//
// A file of tarn__os_memory_file has its size and its seals from the first, but
// no memory: who touches a byte of it gets some, or a SIGBUS where there is
// none left. So it is put there before anyone touches it, by one process or by
// many, each for its own part, which also decides the NUMA node:
//
//            stretch      stretch      stretch      stretch
//   file    |------------|------------|------------|------|
//   parts   | first    | second           | third         |
//   who     | first      | second     | third             |
//
// A stretch, 2 MiB at a multiple of that, can become one huge page. It is put
// there whole by whose part has its first byte; where the file ends within one,
// and wherever the kernel has no huge page to give, it gets usual pages.
#ifndef TARN_BASE_OS_PAGES_H_
#define TARN_BASE_OS_PAGES_H_

#include "base/os.h"

// Bytes of a stretch.
#define TARN__OS_HUGE ((size_t)2 << 20)

// Puts memory behind |size| bytes of the file from |offset| on, on usual pages;
// those that have some keep it. False with errno where the kernel refuses: what
// was put there until then stays until the file goes.
TARN_MUST_CHECK bool tarn__os_allocate_file(int fd, size_t offset, size_t size);

// Puts memory behind |size| bytes of the file from |offset| on, whatever they
// are; those that have some keep it, and their bytes. |*out_huge|: how many of
// them are on huge pages by this call. Needs Linux 6.1 for any.
//
// Cost: clearing the memory; up to 34 MiB of addresses meanwhile.
// False with errno ENOMEM or ENOSPC where memory, addresses or the file system
// are used up, EFBIG where the process may not have files as large, EINVAL
// where the file has not those bytes, or what the kernel says. What was put
// there until then stays until the file goes.
TARN_MUST_CHECK bool tarn__os_commit_file(int fd, size_t offset, size_t size,
                                          size_t *out_huge);

// Puts the whole stretches of |size| bytes of private memory at |ptr| on huge
// pages, as far as the kernel gives some; bytes stay what they are. Needs Linux
// 6.1.
//
// Cost: clearing the memory.
void tarn__os_collapse(void *ptr, size_t size);

// The first |size| bytes of the file at addresses of their own, to be read and
// written, shared with whoever else maps it; at a multiple of a stretch if it
// has one, so that huge pages of the file are huge here. tarn__os_unmap takes
// it out. NULL with errno if the kernel refuses.
TARN_MUST_CHECK void *tarn__os_map_shared(int fd, size_t size);

typedef struct tarn__os_pages {
  size_t page_size;   // of the smallest page there
  size_t huge_bytes;  // on huge pages: what is mapped by one, as a file's is
                      // only at a fitting address. Linux 6.7; before, at least
} tarn__os_pages;

// What pages |size| bytes at |ptr| are on. One byte of each stretch is read, so
// memory must be behind them. False: nothing that can be read is mapped there,
// or the kernel does not tell; then |*out| is zero.
TARN_MUST_CHECK bool tarn__os_look_at_pages(const void *ptr, size_t size,
                                            tarn__os_pages *out);

// The same for kernels before 6.7, of what has been touched: where the range is
// only a part of a mapping, as many huge pages as can be are taken to be in the
// rest.
TARN_MUST_CHECK bool tarn__os_look_at_mappings(const void *ptr, size_t size,
                                               tarn__os_pages *out);

// The NUMA node of the page at |ptr|, which must have been touched; -1: there
// is none, or the kernel does not tell.
int tarn__os_node_of(const void *ptr);

#endif  // TARN_BASE_OS_PAGES_H_
