// Memory behind files in memory, and what pages it is on.
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os_pages.h"
#include "base/os_peer.h"
#include "support/run.h"

#define MIB ((size_t)1 << 20)
#define HUGE TARN__OS_HUGE

// What this kernel gives for one unit: all of it, or nothing.
static size_t huge_here;

static int file_of(size_t size) {
  int fd = tarn__os_memory_file("test-pages", size);
  require(fd >= 0);
  return fd;
}

static void probe(void) {
  int fd = file_of(HUGE);
  require(tarn__os_commit_file(fd, 0, HUGE, &huge_here));
  tarn__os_close(fd);
  if (huge_here == 0) note_skipped("huge pages", "the kernel gives none");
}

static size_t bytes_behind(int fd) {
  struct stat info;
  ck_assert_int_eq(fstat(fd, &info), 0);
  return (size_t)info.st_blocks * 512;
}

// Whether there is memory behind all of these bytes: then more changes nothing.
static bool is_behind(int fd, size_t offset, size_t size) {
  size_t before = bytes_behind(fd);
  require(posix_fallocate(fd, (off_t)offset, (off_t)size) == 0);
  return bytes_behind(fd) == before;
}

// Runs |what| in a process of its own; its answer.
static int in_child(int (*what)(int fd), int fd) {
  int result = 0;
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(what(fd));
  }
  ck_assert_int_eq(waitpid(child, &result, 0), child);
  ck_assert_msg(WIFEXITED(result), "the child: %#x", (unsigned)result);
  return WEXITSTATUS(result);
}

// --- memory ----------------------------------------------------------------

TEST(a_file_gets_all_of_its_memory) {
  size_t huge = 1;
  int fd = file_of(40 * MIB);
  ck_assert_uint_eq(bytes_behind(fd), 0);
  ck_assert(tarn__os_commit_file(fd, 0, 40 * MIB, &huge));
  ck_assert_uint_eq(bytes_behind(fd), 40 * MIB);
  ck_assert_uint_eq(huge, 20 * huge_here);
  ck_assert(tarn__os_commit_file(fd, 0, 40 * MIB, &huge));
  ck_assert_uint_eq(bytes_behind(fd), 40 * MIB);
  tarn__os_close(fd);
}

// As a kernel before 6.16 while signals come all the time: they end a call that
// takes longer than it is to the next, and what it has done is undone.
static size_t most_at_a_time = SIZE_MAX;

// NOLINTBEGIN(bugprone-reserved-identifier): --wrap makes the names.
int __real_posix_fallocate(int fd, off_t offset, off_t size);
int __wrap_posix_fallocate(int fd, off_t offset, off_t size);
// NOLINTEND(bugprone-reserved-identifier)

int __wrap_posix_fallocate(int fd, off_t offset, off_t size) {
  if ((size_t)size > most_at_a_time) return EINTR;
  return __real_posix_fallocate(fd, offset, size);
}

TEST(signals_let_it_get_on) {
  size_t huge = 0;
  int fd = file_of(9 * MIB);
  most_at_a_time = tarn__os_page();
  ck_assert(tarn__os_commit_file(fd, MIB, 8 * MIB, &huge));
  int shared = tarn__os_shared_file("test", 5 * MIB);
  ck_assert_int_ge(shared, 0);
  most_at_a_time = SIZE_MAX;
  ck_assert_uint_eq(bytes_behind(fd), 8 * MIB);
  ck_assert_uint_eq(bytes_behind(shared), 5 * MIB);
  tarn__os_close(shared);
  tarn__os_close(fd);
}

