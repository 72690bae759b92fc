// Which thread runs a stream of the cpu plug-in: its worker, or a caller. The
// linker puts the function below in front of pthread_create (--wrap), so that
// threads can be counted, held back and refused.
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

static C_DeviceInterface cpu;

// --- threads under control -------------------------------------------------

static atomic_int threads_asked_for;
static atomic_bool refuse_threads;
static atomic_bool hold_threads;  // a new one waits for let_go first
static sem_t let_go;

typedef struct held_thread {
  void *(*start)(void *);
  void *context;
} held_thread;

static void *start_later(void *context) {
  held_thread held = *(held_thread *)context;
  free(context);
  while (sem_wait(&let_go) != 0)
    continue;
  return held.start(held.context);
}

// NOLINTBEGIN(bugprone-reserved-identifier): --wrap makes these names.
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *context);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *context);
// NOLINTEND(bugprone-reserved-identifier)

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *context) {
  atomic_fetch_add(&threads_asked_for, 1);
  if (refuse_threads) return EAGAIN;
  if (!hold_threads) {
    return __real_pthread_create(thread, attributes, start, context);
  }
  held_thread *held = malloc(sizeof *held);
  if (held == NULL) return EAGAIN;
  *held = (held_thread){start, context};
  return __real_pthread_create(thread, attributes, start_later, held);
}

// --- callers that help -----------------------------------------------------

typedef struct trace {
  pthread_t on;  // the thread that ran the newest callback
  int count;
} trace;

static void note_thread(C_Device device, C_Stream stream, void *user_data,
                        C_Status *status) {
  (void)device;
  (void)stream;
  (void)status;
  trace *t = user_data;
  t->on = pthread_self();
  t->count++;
}

static void queue_note(C_Stream stream, trace *t) {
  assert_done(cpu.stream_add_callback(CPU, stream, note_thread, t));
}

static bool ran_here(const trace *t, int count) {
  return t->count == count && pthread_equal(t->on, pthread_self());
}

TEST(test_small_copies_need_no_thread) {
  C_Stream s = new_stream(&cpu);
  char to[100];
  for (int i = 0; i < 100; i++) {
    assert_done(cpu.async_memory_copy_h2d(CPU, s, to, "0123456789", 10));
    assert_done(cpu.synchronize_stream(CPU, s));
  }
  assert_done(cpu.destroy_stream(CPU, s));
  ck_assert_int_eq(threads_asked_for, 0);
}

TEST(test_synchronizing_does_the_work_of_a_late_worker) {
  C_Stream s = new_stream(&cpu);
  trace t = {.count = 0};
  hold_threads = true;
  queue_note(s, &t);
  queue_note(s, &t);
  ck_assert_int_eq(t.count, 0);
  assert_done(cpu.synchronize_stream(CPU, s));
  ck_assert(ran_here(&t, 2));
  queue_note(s, &t);
  assert_done(cpu.synchronize_device(CPU));
  ck_assert(ran_here(&t, 3));
  ck_assert_int_eq(threads_asked_for, 1);
  sem_post(&let_go);
  assert_done(cpu.destroy_stream(CPU, s));
}

// Not one operation further: those behind the mark are the worker's.
TEST(test_waiting_for_an_event_does_the_work_before_it) {
  C_Stream s = new_stream(&cpu);
  C_Event e = new_event(&cpu);
  trace before = {.count = 0};
  trace behind = {.count = 0};
  hold_threads = true;
  queue_note(s, &before);
  assert_done(cpu.record_event(CPU, s, e));
  queue_note(s, &behind);
  assert_done(cpu.synchronize_event(CPU, e));
  ck_assert(ran_here(&before, 1));
  ck_assert_int_eq(behind.count, 0);
  assert_c(cpu.query_stream(CPU, s), C_WARNING);
  sem_post(&let_go);
  assert_done(cpu.destroy_stream(CPU, s));
  ck_assert_int_eq(behind.count, 1);
  assert_done(cpu.destroy_event(CPU, e));
}

typedef struct probe {
  sem_t seen;
  sigset_t blocked;
  pthread_t on;
} probe;

static void look_at_signals(C_Device device, C_Stream stream, void *user_data,
                            C_Status *status) {
  (void)device;
  (void)stream;
  (void)status;
  probe *p = user_data;
  pthread_sigmask(SIG_SETMASK, NULL, &p->blocked);
  p->on = pthread_self();
  sem_post(&p->seen);
}

