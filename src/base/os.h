// os.h - the operating system: the only room that maps and asks the kernel.
//
// Addresses and sizes of the mapping calls are multiples of tarn__os_page();
// nothing here takes a lock, keeps state but the fork generation, or needs
// any other part of Tarn.
#ifndef TARN_BASE_OS_H_
#define TARN_BASE_OS_H_

#include "tarn/base.h"

// Bytes of a page of this machine.
size_t tarn__os_page(void);

// |size| bytes of private, zero, anonymous memory, not yet resident; NULL if
// the kernel refuses. Give it back with the same size.
void *tarn__os_map(size_t size);
void tarn__os_unmap(void *ptr, size_t size);

// Bytes of memory that this process may hope for: the machine's, or less
// where a control group caps it. Available: what could be had now without
// swapping. Both 0 if the kernel does not say.
void tarn__os_memory(size_t *out_total, size_t *out_available);

// Nanoseconds of a clock that only goes forward.
uint64_t tarn__os_now_ns(void);

// How many forks lie between this process and the one that first asked. An
// object remembers the number at its making; where it differs, the object
// belongs to a parent (see docs/contracts.md). One relaxed load.
uint32_t tarn__os_generation(void);

// Reads the whole regular file at |path| into memory from tarn__host_alloc.
//
// TARN_E_IO     cannot be opened, is not a regular file, or a read fails.
// TARN_E_NOMEM  no memory for it.
// The text names the path in each case. A file that grows while it is read is
// read up to the size that it had at the start; one that shrinks gives what
// was there.
TARN_MUST_CHECK tarn_status tarn__os_read_file(const char *path,
                                               unsigned char **out_bytes,
                                               size_t *out_size);

#endif  // TARN_BASE_OS_H_
