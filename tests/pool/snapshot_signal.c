// Snapshots by signal: to this very process, also while others allocate and
// across forks; the handler's beginning and its end.
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "base/os.h"
#include "no_threads.h"
#include "snapshot_kit.h"
#include "support/child.h"
#include "support/faults.h"
#include "support/threads.h"

static const uint64_t MS = 1000000;

// --- waiting ---------------------------------------------------------------

static tarn_pool *pool;
static tarn_block kept;

static void install(void) {
  make_folder();
  listen_to_log();
  pool = host_pool("arena_pool");
  kept = take_tagged(pool, 60 * KIB, tag_of("weights"));
}

static void tear_down(void) {
  assert_ok(tarn_pool_snapshot_on_signal(0, TARN, NULL));
  give(kept);
  assert_ok(tarn__front_check(pool));
  remove_folder();
}

static void nap(void) {
  tarn__os_wait_until(tarn__os_now_ns() + MS);
}

// The test's own time limit ends it where the file never comes.
static void await_file(const char *name) {
  while (!is_there(name))
    nap();
}

static void want(int signal, const char *pattern) {
  assert_ok(tarn_pool_snapshot_on_signal(signal, TARN, path_of(pattern)));
}

static struct sigaction action_of(int signal) {
  struct sigaction action;
  ck_assert_int_eq(sigaction(signal, NULL, &action), 0);
  return action;
}

// --- one signal ------------------------------------------------------------

TEST(a_signal_writes_each_pool) {
  tarn_pool *own = NULL;
  assert_ok(tarn_pool_create(TARN_HOST, NULL, &own));
  want(SIGUSR1, "%n");
  ck_assert_int_eq(kill(getpid(), SIGUSR1), 0);
  await_file("0");
  await_file("1");
  tarn_trace *trace = read_snapshot("0");
  ck_assert_uint_eq(live_bytes_in(trace), 60 * KIB);
  tarn_trace_destroy(trace);
  ck_assert_int_eq(raise(SIGUSR1), 0);
  await_file("3");
  ck_assert_uint_eq(count_files(), 4);
  ck_assert_uint_eq(told.count, 0);
  assert_ok(tarn_pool_snapshot_on_signal(0, TARN, NULL));
  assert_ok(tarn_pool_destroy(own));
}

TEST(the_path_can_be_exchanged) {
  want(SIGUSR1, "a-%n");
  want(SIGUSR1, "b-%n");
  raise(SIGUSR1);
  await_file("b-0");
  ck_assert_uint_eq(count_files(), 1);
}

TEST(only_one_signal_does_it) {
  want(SIGUSR1, "%n");
  assert_status(tarn_pool_snapshot_on_signal(SIGUSR2, TARN, path_of("%n")),
                TARN_E_STATE);
  assert_error_says("signal 10");
  ck_assert(action_of(SIGUSR2).sa_handler == SIG_DFL);
  assert_ok(tarn_pool_snapshot_on_signal(0, TARN, NULL));
  want(SIGUSR2, "%n");
  raise(SIGUSR2);
  await_file("0");
}

// --- beginning and end -----------------------------------------------------

static atomic_int handled;

static void handle(int signal) {
  (void)signal;
  handled++;
}

TEST(what_the_signal_did_before_is_restored) {
  ck_assert(signal(SIGUSR1, handle) == SIG_DFL);
  want(SIGUSR1, "%n");
  ck_assert(action_of(SIGUSR1).sa_handler != handle);
  raise(SIGUSR1);
  await_file("0");
  ck_assert_int_eq(handled, 0);
  assert_ok(tarn_pool_snapshot_on_signal(SIGUSR1, TARN, NULL));
  raise(SIGUSR1);
  ck_assert_int_eq(handled, 1);
  ck_assert_uint_eq(count_files(), 1);
  assert_ok(tarn_pool_snapshot_on_signal(SIGUSR1, TARN, NULL));  // again
}

TEST(what_the_program_has_put_there_since_stays) {
  want(SIGUSR1, "%n");
  ck_assert(signal(SIGUSR1, handle) != SIG_DFL);
  assert_ok(tarn_pool_snapshot_on_signal(SIGUSR1, TARN, NULL));
  ck_assert(action_of(SIGUSR1).sa_handler == handle);
}

