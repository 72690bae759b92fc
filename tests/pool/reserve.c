// Room that a pool keeps: taken at once, left alone by whatever trims, used by
// requests without the device.
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "pool/decay.h"
#include "support/faults.h"
#include "support/strategy.h"
#include "tarn/capture.h"
#include "tarn/sleep.h"
#include "tarn/strategy.h"
#include "with_kit.h"

static const size_t ROOM = (size_t)8 << 20;

static size_t reserved_by(tarn_pool *pool) {
  return stats_of(pool).reserved_bytes;
}

static arena_place open_on(int i) {
  return open_arena_at(64 * MIB, i / KEEPING, 0, keeping[i % KEEPING]);
}

TEST_LOOP(requests_are_served_without_the_device, KEEPING *TEST_DEVICES) {
  arena_place at = open_on(_i);
  assert_ok(tarn_pool_reserve(at.pool, ROOM));
  assert_ok(tarn__front_check(at.pool));
  tarn_pool_stats before = stats_of(at.pool);
  ck_assert_uint_ge(before.reserved_bytes, ROOM);
  ck_assert_uint_lt(before.reserved_bytes, ROOM + MIB);
  ck_assert_uint_eq(before.live_bytes, 0);
  tarn_block blocks[7];
  for (size_t i = 0; i < 7; i++)
    blocks[i] = take_with(at.pool, ((size_t)MIB >> i % 3) - 4096, NULL,
                          TARN_ALLOC_NO_GROW);
  tarn_pool_stats after = stats_of(at.pool);
  ck_assert_uint_eq(after.device_allocs, before.device_allocs);
  ck_assert_uint_eq(after.reserved_bytes, before.reserved_bytes);
  ck_assert_uint_eq(after.hits, 7);
  give_many(blocks, 7);
  assert_ok(tarn_pool_reserve(at.pool, 0));
}

TEST_LOOP(what_trims_leaves_it, KEEPING *TEST_DEVICES) {
  arena_place at = open_on(_i);
  assert_ok(tarn_pool_reserve(at.pool, ROOM));
  size_t kept = reserved_by(at.pool);
  tarn_block large = take(at.pool, 20 * MIB);
  give(large);
  assert_ok(tarn_pool_trim(at.pool, 0));
  ck_assert_uint_ge(reserved_by(at.pool), ROOM);
  ck_assert_uint_le(reserved_by(at.pool), kept + 32 * MIB);
  at.pool->decay.high = 64 * MIB;
  tarn__decay_tend(at.pool);  // a period without any need
  tarn__decay_tend(at.pool);
  ck_assert_uint_ge(reserved_by(at.pool), ROOM);
  assert_ok(tarn_pool_reserve(at.pool, ROOM / 2));
  assert_ok(tarn_pool_trim(at.pool, 0));
  ck_assert_uint_ge(reserved_by(at.pool), ROOM / 2);
  assert_ok(tarn__front_check(at.pool));
  assert_ok(tarn_pool_reserve(at.pool, 0));
}

// Blocks that are too large for what is idle: the slack does not give it back.
TEST_LOOP(the_slack_leaves_it, TEST_DEVICES) {
  arena_place at = open_arena_at(64 * MIB, _i, 0, "arena_pool:slack=0");
  assert_ok(tarn_pool_reserve(at.pool, ROOM));
  for (size_t i = 0; i < 4; i++) {
    give(take(at.pool, ROOM + i * MIB));
    ck_assert_uint_ge(reserved_by(at.pool), ROOM);
  }
  give(take(at.pool, 1000));
  ck_assert_uint_ge(reserved_by(at.pool), ROOM);
  assert_ok(tarn_pool_reserve(at.pool, 0));
}

// Where there is no other room it may take another form.
TEST_LOOP(a_request_without_other_room_may_use_it, KEEPING *TEST_DEVICES) {
  arena_place at =
      open_arena_at(16 * MIB, _i / KEEPING, 0, keeping[_i % KEEPING]);
  assert_ok(tarn_pool_limit(at.pool, 16 * MIB));
  assert_ok(tarn_pool_reserve(at.pool, ROOM));
  tarn_block block = take(at.pool, 12 * MIB);
  give(block);
  ck_assert_uint_ge(reserved_by(at.pool), ROOM);
  assert_status(tarn_pool_reserve(at.pool, 17 * MIB), TARN_FULL);
  assert_ok(tarn_pool_reserve(at.pool, 0));
}

