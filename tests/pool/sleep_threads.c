// Sleep, and others at work: streams, threads, a child of fork.
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "lanes_kit.h"
#include "sleep_kit.h"
#include "support/child.h"
#include "support/tagged.h"

static struct {
  arena_place p;
  tarn_tag tags[3];
} run;

// False: not on that device.
static bool open_run(int device) {
  static const char *const names[] = {"weights", "cache", "activations"};
  run.p = open_arena_at((size_t)256 * MIB, device, TEST_NEEDS_RANGES,
                        "arena_pool:small=4K");
  for (int i = 0; i < 3; i++)
    run.tags[i] = tag_of(names[i]);
  return run.p.pool != NULL;
}

// --- streams ---------------------------------------------------------------

static atomic_bool is_over;

static void work(void *context, tarn_status status) {
  (void)context;
  (void)status;
  const struct timespec a_while = {.tv_nsec = 50000000};
  nanosleep(&a_while, NULL);
  atomic_store(&is_over, true);
}

// | a hole b |, and a stream is at work in the hole.
TEST_LOOP(streams_at_work_in_their_pages_are_waited_for, TEST_DEVICES) {
  if (!open_run(_i)) return;
  size_t page = page_on(run.p.device);
  tarn_pool *pool = run.p.pool;
  tarn_stream *stream = stream_on(&run.p);
  tarn_block a = take_tagged(pool, page / 4, run.tags[0]);
  tarn_block hole = take_tagged(pool, page / 2, run.tags[1]);
  tarn_block b = take_tagged(pool, page / 4, run.tags[0]);
  atomic_store(&is_over, false);
  assert_ok(tarn_stream_add_callback(stream, work, NULL));
  give_on(hole, stream);
  assert_ok(tarn_pool_sleep(pool, run.tags[0], TARN_SLEEP_DROP));
  ck_assert_uint_eq(stats_of(pool).asleep_bytes, page);
  ck_assert(atomic_load(&is_over));
  assert_ok(tarn_pool_wake(pool, run.tags[0]));
  hole = take(pool, page / 2);
  ck_assert_uint_eq(stats_of(pool).stream_crossings, 0);
  give(hole);
  give(a);
  give(b);
}

// The block was used by one stream and taken for another behind it, where
// nothing was queued.
TEST_LOOP(streams_that_had_the_memory_before_are_waited_for, TEST_DEVICES) {
  if (!open_run(_i)) return;
  size_t page = page_on(run.p.device);
  tarn_pool *pool = run.p.pool;
  tarn_stream *one = stream_on(&run.p);
  tarn_stream *two = stream_on(&run.p);
  tarn_block a = take_on(pool, page, one);
  atomic_store(&is_over, false);
  assert_ok(tarn_stream_add_callback(one, work, NULL));
  give_on(a, one);
  assert_ok(alloc_tagged(pool, page, 0, two, run.tags[0], &a));
  assert_ok(tarn_pool_sleep(pool, run.tags[0], TARN_SLEEP_SAVE));
  ck_assert_uint_eq(stats_of(pool).asleep_bytes, page);
  ck_assert(atomic_load(&is_over));
  assert_ok(tarn_pool_wake(pool, run.tags[0]));
  give(a);
}

// --- threads ---------------------------------------------------------------

enum { WORKERS = 3, TURNS = 60 };

typedef struct worker {
  pthread_t thread;
  unsigned number;
  size_t refused;
} worker;

static tarn_pool *shared;
static tarn_block prey[TURNS];
static atomic_size_t prey_count;

// Others of the pool: they take and free, and trim.
static void *use_others(void *context) {
  worker *w = context;
  for (unsigned i = 0; i < TURNS * 4; i++) {
    tarn_block block;
    size_t size = 1000 + (i * 7919 + w->number * 104729) % (600 * 1024);
    require(alloc_tagged(shared, size, 0, NULL, run.tags[2], &block) ==
            TARN_OK);
    if (i % 16 == 0) require(tarn_pool_trim(shared, 0) == TARN_OK);
    require(tarn_pool_free(&block, NULL) == TARN_OK);
  }
  return NULL;
}

// Sleeps and wakes a tag of its own, or the one of others.
static void *sleep_and_rise(void *context) {
  worker *w = context;
  unsigned tag = w->number % 2;
  for (unsigned i = 0; i < TURNS; i++) {
    tarn_status status =
        tarn_pool_sleep(shared, run.tags[tag], TARN_SLEEP_SAVE);
    require(status == TARN_OK || status == TARN_E_STATE);
    w->refused += status == TARN_E_STATE;
    status = tarn_pool_wake(shared, run.tags[tag]);
    require(status == TARN_OK || status == TARN_E_STATE);
    w->refused += status == TARN_E_STATE;
  }
  return NULL;
}

// Frees blocks, whether they sleep or not; once each.
static void *free_prey(void *context) {
  worker *w = context;
  size_t at = 0;
  while ((at = atomic_fetch_add(&prey_count, 1)) < TURNS) {
    tarn_status status = TARN_E_STATE;
    while ((status = tarn_pool_free(&prey[at], NULL)) == TARN_E_STATE)
      w->refused++;
    require(status == TARN_OK);
    require(tarn_pool_free(&prey[at], NULL) == TARN_E_INVALID);
  }
  return NULL;
}

