// Queues of reads and writes where the system refuses what they stand on:
// io_uring in sandboxes and by old kernels, memory of the kernel's, threads.
// The linker puts functions of this file in front of the library's calls of the
// system (--wrap); the sandboxes are real ones, of children.
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "base/os.h"
#include "io_ground.h"
#include "support/child.h"
#include "support/effort.h"
#include "support/ranks.h"

// --- the system under control ----------------------------------------------

// Which call of a kind is refused, and with what.
typedef struct refusal {
  size_t from;   // the first call from now that fails, 1 is the next; 0: none
  size_t count;  // and how many do
  int error;
} refusal;

static struct {
  refusal setup;
  refusal enter;
  refusal map;
  refusal thread;
  refusal small_stack;
  uint32_t features;  // that the kernel does not have
  size_t threads;
} kernel;

static bool refuses(refusal *r) {
  if (r->from == 0) return false;
  if (r->from > 1) {
    r->from--;
    return false;
  }
  if (r->count == 0) return false;
  r->count--;
  errno = r->error;
  return true;
}

// NOLINTBEGIN(bugprone-reserved-identifier): --wrap makes these names.
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
void *__real_mmap(void *ptr, size_t size, int protection, int flags, int fd,
                  off_t offset);
void *__wrap_mmap(void *ptr, size_t size, int protection, int flags, int fd,
                  off_t offset);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *context);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *context);
// NOLINTEND(bugprone-reserved-identifier)

static long set_up_ring(long entries, struct io_uring_params *params) {
  if (refuses(&kernel.setup)) return -1;
  long fd = __real_syscall(SYS_io_uring_setup, entries, params);
  params->features &= ~kernel.features;
  return fd;
}

