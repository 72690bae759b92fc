// Queues that end, in their process or in a child of it, that several threads
// have, and that signals interrupt.
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "io_watched.h"
#include "support/child.h"
#include "support/effort.h"
#include "support/threads.h"

// --- closing and forks -----------------------------------------------------

// Reads of |count| blocks that are not cached, where the file system allows it.
static void submit_blocks(tarn__io *io, int fd, unsigned char *bytes,
                          tarn__io_request *requests, size_t count) {
  for (size_t i = 0; i < count; i++) {
    requests[i] = (tarn__io_request){
        .fd = fd, .data = bytes + i * 4096, .size = 4096, .offset = i * 4096};
    tarn__io_submit(io, &requests[i]);
  }
}

static int open_blocks(size_t count) {
  int fd = io_file(count * 4096, O_DIRECT);
  return fd >= 0 ? fd : io_file(count * 4096, 0);
}

TEST_LOOP(closing_waits_for_what_is_under_way, IO_METHODS) {
  enum { COUNT = 30, DEPTH = 8 };
  static tarn__io_request requests[COUNT];
  unsigned char *bytes = io_memory(COUNT * 4096);
  int fd = open_blocks(COUNT);
  size_t held = tarn_host_memory();
  tarn__io *io =
      io_open_by(_i, (tarn__io_options){.depth = DEPTH, .watch = &watch});
  if (io == NULL) return;
  forget(io);
  seen.interrupted = true;
  submit_blocks(io, fd, bytes, requests, COUNT);
  tarn__io_start(io);
  tarn__io_close(io);
  ck_assert_uint_eq(seen.parts, DEPTH);
  ck_assert_uint_eq(seen.under_way, 0);
  ck_assert_uint_eq(tarn_host_memory(), held);
  tarn__io_close(NULL);
}

static tarn__io *of_parent;

static void close_in_child(void) {
  size_t moved = seen.moved;
  tarn__io_close(of_parent);
  MUST(seen.moved == moved);
  MUST(tarn_host_memory() == 0);
  tarn__io *io = NULL;
  unsigned char byte = 0;
  tarn__io_request request = {.fd = -1, .data = &byte, .size = 1};
  MUST(tarn__io_open(NULL, &io) == TARN_OK);
  tarn__io_submit(io, &request);
  MUST(tarn__io_wait(io) == &request && request.error == EBADF);
  tarn__io_close(io);
}

TEST_LOOP(a_child_closes_its_copy, IO_METHODS) {
  enum { COUNT = 64 };
  static tarn__io_request requests[COUNT];
  unsigned char *bytes = io_memory(COUNT * 4096);
  int fd = open_blocks(COUNT);
  tarn__io *io = of_parent =
      io_open_by(_i, (tarn__io_options){.depth = COUNT / 2, .watch = &watch});
  if (io == NULL) return;
  for (int round = 0; round < 3; round++) {
    memset(bytes, 0, COUNT * 4096);
    submit_blocks(io, fd, bytes, requests, COUNT);
    tarn__io_start(io);
    await_sleeping_threads();
    fork_and_run(close_in_child);
    while (tarn__io_count(io) > 0)
      assert_whole(*tarn__io_wait(io));
    ck_assert(io_bytes_are(bytes, COUNT * 4096, 0));
  }
}

// --- threads and signals ---------------------------------------------------

typedef struct several {
  int method;
  int fd;
} several;

static void *read_alone(void *context) {
  enum { COUNT = 200 };
  const several *s = context;
  tarn__io *io = NULL;
  tarn__io_request requests[COUNT];
  unsigned char bytes[COUNT];
  tarn__io_options options = {
      .depth = 16, .threads = s->method == IO_THREADS, .workers = 3};
  bool opened = tarn__io_open(&options, &io) == TARN_OK;
  expect(opened);
  if (!opened) return NULL;
  for (size_t i = 0; i < COUNT; i++) {
    requests[i] = (tarn__io_request){
        .fd = s->fd, .data = &bytes[i], .size = 1, .offset = i};
    tarn__io_submit(io, &requests[i]);
  }
  while (tarn__io_count(io) > 0)
    expect(tarn__io_wait(io)->error == 0);
  expect(io_bytes_are(bytes, COUNT, 0));
  tarn__io_close(io);
  return NULL;
}

TEST_LOOP(several_threads_have_queues, IO_METHODS) {
  several s = {_i, io_file(4096, 0)};
  run_threads_on(read_alone, 6, &s);
  assert_as_expected();
}

typedef struct lent {
  tarn__io *io;
  int fd;
} lent;

static void *use_queue(void *context) {
  const lent *l = context;
  io_try(l->io, l->fd, 100, 1, 1);
  return NULL;
}

TEST_LOOP(a_queue_goes_from_thread_to_thread, IO_METHODS) {
  lent l = {io_open_by(_i, (tarn__io_options){.depth = 16}),
            io_file(IO_TRIAL_SIZE, 0)};
  if (l.io == NULL) return;
  for (int i = 0; i < 3; i++) {
    pthread_join(start_thread(use_queue, &l), NULL);
    use_queue(&l);
  }
}

static atomic_int handled;

static void handle(int signal) {
  (void)signal;
  atomic_fetch_add(&handled, 1);
}

static void handle_signal(int signal) {
  struct sigaction action = {.sa_handler = handle};  // no SA_RESTART
  ck_assert_int_eq(sigaction(signal, &action, NULL), 0);
}

TEST_LOOP(signals_interrupt_nothing, IO_METHODS) {
  struct itimerval often = {{0, 300}, {0, 300}};
  struct itimerval never = {{0, 0}, {0, 0}};
  int fd = open_blocks(IO_TRIAL_SIZE / 4096);
  tarn__io *io = io_open_by(_i, (tarn__io_options){.depth = 8});
  if (io == NULL) return;
  handle_signal(SIGALRM);
  ck_assert_int_eq(setitimer(ITIMER_REAL, &often, NULL), 0);
  io_try(io, fd, EFFORT(2000, 300), 4096, 3);
  ck_assert_int_eq(setitimer(ITIMER_REAL, &never, NULL), 0);
  ck_assert_int_gt(atomic_load(&handled), 0);
}

// Where the program's thread blocks a signal, no other one takes it.
TEST_LOOP(workers_take_no_signals, IO_METHODS) {
  sigset_t user;
  sigset_t blocked;
  sigset_t pending;
  tarn__io *io = io_open_by(_i, (tarn__io_options){.depth = 8});
  if (io == NULL) return;
  io_try(io, io_file(IO_TRIAL_SIZE, 0), 200, 1, 4);
  ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, NULL, &blocked), 0);
  ck_assert(!sigismember(&blocked, SIGUSR1));
  handle_signal(SIGUSR1);
  sigemptyset(&user);
  sigaddset(&user, SIGUSR1);
  ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, &user, NULL), 0);
  ck_assert_int_eq(kill(getpid(), SIGUSR1), 0);
  io_try(io, io_file(IO_TRIAL_SIZE, 0), 200, 1, 5);
  ck_assert_int_eq(sigpending(&pending), 0);
  ck_assert(sigismember(&pending, SIGUSR1));
  ck_assert_int_eq(atomic_load(&handled), 0);
}