TEST_LOOP(what_is_refused_keeps_nothing, KEEPING *TEST_DEVICES) {
  arena_place at = open_on(_i);
  tarn_block block = take(at.pool, MIB);
  assert_ok(tarn_pool_reserve(at.pool, 2 * MIB));
  size_t before = reserved_by(at.pool);
  assert_ok(tarn_pool_limit(at.pool, 16 * MIB));
  assert_status(tarn_pool_reserve(at.pool, 16 * MIB + 1), TARN_FULL);
  assert_error_says("limit");
  ck_assert_uint_eq(reserved_by(at.pool), before);
  assert_ok(tarn_pool_limit(at.pool, 0));
  assert_status(tarn_pool_reserve(at.pool, SIZE_MAX), TARN_FULL);
  ck_assert_uint_eq(reserved_by(at.pool), before);
  bool bounded = !tarn_place_equal(at.place, TARN_HOST);
  size_t most = bounded ? 128 * MIB : SIZE_MAX / 4;
  assert_status(tarn_pool_reserve(at.pool, most), TARN_FULL);
  // A piece that came may stay in the place of a smaller one.
  ck_assert_uint_ge(reserved_by(at.pool), before);
  ck_assert_uint_le(reserved_by(at.pool), before + MIB);
  give(block);
  assert_ok(tarn_pool_trim(at.pool, 0));
  ck_assert_uint_ge(reserved_by(at.pool), 2 * MIB);  // as before
  assert_ok(tarn__front_check(at.pool));
  assert_ok(tarn_pool_reserve(at.pool, 0));
}

// What is idle already is a part of it, however much of a page is lacking.
TEST_LOOP(more_of_it_comes_beside_what_is_idle, KEEPING *TEST_DEVICES) {
  arena_place at = open_on(_i);
  give(take(at.pool, 5 * MIB));
  assert_ok(tarn_pool_reserve(at.pool, ROOM + 1));
  ck_assert_uint_gt(reserved_by(at.pool), ROOM);
  assert_ok(tarn__front_check(at.pool));
  assert_ok(tarn_pool_reserve(at.pool, 0));
}

TEST_LOOP(what_sleeps_is_no_part_of_it, TEST_DEVICES) {
  tarn_tag tag = 0;
  arena_place at = open_arena_at(64 * MIB, _i, TEST_NEEDS_RANGES, "arena_pool");
  if (at.pool == NULL) return;
  assert_ok(tarn_pool_tag("sleepers", &tag));
  tarn_block idle = take(at.pool, 4 * MIB);
  tarn_block block = take_tagged(at.pool, 20 * MIB, tag);
  give(idle);
  assert_ok(tarn_pool_sleep(at.pool, tag, 0));
  assert_ok(tarn_pool_reserve(at.pool, ROOM));
  ck_assert_uint_ge(reserved_by(at.pool), ROOM);
  assert_ok(tarn__front_check(at.pool));
  assert_ok(tarn_pool_wake(at.pool, tag));
  give(block);
  assert_ok(tarn_pool_reserve(at.pool, 0));
}

// --- who else is at it -----------------------------------------------------

static struct {
  tarn_pool *pool;
  pthread_t thread;
  atomic_bool done;
} rival;

static void *reserve_a_part(void *context) {
  (void)context;
  require(tarn_pool_reserve(rival.pool, MIB) == TARN_OK);
  atomic_store(&rival.done, true);
  return NULL;
}

// Before the device refuses a first call another thread has made a second, or
// waits.
static void let_another_reserve(void) {
  fake.allocating = NULL;
  require(pthread_create(&rival.thread, NULL, reserve_a_part, NULL) == 0);
  for (int i = 0; i < 50 && !atomic_load(&rival.done); i++)
    usleep(1000);
  fake.capacity = fake_seen.live_bytes;
}

TEST_LOOP(a_call_that_fails_leaves_what_another_keeps, KEEPING) {
  arena_place at = open_arena_of(64 * MIB, "fake:0", keeping[_i]);
  give(take(at.pool, 2 * MIB));
  rival.pool = at.pool;
  fake.allocating = let_another_reserve;
  assert_status(tarn_pool_reserve(at.pool, 12 * MIB), TARN_FULL);
  ck_assert_int_eq(pthread_join(rival.thread, NULL), 0);
  assert_ok(tarn_pool_trim(at.pool, 0));
  ck_assert_uint_ge(reserved_by(at.pool), MIB);
  assert_ok(tarn_pool_reserve(at.pool, 0));
  fake.capacity = 64 * MIB;  // as it was opened
}

static void leave_half(void) {
  fake.allocating = NULL;
  fake.capacity = 8 * MIB;
}

static void exchange(void) {
  fake.freeing = NULL;
  require(tarn_pool_set_strategy(rival.pool, "arena_pool") == TARN_OK);
}

// While what came goes back.
TEST_LOOP(an_exchange_ends_what_was_kept_before, KEEPING) {
  arena_place at = open_arena_of(64 * MIB, "fake:0", keeping[_i]);
  assert_ok(tarn_pool_reserve(at.pool, MIB));
  rival.pool = at.pool;
  fake.freeing = exchange;
  fake.allocating = leave_half;
  assert_status(tarn_pool_reserve(at.pool, 12 * MIB), TARN_FULL);
  ck_assert(fake.freeing == NULL);
  give(take(at.pool, 2 * MIB));
  assert_ok(tarn_pool_trim(at.pool, 0));
  ck_assert_uint_eq(reserved_by(at.pool), 0);
  fake.capacity = 64 * MIB;
}