TEST(signals_that_cannot_be_caught_are_refused) {
  const int signals[] = {0,       -1,     1000,     SIGKILL, SIGSTOP,
                         SIGSEGV, SIGBUS, SIGFPE,   SIGILL,  SIGABRT,
                         SIGTRAP, SIGSYS, INT32_MAX};
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
    assert_status(tarn_pool_snapshot_on_signal(signals[i], TARN, path_of("%n")),
                  TARN_E_INVALID);
    assert_error_says("cannot be caught");
  }
  want(SIGUSR1, "%n");
}

TEST(a_path_for_all_pools_needs_a_number) {
  assert_status(tarn_pool_snapshot_on_signal(SIGUSR1, TARN, path_of("%d")),
                TARN_E_INVALID);
  assert_error_says("%n");
  ck_assert(action_of(SIGUSR1).sa_handler == SIG_DFL);
}

TEST(without_a_thread_nothing_has_changed) {
  atomic_store(&no_threads, true);
  assert_status(tarn_pool_snapshot_on_signal(SIGUSR1, TARN, path_of("%n")),
                TARN_E_NOMEM);
  atomic_store(&no_threads, false);
  ck_assert(action_of(SIGUSR1).sa_handler == SIG_DFL);
  want(SIGUSR1, "%n");
  atomic_store(&no_threads, true);
  want(SIGUSR1, "b-%n");  // which needs no other
  raise(SIGUSR1);
  await_file("b-0");
  atomic_store(&no_threads, false);
}

static void begin_scenario(void *context) {
  (void)context;
  tarn_status status =
      tarn_pool_snapshot_on_signal(SIGUSR1, TARN, path_of("%n"));
  if (status == TARN_OK) {
    assert_ok(tarn_pool_snapshot_on_signal(SIGUSR1, TARN, NULL));
  } else {
    assert_status(status, TARN_E_NOMEM);
  }
  ck_assert(action_of(SIGUSR1).sa_handler == SIG_DFL);
}

TEST(nor_without_host_memory) {
  ck_assert_uint_gt(faults_sweep(begin_scenario, NULL), 0);
}

// --- from a stream's callback ----------------------------------------------

static tarn_status said[4];

static void call_all(void *context, tarn_status status) {
  (void)context;
  (void)status;
  tarn_trace *trace = NULL;
  said[0] = tarn_pool_snapshot_on_signal(SIGUSR1, TARN, path_of("%n"));
  said[1] = tarn_pool_snapshot_on_full(TARN, path_of("%n"));
  said[2] = tarn_pool_snapshot_all(TARN, path_of("%n"));
  said[3] = tarn_pool_trace(pool, &trace);
}

TEST(not_from_a_callback) {
  tarn_device *cpu = open_device("cpu:0");
  tarn_stream *stream = stream_of(cpu);
  assert_ok(tarn_stream_add_callback(stream, call_all, NULL));
  assert_ok(tarn_stream_synchronize(stream));
  for (size_t i = 0; i < 4; i++)
    ck_assert_int_eq(said[i], TARN_E_STATE);
}

// --- what is in the way ----------------------------------------------------

static size_t log_count(void) {
  static atomic_size_t count;  // the log's lock is what orders |told|
  tarn_log_set(NULL, NULL, TARN_LOG_WARN);
  atomic_store(&count, told.count);
  listen_to_log();
  return atomic_load(&count);
}

TEST(what_cannot_be_written_is_logged) {
  want(SIGUSR1, "no/such/folder/%n");
  raise(SIGUSR1);
  while (log_count() == 0)
    nap();
  assert_ok(tarn_pool_snapshot_on_signal(0, TARN, NULL));
  ck_assert_ptr_nonnull(strstr(told.last, "no/such/folder/0"));
  ck_assert_uint_eq(count_files(), 0);
}

// --- while others work -----------------------------------------------------

enum { THREADS = 3, SIGNALS = 12 };
static atomic_bool enough;

static void *churn(void *context) {
  tarn_block blocks[20];
  (void)context;
  while (!atomic_load(&enough)) {
    for (size_t i = 0; i < 20; i++)
      require(tarn_pool_alloc(pool, 100 + i * 5000, 0, NULL, &blocks[i]) ==
              TARN_OK);
    for (size_t i = 0; i < 20; i++)
      require(tarn_pool_free(&blocks[i], NULL) == TARN_OK);
  }
  return NULL;
}

