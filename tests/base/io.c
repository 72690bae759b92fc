// Queues of reads and writes, by both methods.
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/os.h"
#include "io_watched.h"
#include "support/child.h"
#include "support/effort.h"
#include "support/faults.h"

#define MIB ((size_t)1 << 20)

static const size_t TIMES = EFFORT(1000, 300);

// --- a model ---------------------------------------------------------------

// Of a loop over both methods, and three depths.
static tarn__io *open_deep(int i, const tarn__io_watch *watched) {
  static const size_t depths[] = {1, 7, 64};
  return io_open_by(
      i % IO_METHODS,
      (tarn__io_options){
          .depth = depths[i / IO_METHODS], .workers = 5, .watch = watched});
}

enum { DEEP = 3 * IO_METHODS };

TEST_LOOP(random_reads_and_writes_match_a_model, DEEP) {
  tarn__io *io = open_deep(_i, NULL);
  if (io == NULL) return;
  io_try(io, io_file(IO_TRIAL_SIZE, 0), TIMES, 1, (uint64_t)_i);
}

TEST_LOOP(short_and_interrupted_ones_match_a_model, DEEP) {
  tarn__io *io = open_deep(_i, &watch);
  if (io == NULL) return;
  seen.unit = 1;
  seen.interrupted = true;
  io_try(io, io_file(IO_TRIAL_SIZE, 0), TIMES, 1, (uint64_t)_i);
  ck_assert_uint_eq(seen.under_way, 0);
  ck_assert_uint_gt(seen.parts, 2 * TIMES);
}

TEST_LOOP(direct_ones_match_a_model, DEEP) {
  int fd = io_file(IO_TRIAL_SIZE, O_DIRECT);
  tarn__io *io = open_deep(_i, &watch);
  if (fd < 0) note_skipped("direct I/O", "not on the file system of /tmp");
  if (fd < 0 || io == NULL) return;
  seen.unit = 4096;
  seen.interrupted = true;
  io_try(io, fd, TIMES, 4096, (uint64_t)_i);
}

// --- the depth -------------------------------------------------------------

// A read of each of the first |count| bytes of the file.
static void submit_bytes(tarn__io *io, int fd, tarn__io_request *requests,
                         unsigned char *bytes, size_t count) {
  for (size_t i = 0; i < count; i++) {
    requests[i] =
        (tarn__io_request){.fd = fd, .data = &bytes[i], .size = 1, .offset = i};
    tarn__io_submit(io, &requests[i]);
  }
}

TEST_LOOP(no_more_than_the_depth_are_under_way, IO_METHODS) {
  enum { COUNT = 100, DEPTH = 6 };
  static tarn__io_request requests[COUNT];
  static unsigned char bytes[COUNT];
  int fd = io_file(COUNT, 0);
  tarn__io *io =
      io_open_by(_i, (tarn__io_options){.depth = DEPTH, .watch = &watch});
  if (io == NULL) return;
  submit_bytes(io, fd, requests, bytes, COUNT);
  ck_assert_uint_eq(tarn__io_count(io), COUNT);
  ck_assert_uint_eq(seen.parts, 0);
  tarn__io_start(io);
  ck_assert_uint_eq(seen.parts, DEPTH);
  for (size_t i = COUNT; i > 0; i--) {
    ck_assert_uint_eq(tarn__io_count(io), i);
    ck_assert_ptr_nonnull(tarn__io_wait(io));
  }
  ck_assert_uint_eq(seen.most_under_way, DEPTH);
  ck_assert_ptr_null(tarn__io_wait(io));
  ck_assert_ptr_null(tarn__io_poll(io));
  ck_assert(io_bytes_are(bytes, COUNT, 0));
}

// What is done at once would otherwise be done long before it is looked at.
TEST_LOOP(the_queue_does_not_run_ahead, IO_METHODS) {
  enum { COUNT = 100, DEPTH = 8 };
  static tarn__io_request requests[COUNT];
  static unsigned char bytes[COUNT];
  int fd = io_file(COUNT, 0);
  tarn__io *io =
      io_open_by(_i, (tarn__io_options){.depth = DEPTH, .watch = &watch});
  if (io == NULL) return;
  submit_bytes(io, fd, requests, bytes, COUNT);
  for (size_t i = 1; i <= COUNT; i++) {
    ck_assert_ptr_nonnull(tarn__io_wait(io));
    ck_assert_uint_lt(seen.parts, i + DEPTH + DEPTH / 2);
  }
}

