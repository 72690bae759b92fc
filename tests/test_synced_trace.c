// The trace of synced buffers: what is told, and how its function is exchanged
// while others are in it.
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/effort.h"
#include "support/faults.h"
#include "synced/trace.h"
#include "tarn/synced.h"
#include "test_sim_kit.h"

enum { SIZE = 1000, MOST = 64 };

// --- what was told ---------------------------------------------------------

typedef struct told {
  tarn_synced_happening what;
  uint64_t id;
  char name[16];
  char from[32];
  char to[32];
  size_t offset;
  size_t size;
  bool queued;
  uint64_t ns;
} told;

static told all[MOST];
static size_t count;

static void note(void *context, const tarn_synced_event *event) {
  require(context == all);
  require(event->struct_size == sizeof *event);
  require(count < MOST);
  told *t = &all[count++];
  *t = (told){.what = event->what,
              .id = event->id,
              .offset = event->offset,
              .size = event->size,
              .queued = event->queued,
              .ns = event->ns};
  snprintf(t->name, sizeof t->name, "%s", event->name);
  tarn_place_text(event->from, t->from, sizeof t->from);
  tarn_place_text(event->to, t->to, sizeof t->to);
}

static void listen(void) {
  count = 0;
  assert_ok(tarn_synced_trace(note, all));
}

// The next event that was told, from |*at| on, is this.
static const told *assert_told(size_t *at, tarn_synced_happening what,
                               const char *from, const char *to, size_t offset,
                               size_t size) {
  ck_assert_msg(*at < count, "only %zu were told, and no '%s'", count,
                tarn_synced_happening_name(what));
  const told *t = &all[(*at)++];
  ck_assert_str_eq(tarn_synced_happening_name(t->what),
                   tarn_synced_happening_name(what));
  ck_assert_str_eq(t->from, from);
  ck_assert_str_eq(t->to, to);
  ck_assert_uint_eq(t->offset, offset);
  ck_assert_uint_eq(t->size, size);
  return t;
}

// --- accesses --------------------------------------------------------------

static tarn_synced *buffer_named(const char *name) {
  tarn_synced_options options = {.struct_size = sizeof options, .name = name};
  tarn_synced *buffer = NULL;
  assert_ok(tarn_synced_create(SIZE, &options, &buffer));
  return buffer;
}

static void touch(tarn_synced *buffer, size_t offset, size_t size,
                  tarn_place place, uint32_t mode, tarn_stream *stream) {
  tarn_access access;
  assert_ok(
      tarn_synced_begin(buffer, offset, size, place, mode, stream, &access));
  if (mode != TARN_READ && access.pointer != NULL) {
    memset(access.pointer, 7, access.size);
  }
  assert_ok(tarn_synced_end(&access));
}

// --- the story -------------------------------------------------------------

START_TEST(happenings_have_names) {
  ck_assert_str_eq(tarn_synced_happening_name(TARN_SYNCED_CREATED), "created");
  ck_assert_str_eq(tarn_synced_happening_name(TARN_SYNCED_LOST), "lost");
  for (int what = TARN_SYNCED_CREATED; what <= TARN_SYNCED_LOST; what++) {
    const char *name = tarn_synced_happening_name((tarn_synced_happening)what);
    ck_assert_ptr_nonnull(name);
    for (int other = TARN_SYNCED_CREATED; other < what; other++) {
      ck_assert_str_ne(
          name, tarn_synced_happening_name((tarn_synced_happening)other));
    }
  }
  ck_assert_ptr_null(tarn_synced_happening_name((tarn_synced_happening)0));
  ck_assert_ptr_null(tarn_synced_happening_name(
      (tarn_synced_happening)(TARN_SYNCED_LOST + 1)));
  ck_assert_ptr_null(tarn_synced_happening_name((tarn_synced_happening)-1));
}
END_TEST