TEST(test_the_worker_runs_what_nobody_waits_for) {
  C_Stream s = new_stream(&cpu);
  probe p;
  sem_init(&p.seen, 0, 0);
  assert_done(cpu.stream_add_callback(CPU, s, look_at_signals, &p));
  while (sem_wait(&p.seen) != 0)
    continue;
  ck_assert(!pthread_equal(p.on, pthread_self()));
  ck_assert(sigismember(&p.blocked, SIGINT));
  ck_assert(sigismember(&p.blocked, SIGCHLD));
  sigset_t own;
  pthread_sigmask(SIG_SETMASK, NULL, &own);
  ck_assert(!sigismember(&own, SIGINT));
  assert_done(cpu.destroy_stream(CPU, s));
}

// --- no threads to be had --------------------------------------------------

TEST(test_without_threads_the_caller_does_all) {
  static char from[1 << 20] = "without threads";
  static char to[1 << 20];
  C_Stream a = new_stream(&cpu);
  C_Stream b = new_stream(&cpu);
  C_Event e = new_event(&cpu);
  trace t = {.count = 0};
  refuse_threads = true;
  queue_note(b, &t);
  ck_assert(ran_here(&t, 1));
  assert_done(cpu.async_memory_copy_h2d(CPU, b, to, from, sizeof from));
  ck_assert_str_eq(to, from);
  assert_done(cpu.record_event(CPU, b, e));
  assert_done(cpu.query_event(CPU, e));
  assert_done(cpu.stream_wait_event(CPU, a, e));
  queue_note(a, &t);
  ck_assert(ran_here(&t, 2));
  assert_done(cpu.synchronize_device(CPU));
  assert_done(cpu.destroy_event(CPU, e));
  assert_done(cpu.destroy_stream(CPU, a));
  assert_done(cpu.destroy_stream(CPU, b));
}

TEST(test_a_thread_is_asked_for_again) {
  C_Stream s = new_stream(&cpu);
  trace t = {.count = 0};
  refuse_threads = true;
  queue_note(s, &t);
  refuse_threads = false;
  gate g;
  gate_close(&g, &cpu, s);  // would not return without a worker
  queue_note(s, &t);
  gate_open(&g);
  assert_done(cpu.synchronize_stream(CPU, s));
  ck_assert_int_eq(t.count, 2);
  assert_done(cpu.destroy_stream(CPU, s));
}

// Several callers on one stream, none with a worker behind it: each runs its
// own operation or sees it run, and the count needs no lock of its own.
enum { CALLERS = 4, CALLS = 2000, ALL_CALLS = CALLERS * CALLS };
static C_Stream shared;
static trace shared_trace;

static void *call_often(void *context) {
  int *failures = context;
  for (int i = 0; i < CALLS; i++) {
    *failures += cpu.stream_add_callback(CPU, shared, note_thread,
                                         &shared_trace) != C_SUCCESS;
  }
  return NULL;
}

TEST(test_many_callers_without_threads) {
  pthread_t threads[CALLERS];
  int failures[CALLERS] = {0};
  shared = new_stream(&cpu);
  refuse_threads = true;
  for (int i = 0; i < CALLERS; i++) {
    __real_pthread_create(&threads[i], NULL, call_often, &failures[i]);
  }
  for (int i = 0; i < CALLERS; i++) {
    pthread_join(threads[i], NULL);
    ck_assert_int_eq(failures[i], 0);
  }
  assert_done(cpu.query_stream(CPU, shared));
  ck_assert_int_eq(shared_trace.count, ALL_CALLS);
  assert_done(cpu.destroy_stream(CPU, shared));
}

static void *stand_at_gate(void *context) {
  return (void *)(uintptr_t)cpu.stream_add_callback(CPU, shared, pass_gate,
                                                    context);
}

static void *call_once(void *context) {
  return (void *)(uintptr_t)cpu.stream_add_callback(CPU, shared, note_thread,
                                                    context);
}

// The first caller is in its own operation, the second sleeps behind it. When
// the first is done it goes away: the second must be woken to run the rest.
TEST(test_a_caller_that_leaves_wakes_the_next) {
  pthread_t threads[2];
  trace t = {.count = 0};
  gate g;
  sem_init(&g.entered, 0, 0);
  sem_init(&g.opened, 0, 0);
  shared = new_stream(&cpu);
  refuse_threads = true;
  __real_pthread_create(&threads[0], NULL, stand_at_gate, &g);
  while (sem_wait(&g.entered) != 0)
    continue;
  size_t held = tarn_host_memory();
  __real_pthread_create(&threads[1], NULL, call_once, &t);
  while (tarn_host_memory() == held)
    sched_yield();  // until it has queued
  gate_open(&g);
  for (int i = 0; i < 2; i++) {
    void *status = NULL;
    pthread_join(threads[i], &status);
    ck_assert_ptr_null(status);
  }
  ck_assert_int_eq(t.count, 1);
  assert_done(cpu.destroy_stream(CPU, shared));
}

int main(void) {
  sem_init(&let_go, 0, 0);
  cpu = cpu_table();
  return run_tests();
}