// Also while there is something to look at.
TEST_LOOP(a_batch_of_16_is_sent, IO_METHODS) {
  enum { FIRST = 10, COUNT = FIRST + 16 };
  static tarn__io_request requests[COUNT];
  static unsigned char bytes[COUNT];
  int fd = io_file(COUNT, 0);
  tarn__io *io = io_open_by(_i, (tarn__io_options){.watch = &watch});
  if (io == NULL) return;
  for (size_t i = 0; i < COUNT; i++) {
    requests[i] =
        (tarn__io_request){.fd = fd, .data = &bytes[i], .size = 1, .offset = i};
    tarn__io_submit(io, &requests[i]);
    if (i + 1 == FIRST) {
      tarn__io_start(io);
      await_sleeping_threads();
      ck_assert_ptr_nonnull(tarn__io_wait(io));
      ck_assert_uint_ge(seen.moved, 3);
    }
    if (i + 2 < COUNT) continue;
    ck_assert_ptr_nonnull(tarn__io_wait(io));
    ck_assert_uint_eq(seen.parts, i + 1 < COUNT ? FIRST : COUNT);
  }
}

TEST_LOOP(nothing_set_means_a_depth_of_64, IO_METHODS) {
  enum { COUNT = 80 };
  static tarn__io_request requests[COUNT];
  tarn__io *io = io_open_by(_i, (tarn__io_options){.watch = &watch});
  if (io == NULL) return;
  for (size_t i = 0; i < COUNT; i++) {
    requests[i] = (tarn__io_request){.fd = -1};
    tarn__io_submit(io, &requests[i]);
  }
  tarn__io_start(io);
  ck_assert_uint_eq(seen.parts, 64);
  tarn__io *plain = NULL;
  assert_ok(tarn__io_open(NULL, &plain));
  assert_short(io_do(plain, TARN__IO_READ, -1, NULL, 1, 0), 0, EBADF);
  tarn__io_close(plain);
}

TEST_LOOP(a_poll_sends_and_does_not_wait, IO_METHODS) {
  unsigned char byte = 0;
  int fd = io_file(1, 0);
  tarn__io *io = io_open_by(_i, (tarn__io_options){.watch = &watch});
  if (io == NULL) return;
  tarn__io_request request = {.fd = fd, .data = &byte, .size = 1};
  tarn__io_submit(io, &request);
  ck_assert_uint_eq(seen.parts, 0);
  while (tarn__io_count(io) > 0) {
    tarn__io_request *done = tarn__io_poll(io);
    ck_assert(done == NULL || done == &request);
  }
  ck_assert_uint_eq(seen.parts, 1);
  ck_assert_uint_eq(byte, io_byte(0));
}

// --- the end of the file ---------------------------------------------------

TEST_LOOP(a_read_ends_with_the_file, IO_METHODS) {
  unsigned char *bytes = io_memory(16384);
  int fd = io_file(5000, 0);
  tarn__io *io = io_open_by(_i, (tarn__io_options){.watch = &watch});
  if (io == NULL) return;
  assert_whole(io_do(io, TARN__IO_READ, fd, bytes, 5000, 0));
  ck_assert_uint_eq(seen.parts, 1);
  assert_short(io_do(io, TARN__IO_READ, fd, bytes, 5001, 0), 5000, 0);
  assert_short(io_do(io, TARN__IO_READ, fd, bytes, 100, 4990), 10, 0);
  assert_short(io_do(io, TARN__IO_READ, fd, bytes, 100, 5000), 0, 0);
  assert_short(io_do(io, TARN__IO_READ, fd, bytes, 100, 1 << 30), 0, 0);
  assert_whole(io_do(io, TARN__IO_READ, fd, NULL, 0, 0));
  seen.unit = 999;
  assert_short(io_do(io, TARN__IO_READ, fd, bytes, 16384, 1), 4999, 0);
  ck_assert(io_bytes_are(bytes, 4999, 1));
}