START_TEST(the_life_of_a_buffer) {
  tarn_device *device = sim_open("sim:0");
  tarn_place there = tarn_place_on(device);
  listen();
  tarn_synced *buffer = buffer_named("weights");
  touch(buffer, 0, TARN_ALL, TARN_HOST, TARN_WRITE_DISCARD, NULL);
  touch(buffer, 100, 50, there, TARN_READ, NULL);
  touch(buffer, 100, 50, there, TARN_READ, NULL);  // valid: nothing is told
  assert_ok(tarn_synced_evict(buffer, there));
  assert_ok(tarn_synced_destroy(buffer));
  size_t at = 0;
  const told *first =
      assert_told(&at, TARN_SYNCED_CREATED, "host", "host", 0, SIZE);
  ck_assert_str_eq(first->name, "weights");
  assert_told(&at, TARN_SYNCED_ALLOCATED, "host", "host", 0, SIZE);
  assert_told(&at, TARN_SYNCED_ALLOCATED, "host", "sim:0", 0, SIZE);
  const told *copied =
      assert_told(&at, TARN_SYNCED_COPIED, "host", "sim:0", 100, 50);
  ck_assert(!copied->queued);
  assert_told(&at, TARN_SYNCED_RELEASED, "host", "sim:0", 0, SIZE);
  assert_told(&at, TARN_SYNCED_RELEASED, "host", "host", 0, SIZE);
  assert_told(&at, TARN_SYNCED_DESTROYED, "host", "host", 0, SIZE);
  ck_assert_uint_eq(at, count);
  for (size_t i = 0; i < count; i++) {
    ck_assert_uint_eq(all[i].id, first->id);
    ck_assert_str_eq(all[i].name, "weights");
    ck_assert_uint_eq(all[i].ns, 0);
  }
  assert_ok(tarn_device_close(device));
}
END_TEST

START_TEST(unwritten_bytes_and_lost_ones) {
  tarn_device *device = sim_open("sim:0");
  tarn_place there = tarn_place_on(device);
  tarn_synced *buffer = NULL;
  tarn_access access;
  size_t lost = 0;
  assert_ok(tarn_synced_create(SIZE, NULL, &buffer));
  listen();
  touch(buffer, 10, 20, there, TARN_READ_WRITE, NULL);
  assert_ok(tarn_synced_begin(buffer, 15, 5, there, TARN_WRITE_DISCARD, NULL,
                              &access));
  assert_ok(tarn_synced_cancel(&access, &lost));
  ck_assert_uint_eq(lost, 5);
  size_t at = 0;
  assert_told(&at, TARN_SYNCED_ALLOCATED, "host", "sim:0", 0, SIZE);
  const told *zeroed =
      assert_told(&at, TARN_SYNCED_ZEROED, "host", "sim:0", 10, 20);
  ck_assert_str_eq(zeroed->name, "");
  assert_told(&at, TARN_SYNCED_LOST, "sim:0", "host", 15, 5);
  ck_assert_uint_eq(at, count);
  assert_ok(tarn_synced_destroy(buffer));
  assert_ok(tarn_device_close(device));
}
END_TEST

START_TEST(a_queued_copy) {
  tarn_device *device = sim_open("sim:0");
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_create(device, &stream));
  tarn_synced *buffer = buffer_named("x");
  touch(buffer, 0, SIZE, TARN_HOST, TARN_WRITE_DISCARD, NULL);
  touch(buffer, 0, SIZE, tarn_place_on(device), TARN_WRITE_DISCARD, stream);
  touch(buffer, 0, 300, TARN_HOST, TARN_WRITE_DISCARD, NULL);
  listen();
  assert_ok(tarn_synced_prefetch(buffer, 0, SIZE, tarn_place_on(device), stream,
                                 NULL));
  assert_ok(tarn_stream_synchronize(stream));
  size_t at = 0;
  const told *copied =
      assert_told(&at, TARN_SYNCED_COPIED, "host", "sim:0", 0, 300);
  ck_assert(copied->queued);
  ck_assert_uint_eq(at, count);
  assert_ok(tarn_synced_destroy(buffer));
  assert_ok(tarn_stream_destroy(stream));
  assert_ok(tarn_device_close(device));
}
END_TEST