// No more arguments are read than registers have, unless there are more.
long __wrap_syscall(long number, ...) {
  long a[6] = {0};
  va_list args;
  size_t count = number == SYS_io_uring_enter || number == SYS_futex ? 6 : 5;
  va_start(args, number);
  for (size_t i = 0; i < count; i++)
    a[i] = va_arg(args, long);
  va_end(args);
  if (number == SYS_io_uring_setup) {
    return set_up_ring(a[0], (struct io_uring_params *)a[1]);
  }
  if (number == SYS_io_uring_enter && refuses(&kernel.enter)) return -1;
  return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

void *__wrap_mmap(void *ptr, size_t size, int protection, int flags, int fd,
                  off_t offset) {
  if (fd >= 0 && refuses(&kernel.map)) return MAP_FAILED;
  return __real_mmap(ptr, size, protection, flags, fd, offset);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *context) {
  if (attributes != NULL && refuses(&kernel.small_stack)) return EINVAL;
  if (refuses(&kernel.thread)) return EAGAIN;
  kernel.threads++;
  return __real_pthread_create(thread, attributes, start, context);
}

static bool has_ring(void) {
  tarn__io *io = io_open_by(IO_RING, (tarn__io_options){.depth = 1});
  if (io == NULL) return false;
  forget(io);
  tarn__io_close(io);
  return true;
}

// --- no io_uring -----------------------------------------------------------

// Pages that are shared with it.
static size_t count_ring_mappings(void) {
  char line[512];
  size_t count = 0;
  FILE *maps = fopen("/proc/self/maps", "re");
  ck_assert_ptr_nonnull(maps);
  while (fgets(line, sizeof line, maps) != NULL)
    count += strstr(line, "io_uring") != NULL;
  fclose(maps);
  return count;
}

// It opens, moves bytes, and leaves neither descriptor nor mapping.
static void open_and_try(const char *method) {
  tarn__io *io = NULL;
  size_t descriptors = ranks_descriptors();
  assert_ok(tarn__io_open(&(tarn__io_options){.depth = 8}, &io));
  ck_assert_str_eq(tarn__io_method(io), method);
  if (strcmp(method, "threads") == 0)
    ck_assert_uint_eq(ranks_descriptors(), descriptors);
  io_try(io, io_file(IO_TRIAL_SIZE, 0), 100, 1, 1);
  tarn__io_close(io);
  ck_assert_uint_eq(ranks_descriptors(), descriptors + 1);  // the file
  ck_assert_uint_eq(count_ring_mappings(), 0);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

static const int setup_errors[] = {EPERM, ENOSYS, ENOMEM, EINVAL, EMFILE};
enum { SETUP_ERRORS = sizeof setup_errors / sizeof *setup_errors };

TEST_LOOP(threads_take_its_place_where_it_is_refused, SETUP_ERRORS) {
  kernel.setup =
      (refusal){.from = 1, .count = SIZE_MAX, .error = setup_errors[_i]};
  open_and_try("threads");
}

TEST(what_is_opened_is_closed) {
  tarn__io *io = NULL;
  if (!has_ring()) return;
  assert_ok(tarn__io_open(NULL, &io));
  ck_assert_uint_eq(count_ring_mappings(), 2);
  tarn__io_close(io);
  open_and_try("io_uring");
}

TEST(a_kernel_that_is_too_old_is_left_alone) {
  static const uint32_t needed[] = {IORING_FEAT_SINGLE_MMAP, IORING_FEAT_NODROP,
                                    IORING_FEAT_RW_CUR_POS};
  if (!has_ring()) return;
  for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
    kernel.features = needed[i];
    open_and_try("threads");
  }
}

TEST_RANGE(addresses_may_be_refused, 1, 3) {
  if (!has_ring()) return;
  kernel.map = (refusal){.from = (size_t)_i, .count = 1, .error = ENOMEM};
  open_and_try("threads");
  ck_assert_uint_eq(kernel.map.count, 0);
}

TEST(the_kernel_may_allow_less_than_the_depth) {
  if (!has_ring()) return;
  tarn__io *io = io_open_by(IO_RING, (tarn__io_options){.depth = 1 << 20});
  io_try(io, io_file(IO_TRIAL_SIZE, 0), 100, 1, 1);
}

TEST(a_ring_is_none_of_the_first_three) {
  if (!has_ring()) return;
  close(STDIN_FILENO);
  tarn__io *io = io_open_by(IO_RING, (tarn__io_options){.depth = 1});
  ck_assert_ptr_nonnull(io);
  ck_assert_int_eq(fcntl(STDIN_FILENO, F_GETFD), -1);
}

// --- sandboxes -------------------------------------------------------------

// From now on |call| fails with |error|, in this process and for good.
static void forbid(long call, int error) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static int file;

static void read_by(tarn__io *io, size_t count, int error) {
  static tarn__io_request requests[32];
  static unsigned char bytes[32];
  for (size_t i = 0; i < count; i++) {
    requests[i] = (tarn__io_request){
        .fd = file, .data = &bytes[i], .size = 1, .offset = i};
    tarn__io_submit(io, &requests[i]);
  }
  for (size_t i = 0; i < count; i++)
    MUST(tarn__io_wait(io) != NULL);
  for (size_t i = 0; i < count; i++) {
    MUST(requests[i].error == error);
    MUST(error != 0 || bytes[i] == io_byte(i));
  }
}

static void read_in_sandbox(void) {
  tarn__io *io = NULL;
  MUST(tarn__io_open(NULL, &io) == TARN_OK);
  MUST(strcmp(tarn__io_method(io), "threads") == 0);
  read_by(io, 32, 0);
  tarn__io_close(io);
  MUST(tarn_host_memory() == 0);
}

static void forbid_setup(void) {
  forbid(SYS_io_uring_setup, EPERM);
  read_in_sandbox();
}

static void forbid_setup_as_unknown(void) {
  forbid(SYS_io_uring_setup, ENOSYS);
  read_in_sandbox();
}

static void forbid_enter(void) {
  forbid(SYS_io_uring_enter, EPERM);
  read_in_sandbox();
}

TEST(a_sandbox_may_forbid_io_uring) {
  file = io_file(4096, 0);
  fork_and_run(forbid_setup);
  fork_and_run(forbid_setup_as_unknown);
  fork_and_run(forbid_enter);
}

// What is under way by then is done.
static void forbid_enter_late(void) {
  static unsigned char bytes[32 * 4096] __attribute__((aligned(4096)));
  static tarn__io_request requests[32];
  tarn__io *io = NULL;
  MUST(tarn__io_open(NULL, &io) == TARN_OK);
  for (size_t i = 0; i < 32; i++) {
    requests[i] = (tarn__io_request){
        .fd = file, .data = bytes + i * 4096, .size = 4096, .offset = i * 4096};
    tarn__io_submit(io, &requests[i]);
  }
  tarn__io_start(io);
  forbid(SYS_io_uring_enter, EPERM);
  for (size_t i = 0; i < 32; i++)
    MUST(tarn__io_wait(io)->error == 0);
  MUST(io_bytes_are(bytes, sizeof bytes, 0));
  read_by(io, 32, EPERM);
  tarn__io_close(io);
  MUST(tarn_host_memory() == 0);
}

TEST(a_sandbox_may_come_late) {
  if (!has_ring()) return;
  file = io_file(32 * 4096, O_DIRECT);
  if (file < 0) file = io_file(32 * 4096, 0);
  fork_and_run(forbid_enter_late);
}

// --- a kernel that is short of memory, or interrupted -----------------------

static const int passing[] = {EAGAIN, EBUSY, ENOMEM, EINTR};
enum { PASSING = sizeof passing / sizeof *passing };

TEST_LOOP(what_the_kernel_refuses_for_now_is_asked_again, PASSING) {
  if (!has_ring()) return;
  int fd = io_file(IO_TRIAL_SIZE, 0);
  tarn__io *io = io_open_by(IO_RING, (tarn__io_options){.depth = 8});
  for (size_t n = 1; n < EFFORT(60, 20); n++) {
    for (size_t count = 1; count < 400; count *= 19) {
      kernel.enter = (refusal){n, count, passing[_i]};
      io_try(io, fd, 20, 1, n);
      require(n > 4 || kernel.enter.count == 0);
    }
  }
}

// --- no threads ------------------------------------------------------------

// Some, or none: then the waiting thread does the work.
TEST_LOOP(threads_may_be_refused, 5) {
  tarn__io *io =
      io_open_by(IO_THREADS, (tarn__io_options){.depth = 16, .workers = 8});
  kernel.thread = (refusal){.from = (size_t)_i + 1, .count = SIZE_MAX};
  kernel.small_stack = kernel.thread;
  io_try(io, io_file(IO_TRIAL_SIZE, 0), 500, 1, 1);
  ck_assert_uint_eq(kernel.threads, (size_t)_i);
  ck_assert_uint_eq(kernel.thread.count, SIZE_MAX - 1);
}

TEST(a_small_stack_may_be_refused) {
  tarn__io *io =
      io_open_by(IO_THREADS, (tarn__io_options){.depth = 16, .workers = 8});
  kernel.small_stack = (refusal){.from = 1, .count = SIZE_MAX};
  io_try(io, io_file(IO_TRIAL_SIZE, 0), 500, 1, 1);
  ck_assert_uint_gt(kernel.threads, 4);
}

TEST(more_threads_than_memory_are_refused) {
  tarn__io *io = NULL;
  assert_status(tarn__io_open(&(tarn__io_options){.depth = SIZE_MAX,
                                                  .threads = true,
                                                  .workers = SIZE_MAX},
                              &io),
                TARN_E_NOMEM);
  ck_assert_ptr_null(io);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

// A process that may make none: neither a thread, nor the kernel one for it.
static void be_alone(void) {
  struct rlimit none = {0, 0};
  MUST(setrlimit(RLIMIT_NPROC, &none) == 0);
  if (geteuid() == 0) MUST(setresuid(65534, 65534, 65534) == 0);
}

static void sync_alone(bool threads) {
  enum { COUNT = 20 };
  tarn__io_request requests[COUNT];
  tarn__io *io = NULL;
  MUST(tarn__io_open(&(tarn__io_options){.threads = threads}, &io) == TARN_OK);
  for (size_t i = 0; i < COUNT; i++) {
    requests[i] = (tarn__io_request){.action = TARN__IO_DATASYNC, .fd = file};
    tarn__io_submit(io, &requests[i]);
  }
  while (tarn__io_count(io) > 0)
    MUST(tarn__io_wait(io)->error == 0);
  read_by(io, 32, 0);
  tarn__io_close(io);
}

static void sync_in_place(void) {
  be_alone();
  sync_alone(false);
  sync_alone(true);
}

TEST(a_process_may_be_allowed_no_thread) {
  file = io_file(4096, 0);
  fork_and_run(sync_in_place);
}

// A queue that is never asked for several things at a time has none.
TEST(threads_are_made_as_they_are_needed) {
  unsigned char byte = 0;
  tarn__io_request requests[3];
  int fd = io_file(4096, 0);
  tarn__io *io = io_open_by(IO_THREADS, (tarn__io_options){.depth = 16});
  for (size_t i = 0; i < 10; i++)
    assert_whole(io_do(io, TARN__IO_READ, fd, &byte, 1, i));
  ck_assert_uint_eq(kernel.threads, 0);
  for (size_t i = 0; i < 3; i++) {
    requests[i] = (tarn__io_request){.action = TARN__IO_DATASYNC, .fd = fd};
    tarn__io_submit(io, &requests[i]);
  }
  while (tarn__io_count(io) > 0)
    assert_whole(*tarn__io_wait(io));
  ck_assert_uint_eq(kernel.threads, 3);
}