TEST_LOOP(a_direct_read_ends_with_the_file, IO_METHODS) {
  unsigned char *bytes = io_memory(16384);
  int fd = io_file(5000, O_DIRECT);
  tarn__io *io = io_open_by(_i, (tarn__io_options){.watch = &watch});
  if (fd < 0) note_skipped("direct I/O", "not on the file system of /tmp");
  if (fd < 0 || io == NULL) return;
  assert_short(io_do(io, TARN__IO_READ, fd, bytes, 16384, 0), 5000, 0);
  ck_assert(io_bytes_are(bytes, 5000, 0));
  assert_short(io_do(io, TARN__IO_READ, fd, bytes, 8192, 4096), 904, 0);
  assert_short(io_do(io, TARN__IO_READ, fd, bytes, 4096, 8192), 0, 0);
  seen.unit = 4096;
  assert_short(io_do(io, TARN__IO_READ, fd, bytes, 16384, 0), 5000, 0);
}

// As of a file system that cannot read directly from where another part ended.
// At the end of the file nothing is read then that was not read before.
TEST_LOOP(direct_parts_begin_at_blocks, 2 * IO_METHODS) {
  unsigned char *bytes = io_memory(16384);
  bool at_end = _i >= IO_METHODS;
  int fd = io_file(16384, O_DIRECT);
  tarn__io *io =
      io_open_by(_i % IO_METHODS, (tarn__io_options){.watch = &watch});
  if (fd < 0) note_skipped("direct I/O", "not on the file system of /tmp");
  if (fd < 0 || io == NULL) return;
  seen.done = 5000;
  tarn__io_request request = {.fd = fd, .data = bytes, .size = 16384};
  tarn__io_submit(io, &request);
  tarn__io_start(io);
  while (seen.moved == 0)
    require(tarn__io_poll(io) == NULL);
  seen.done = at_end ? 500 : 0;
  ck_assert_ptr_eq(tarn__io_wait(io), &request);
  assert_short(request, at_end ? 5000 : 16384, 0);
  ck_assert_uint_eq(seen.parts, 3);
  ck_assert_uint_eq(seen.from, 4096);
  ck_assert(io_bytes_are(bytes, request.done, 0));
}

TEST_LOOP(a_request_may_be_submitted_again, IO_METHODS) {
  unsigned char bytes[100] = {0};
  int fd = io_file(100, 0);
  tarn__io *io = io_open_by(_i, (tarn__io_options){.watch = &watch});
  if (io == NULL) return;
  seen.unit = 30;
  tarn__io_request request = {.fd = fd, .data = bytes, .size = 100};
  for (int i = 0; i < 3; i++) {
    memset(bytes, 0, sizeof bytes);
    request.fd = i == 1 ? -1 : fd;
    tarn__io_submit(io, &request);
    ck_assert_ptr_eq(tarn__io_wait(io), &request);
    assert_short(request, i == 1 ? 0 : 100, i == 1 ? EBADF : 0);
    ck_assert(i == 1 || io_bytes_are(bytes, 100, 0));
  }
}

TEST_LOOP(a_write_that_moves_nothing_has_failed, IO_METHODS) {
  unsigned char bytes[100] = {0};
  int fd = io_file(0, 0);
  tarn__io *io = io_open_by(_i, (tarn__io_options){.watch = &watch});
  if (io == NULL) return;
  assert_whole(io_do(io, TARN__IO_WRITE, fd, bytes, 0, 5));
  seen.fail = 1;
  assert_short(io_do(io, TARN__IO_WRITE, fd, bytes, 100, 0), 0, EIO);
}

// --- failures --------------------------------------------------------------

TEST_LOOP(each_request_fails_alone, IO_METHODS) {
  enum { COUNT = 40 };
  static tarn__io_request requests[COUNT];
  static unsigned char bytes[COUNT];
  int fd = io_file(COUNT, 0);
  tarn__io *io = io_open_by(_i, (tarn__io_options){.depth = 16});
  if (io == NULL) return;
  for (size_t i = 0; i < COUNT; i++) {
    requests[i] = (tarn__io_request){.fd = i % 3 == 0 ? -1 : fd,
                                     .data = i % 5 == 1 ? NULL : &bytes[i],
                                     .size = 1,
                                     .offset = i};
    tarn__io_submit(io, &requests[i]);
  }
  while (tarn__io_count(io) > 0)
    ck_assert_ptr_nonnull(tarn__io_wait(io));
  for (size_t i = 0; i < COUNT; i++) {
    int error = i % 3 == 0 ? EBADF : i % 5 == 1 ? EFAULT : 0;
    assert_short(requests[i], error == 0 ? 1 : 0, error);
    ck_assert_uint_eq(bytes[i], error == 0 ? io_byte(i) : 0);
  }
}

