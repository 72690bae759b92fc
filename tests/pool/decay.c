// Decay: what goes back at the end of a period and what stays, the thread that
// sees to it, its beginning and its end.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/os.h"
#include "kit.h"
#include "no_threads.h"
#include "support/child.h"
#include "support/fake_plugin.h"
#include "support/strategy.h"
#include "support/threads.h"

static const size_t PAGE = 4096;
static const uint64_t MS = 1000000;
static const uint64_t HOUR = UINT64_C(3600) * 1000000000u;

// --- periods, without a thread ---------------------------------------------

static void end_decay(void *pool) {
  assert_ok(tarn__front_check(pool));
  assert_ok(tarn_pool_decay(pool, 0));
  assert_ok(tarn_pool_trim(pool, 0));
}

// A pool that decays, and whose periods are ended by hand.
static tarn_pool *slow_pool(const char *strategy) {
  tarn_pool *pool = host_pool(strategy);
  assert_ok(tarn_pool_trim(pool, 0));
  assert_ok(tarn_pool_reset_peaks(pool));
  assert_ok(tarn_pool_decay(pool, HOUR));
  after_test(end_decay, pool);
  return pool;
}

static void end_period(tarn_pool *pool, size_t expected) {
  tarn__decay_tend(pool);
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, expected);
}

// Blocks of |pages| each, |count| of them at once, and then none.
static void run_step(tarn_pool *pool, size_t pages, size_t count) {
  tarn_block blocks[16];
  take_many(pool, pages * PAGE, blocks, count);
  give_many(blocks, count);
}

static const char *const strategies[] = {"page_unit_pool", "arena_pool:page=4K",
                                         "buddy_pool:init=16K,realloc=16K"};

TEST_LOOP(steps_that_repeat_lose_nothing, 3) {
  tarn_pool *pool = slow_pool(strategies[_i]);
  uint64_t asked = 0;
  for (int i = 0; i < 20; i++) {
    run_step(pool, 1, 8);
    run_step(pool, 3, 4);
    run_step(pool, 1, 13 + (size_t)i % 2);  // steps differ a little
    tarn__decay_tend(pool);
    if (i == 1) asked = stats_of(pool).device_allocs;
  }
  ck_assert_uint_eq(stats_of(pool).device_allocs, asked);
  ck_assert_uint_eq(stats_of(pool).device_frees, 0);
}

TEST(what_is_not_needed_goes_at_the_end_of_a_period) {
  tarn_pool *pool = slow_pool("page_unit_pool");
  run_step(pool, 1, 16);
  end_period(pool, 16 * PAGE);  // was needed
  run_step(pool, 1, 4);
  end_period(pool, 4 * PAGE);
  run_step(pool, 1, 4);
  end_period(pool, 4 * PAGE);
  end_period(pool, 0);  // nothing was
  end_period(pool, 0);
}

TEST(what_is_out_counts_for_every_period) {
  tarn_pool *pool = slow_pool("page_unit_pool");
  tarn_block kept = take(pool, 8 * PAGE);
  run_step(pool, 8, 1);
  end_period(pool, 16 * PAGE);
  end_period(pool, 8 * PAGE);
  for (int i = 0; i < 3; i++)
    end_period(pool, 8 * PAGE);
  give(kept);
  end_period(pool, 8 * PAGE);  // it was out until now
  end_period(pool, 0);
}

// Resizing counts as well.
TEST(a_block_that_grew_is_needed) {
  tarn_pool *pool = slow_pool("arena_pool:page=64K");
  size_t unit = (size_t)64 * KIB;
  tarn_block block = take(pool, 8 * unit);
  assert_ok(tarn_pool_resize(&block, unit, NULL));
  end_period(pool, 8 * unit);
  assert_ok(tarn_pool_resize(&block, 8 * unit, NULL));
  assert_ok(tarn_pool_resize(&block, unit, NULL));
  end_period(pool, 8 * unit);
  end_period(pool, unit);
  give(block);
}

TEST(small_changes_move_nothing) {
  tarn_pool *pool = slow_pool("page_unit_pool");
  run_step(pool, 1, 16);
  end_period(pool, 16 * PAGE);
  run_step(pool, 1, 15);
  end_period(pool, 16 * PAGE);
  run_step(pool, 1, 14);
  end_period(pool, 16 * PAGE);
  run_step(pool, 1, 13);  // by more than an eighth, in the end
  end_period(pool, 13 * PAGE);
}

