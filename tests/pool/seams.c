// Where learned steps meet what else a pool does: counters that are switched,
// debugging, other threads while a layout is set up, a device that is full.
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

#include "arena_kit.h"
#include "support/strategy.h"

enum {
  BLOCKS = 40,
  STEPS_TO_LEARN = 60,
  MOST_EVENTS = 4096,
};

static arena_place at;
static tarn_tag tag;
static tarn_block out[BLOCKS];

// Small blocks, but a layout of them is a large one: so the device is asked for
// it. In all they are less than fake:0 gives at once.
static size_t size_of(size_t i) {
  return (i % 7 + 1) * 6000 + i;
}

static void open_on(const char *device) {
  at = open_arena_of(ARENA_CAPACITY, device, "arena_pool");
  tag = tag_of("step");
}

static void take_all(void) {
  for (size_t i = 0; i < BLOCKS; i++)
    out[i] = take_tagged(at.pool, size_of(i), tag);
}

static void give_all(void) {
  for (size_t i = BLOCKS; i-- > 0;)
    give(out[i]);
}

static void play_step(void) {
  take_all();
  give_all();
}

static const tarn__pool_step_layout *layout(void) {
  return at.pool->steps.cursor.layout;
}

static void learn(void) {
  for (size_t i = 0; i < STEPS_TO_LEARN && layout() == NULL; i++)
    play_step();
  ck_assert_msg(layout() != NULL, "%s: %s", at.name, tarn_last_error());
}

// Up to the moment at which the next request would set the layout up.
static void learn_until_due(void) {
  for (size_t i = 0; i < STEPS_TO_LEARN; i++) {
    play_step();
    if (tarn__recorder_is_due(&at.pool->steps.recorder)) return;
  }
  ck_abort_msg("%s: nothing was learned", at.name);
}

// --- counters --------------------------------------------------------------

TEST_LOOP(tags_that_are_switched_on_before_a_layout_are_counted, TEST_DEVICES) {
  open_on(test_devices[_i]);
  assert_ok(tarn_pool_account(at.pool, 0));
  learn_until_due();
  assert_ok(tarn_pool_account(at.pool, TARN_COUNT_DEFAULT));
  take_all();
  ck_assert_uint_eq(tag_stats_of(at.pool, tag).live_blocks, BLOCKS);
  give_all();
  ck_assert_uint_eq(tag_stats_of(at.pool, tag).live_blocks, 0);
  learn();
}

static size_t count_events(void) {
  static tarn_pool_event events[MOST_EVENTS];
  size_t count = 0;
  uint64_t next = 0;
  assert_ok(tarn_pool_events(at.pool, 0, events, MOST_EVENTS, &count, &next));
  size_t of_blocks = 0;
  for (size_t i = 0; i < count; i++) {
    of_blocks += events[i].kind == TARN_POOL_EVENT_ALLOC ||
                 events[i].kind == TARN_POOL_EVENT_FREE;
  }
  return of_blocks;
}

TEST_LOOP(events_that_are_switched_on_before_a_layout_are_kept, TEST_DEVICES) {
  open_on(test_devices[_i]);
  learn_until_due();
  assert_ok(tarn_pool_account(at.pool, TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS));
  play_step();
  ck_assert_ptr_null(layout());
  ck_assert_uint_eq(count_events(), 2 * BLOCKS);
}

// --- while the device is asked for a layout ---------------------------------

static void (*meanwhile)(void);  // once, in the device's next call

static void do_meanwhile(void) {
  void (*now)(void) = meanwhile;
  meanwhile = NULL;
  if (now != NULL) now();
}

// The pool may hold as much as it once needed, so that no layout is dropped for
// the sake of memory.
static void raise_peak(void) {
  tarn_block blocks[8];
  for (size_t i = 0; i < 8; i++)
    blocks[i] = take(at.pool, 1000000);
  for (size_t i = 0; i < 8; i++)
    give(blocks[i]);
  assert_ok(tarn_pool_trim(at.pool, 0));
}

// This thread runs |what| meanwhile: no thread holds the lock.
static void learn_and_meanwhile(void (*what)(void)) {
  open_on("fake:0");
  raise_peak();
  learn_until_due();
  fake.allocating = do_meanwhile;
  meanwhile = what;
  tarn_block first = take_tagged(at.pool, size_of(0), tag);
  ck_assert(meanwhile == NULL);
  fake.allocating = NULL;
  give(first);
}

TEST(two_threads_set_a_layout_up) {
  learn_and_meanwhile(learn);
  assert_ok(tarn__front_check(at.pool));
  play_step();
}

static void switch_events_on(void) {
  assert_ok(tarn_pool_account(at.pool, TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS));
}

TEST(events_are_switched_on_while_a_layout_is_set_up) {
  learn_and_meanwhile(switch_events_on);
  ck_assert_ptr_null(layout());
  ck_assert_uint_eq(count_events(), 2);
}

// The other thread is asking the device when this one gives up.
static struct {
  pthread_t thread;
  sem_t asks;
  sem_t may_go_on;
} other;

static void wait_in_the_device(void) {
  sem_post(&other.asks);
  sem_wait(&other.may_go_on);
}

static void *learn_too(void *unused) {
  (void)unused;
  learn_until_due();
  meanwhile = wait_in_the_device;
  out[0] = take_tagged(at.pool, size_of(0), tag);
  return NULL;
}

