// The trace function, replaced while other threads are in it, and in the child
// of a fork.
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "support/child.h"
#include "support/effort.h"
#include "support/run.h"
#include "synced/core.h"

// What an event is told about, without a buffer.
static tarn__synced_core some_core = {.id = 77};

static void tell_something(void) {
  tarn__synced_tell(&some_core,
                    (tarn_synced_event){.what = TARN_SYNCED_COPIED});
}

// --- threads ---------------------------------------------------------------

typedef struct room {
  atomic_int inside;  // threads in the function
  atomic_bool open;   // they may leave
} room;

static void stay(void *context, const tarn_synced_event *event) {
  room *r = context;
  (void)event;
  atomic_fetch_add(&r->inside, 1);
  while (!atomic_load(&r->open))
    sched_yield();
  atomic_fetch_sub(&r->inside, 1);
}

static void *tell_once(void *context) {
  (void)context;
  tell_something();
  return NULL;
}

typedef struct exchanger {
  room *former;
  tarn_synced_trace_fn *function;
  void *context;
  atomic_bool returned;
  bool found_one_inside;
} exchanger;

static void *exchange(void *context) {
  exchanger *e = context;
  require(tarn_synced_trace(e->function, e->context) == TARN_OK);
  e->found_one_inside = atomic_load(&e->former->inside) > 0;
  atomic_store(&e->returned, true);
  return NULL;
}

// A thread in the former function is waited for; a later event is told to the
// new one, at once.
TEST(an_exchange_waits_for_who_is_inside) {
  room former = {.inside = 0};
  pthread_t teller;
  pthread_t exchanging;
  exchanger e = {.former = &former, .function = NULL};
  assert_ok(tarn_synced_trace(stay, &former));
  ck_assert_int_eq(pthread_create(&teller, NULL, tell_once, NULL), 0);
  while (atomic_load(&former.inside) == 0)
    sched_yield();
  ck_assert_int_eq(pthread_create(&exchanging, NULL, exchange, &e), 0);
  while (tarn__synced_is_traced())
    sched_yield();  // until it has begun
  tell_something();
  ck_assert(!atomic_load(&e.returned));
  atomic_store(&former.open, true);
  ck_assert_int_eq(pthread_join(teller, NULL), 0);
  ck_assert_int_eq(pthread_join(exchanging, NULL), 0);
  ck_assert(!e.found_one_inside);
}

static atomic_bool enough;

static void *tell_until_enough(void *context) {
  (void)context;
  while (!atomic_load(&enough))
    tell_something();
  return NULL;
}

// |context| lives on the stack of who exchanges: a function that is called
// after its exchange has returned would write to what is gone.
static void point_alive(void *context, const tarn_synced_event *event) {
  atomic_int *alive = context;
  (void)event;
  require(atomic_load(alive) == 1);
}

static void *exchange_often(void *context) {
  (void)context;
  for (int i = 0; i < EFFORT(5000, 500); i++) {
    atomic_int alive = 1;
    require(tarn_synced_trace(point_alive, &alive) == TARN_OK);
    sched_yield();
    require(tarn_synced_trace(NULL, NULL) == TARN_OK);
    atomic_store(&alive, 0);
  }
  return NULL;
}

// One at a time exchanges here, since each expects its own function to be the
// one that goes.
TEST(threads_that_tell_while_it_is_exchanged) {
  pthread_t tellers[3];
  for (int i = 0; i < 3; i++) {
    ck_assert_int_eq(pthread_create(&tellers[i], NULL, tell_until_enough, NULL),
                     0);
  }
  exchange_often(NULL);
  atomic_store(&enough, true);
  for (int i = 0; i < 3; i++)
    ck_assert_int_eq(pthread_join(tellers[i], NULL), 0);
}

static void count_up(void *context, const tarn_synced_event *event) {
  (void)event;
  atomic_fetch_add((atomic_int *)context, 1);
}

static void *set_often(void *context) {
  for (int i = 0; i < EFFORT(3000, 300); i++)
    require(tarn_synced_trace(count_up, context) == TARN_OK);
  return NULL;
}

// Two threads that replace it at once take turns, and neither waits forever.
TEST(threads_that_exchange_at_once) {
  pthread_t tellers[2];
  pthread_t setters[2];
  atomic_int calls = 0;
  atomic_store(&enough, false);
  for (int i = 0; i < 2; i++) {
    ck_assert_int_eq(pthread_create(&tellers[i], NULL, tell_until_enough, NULL),
                     0);
    ck_assert_int_eq(pthread_create(&setters[i], NULL, set_often, &calls), 0);
  }
  for (int i = 0; i < 2; i++)
    ck_assert_int_eq(pthread_join(setters[i], NULL), 0);
  tell_something();
  atomic_store(&enough, true);
  for (int i = 0; i < 2; i++)
    ck_assert_int_eq(pthread_join(tellers[i], NULL), 0);
  assert_ok(tarn_synced_trace(NULL, NULL));
  ck_assert_int_gt(atomic_load(&calls), 0);
}

// --- forks -----------------------------------------------------------------

static pid_t run_child(void (*in_child)(void)) {
  pid_t child = fork();
  if (child != 0) return child;
  child_begin(30);
  in_child();
  _exit(0);
}

static void stop_listening(void) {
  if (tarn_synced_trace(NULL, NULL) != TARN_OK) _exit(1);
  if (tarn__synced_is_traced()) _exit(2);
}

// The thread that is in the function is not in the child.
TEST(a_child_waits_for_no_thread_of_the_parent) {
  room r = {.inside = 0};
  pthread_t teller;
  assert_ok(tarn_synced_trace(stay, &r));
  ck_assert_int_eq(pthread_create(&teller, NULL, tell_once, NULL), 0);
  while (atomic_load(&r.inside) == 0)
    sched_yield();
  assert_child_ended_well(run_child(stop_listening));
  atomic_store(&r.open, true);
  ck_assert_int_eq(pthread_join(teller, NULL), 0);
  assert_ok(tarn_synced_trace(NULL, NULL));
}

static pid_t forked_within;

static void fork_within(void *context, const tarn_synced_event *event) {
  (void)context;
  (void)event;
  forked_within = fork();
  if (forked_within == 0) {
    child_begin(30);
  }
}

// The one that forks is still in the function, in the child too: there it
// leaves, and then the function can be exchanged.
TEST(a_fork_from_within) {
  assert_ok(tarn_synced_trace(fork_within, NULL));
  tell_something();
  if (forked_within == 0) {
    stop_listening();
    _exit(0);
  }
  assert_child_ended_well(forked_within);
  assert_ok(tarn_synced_trace(NULL, NULL));
}