// A chunk that a block stands in goes when it has come home.
TEST(what_was_held_up_goes_later) {
  tarn_pool *pool = slow_pool("buddy_pool:init=16K,realloc=16K,max=16K");
  tarn_block blocks[8];
  take_many(pool, 2 * PAGE, blocks, 8);
  end_period(pool, 16 * PAGE);
  for (int i = 1; i < 8; i += 2)
    give(blocks[i]);
  tarn__decay_tend(pool);
  end_period(pool, 16 * PAGE);  // half of each chunk is out
  give(blocks[4]);
  give(blocks[6]);
  end_period(pool, 8 * PAGE);
  give(blocks[0]);
  give(blocks[2]);
  tarn__decay_tend(pool);
  end_period(pool, 0);
}

// What was given back too soon is given back once.
TEST(a_pool_that_had_to_ask_again_keeps_what_it_has) {
  tarn_pool *pool = slow_pool("page_unit_pool");
  run_step(pool, 1, 8);
  run_step(pool, 2, 4);
  end_period(pool, 16 * PAGE);
  for (int i = 0; i < 4; i++) {
    run_step(pool, 1, 4);
    run_step(pool, 2, 2);
    tarn__decay_tend(pool);
  }
  uint64_t frees = stats_of(pool).device_frees;
  uint64_t allocs = stats_of(pool).device_allocs;
  for (int i = 0; i < 8; i++) {
    run_step(pool, 1, 4);
    run_step(pool, 2, 2);
    end_period(pool, 12 * PAGE);
  }
  ck_assert_uint_eq(stats_of(pool).device_frees, frees);
  ck_assert_uint_eq(stats_of(pool).device_allocs, allocs);
}

// What was idle when it began: the need has fallen from the peak.
TEST(it_may_be_set_when_all_is_over) {
  tarn_pool *pool = host_pool("page_unit_pool");
  run_step(pool, 1, 8);
  tarn_block kept = take(pool, PAGE);
  assert_ok(tarn_pool_decay(pool, HOUR));
  end_period(pool, PAGE);
  give(kept);
  assert_ok(tarn_pool_reset_peaks(pool));
  assert_ok(tarn_pool_decay(pool, HOUR));
  end_period(pool, 0);
}

// --- the thread ------------------------------------------------------------

// Waits, for as long as a test may take, until the pool holds |expected|.
static void await(tarn_pool *pool, size_t expected) {
  while (stats_of(pool).reserved_bytes != expected)
    usleep(1000);
}

TEST(a_thread_gives_idle_memory_back) {
  tarn_pool *pool = host_pool("page_unit_pool");
  assert_ok(tarn_pool_decay(pool, MS));
  ck_assert_int_eq(atomic_load(&threads_made), 1);
  tarn_block kept = take(pool, 3 * PAGE);
  give(take(pool, 100 * PAGE));
  await(pool, 3 * PAGE);
  give(kept);
  await(pool, 0);
  give(take(pool, PAGE));
  await(pool, 0);
  assert_ok(tarn_pool_decay(pool, 0));
  give(take(pool, PAGE));
  usleep(20000);
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, PAGE);
  assert_ok(tarn_pool_trim(pool, 0));
  assert_ok(tarn__front_check(pool));
}

TEST(without_it_there_is_no_thread) {
  tarn_pool *pool = host_pool("page_unit_pool");
  give(take(pool, PAGE));
  assert_ok(tarn_pool_decay(pool, 0));
  ck_assert_int_eq(atomic_load(&threads_made), 0);
}

TEST(one_thread_serves_all_pools_and_ends_with_the_last) {
  tarn_device *device = NULL;
  fake_add();
  tarn_pool *mine = host_pool("page_unit_pool");
  for (int round = 1; round <= 3; round++) {
    assert_ok(tarn_device_open("fake:0", &device));
    tarn_pool *pool = pool_at(tarn_place_on(device));
    assert_ok(tarn_pool_decay(mine, MS));
    assert_ok(tarn_pool_decay(pool, 2 * MS));
    assert_ok(tarn_pool_decay(pool, MS));
    give(take(mine, PAGE));
    give(take(pool, PAGE));
    await(pool, 0);
    await(mine, 0);
    ck_assert_int_eq(atomic_load(&threads_made), round);
    // The one by itself, the other with its device: in either order.
    if (round % 2 == 0) assert_ok(tarn_pool_decay(mine, 0));
    assert_ok(tarn_device_close(device));
    assert_ok(tarn_pool_decay(mine, 0));
    ck_assert_uint_eq(fake_seen.live_blocks, 0);
  }
}

TEST(a_period_may_be_as_long_as_can_be_said) {
  tarn_pool *pool = host_pool("page_unit_pool");
  assert_ok(tarn_pool_decay(pool, UINT64_MAX));
  give(take(pool, PAGE));
  usleep(5000);
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, PAGE);
  assert_ok(tarn_pool_decay(pool, 1));  // and short: it is waited for no more
  await(pool, 0);
  assert_ok(tarn_pool_decay(pool, 0));
}