static void let_other_finish(void) {
  sem_post(&other.may_go_on);
  pthread_join(other.thread, NULL);
}

// The request that comes after it asks the device as well.
static void let_other_learn(void) {
  pthread_create(&other.thread, NULL, learn_too, NULL);
  sem_wait(&other.asks);
  meanwhile = let_other_finish;
}

TEST(who_gives_up_takes_the_other_one_along) {
  sem_init(&other.asks, 0, 0);
  sem_init(&other.may_go_on, 0, 0);
  learn_and_meanwhile(let_other_learn);
  assert_ok(tarn__front_check(at.pool));
  for (size_t i = 0; layout() != NULL && i < layout()->event_count; i++) {
    const tarn__pool_step_event *e = &layout()->events[i];
    ck_assert_uint_ge(e->piece->size, e->size);
    ck_assert_uint_ne(e->size, 0);
  }
  give(out[0]);
}

static void debug_on(void) {
  tarn_pool_debug_options options = {.struct_size = sizeof options};
  assert_ok(tarn_pool_debug(at.pool, &options));
}

TEST(debugging_begins_while_a_layout_is_set_up) {
  learn_and_meanwhile(debug_on);
  ck_assert_ptr_null(layout());
  assert_ok(tarn_pool_debug(at.pool, NULL));
}

static void trim_all(void) {
  assert_ok(tarn_pool_trim(at.pool, 0));
}

static void switch_strategy(void) {
  assert_ok(use_strategy(at.place, "page_unit_pool"));
}

TEST_LOOP(others_trim_and_switch_while_a_layout_is_set_up, 2) {
  learn_and_meanwhile(_i == 0 ? trim_all : switch_strategy);
  assert_ok(tarn__front_check(at.pool));
  ck_assert(_i == 0 || layout() == NULL);
}

// --- a device that is full -------------------------------------------------

// The layout has a hole that would do, and no memory to give back.
TEST_LOOP(a_full_device_strikes_the_layout, TEST_DEVICES) {
  open_on(test_devices[_i]);
  learn();
  for (size_t i = 0; i < 10; i++)
    play_step();
  out[0] = take_tagged(at.pool, size_of(0), tag);
  assert_ok(tarn_pool_limit(at.pool, stats_of(at.pool).reserved_bytes));
  size_t idle = layout()->size - size_of(0);
  tarn_block block = take(at.pool, idle / 4);
  assert_ok(tarn__front_check(at.pool));
  give(block);
  give(out[0]);
}

// The pool may grow, but the device has no more.
TEST(a_device_without_more_strikes_the_layout) {
  open_on("fake:0");
  learn();
  out[0] = take_tagged(at.pool, size_of(0), tag);
  fake.capacity = fake_seen.live_bytes;
  tarn_block block;
  assert_ok(tarn_pool_alloc(at.pool, 200000, 0, NULL, &block));
  assert_ok(tarn__front_check(at.pool));
  give(block);
  give(out[0]);
  fake.capacity = ARENA_CAPACITY;
}

// --- texts -----------------------------------------------------------------

TEST_LOOP(what_was_freed_on_layout_is_told_once, TEST_DEVICES) {
  open_on(test_devices[_i]);
  learn();
  take_all();
  give(out[BLOCKS - 1]);
  assert_status(tarn_pool_free(&out[BLOCKS - 1], NULL), TARN_E_INVALID);
  ck_assert_ptr_nonnull(strstr(tarn_last_error(), "was freed before"));
  ck_assert_ptr_null(strstr(tarn_last_error(), "; that is"));
  for (size_t i = BLOCKS - 1; i-- > 0;)
    give(out[i]);
}

// --- memory on its way to the device, and an owner of the lock -------------

static atomic_int asked;  // the program's function

static bool note_need(tarn_pool *pool, const tarn_pool_need *need,
                      void *context) {
  (void)pool;
  (void)need;
  (void)context;
  atomic_fetch_add(&asked, 1);
  return false;
}

static void *give_first(void *unused) {
  (void)unused;
  (void)!tarn_pool_free(&out[0], NULL);
  return NULL;
}

static void *release_late(void *unused) {
  struct timespec nap = {0, 50000000};
  (void)unused;
  nanosleep(&nap, NULL);
  sem_post(&other.may_go_on);
  return NULL;
}

TEST(an_owner_waits_before_the_program_is_asked) {
  pthread_t late;
  sem_init(&other.asks, 0, 0);
  sem_init(&other.may_go_on, 0, 0);
  open_on("fake:0");
  assert_ok(use_strategy(at.place, "no_pool"));
  out[0] = take(at.pool, 100000);
  assert_ok(tarn_pool_limit(at.pool, stats_of(at.pool).reserved_bytes));
  assert_ok(tarn_pool_on_full(at.pool, note_need, NULL));
  fake.freeing = wait_in_the_device;
  pthread_create(&other.thread, NULL, give_first, NULL);
  sem_wait(&other.asks);
  for (int i = 0; i < 4096; i++)
    (void)stats_of(at.pool);  // and the lock is this thread's own
  pthread_create(&late, NULL, release_late, NULL);
  tarn_block block;
  tarn_status status = tarn_pool_alloc(at.pool, 100000, 0, NULL, &block);
  pthread_join(late, NULL);
  pthread_join(other.thread, NULL);
  fake.freeing = NULL;
  assert_ok(status);
  ck_assert_int_eq(atomic_load(&asked), 0);
  give(block);
}