// The handler runs on whatever thread, also one that holds the pool's lock.
TEST(signals_while_threads_allocate) {
  pthread_t threads[THREADS];
  assert_ok(tarn_pool_account(pool, TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS));
  want(SIGUSR1, "%n");
  for (size_t i = 0; i < THREADS; i++)
    threads[i] = start_thread(churn, NULL);
  for (int i = 0; i < SIGNALS; i++) {
    char name[16];
    snprintf(name, sizeof name, "%d", i);
    pthread_kill(threads[i % THREADS], SIGUSR1);
    await_file(name);
    tarn_trace *trace = read_snapshot(name);
    require(live_bytes_in(trace) >= 60 * KIB);
    tarn_trace_destroy(trace);
  }
  for (int i = 0; i < 200; i++)  // those that come too fast are one
    pthread_kill(threads[i % THREADS], SIGUSR1);
  atomic_store(&enough, true);
  for (size_t i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
  assert_ok(tarn_pool_snapshot_on_signal(0, TARN, NULL));
  ck_assert_uint_ge(count_files(), SIGNALS);
  ck_assert_uint_eq(told.count, 0);
}

static void *exchange(void *context) {
  for (int i = 0; i < 50; i++) {
    tarn_status status = tarn_pool_snapshot_on_signal(SIGUSR1, TARN, context);
    require(status == TARN_OK);
    require(tarn_pool_snapshot_on_signal(SIGUSR1, TARN, NULL) == TARN_OK);
  }
  return NULL;
}

// With a handler of the program's underneath: it may be its turn.
TEST(threads_may_begin_and_end_it_at_once) {
  pthread_t threads[THREADS];
  char path[512];
  snprintf(path, sizeof path, "%s", path_of("%n"));
  ck_assert(signal(SIGUSR1, handle) == SIG_DFL);
  for (size_t i = 0; i < THREADS; i++)
    threads[i] = start_thread(exchange, path);
  for (int i = 0; i < 100; i++)
    raise(SIGUSR1);
  for (size_t i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
  ck_assert(action_of(SIGUSR1).sa_handler == handle);
}

// --- forks -----------------------------------------------------------------

static void ask_for(int signal) {
  tarn_pool *own = NULL;
  MUST(tarn_pool_of(TARN_HOST, &own) == TARN_OK);
  MUST(tarn_pool_snapshot_on_signal(signal, TARN, path_of("child-%n")) ==
       TARN_OK);
  MUST((action_of(SIGUSR1).sa_handler == SIG_DFL) == (signal != SIGUSR1));
  raise(signal);
  while (count_files() == 0)
    nap();
}

static void in_child(void) {
  raise(SIGUSR1);  // which does nothing, and does not end the child
  ask_for(SIGUSR2);
  MUST(tarn_pool_snapshot_on_signal(0, TARN, NULL) == TARN_OK);
  MUST(action_of(SIGUSR2).sa_handler == SIG_DFL);
  MUST(count_files() == 1);  // the parent's pools are not the child's
}

static void ask_again(void) {
  ask_for(SIGUSR1);
}

static void just_end_it(void) {
  MUST(tarn_pool_snapshot_on_signal(0, TARN, NULL) == TARN_OK);
  MUST(action_of(SIGUSR1).sa_handler == SIG_DFL);
}

// The thread sanitizer allows no threads in a child of a program that has some.
#if defined(__SANITIZE_THREAD__)
enum { FIRST_BODY = 2 };
#else
enum { FIRST_BODY = 0 };
#endif

TEST_RANGE(a_child_has_no_such_thread_until_it_asks, FIRST_BODY, 3) {
  static void (*const bodies[])(void) = {in_child, ask_again, just_end_it};
  want(SIGUSR1, "parent-%n");
  await_sleeping_threads();
  pid_t child = fork();
  if (child == 0) {
    child_begin(60);
    bodies[_i]();
    _exit(0);
  }
  assert_child_ended_well(child);
  size_t files = count_files();
  ck_assert_uint_eq(files, _i == 2 ? 0 : 1);
  raise(SIGUSR1);
  await_file("parent-0");
  ck_assert_uint_eq(count_files(), files + 1);
}

FIXTURE(install, tear_down);

int main(void) {
  faults_install();
  return run_tests();
}
