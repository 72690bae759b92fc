// os_pages.h - memory behind files in memory, and what pages it is on.
//
// A new file of tarn__os_memory_file has its size and its seals, but no memory:
// the first access to a page allocates it, or raises SIGBUS if memory is used
// up. So memory is committed before any access, by one process or by several,
// each for its own part, which also decides the NUMA node:
//
//              unit         unit         unit        unit
//   file    |------------|------------|------------|------|
//   parts   | first    | second           | third         |
//   commits | first      | second     | third             |
//
// A unit, 2 MiB at a multiple of that, can become one huge page. The process
// whose part has its first byte commits all of it. The rest of a file behind
// its last whole unit gets small pages, and so does a unit for which the kernel
// has no huge page.
#ifndef TARN_BASE_OS_PAGES_H_
#define TARN_BASE_OS_PAGES_H_

#include "base/os.h"

// Bytes of a unit.
#define TARN__OS_HUGE ((size_t)2 << 20)

// Commits |size| bytes of the file from |offset| on, on small pages. Bytes with
// memory keep it. False with errno if the kernel refuses: memory committed
// until then stays until the file ends.
TARN_MUST_CHECK bool tarn__os_allocate_file(int fd, size_t offset, size_t size);

// Commits any |size| bytes of the file from |offset| on. Bytes with memory keep
// it and their contents. |*out_huge| is the number of bytes that this call has
// put on huge pages, which needs Linux 6.1.
//
// Cost: clearing the memory; up to 34 MiB of addresses meanwhile.
// False with errno ENOMEM or ENOSPC if memory, addresses or the file system are
// used up, EFBIG if the limit on file sizes is lower, EINVAL if the file is
// shorter, or another error of the kernel. Memory committed until then stays
// until the file ends.
TARN_MUST_CHECK bool tarn__os_commit_file(int fd, size_t offset, size_t size,
                                          size_t *out_huge);

// Puts the whole units of |size| bytes of private memory at |ptr| on huge
// pages, as far as the kernel has any, and keeps their contents. Needs
// Linux 6.1.
//
// Cost: clearing the memory.
void tarn__os_collapse(void *ptr, size_t size);

// Asks for huge pages in private memory, once it is touched, where the kernel
// gives them on request. Not touched, it takes no memory.
void tarn__os_ask_huge(void *ptr, size_t size);

// Maps the first |size| bytes of the file, readable, writable and shared with
// other processes. A file of at least one unit is mapped at a multiple of a
// unit, so that its huge pages are huge here. tarn__os_unmap unmaps it. NULL
// with errno if the kernel refuses.
TARN_MUST_CHECK void *tarn__os_map_shared(int fd, size_t size);

typedef struct tarn__os_pages {
  size_t page_size;   // of the smallest page there
  size_t huge_bytes;  // mapped by huge pages, for a file only at an aligned
                      // address. Exact from Linux 6.7 on; before, at least
} tarn__os_pages;

// Finds the pages of |size| bytes at |ptr|. Reads one byte of each unit, so the
// memory must be committed. False if no readable memory is mapped there, or the
// kernel gives no answer; then |*out| is zero.
TARN_MUST_CHECK bool tarn__os_look_at_pages(const void *ptr, size_t size,
                                            tarn__os_pages *out);

// The same for kernels before 6.7, of accessed memory. If the range is a part
// of a mapping, as many huge pages as possible are assumed to be in the rest.
TARN_MUST_CHECK bool tarn__os_look_at_mappings(const void *ptr, size_t size,
                                               tarn__os_pages *out);

// The NUMA node of the page at |ptr|, which must have been accessed; -1 if it
// has none or the kernel gives no answer.
int tarn__os_node_of(const void *ptr);

#endif  // TARN_BASE_OS_PAGES_H_