// Its head belongs to the unit of another part, its last unit is its own.
TEST(a_part_gets_its_memory_and_little_more) {
  size_t page = tarn__os_page();
  size_t huge = 0;
  int fd = file_of(9 * MIB);
  ck_assert(tarn__os_commit_file(fd, MIB + 5, 2 * MIB, &huge));
  ck_assert(is_behind(fd, MIB, 3 * MIB));
  ck_assert_uint_eq(bytes_behind(fd), 3 * MIB);
  ck_assert_uint_eq(huge, huge_here == 0 ? 0 : MIB + 5);
  ck_assert(tarn__os_commit_file(fd, 8 * MIB + 3 * page + 1, 1, &huge));
  ck_assert_uint_eq(bytes_behind(fd), 3 * MIB + page);
  ck_assert_uint_eq(huge, 0);
  ck_assert(tarn__os_commit_file(fd, 9 * MIB, 0, &huge));
  ck_assert(tarn__os_commit_file(fd, 0, 0, &huge));
  ck_assert_uint_eq(bytes_behind(fd), 3 * MIB + page);
  tarn__os_close(fd);
}

TEST(bytes_are_kept_and_others_zero) {
  size_t huge = 0;
  int fd = file_of(4 * MIB);
  unsigned char *bytes = tarn__os_map_shared(fd, 4 * MIB);
  ck_assert_ptr_nonnull(bytes);
  bytes[5] = 1;
  bytes[3 * MIB] = 2;
  ck_assert(tarn__os_commit_file(fd, 0, 4 * MIB, &huge));
  ck_assert_uint_eq(huge, 2 * huge_here);
  ck_assert_uint_eq(bytes[5], 1);
  ck_assert_uint_eq(bytes[3 * MIB], 2);
  bytes[5] = bytes[3 * MIB] = 0;
  for (size_t i = 0; i < 4 * MIB; i++)
    require(bytes[i] == 0);
  tarn__os_unmap(bytes, 4 * MIB);
  tarn__os_close(fd);
}

// Parts that begin and end anywhere, all at the same time.
static const size_t PART = 5000000;
enum { PARTS = 6 };

static int commit_parts(int fd) {
  pid_t children[PARTS];
  int failed = 0;
  for (size_t i = 0; i < PARTS; i++) {
    size_t huge = 0;
    children[i] = fork();
    if (children[i] != 0) continue;
    alarm(60);
    _exit(tarn__os_commit_file(fd, i * PART, PART, &huge) ? 0 : 1);
  }
  for (size_t i = 0; i < PARTS; i++) {
    int result = 0;
    if (waitpid(children[i], &result, 0) != children[i] || result != 0) {
      failed++;
    }
  }
  return failed;
}

TEST(parts_of_many_meet) {
  size_t whole = PARTS * PART / HUGE * HUGE + HUGE;
  int fd = file_of(whole);
  tarn__os_pages pages;
  ck_assert_int_eq(in_child(commit_parts, fd), 0);
  ck_assert(is_behind(fd, 0, PARTS * PART));
  ck_assert_uint_eq(bytes_behind(fd), whole);
  void *ptr = tarn__os_map_shared(fd, whole);
  ck_assert(tarn__os_look_at_pages(ptr, whole, &pages));
  // Another process may have accessed a unit at each attempt.
  if (huge_here != 0) ck_assert_uint_ge(pages.huge_bytes, whole / 2);
  tarn__os_unmap(ptr, whole);
  tarn__os_close(fd);
}

static int commit_without_huge(int fd) {
  size_t huge = 1;
  if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) return 1;
  if (!tarn__os_commit_file(fd, 0, 24 * MIB, &huge)) return 2;
  return huge == 0 ? 0 : 3;
}

TEST(without_huge_pages_there_are_usual_ones) {
  int fd = file_of(24 * MIB);
  tarn__os_pages pages;
  ck_assert_int_eq(in_child(commit_without_huge, fd), 0);
  ck_assert(is_behind(fd, 0, 24 * MIB));
  void *ptr = tarn__os_map_shared(fd, 24 * MIB);
  ck_assert(tarn__os_look_at_pages(ptr, 24 * MIB, &pages));
  ck_assert_uint_eq(pages.huge_bytes, 0);
  ck_assert_uint_eq(pages.page_size, tarn__os_page());
  tarn__os_unmap(ptr, 24 * MIB);
  tarn__os_close(fd);
}

