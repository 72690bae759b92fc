// io_ground.h - what the tests of queues of reads and writes stand on.
#ifndef TARN_TESTS_BASE_IO_GROUND_H_
#define TARN_TESTS_BASE_IO_GROUND_H_

#include "base/io.h"
#include "support/run.h"

enum { IO_RING, IO_THREADS, IO_METHODS };

// A queue by |method|, closed after the test. NULL, after a note, where the
// system has no io_uring.
tarn__io *io_open_by(int method, tarn__io_options options);

// A new file of |size| bytes that differ, on the disk, opened with |flags|
// besides O_RDWR; closed and gone after the test. -1: the file system does not
// allow it.
int io_file(size_t size, int flags);

// The byte of such a file at |offset|.
unsigned char io_byte(uint64_t offset);
bool io_bytes_are(const unsigned char *bytes, size_t size, uint64_t offset);

// |size| bytes at a multiple of 4096, freed after the test.
unsigned char *io_memory(size_t size);

// One request of |action| from submit to wait; it is the only one.
tarn__io_request io_do(tarn__io *io, tarn__io_action action, int fd, void *data,
                       size_t size, uint64_t offset);

// It was done whole.
#define assert_whole(request)                    \
  do {                                           \
    tarn__io_request whole_ = (request);         \
    ck_assert_int_eq(whole_.error, 0);           \
    ck_assert_uint_eq(whole_.done, whole_.size); \
  } while (0)

// It was done up to |bytes|, and then failed with |reason|; 0: the file ended.
#define assert_short(request, bytes, reason)  \
  do {                                        \
    tarn__io_request short_ = (request);      \
    ck_assert_int_eq(short_.error, (reason)); \
    ck_assert_uint_eq(short_.done, (bytes));  \
  } while (0)

// |times| reads and writes at random places of a file of IO_TRIAL_SIZE bytes,
// compared with a model in memory. |align|: of offsets, sizes and memory; 4096
// for direct I/O.
void io_try(tarn__io *io, int fd, size_t times, size_t align, uint64_t seed);

enum { IO_TRIAL_SIZE = 48 * 8192 };

#endif  // TARN_TESTS_BASE_IO_GROUND_H_