TEST_LOOP(the_system_says_why, IO_METHODS) {
  unsigned char byte = 0;
  int ends[2];
  int fd = io_file(1, 0);
  int reader = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  tarn__io *io = io_open_by(_i, (tarn__io_options){.depth = 4});
  if (io == NULL) return;
  ck_assert_int_eq(pipe(ends), 0);
  assert_short(io_do(io, TARN__IO_WRITE, reader, &byte, 1, 0), 0, EBADF);
  assert_short(io_do(io, TARN__IO_DATASYNC, -1, NULL, 0, 0), 0, EBADF);
  assert_short(io_do(io, TARN__IO_DATASYNC, ends[0], NULL, 0, 0), 0, EINVAL);
  assert_short(io_do(io, TARN__IO_READ, fd, &byte, 1, UINT64_MAX), 0, EINVAL);
  assert_short(io_do(io, TARN__IO_READ, fd, &byte, 1, INT64_MAX), 0, EINVAL);
  assert_short(io_do(io, TARN__IO_READ, fd, &byte, SIZE_MAX, 1), 0, EINVAL);
  assert_short(io_do(io, TARN__IO_READ, fd, &byte, 1, INT64_MAX - 1), 0, 0);
}

// Each part of a request that has several.
TEST_LOOP(parts_that_fail_are_told, IO_METHODS) {
  static const int errors[] = {EIO, ENOSPC};
  enum { PARTS = 5 };
  unsigned char bytes[PARTS * 10];
  int fd = io_file(sizeof bytes, 0);
  tarn__io *io = io_open_by(_i, (tarn__io_options){.watch = &watch});
  if (io == NULL) return;
  for (size_t i = 0; i < 2 * PARTS; i++) {
    size_t n = i / 2;
    seen.unit = 10;
    seen.error = errors[i % 2];
    seen.refuse = i % 2 == 0 ? n + 1 : 0;
    seen.fail = i % 2 == 1 ? n + 1 : 0;
    tarn__io_request request = {.action = (tarn__io_action)(n % 2),
                                .fd = fd,
                                .data = bytes,
                                .size = sizeof bytes};
    memset(bytes, 0, sizeof bytes);
    size_t parts = seen.parts;
    tarn__io_submit(io, &request);
    ck_assert_ptr_eq(tarn__io_wait(io), &request);
    if (seen.refuse == 0 && seen.fail == 0) {
      ck_assert_int_eq(request.error, errors[i % 2]);
      ck_assert_uint_lt(request.done, sizeof bytes);
      ck_assert_uint_eq(seen.parts, parts + n + 1);
    } else {
      assert_whole(request);
    }
    seen.refuse = seen.fail = 0;
  }
}

static void open_and_read(void *method) {
  unsigned char byte = 0;
  tarn__io *io = NULL;
  tarn__io_options options = {.threads = *(int *)method == IO_THREADS};
  tarn_status status = tarn__io_open(&options, &io);
  ck_assert_int_eq(status == TARN_OK, io != NULL);
  if (status != TARN_OK) {
    ck_assert_int_eq(status, TARN_E_NOMEM);
    return;
  }
  assert_short(io_do(io, TARN__IO_READ, -1, &byte, 1, 0), 0, EBADF);
  tarn__io_close(io);
}

TEST_LOOP(memory_may_be_refused, IO_METHODS) {
  tarn__io *io = NULL;
  faults_install();
  ck_assert_uint_ge(faults_sweep(open_and_read, &_i), 4);
  faults_arm(2, FAULTS_ONCE);
  assert_status(tarn__io_open(NULL, &io), TARN_E_NOMEM);
  ck_assert(faults_disarm());
}

// --- the page cache --------------------------------------------------------

// Whether the page cache can be told to forget the file, and says so.
static bool forgets(int fd) {
  unsigned char byte = 0;
  struct iovec vector = {&byte, 1};
  ck_assert_int_eq(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM), 0);
  ck_assert_int_eq(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
  return preadv2(fd, &vector, 1, 0, RWF_NOWAIT) < 0 && errno == EAGAIN;
}