static void play_together(int device) {
  static void *(*const roles[])(void *) = {use_others, sleep_and_rise,
                                           sleep_and_rise, free_prey};
  enum { ROLES = sizeof roles / sizeof roles[0] };
  worker workers[ROLES] = {{.number = 0}};
  if (!open_run(device)) return;
  shared = run.p.pool;
  tarn_block kept = take_tagged(shared, 700 * KIBIBYTE, run.tags[0]);
  fill(run.p.device, kept, 1);
  for (size_t i = 0; i < TURNS; i++)
    prey[i] = take_tagged(shared, 3000 + i * 9000, run.tags[i % 2]);
  atomic_store(&prey_count, 0);
  for (unsigned i = 0; i < ROLES; i++) {
    workers[i].number = i;
    ck_assert_int_eq(
        pthread_create(&workers[i].thread, NULL, roles[i], &workers[i]), 0);
  }
  for (unsigned i = 0; i < ROLES; i++)
    pthread_join(workers[i].thread, NULL);
  assert_ok(tarn__front_check(shared));
  for (unsigned i = 0; i < 2; i++)
    assert_ok(tarn_pool_wake(shared, run.tags[i]));
  check_filled(run.p.device, kept, 1);
  give(kept);
  close_arena(&run.p);
}

TEST_LOOP(threads_go_on_meanwhile, TEST_DEVICES) {
  play_together(_i);
}

// Both sleep and wake the same tag: one after the other, or the second is told.
TEST_LOOP(two_may_wake_the_same, TEST_DEVICES) {
  worker workers[WORKERS] = {{.number = 0}};
  if (!open_run(_i)) return;
  shared = run.p.pool;
  tarn_block kept = take_tagged(shared, (size_t)3 * MIB, run.tags[0]);
  fill(run.p.device, kept, 1);
  for (unsigned i = 0; i < WORKERS; i++) {
    ck_assert_int_eq(
        pthread_create(&workers[i].thread, NULL, sleep_and_rise, &workers[i]),
        0);
  }
  for (unsigned i = 0; i < WORKERS; i++)
    pthread_join(workers[i].thread, NULL);
  assert_ok(tarn_pool_wake(shared, run.tags[0]));
  check_filled(run.p.device, kept, 1);
  give(kept);
}

// --- forks -----------------------------------------------------------------

TEST_LOOP(a_child_cannot_wake_its_parent_s, TEST_DEVICES) {
  if (!open_run(_i)) return;
  tarn_block block = take_tagged(run.p.pool, SIM_PAGE, run.tags[0]);
  fill(run.p.device, block, 1);
  assert_ok(tarn_pool_sleep(run.p.pool, run.tags[0], TARN_SLEEP_SAVE));
  pid_t child = fork();
  if (child == 0) {
    child_begin(30);
    bool told = tarn_pool_wake(run.p.pool, run.tags[0]) == TARN_E_STATE &&
                tarn_pool_sleep(run.p.pool, run.tags[0], TARN_SLEEP_DROP) ==
                    TARN_E_STATE &&
                tarn_pool_free(&block, NULL) == TARN_E_STATE;
    (void)tarn_device_close(run.p.device);  // frees what is on the host
    _exit(told ? 0 : 1);
  }
  assert_child_ended_well(child);
  assert_ok(tarn_pool_wake(run.p.pool, run.tags[0]));
  check_filled(run.p.device, block, 1);
  give(block);
}

// --- lanes -----------------------------------------------------------------

static sem_t gate;

static void wait_at_gate(void *context, tarn_status status) {
  (void)context;
  (void)status;
  while (sem_wait(&gate) != 0)
    continue;
}

static void *fall_asleep(void *unused) {
  (void)unused;
  expect(tarn_pool_sleep(run.p.pool, run.tags[0], TARN_SLEEP_SAVE) == TARN_OK);
  return NULL;
}

static bool is_falling_asleep(tarn_pool *pool) {
  tarn__front_reenter(pool);
  bool inside = pool->current->inside > 0;
  tarn__front_leave(pool);
  return inside;
}

static void take_and_give_tagged(void *pool) {
  give(take_tagged(pool, 1000, run.tags[0]));
}

// A lane that was opened meanwhile does not take a block that falls asleep.
TEST_LOOP(a_block_that_falls_asleep_is_not_freed, TEST_DEVICES) {
  tarn_other other;
  pthread_t sleeper;
  if (!open_run(_i)) return;
  tarn_pool *pool = run.p.pool;
  size_t page = page_on(run.p.device);
  tarn_stream *stream = stream_on(&run.p);
  sem_init(&gate, 0, 0);
  other_begin(&other);
  begin_lanes(pool, &other);
  take_and_give_tagged(pool);
  tarn_block a = take_tagged(pool, page / 4, run.tags[0]);
  tarn_block hole = take_tagged(pool, page / 2, run.tags[1]);
  tarn_block b = take_tagged(pool, page / 4, run.tags[0]);
  assert_ok(tarn_stream_add_callback(stream, wait_at_gate, NULL));
  give_on(hole, stream);
  sleeper = start_thread(fall_asleep, NULL);
  while (!is_falling_asleep(pool))
    sched_yield();
  take_and_give_tagged(pool);
  take_and_give_tagged(pool);
  assert_fails(tarn_pool_free(&a, NULL), TARN_E_STATE, "another thread");
  sem_post(&gate);
  pthread_join(sleeper, NULL);
  assert_as_expected();
  assert_ok(tarn__front_check(pool));
  assert_ok(tarn_pool_wake(pool, run.tags[0]));
  give(a);
  give(b);
  other_ends(&other);
  sem_destroy(&gate);
}
