// Files by offset: ends, sizes, the page cache, and refusals.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/os.h"
#include "support/run.h"

enum { PAGE = 4096, SIZE = 64 * PAGE };

static char folder[64];
static char path[80];

static void begin(void) {
  snprintf(folder, sizeof folder, "/tmp/tarn-disk-XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/x", folder);
  int fd = open(path, O_CREAT | O_WRONLY, 0600);
  ck_assert_int_ge(fd, 0);
  ck_assert_int_eq(close(fd), 0);
}

static void end(void) {
  ck_assert_int_eq(unlink(path), 0);
  ck_assert_int_eq(rmdir(folder), 0);
}

FIXTURE(begin, end);

static int open_or_fail(tarn__os_opening how) {
  int fd = tarn__os_open(path, how);
  ck_assert_int_ge(fd, 3);
  return fd;
}

TEST(bytes_are_where_they_were_written) {
  char bytes[100];
  size_t got = 0;
  uint64_t size = 0;
  int fd = open_or_fail(TARN__OS_TO_WRITE);
  ck_assert(tarn__os_write_at(fd, 5000, "here", 4));
  ck_assert(tarn__os_file_size(fd, &size));
  ck_assert_uint_eq(size, 5004);
  ck_assert(tarn__os_read_at(fd, 4998, bytes, sizeof bytes, &got));
  ck_assert_uint_eq(got, 6);
  ck_assert_mem_eq(bytes, "\0\0here", 6);
  ck_assert(tarn__os_read_at(fd, 6000, bytes, sizeof bytes, &got));
  ck_assert_uint_eq(got, 0);
  tarn__os_close(fd);
}

TEST(a_file_is_claimed_once) {
  int one = open_or_fail(TARN__OS_TO_WRITE);
  int other = open_or_fail(TARN__OS_TO_WRITE);
  ck_assert(tarn__os_claim(one));
  ck_assert(!tarn__os_claim(other));
  ck_assert_int_eq(errno, EWOULDBLOCK);
  tarn__os_close(one);
  ck_assert(tarn__os_claim(other));
  tarn__os_close(other);
}

TEST(a_file_gets_any_size) {
  static const uint64_t sizes[] = {SIZE, 100, 0, 5000};
  uint64_t size = 1;
  int fd = open_or_fail(TARN__OS_TO_WRITE);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    ck_assert(tarn__os_resize(fd, sizes[i]));
    ck_assert(tarn__os_file_size(fd, &size));
    ck_assert_uint_eq(size, sizes[i]);
  }
  ck_assert(tarn__os_sync(fd));
  ck_assert(tarn__os_sync_folder(path));
  ck_assert(tarn__os_sync_folder("relative"));
  tarn__os_close(fd);
}

TEST(what_is_cached_is_known) {
  char bytes[PAGE];
  memset(bytes, 7, sizeof bytes);
  int fd = open_or_fail(TARN__OS_TO_WRITE);
  for (size_t i = 0; i < SIZE; i += PAGE)
    ck_assert(tarn__os_write_at(fd, i, bytes, PAGE));
  ck_assert(tarn__os_is_cached(fd, 0, SIZE));
  ck_assert(tarn__os_is_cached(fd, 8 * PAGE, PAGE));
  ck_assert(tarn__os_sync(fd));
  ck_assert_int_eq(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
  if (tarn__os_is_cached(fd, 0, SIZE)) {
    note_skipped("a file that is not cached", "/tmp keeps what it has");
  } else {
    // The question brings nothing there.
    ck_assert(!tarn__os_is_cached(fd, 0, SIZE));
  }
  tarn__os_close(fd);
}

TEST(refusals_have_their_reason) {
  uint64_t size = 1;
  size_t got = 1;
  char byte = 0;
  ck_assert_int_lt(tarn__os_open("/no/such/file", TARN__OS_TO_READ), 0);
  ck_assert_int_eq(errno, ENOENT);
  ck_assert(!tarn__os_sync_folder("/no/such/file"));
  ck_assert_int_eq(errno, ENOENT);
  int fd = tarn__os_open("/dev/null", TARN__OS_TO_READ);
  ck_assert_int_ge(fd, 0);
  ck_assert(!tarn__os_file_size(fd, &size));
  ck_assert_int_eq(errno, EINVAL);
  ck_assert(!tarn__os_write_at(fd, 0, "x", 1));
  ck_assert_int_eq(errno, EBADF);
  tarn__os_close(fd);
  ck_assert(!tarn__os_read_at(-1, 0, &byte, 1, &got));
  ck_assert_int_eq(errno, EBADF);
  ck_assert_uint_eq(got, 0);
  ck_assert(!tarn__os_sync(-1));
  ck_assert(!tarn__os_resize(-1, 5));
  ck_assert(!tarn__os_is_cached(-1, 0, PAGE));
}