TEST(strategies_that_keep_nothing_refuse) {
  assert_ok(tarn_pool_register(TarnPoolStrategy()));
  static const char *const names[] = {"no_pool", "async_pool", "power_pool"};
  for (size_t i = 0; i < 3; i++) {
    tarn_pool *pool = host_pool(names[i]);
    assert_status(tarn_pool_reserve(pool, MIB), TARN_E_UNSUPPORTED);
    assert_error_says(names[i]);
    ck_assert_uint_eq(reserved_by(pool), 0);
    assert_ok(tarn_pool_reserve(pool, 0));
  }
  assert_status(tarn_pool_reserve(host_pool("buddy_pool:max=0"), MIB),
                TARN_E_UNSUPPORTED);
  assert_status(tarn_pool_reserve(NULL, MIB), TARN_E_INVALID);
}

TEST(an_exchange_ends_it) {
  tarn_pool *pool = host_pool("arena_pool");
  assert_ok(tarn_pool_reserve(pool, ROOM));
  assert_ok(use_strategy(TARN_HOST, "page_unit_pool"));
  ck_assert_uint_eq(reserved_by(pool), 0);
  assert_ok(tarn_pool_reserve(pool, ROOM));
  ck_assert_uint_eq(reserved_by(pool), ROOM);
  assert_ok(use_strategy(TARN_HOST, "no_pool"));
  ck_assert_uint_eq(reserved_by(pool), 0);
}

TEST_LOOP(dry_pools_and_those_for_captures_keep_it, KEEPING) {
  const char *strategy = keeping[_i];
  tarn_pool *pool = own_pool_with(TARN_HOST, strategy, 16 * MIB, TARN_POOL_DRY);
  assert_ok(tarn_pool_reserve(pool, ROOM));
  ck_assert_uint_ge(reserved_by(pool), ROOM);
  assert_status(tarn_pool_reserve(pool, 64 * MIB), TARN_FULL);
  if (strcmp(strategy, "buddy_pool") == 0) return;
  pool = own_pool_with(TARN_HOST, strategy, 16 * MIB, TARN_POOL_DEFER);
  assert_ok(tarn_pool_reserve(pool, ROOM));
  assert_ok(tarn_pool_begin_capture(pool));
  assert_status(tarn_pool_reserve(pool, 0), TARN_E_STATE);
  give(take_with(pool, MIB, NULL, TARN_ALLOC_NO_GROW));
  assert_ok(tarn_pool_end_capture(pool));
  assert_ok(tarn_pool_end_graphs(pool));
}

// Where the device names sizes, memory comes in those.
TEST_LOOP(sizes_of_the_device_are_kept_to, KEEPING) {
  fake.init_size = 4 * MIB;
  fake.realloc_size = 2 * MIB;
  arena_place at = open_arena_of(64 * MIB, "fake:0", keeping[_i]);
  assert_ok(tarn_pool_reserve(at.pool, 7 * MIB));
  ck_assert_uint_eq(reserved_by(at.pool), 8 * MIB);
  ck_assert_uint_eq(stats_of(at.pool).device_allocs, 3);
  give(take_with(at.pool, MIB, NULL, TARN_ALLOC_NO_GROW));
  assert_ok(tarn_pool_reserve(at.pool, 0));
}

// Blocks of many sizes, idle again, are one room for any size.
TEST(pages_of_one_size_serve_another) {
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_block blocks[16];
  assert_ok(tarn_pool_reserve(pool, ROOM));
  for (size_t i = 0; i < 16; i++)
    blocks[i] = take_with(pool, MIB / 2, NULL, TARN_ALLOC_NO_GROW);
  give_many(blocks, 16);
  assert_ok(tarn__front_check(pool));
  give(take_with(pool, 5 * MIB, NULL, TARN_ALLOC_NO_GROW));
  ck_assert_uint_eq(reserved_by(pool), ROOM);
  tarn_block beside = take(pool, 12 * MIB);
  give(beside);
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_ge(reserved_by(pool), ROOM);
  assert_ok(tarn_pool_reserve(pool, 0));
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_eq(reserved_by(pool), 0);
}

TEST_LOOP(every_call_may_fail, 2 * KEEPING) {
  arena_place at =
      open_arena_at(64 * MIB, 2 - _i / KEEPING, 0, keeping[_i % KEEPING]);
  bool failed = true;
  for (size_t n = 1; failed; n++) {
    faults_arm(n, FAULTS_ONCE);
    fake.strikes = true;
    tarn_status status = tarn_pool_reserve(at.pool, ROOM);
    tarn_block block;
    tarn_status taken =
        try_with(at.pool, MIB, NULL, TARN_ALLOC_NO_GROW, &block);
    fake.strikes = false;
    failed = faults_disarm();
    assert_ok(tarn__front_check(at.pool));
    if (taken == TARN_OK) (void)tarn_pool_free(&block, NULL);
    if (status == TARN_OK) {
      ck_assert_uint_ge(reserved_by(at.pool), ROOM);
      assert_ok(tarn_pool_reserve(at.pool, 0));
    } else {
      ck_assert_uint_eq(reserved_by(at.pool), 0);
    }
    (void)tarn_pool_trim(at.pool, 0);
    ck_assert_uint_eq(reserved_by(at.pool), 0);
  }
}

int main(void) {
  faults_install();
  return run_tests();
}