START_TEST(outside_memory) {
  static unsigned char bytes[SIZE];
  tarn_synced *buffer = buffer_named("borrower");
  listen();
  assert_ok(
      tarn_synced_wrap(buffer, TARN_HOST, (tarn_addr)(uintptr_t)bytes, NULL));
  assert_ok(tarn_synced_destroy(buffer));
  size_t at = 0;
  assert_told(&at, TARN_SYNCED_WRAPPED, "host", "host", 0, SIZE);
  assert_told(&at, TARN_SYNCED_RELEASED, "host", "host", 0, SIZE);
  assert_told(&at, TARN_SYNCED_DESTROYED, "host", "host", 0, SIZE);
  ck_assert_uint_eq(at, count);
}
END_TEST

// The device takes its time, so that the host must wait for its stream.
START_TEST(a_host_that_waits) {
  tarn_sim_options slow = {.struct_size = sizeof slow,
                           .latency_ns = 20 * 1000 * 1000};
  assert_ok(tarn_sim_configure(&slow));
  tarn_device *device = sim_open("sim:0");
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_create(device, &stream));
  tarn_synced *buffer = buffer_named("x");
  touch(buffer, 0, SIZE, TARN_HOST, TARN_WRITE_DISCARD, NULL);
  assert_ok(tarn_synced_prefetch(buffer, 0, SIZE, tarn_place_on(device), stream,
                                 NULL));
  listen();
  // The copy reads what is to be written here.
  touch(buffer, 0, SIZE, TARN_HOST, TARN_WRITE_DISCARD, NULL);
  size_t at = 0;
  ck_assert_uint_eq(count, 1);
  ck_assert_str_eq(tarn_synced_happening_name(all[at].what), "stalled");
  ck_assert_str_eq(all[at].to, "host");
  ck_assert_uint_gt(all[at].ns, 0);
  assert_ok(tarn_synced_destroy(buffer));
  assert_ok(tarn_stream_destroy(stream));
  assert_ok(tarn_device_close(device));
}
END_TEST

START_TEST(nobody_listens_any_more) {
  ck_assert(!tarn__synced_is_traced());
  listen();
  ck_assert(tarn__synced_is_traced());
  assert_ok(tarn_synced_trace(NULL, NULL));
  ck_assert(!tarn__synced_is_traced());
  tarn_synced *buffer = buffer_named("unheard");
  assert_ok(tarn_synced_destroy(buffer));
  ck_assert_uint_eq(count, 0);
}
END_TEST

// --- from within -----------------------------------------------------------

// What an event is told about, without a buffer.
static tarn__core some_core = {.id = 77};

static void tell_something(void) {
  tarn__synced_tell(&some_core,
                    (tarn_synced_event){.what = TARN_SYNCED_COPIED});
}

static void disobey(void *context, const tarn_synced_event *event) {
  require(event->id == 77);
  require(event->name[0] == '\0');
  count++;
  *(tarn_status *)context = tarn_synced_trace(NULL, NULL);
  tell_something();  // is not told, or this would never end
}

START_TEST(an_exchange_from_within) {
  tarn_status got = TARN_OK;
  count = 0;
  assert_ok(tarn_synced_trace(disobey, &got));
  tell_something();
  ck_assert_int_eq(got, TARN_E_STATE);
  assert_error_says("from within");
  ck_assert_uint_eq(count, 1);
  ck_assert(tarn__synced_is_traced());
  assert_ok(tarn_synced_trace(NULL, NULL));
}
END_TEST

static void exchange_in_callback(void *context, tarn_status status) {
  (void)status;
  *(tarn_status *)context = tarn_synced_trace(note, all);
}

START_TEST(an_exchange_in_a_callback) {
  tarn_status got = TARN_OK;
  tarn_device *device = sim_open("sim:0");
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_create(device, &stream));
  assert_ok(tarn_stream_add_callback(stream, exchange_in_callback, &got));
  assert_ok(tarn_stream_destroy(stream));
  ck_assert_int_eq(got, TARN_E_STATE);
  ck_assert(!tarn__synced_is_traced());
  assert_ok(tarn_device_close(device));
}
END_TEST

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