TEST(without_a_thread_there_is_no_decay) {
  tarn_pool *pool = host_pool("page_unit_pool");
  atomic_store(&no_threads, true);
  assert_status(tarn_pool_decay(pool, MS), TARN_E_NOMEM);
  assert_error_says("no thread");
  atomic_store(&no_threads, false);
  assert_ok(tarn_pool_decay(pool, 0));
  assert_ok(tarn_pool_decay(pool, MS));
  give(take(pool, PAGE));
  await(pool, 0);
  assert_ok(tarn_pool_decay(pool, 0));
  assert_status(tarn_pool_decay(NULL, MS), TARN_E_INVALID);
}

// --- among threads ---------------------------------------------------------

enum { WORKERS = 3, ROUNDS = 2000 };

static atomic_bool busy;

static void *take_and_give(void *number) {
  tarn_pool *pool = NULL;
  expect(tarn_pool_of(TARN_HOST, &pool) == TARN_OK);
  for (size_t i = 0; i < ROUNDS; i++) {
    tarn_block blocks[4];
    for (size_t k = 0; k < 4; k++) {
      size_t size = ((uintptr_t)number * 7 + i * 5 + k) % 9 * PAGE + 1;
      expect(tarn_pool_alloc(pool, size, 0, NULL, &blocks[k]) == TARN_OK);
    }
    for (size_t k = 0; k < 4; k++)
      expect(tarn_pool_free(&blocks[k], NULL) == TARN_OK);
  }
  return NULL;
}

// Two of them at once.
static void *set_and_unset(void *unused) {
  (void)unused;
  tarn_pool *pool = NULL;
  expect(tarn_pool_of(TARN_HOST, &pool) == TARN_OK);
  for (unsigned i = 0; atomic_load(&busy); i++) {
    expect(tarn_pool_decay(pool, i % 3 == 2 ? 0 : 1000) == TARN_OK);
    if (i % 8 == 0) {
      expect(use_strategy(TARN_HOST, strategies[i / 8 % 3]) == TARN_OK);
    }
    usleep(100);
  }
  return NULL;
}

TEST(it_is_set_and_unset_while_the_pool_is_used) {
  pthread_t setters[2];
  tarn_pool *pool = host_pool("page_unit_pool");
  atomic_store(&busy, true);
  for (int i = 0; i < 2; i++)
    pthread_create(&setters[i], NULL, set_and_unset, NULL);
  run_threads(take_and_give, WORKERS);
  atomic_store(&busy, false);
  for (int i = 0; i < 2; i++)
    pthread_join(setters[i], NULL);
  assert_as_expected();
  assert_ok(tarn_pool_decay(pool, 1000));
  await(pool, 0);
  assert_ok(tarn_pool_decay(pool, 0));
  assert_ok(tarn__front_check(pool));
}

// --- forks -----------------------------------------------------------------

// The thread sanitizer allows no threads in a child of a program that has some.
static int decay_in_child(tarn_pool *own) {
#if !defined(__SANITIZE_THREAD__)
  tarn_block block;
  if (tarn_pool_decay(own, MS) != TARN_OK) return 3;
  if (tarn_pool_alloc(own, PAGE, 0, NULL, &block) != TARN_OK) return 4;
  if (tarn_pool_free(&block, NULL) != TARN_OK) return 5;
  tarn_pool_stats stats = {.struct_size = sizeof stats, .reserved_bytes = 1};
  while (stats.reserved_bytes != 0) {
    if (tarn_pool_query(own, &stats) != TARN_OK) return 6;
    usleep(1000);
  }
#endif
  return tarn_pool_decay(own, 0) == TARN_OK ? 0 : 7;
}

static int use_in_child(tarn_pool *parents) {
  tarn_pool *own = NULL;
  if (tarn_pool_decay(parents, MS) != TARN_E_STATE) return 1;
  if (tarn_pool_of(TARN_HOST, &own) != TARN_OK || own == parents) return 2;
  return decay_in_child(own);
}

TEST(a_child_has_a_thread_of_its_own) {
  tarn_pool *pool = host_pool("page_unit_pool");
  assert_ok(tarn_pool_decay(pool, MS));
  await_sleeping_threads();
  pid_t child = fork();
  if (child == 0) {
    child_begin(60);
    _exit(use_in_child(pool));
  }
  assert_child_ended_well(child);
  give(take(pool, PAGE));
  await(pool, 0);
  assert_ok(tarn_pool_decay(pool, 0));
}
