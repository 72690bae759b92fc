// The operating system's side.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "support/faults.h"
#include "support/run.h"

static char folder[] = "/tmp/tarn-test-XXXXXX";

static void make_folder(void) {
  ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void) {
  char command[64];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  ck_assert_int_eq(system(command), 0);
}

static const char *path_of(const char *name) {
  static char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static void write_file(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  ck_assert_ptr_nonnull(file);
  ck_assert_int_ge(fputs(text, file), 0);
  fclose(file);
}

TEST(mapped_memory_is_zero_and_goes_away) {
  size_t page = tarn__os_page();
  ck_assert(tarn_is_power_of_two(page));
  char *bytes = tarn__os_map(4 * page);
  ck_assert_ptr_nonnull(bytes);
  for (size_t i = 0; i < 4 * page; i += page)
    ck_assert_int_eq(bytes[i], 0);
  memset(bytes, 1, 4 * page);
  tarn__os_unmap(bytes, 4 * page);
  ck_assert_ptr_null(tarn__os_map((size_t)1 << 62));
}

TEST(memory_of_the_machine_is_plausible) {
  size_t total = 0;
  size_t available = 0;
  tarn__os_memory(&total, &available);
  ck_assert_uint_gt(total, (size_t)64 << 20);
  ck_assert_uint_gt(available, 0);
  ck_assert_uint_le(available, total);
}

TEST(reserved_addresses_are_nobodys) {
  size_t size = (size_t)1 << 36;
  char *ptr = tarn__os_reserve(size);
  ck_assert_ptr_nonnull(ptr);
  ck_assert_int_eq(write(STDOUT_FILENO, ptr, 1), -1);  // EFAULT, not a signal
  ck_assert_int_eq(errno, EFAULT);
  tarn__os_unmap(ptr, size);
}

TEST(sparse_memory_is_zero_again_when_discarded) {
  size_t size = (size_t)1 << 36;
  size_t page = tarn__os_page();
  char *ptr = tarn__os_map_sparse(size);
  ck_assert_ptr_nonnull(ptr);
  memset(ptr + size - 3 * page, 1, 3 * page);
  tarn__os_discard(ptr + size - 2 * page, page);
  ck_assert_int_eq(ptr[size - 2 * page - 1], 1);
  ck_assert_int_eq(ptr[size - 2 * page], 0);
  ck_assert_int_eq(ptr[size - page - 1], 0);
  ck_assert_int_eq(ptr[size - page], 1);
  tarn__os_unmap(ptr, size);
}

TEST(aligned_addresses) {
  size_t page = tarn__os_page();
  for (size_t align = 1; align <= (size_t)1 << 30; align *= 8) {
    char *bytes = tarn__os_map_aligned(3 * page, align);
    char *range = tarn__os_reserve_aligned(2 * page, align);
    ck_assert_ptr_nonnull(bytes);
    ck_assert_ptr_nonnull(range);
    ck_assert_uint_eq((uintptr_t)bytes % align, 0);
    ck_assert_uint_eq((uintptr_t)range % align, 0);
    memset(bytes, 1, 3 * page);
    tarn__os_unmap(bytes, 3 * page);
    tarn__os_unmap(range, 2 * page);
    ck_assert(!tarn__os_is_mapped(bytes));
    ck_assert(!tarn__os_is_mapped(range + 2 * page - 1));
  }
  ck_assert_ptr_null(tarn__os_map_aligned(page, (size_t)1 << 63));
  ck_assert_ptr_null(tarn__os_map_aligned(SIZE_MAX - page + 1, 4 * page));
}

TEST(what_is_mapped_is_known) {
  size_t page = tarn__os_page();
  char *ptr = tarn__os_map(2 * page);
  ck_assert(tarn__os_is_mapped(ptr));
  ck_assert(tarn__os_is_mapped(ptr + 2 * page - 1));
  ck_assert(!tarn__os_is_mapped(NULL));
  ck_assert(!tarn__os_is_mapped((void *)(uintptr_t)64));
  tarn__os_unmap(ptr, 2 * page);
  ck_assert(!tarn__os_is_mapped(ptr));
}

// The kernel's copy faults as the program would, but without a signal.
static bool can_read(const void *ptr) {
  int ends[2];
  ck_assert_int_eq(pipe(ends), 0);
  bool can = write(ends[1], ptr, 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return can;
}

TEST(reserved_pages_become_memory_and_go) {
  size_t page = tarn__os_page();
  char *ptr = tarn__os_reserve(4 * page);
  ck_assert(!can_read(ptr));
  ck_assert(tarn__os_protect(ptr + page, page, TARN__OS_READ_WRITE));
  ck_assert(!can_read(ptr) && !can_read(ptr + 2 * page));
  ptr[page] = 7;
  ck_assert(tarn__os_protect(ptr + page, page, TARN__OS_READ));
  ck_assert_int_eq(ptr[page], 7);
  ck_assert(tarn__os_protect(ptr + page, page, TARN__OS_NONE));
  ck_assert(!can_read(ptr + page));
  ck_assert(tarn__os_vacate(ptr, 4 * page));
  ck_assert(tarn__os_protect(ptr, 4 * page, TARN__OS_READ));
  ck_assert_int_eq(ptr[page], 0);
  tarn__os_unmap(ptr, 4 * page);
  ck_assert(!tarn__os_protect(ptr, page, TARN__OS_READ));
}

TEST(bytes_move_and_addresses_stay) {
  size_t page = tarn__os_page();
  char *ptr = tarn__os_reserve(6 * page);
  ck_assert(tarn__os_can_relocate());
  ck_assert(tarn__os_protect(ptr, 2 * page, TARN__OS_READ_WRITE));
  memset(ptr, 7, 2 * page);
  ck_assert(tarn__os_relocate(ptr, ptr + 3 * page, 2 * page));
  ck_assert_int_eq(ptr[3 * page], 7);
  ck_assert_int_eq(ptr[5 * page - 1], 7);
  ck_assert(!can_read(ptr + 2 * page) && !can_read(ptr + 5 * page));
  ck_assert_int_eq(ptr[0], 0);
  ck_assert(tarn__os_vacate(ptr, 2 * page));
  ck_assert(!can_read(ptr));
  // Where nothing is, nothing is moved, and what is there stays.
  tarn__os_unmap(ptr + page, page);
  ck_assert(!tarn__os_relocate(ptr + page, ptr + 4 * page, page));
  ck_assert(tarn__os_is_mapped(ptr + 4 * page));
  tarn__os_unmap(ptr, 6 * page);
}

// As a program makes several mappings of its memory.
TEST(several_mappings_of_the_kernel_move_as_one) {
  enum { PAGES = 11 };
  size_t page = tarn__os_page();
  size_t size = PAGES * page;
  char *ptr = tarn__os_reserve(2 * size);
  ck_assert(tarn__os_protect(ptr, size, TARN__OS_READ_WRITE));
  for (size_t i = 0; i < PAGES; i++)
    ptr[i * page] = (char)i;
  ck_assert_int_eq(madvise(ptr + page, page, MADV_DONTFORK), 0);
  ck_assert_int_eq(madvise(ptr + 7 * page, 2 * page, MADV_DONTFORK), 0);
  ck_assert(tarn__os_relocate(ptr, ptr + size, size));
  for (size_t i = 0; i < PAGES; i++)
    ck_assert_int_eq(ptr[size + i * page], (char)i);
  tarn__os_unmap(ptr, 2 * size);
}

TEST(memory_is_emptied_in_its_place) {
  size_t page = tarn__os_page();
  char *ptr = tarn__os_map(2 * page);
  memset(ptr, 7, 2 * page);
  ck_assert(tarn__os_empty(ptr, page));
  ck_assert_int_eq(ptr[0], 0);
  ck_assert_int_eq(ptr[page], 7);
  tarn__os_unmap(ptr, 2 * page);
  ck_assert(!tarn__os_empty(ptr, page));
}

TEST(the_kernel_says_how_many_mappings_there_may_be) {
  ck_assert_uint_ge(tarn__os_most_mappings(), 1000);
}

TEST(files_in_memory_are_shared) {
  size_t page = tarn__os_page();
  int fd = tarn__os_memory_file("test", 2 * page);
  ck_assert_int_ge(fd, 0);
  char *ptr = tarn__os_reserve(4 * page);
  int other = tarn__os_duplicate(fd);
  ck_assert_int_ge(other, 0);
  ck_assert(tarn__os_map_file(ptr, 2 * page, fd));
  ck_assert(tarn__os_map_file(ptr + 2 * page, 2 * page, other));
  ck_assert(!can_read(ptr));
  ck_assert(tarn__os_protect(ptr, 4 * page, TARN__OS_READ_WRITE));
  ptr[page] = 9;
  ck_assert_int_eq(ptr[3 * page], 9);
  ck_assert_int_eq(ftruncate(fd, 0), -1);
  tarn__os_close(fd);
  tarn__os_close(other);
  ck_assert_int_eq(ptr[3 * page], 9);
  tarn__os_unmap(ptr, 4 * page);
  ck_assert_int_lt(tarn__os_memory_file("test", SIZE_MAX), 0);
  ck_assert_int_lt(tarn__os_duplicate(fd), 0);
}

TEST(mapped_pages_become_a_file_and_private_again) {
  size_t page = tarn__os_page();
  unsigned char *three = tarn__os_map_sparse(3 * page);
  unsigned char *other = tarn__os_map_sparse(page);
  int fd = tarn__os_memory_file("test", page);
  ck_assert(three != NULL && other != NULL && fd >= 0);
  memset(three, 7, 3 * page);
  ck_assert(tarn__os_put_file(three + page, page, fd));
  ck_assert(tarn__os_put_file(other, page, fd));
  ck_assert_uint_eq(three[page], 0);
  three[page] = 5;
  ck_assert_uint_eq(other[0], 5);
  ck_assert(tarn__os_put_sparse(three + page, page));
  ck_assert_uint_eq(three[page], 0);
  ck_assert_uint_eq(three[page - 1], 7);
  ck_assert_uint_eq(three[2 * page], 7);
  three[page] = 6;
  ck_assert_uint_eq(other[0], 5);
  ck_assert(!tarn__os_put_file(three, page, -1));
  ck_assert_uint_eq(three[0], 7);
  tarn__os_close(fd);
  tarn__os_unmap(other, page);
  tarn__os_unmap(three, 3 * page);
}

TEST(files_in_memory_are_told_from_others) {
  size_t page = tarn__os_page();
  int fd = tarn__os_memory_file("test", page);
  int ends[2];
  ck_assert_int_eq(pipe(ends), 0);
  ck_assert(tarn__os_is_memory_file(fd, "test", page));
  ck_assert(!tarn__os_is_memory_file(fd, "test", 2 * page));
  ck_assert(!tarn__os_is_memory_file(fd, "tes", page));
  ck_assert(!tarn__os_is_memory_file(ends[0], "test", page));
  ck_assert(!tarn__os_is_memory_file(ends[0], "test", 0));
  ck_assert(!tarn__os_is_memory_file(-1, "test", page));
  close(ends[0]);
  close(ends[1]);
  tarn__os_close(fd);
  ck_assert(!tarn__os_is_memory_file(fd, "test", page));
}

TEST(a_wait_is_no_shorter_than_asked) {
  for (uint64_t ns = 1; ns < 10000000; ns *= 10) {
    uint64_t deadline = tarn__os_now_ns() + ns;
    tarn__os_wait_until(deadline);
    ck_assert_uint_ge(tarn__os_now_ns(), deadline);
  }
  tarn__os_wait_until(0);
}

TEST(the_clock_goes_forward) {
  uint64_t before = tarn__os_now_ns();
  usleep(2000);
  ck_assert_uint_ge(tarn__os_now_ns() - before, 1900000);
}

// Sleep does not count.
TEST(busy_time_is_work) {
  uint64_t before = tarn__os_busy_ns();
  for (uint64_t now = before; now - before < 1000000;) {
    uint64_t next = tarn__os_busy_ns();
    require(next >= now);
    now = next;
  }
  uint64_t busy = tarn__os_busy_ns();
  uint64_t clock = tarn__os_now_ns();
  usleep(50000);
  uint64_t slept = tarn__os_now_ns() - clock;
  ck_assert_uint_lt(tarn__os_busy_ns() - busy, slept);
}

TEST(a_fork_is_another_generation) {
  uint32_t mine = tarn__os_generation();
  pid_t child = fork();
  if (child == 0) _exit(tarn__os_generation() == mine + 1 ? 0 : 1);
  int status = 0;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  ck_assert_uint_eq(tarn__os_generation(), mine);
}

TEST(files_are_read_whole) {
  unsigned char *bytes = NULL;
  size_t size = 0;
  write_file(path_of("a"), "twelve bytes");
  assert_ok(tarn__os_read_file(path_of("a"), SIZE_MAX, &bytes, &size));
  ck_assert_uint_eq(size, 12);
  ck_assert_mem_eq(bytes, "twelve bytes", 12);
  tarn__host_free(bytes, size);
  write_file(path_of("empty"), "");
  assert_ok(tarn__os_read_file(path_of("empty"), SIZE_MAX, &bytes, &size));
  ck_assert_uint_eq(size, 0);
  tarn__host_free(bytes, size);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

TEST(what_is_no_file_is_named) {
  unsigned char *bytes = NULL;
  size_t size = 0;
  assert_status(tarn__os_read_file(path_of("missing"), SIZE_MAX, &bytes, &size),
                TARN_E_IO);
  assert_error_says("missing: No such file");
  assert_status(tarn__os_read_file(folder, SIZE_MAX, &bytes, &size), TARN_E_IO);
  ck_assert_int_eq(mkfifo(path_of("pipe"), 0600), 0);
  assert_status(tarn__os_read_file(path_of("pipe"), SIZE_MAX, &bytes, &size),
                TARN_E_IO);
  assert_error_says("not a regular file");
  ck_assert_ptr_null(bytes);
}

TEST(files_are_viewed_as_they_are) {
  const unsigned char *bytes = (const unsigned char *)"";
  size_t size = 1;
  write_file(path_of("a"), "twelve bytes");
  assert_ok(tarn__os_view_file(path_of("a"), &bytes, &size));
  ck_assert_uint_eq(size, 12);
  ck_assert_mem_eq(bytes, "twelve bytes", 12);
  ck_assert_uint_eq(tarn_host_memory(), 0);
  const void *there = bytes;
  ck_assert(tarn__os_is_mapped(there));
  tarn__os_unview_file(bytes, size);
  ck_assert(!tarn__os_is_mapped(there));
  write_file(path_of("empty"), "");
  assert_ok(tarn__os_view_file(path_of("empty"), &bytes, &size));
  ck_assert(bytes == NULL && size == 0);
  tarn__os_unview_file(bytes, size);
  assert_status(tarn__os_view_file(path_of("missing"), &bytes, &size),
                TARN_E_IO);
  assert_error_says("missing: No such file");
  assert_status(tarn__os_view_file(folder, &bytes, &size), TARN_E_IO);
  assert_error_says("not a regular file");
}

TEST(lines_are_appended) {
  unsigned char *bytes = NULL;
  size_t size = 0;
  ck_assert(tarn__os_append_file(path_of("b"), "one\n", 4));
  ck_assert(tarn__os_append_file(path_of("b"), "two\n", 4));
  ck_assert(!tarn__os_append_file(folder, "x", 1));
  assert_ok(tarn__os_read_file(path_of("b"), SIZE_MAX, &bytes, &size));
  ck_assert_uint_eq(size, 8);
  ck_assert_mem_eq(bytes, "one\ntwo\n", 8);
  tarn__host_free(bytes, size);
}

TEST(a_file_beyond_the_bound_is_not_read) {
  unsigned char *bytes = NULL;
  size_t size = 0;
  write_file(path_of("a"), "twelve bytes");
  assert_ok(tarn__os_read_file(path_of("a"), 12, &bytes, &size));
  tarn__host_free(bytes, size);
  faults_peak_reset();
  assert_status(tarn__os_read_file(path_of("a"), 11, &bytes, &size),
                TARN_E_UNSUPPORTED);
  assert_error_says("/a: 12 bytes; files of at most 11 are read");
  ck_assert_ptr_null(bytes);
  ck_assert_uint_eq(faults_peak(), 0);
}

static void read_it(void *context) {
  unsigned char *bytes = NULL;
  size_t size = 0;
  tarn_status status = tarn__os_read_file(context, SIZE_MAX, &bytes, &size);
  ck_assert(status == TARN_OK || status == TARN_E_NOMEM);
  tarn__host_free(bytes, size);
}

TEST(reading_survives_every_fault) {
  char path[128];
  snprintf(path, sizeof path, "%s", path_of("b"));
  write_file(path, "some bytes");
  ck_assert_uint_eq(faults_sweep(read_it, path), 2);
}

TEST(other_threads_are_fenced_and_let_run) {
  tarn__os_yield();
  bool can = tarn__os_can_fence_threads();
  ck_assert_int_eq(tarn__os_can_fence_threads(), can);
  uint64_t begin = tarn__os_now_ns();
  tarn__os_fence_threads();
  // Without the kernel's help it takes its time, and returns all the same.
  if (!can) ck_assert_uint_ge(tarn__os_now_ns() - begin, 10000000);
}

FIXTURE(make_folder, remove_folder);

int main(void) {
  faults_install();
  return run_tests();
}