static tarn__io_request read_cached(tarn__io *io, int fd, void *data,
                                    size_t size, uint64_t offset) {
  tarn__io_request request = {.flags = TARN__IO_NO_WAIT,
                              .fd = fd,
                              .data = data,
                              .size = size,
                              .offset = offset};
  tarn__io_submit(io, &request);
  ck_assert_ptr_eq(tarn__io_wait(io), &request);
  return request;
}

TEST_LOOP(what_is_cached_is_read_without_waiting, IO_METHODS) {
  unsigned char *bytes = io_memory(MIB);
  int fd = io_file(MIB, 0);
  tarn__io *io = io_open_by(_i, (tarn__io_options){.depth = 4});
  if (io == NULL) return;
  assert_whole(read_cached(io, fd, bytes, MIB, 0));
  ck_assert(io_bytes_are(bytes, MIB, 0));
  assert_short(read_cached(io, fd, bytes, 100, MIB - 10), 10, 0);
}

// A try makes the kernel read, which it may have done before it answers, or
// before the rest is tried.
TEST_LOOP(what_is_not_cached_is_told, IO_METHODS) {
  enum { TRIES = 100, READ = 8192 };
  unsigned char *bytes = io_memory(MIB);
  int fd = io_file(MIB, 0);
  bool told = false;
  tarn__io *io = io_open_by(_i, (tarn__io_options){.depth = 4});
  if (io == NULL) return;
  for (int i = 0; i < TRIES && !told; i++) {
    size_t cached = i % 2 == 0 ? 0 : READ;
    if (!forgets(fd)) continue;
    ck_assert_int_eq(pread(fd, bytes, cached, 0), (ssize_t)cached);
    tarn__io_request request = read_cached(io, fd, bytes, MIB, 0);
    ck_assert_int_eq(request.error, request.done < MIB ? EAGAIN : 0);
    ck_assert_uint_ge(request.done, cached);
    ck_assert(io_bytes_are(bytes, request.done, 0));
    told = cached != 0 && request.error != 0;
  }
  if (!told) note_skipped("bytes that are not cached", "the kernel has all");
  assert_whole(io_do(io, TARN__IO_READ, fd, bytes, MIB, 0));
}

// As files in memory do, of most kernels.
TEST_LOOP(a_file_system_may_not_know_its_cache, IO_METHODS) {
  unsigned char byte = 0;
  struct iovec vector = {&byte, 1};
  int fd = tarn__os_memory_file("test-io", 4096);
  tarn__io *io = io_open_by(_i, (tarn__io_options){.depth = 4});
  if (io == NULL) return;
  if (preadv2(fd, &vector, 1, 0, RWF_NOWAIT) >= 0 || errno != EOPNOTSUPP) {
    note_skipped("EOPNOTSUPP", "files in memory know what is cached");
    return;
  }
  assert_short(read_cached(io, fd, &byte, 1, 0), 0, EOPNOTSUPP);
  tarn__os_close(fd);
}

// --- the order of writes and syncs -----------------------------------------

TEST_LOOP(a_watch_sees_the_order_of_writes_and_syncs, IO_METHODS) {
  enum { COUNT = 3 };
  tarn__io_request writes[COUNT];
  unsigned char bytes[COUNT * 10] = {0};
  int fd = io_file(0, 0);
  tarn__io *io = io_open_by(_i, (tarn__io_options){.watch = &watch});
  if (io == NULL) return;
  for (size_t i = 0; i < COUNT; i++) {
    writes[i] = (tarn__io_request){.action = TARN__IO_WRITE,
                                   .fd = fd,
                                   .data = bytes + i * 10,
                                   .size = 10,
                                   .offset = i * 10};
    tarn__io_submit(io, &writes[i]);
  }
  for (size_t i = 0; i < COUNT; i++)
    ck_assert_ptr_nonnull(tarn__io_wait(io));
  assert_whole(io_do(io, TARN__IO_DATASYNC, fd, NULL, 0, 0));
  ck_assert_str_eq(seen.log, "WWWwwwSs");
  // One that is under way meanwhile is not covered.
  tarn__io_request sync = {.action = TARN__IO_DATASYNC, .fd = fd};
  tarn__io_submit(io, &writes[0]);
  tarn__io_submit(io, &sync);
  ck_assert_ptr_nonnull(tarn__io_wait(io));
  ck_assert_ptr_nonnull(tarn__io_wait(io));
  ck_assert_int_eq(strncmp(seen.log, "WWWwwwSsWS", 10), 0);
}