static void ignore(int signal) {
  (void)signal;
}

TEST(signals_do_not_stop_it) {
  struct itimerval often = {{0, 300}, {0, 300}};
  struct itimerval never = {{0, 0}, {0, 0}};
  struct sigaction action = {.sa_handler = ignore};
  struct sigaction before;
  size_t huge = 0;
  int fd = file_of(33 * MIB);
  ck_assert_int_eq(sigaction(SIGALRM, &action, &before), 0);
  ck_assert_int_eq(setitimer(ITIMER_REAL, &often, NULL), 0);
  bool committed = tarn__os_commit_file(fd, 0, 33 * MIB, &huge);
  ck_assert_int_eq(setitimer(ITIMER_REAL, &never, NULL), 0);
  ck_assert_int_eq(sigaction(SIGALRM, &before, NULL), 0);
  ck_assert(committed);
  ck_assert(is_behind(fd, 0, 33 * MIB));
  tarn__os_close(fd);
}

// --- shortages -------------------------------------------------------------

static bool is_refused(int fd, size_t offset, size_t size, int reason) {
  size_t huge = 1;
  errno = 0;
  bool committed = tarn__os_commit_file(fd, offset, size, &huge);
  return !committed && errno == reason && huge == 0;
}

TEST(what_is_not_in_the_file_is_refused) {
  int ends[2];
  int fd = file_of(4 * MIB);
  ck_assert_int_eq(pipe(ends), 0);
  ck_assert(is_refused(fd, 4 * MIB, 1, EINVAL));
  ck_assert(is_refused(fd, 1, 4 * MIB, EINVAL));
  ck_assert(is_refused(fd, SIZE_MAX, 2, EINVAL));
  ck_assert(is_refused(fd, 2, SIZE_MAX, EINVAL));
  ck_assert(is_refused(ends[1], 0, 1, EINVAL));
  ck_assert(is_refused(-1, 0, 1, EBADF));
  ck_assert_uint_eq(bytes_behind(fd), 0);
  ck_assert_ptr_null(tarn__os_map_shared(ends[0], 2 * MIB));
  ck_assert_ptr_null(tarn__os_map_shared(fd, SIZE_MAX / 2));
  close(ends[0]);
  close(ends[1]);
  tarn__os_close(fd);
}

TEST(more_than_the_machine_has_is_refused_at_once) {
  size_t total = 0;
  size_t available = 0;
  tarn__os_memory(&total, &available);
  int fd = file_of(2 * total);
  ck_assert(is_refused(fd, 0, 2 * total, ENOMEM));
  ck_assert(is_refused(fd, 5, total, ENOMEM));
  ck_assert_uint_eq(bytes_behind(fd), 0);
  tarn__os_close(fd);
}

static int commit_without_addresses(int fd) {
  struct rlimit limit = {MIB, MIB};
  if (setrlimit(RLIMIT_AS, &limit) != 0) return 1;
  return is_refused(fd, 0, 64 * MIB, ENOMEM) ? 0 : 2;
}

TEST(without_addresses_it_is_refused) {
  int fd = file_of(64 * MIB);
  ck_assert_int_eq(in_child(commit_without_addresses, fd), 0);
  tarn__os_close(fd);
}

// Where the limit is passed there is a signal besides.
static int exceed_the_file_size(int fd) {
  struct rlimit limit = {8 * MIB, 8 * MIB};
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
  if (!is_refused(fd, 7 * MIB, 2 * MIB, EFBIG)) return 2;
  size_t huge = 0;
  if (!tarn__os_commit_file(fd, 5 * MIB, 3 * MIB, &huge)) return 3;
  errno = 0;
  if (tarn__os_memory_file("test", 8 * MIB + 1) >= 0 || errno != EFBIG) {
    return 4;
  }
  return tarn__os_memory_file("test", 8 * MIB) >= 0 ? 0 : 5;
}