// Who is in the former function is waited for; who comes then is told to the
// new one, at once.
START_TEST(an_exchange_waits_for_who_is_inside) {
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
END_TEST

static atomic_bool enough;

static void *tell_until_enough(void *context) {
  (void)context;
  while (!atomic_load(&enough))
    tell_something();
  return NULL;
}

// |context| lives on the stack of who exchanges: a function that is called
// after its exchange has returned would write to what is gone.
static void mark_alive(void *context, const tarn_synced_event *event) {
  atomic_int *alive = context;
  (void)event;
  require(atomic_load(alive) == 1);
}

static void *exchange_often(void *context) {
  (void)context;
  for (int i = 0; i < EFFORT(5000, 500); i++) {
    atomic_int alive = 1;
    require(tarn_synced_trace(mark_alive, &alive) == TARN_OK);
    sched_yield();
    require(tarn_synced_trace(NULL, NULL) == TARN_OK);
    atomic_store(&alive, 0);
  }
  return NULL;
}

// One at a time exchanges here, since each expects its own function to be the
// one that goes.
START_TEST(threads_that_tell_while_it_is_exchanged) {
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
END_TEST

static void count_up(void *context, const tarn_synced_event *event) {
  (void)event;
  atomic_fetch_add((atomic_int *)context, 1);
}

static void *set_often(void *context) {
  for (int i = 0; i < EFFORT(3000, 300); i++)
    require(tarn_synced_trace(count_up, context) == TARN_OK);
  return NULL;
}

// Two that exchange at once take turns, and nobody is waited for for ever.
START_TEST(threads_that_exchange_at_once) {
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
END_TEST

// --- forks -----------------------------------------------------------------

static pid_t run_child(void (*in_child)(void)) {
  pid_t child = fork();
  if (child != 0) return child;
  signal(SIGALRM, SIG_DFL);  // Check's would end the test
  alarm(30);
  in_child();
  _exit(0);
}

static void assert_went_well(pid_t child) {
  int status = 0;
  ck_assert_int_gt(child, 0);
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
                "the child ended with 0x%x", status);
}

static void stop_listening(void) {
  if (tarn_synced_trace(NULL, NULL) != TARN_OK) _exit(1);
  if (tarn__synced_is_traced()) _exit(2);
}

// The thread that is in the function is not in the child.
START_TEST(a_child_waits_for_no_thread_of_the_parent) {
  room r = {.inside = 0};
  pthread_t teller;
  assert_ok(tarn_synced_trace(stay, &r));
  ck_assert_int_eq(pthread_create(&teller, NULL, tell_once, NULL), 0);
  while (atomic_load(&r.inside) == 0)
    sched_yield();
  assert_went_well(run_child(stop_listening));
  atomic_store(&r.open, true);
  ck_assert_int_eq(pthread_join(teller, NULL), 0);
  assert_ok(tarn_synced_trace(NULL, NULL));
}
END_TEST

static pid_t forked_within;

static void fork_within(void *context, const tarn_synced_event *event) {
  (void)context;
  (void)event;
  forked_within = fork();
  if (forked_within == 0) {
    signal(SIGALRM, SIG_DFL);
    alarm(30);
  }
}

// The one that forks is still in the function, in the child too: there it
// leaves, and then the function can be exchanged.
START_TEST(a_fork_from_within) {
  assert_ok(tarn_synced_trace(fork_within, NULL));
  tell_something();
  if (forked_within == 0) {
    stop_listening();
    _exit(0);
  }
  assert_went_well(forked_within);
  assert_ok(tarn_synced_trace(NULL, NULL));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("synced_trace");
  ADD_CASE(suite, "story", happenings_have_names, the_life_of_a_buffer,
           unwritten_bytes_and_lost_ones, a_queued_copy, outside_memory,
           a_host_that_waits, nobody_listens_any_more);
  ADD_CASE(suite, "within", an_exchange_from_within, an_exchange_in_a_callback);
  ADD_CASE(suite, "threads", an_exchange_waits_for_who_is_inside,
           threads_that_tell_while_it_is_exchanged,
           threads_that_exchange_at_once);
  ADD_CASE(suite, "forks", a_child_waits_for_no_thread_of_the_parent,
           a_fork_from_within);
  return run_suite(suite);
}