TEST(a_limit_on_files_is_an_error) {
  int fd = file_of(16 * MIB);
  ck_assert_int_eq(in_child(exceed_the_file_size, fd), 0);
  tarn__os_close(fd);
}

enum { NO_NAMESPACE = 77 };

static bool write_text(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  bool written = fd >= 0 && write(fd, text, strlen(text)) > 0;
  if (fd >= 0) close(fd);
  return written;
}

static bool write_map(const char *path, unsigned id) {
  char text[32];
  snprintf(text, sizeof text, "0 %u 1", id);
  return write_text(path, text);
}

// A file system of 8 MiB that only this process sees.
static bool mount_a_small_one(void) {
  unsigned user = geteuid();
  unsigned group = getegid();
  return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
         write_text("/proc/self/setgroups", "deny") &&
         write_map("/proc/self/uid_map", user) &&
         write_map("/proc/self/gid_map", group) &&
         mount("tarn-test", "/tmp", "tmpfs", 0, "size=8m") == 0;
}

static int commit_in_a_small_file_system(int unused) {
  (void)unused;
  if (!mount_a_small_one()) return NO_NAMESPACE;
  int fd = open("/tmp/file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, 64 * (off_t)MIB) != 0) return 1;
  size_t huge = 1;
  if (tarn__os_commit_file(fd, 0, 64 * MIB, &huge) || huge != 0) return 2;
  if (errno != ENOSPC && errno != ENOMEM) return 3;
  if (tarn__os_commit_file(fd, 63 * MIB, MIB, &huge)) return 4;
  return errno == ENOSPC ? 0 : 5;
}

// Where a touch would be a signal.
TEST(a_full_file_system_is_an_error) {
  int result = in_child(commit_in_a_small_file_system, -1);
  if (result == NO_NAMESPACE) {
    note_skipped("a full file system", "namespaces are not allowed");
    return;
  }
  ck_assert_int_eq(result, 0);
}

// --- what pages there are --------------------------------------------------

static unsigned char *committed(size_t size, int *out_fd) {
  size_t huge = 0;
  *out_fd = file_of(size);
  ck_assert(tarn__os_commit_file(*out_fd, 0, size, &huge));
  unsigned char *bytes = tarn__os_map_shared(*out_fd, size);
  ck_assert_ptr_nonnull(bytes);
  return bytes;
}

static void uncommit(unsigned char *bytes, size_t size, int fd) {
  tarn__os_unmap(bytes, size);
  tarn__os_close(fd);
}

static void assert_pages(const unsigned char *at, size_t size, size_t huge) {
  tarn__os_pages pages = {1, 1};
  size_t page = huge == size ? HUGE : tarn__os_page();
  ck_assert(tarn__os_look_at_pages(at, size, &pages));
  ck_assert_uint_eq(pages.huge_bytes, huge);
  ck_assert_uint_eq(pages.page_size, page);
}

TEST(pages_of_a_range_are_told) {
  int fd = -1;
  unsigned char *bytes = committed(7 * MIB, &fd);
  ck_assert_uint_eq((uintptr_t)bytes % HUGE, 0);
  if (huge_here != 0) {
    assert_pages(bytes, 7 * MIB, 6 * MIB);
    assert_pages(bytes, 6 * MIB, 6 * MIB);
    assert_pages(bytes + MIB + 3, MIB + 7, MIB + 7);
    assert_pages(bytes + 5 * MIB, 2 * MIB, MIB);
  }
  assert_pages(bytes + 6 * MIB, MIB, 0);
  assert_pages(bytes + 7 * MIB - 1, 1, 0);
  uncommit(bytes, 7 * MIB, fd);
}

// Of a part only what must be so where the rest has as many as it can.
TEST(an_old_kernel_tells_of_whole_mappings) {
  int fd = -1;
  unsigned char *bytes = committed(7 * MIB, &fd);
  tarn__os_pages pages;
  assert_pages(bytes, 7 * MIB, 3 * huge_here);
  ck_assert(tarn__os_look_at_mappings(bytes, 7 * MIB, &pages));
  ck_assert_uint_eq(pages.huge_bytes, 3 * huge_here);
  ck_assert_uint_eq(pages.page_size, tarn__os_page());
  ck_assert(tarn__os_look_at_mappings(bytes, 6 * MIB, &pages));
  ck_assert_uint_eq(pages.huge_bytes, huge_here == 0 ? 0 : 5 * MIB);
  ck_assert(tarn__os_look_at_mappings(bytes + 6 * MIB, MIB, &pages));
  ck_assert_uint_eq(pages.huge_bytes, 0);
  uncommit(bytes, 7 * MIB, fd);
}

// Two files side by side, and what else there is to be in the way.
TEST(a_range_may_be_several_mappings) {
  unsigned char *bytes = tarn__os_reserve_aligned(12 * MIB, HUGE);
  size_t huge = 0;
  tarn__os_pages pages;
  int first = file_of(4 * MIB);
  int second = file_of(4 * MIB);
  ck_assert(tarn__os_commit_file(first, 0, 4 * MIB, &huge));
  ck_assert(tarn__os_commit_file(second, 0, 4 * MIB, &huge));
  ck_assert(tarn__os_put_file(bytes, 4 * MIB, first));
  ck_assert(tarn__os_put_file(bytes + 4 * MIB, 4 * MIB, second));
  assert_pages(bytes, 8 * MIB, 4 * huge_here);
  ck_assert(tarn__os_look_at_mappings(bytes, 8 * MIB, &pages));
  ck_assert_uint_eq(pages.huge_bytes, 4 * huge_here);
  ck_assert(!tarn__os_look_at_pages(bytes, 12 * MIB, &pages));
  ck_assert_uint_eq(pages.page_size, 0);
  tarn__os_unmap(bytes, 12 * MIB);
  ck_assert(!tarn__os_look_at_pages(bytes, 8 * MIB, &pages));
  ck_assert(!tarn__os_look_at_mappings(bytes, 8 * MIB, &pages));
  ck_assert(!tarn__os_look_at_pages(&huge, 0, &pages));
  ck_assert(!tarn__os_look_at_mappings(&huge, 0, &pages));
  tarn__os_close(first);
  tarn__os_close(second);
}

static int look_as_a_peer(int fd) {
  tarn__os_pages pages;
  void *ptr = tarn__os_map_shared(fd, 8 * MIB);
  if (ptr == NULL) return 1;
  if (!tarn__os_look_at_pages(ptr, 8 * MIB, &pages)) return 2;
  if (pages.huge_bytes != 4 * huge_here) return 3;
  return pages.page_size == (huge_here != 0 ? HUGE : tarn__os_page()) ? 0 : 4;
}

TEST(another_process_has_the_same_pages) {
  int fd = -1;
  unsigned char *bytes = committed(8 * MIB, &fd);
  ck_assert_int_eq(in_child(look_as_a_peer, fd), 0);
  uncommit(bytes, 8 * MIB, fd);
}

// Only a page that was touched is anywhere.
TEST(the_node_of_a_page_is_told) {
  size_t page = tarn__os_page();
  char *bytes = tarn__os_map(2 * page);
  bytes[7] = 1;
  int node = tarn__os_node_of(bytes + 7);
  char path[64];
  snprintf(path, sizeof path, "/sys/devices/system/node/node%d", node);
  if (node < 0) {
    note_skipped("the node of a page", "the kernel does not tell");
  } else {
    ck_assert_int_eq(access(path, F_OK), 0);
  }
  ck_assert_int_eq(tarn__os_node_of(bytes + page), -1);
  tarn__os_unmap(bytes, 2 * page);
  ck_assert_int_eq(tarn__os_node_of(bytes), -1);
}

int main(void) {
  probe();
  return run_tests();
}
