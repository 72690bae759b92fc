// Requests with options where other parts of a pool come in: captures,
// snapshots, blocks that other processes can have.
#include <unistd.h>

#include "support/hold.h"
#include "tarn/capture.h"
#include "tarn/share.h"
#include "with_kit.h"

static const size_t SIZE = (size_t)256 * KIB;

// --- blocks that other processes can have ----------------------------------

// Each block of such a pool is new memory.
TEST_LOOP(what_must_not_grow_is_no_block_to_share, TEST_DEVICES) {
  arena_place at = open_arena_with(_i, NEEDS_SHARING, "arena_pool");
  if (at.pool == NULL) return;
  tarn_pool *pool = own_pool_with(at.place, NULL, 0, TARN_POOL_SHAREABLE);
  refuse_with(pool, SIZE, NULL, TARN_ALLOC_NO_GROW, TARN_FULL);
  assert_error_says("TARN_ALLOC_NO_GROW");
  give(take(pool, SIZE));
  refuse_with(pool, SIZE, NULL, TARN_ALLOC_NO_GROW, TARN_FULL);
  ck_assert_uint_eq(stats_of(pool).device_allocs, 1);
}

TEST_LOOP(blocks_to_share_have_the_other_options, TEST_DEVICES) {
  arena_place at = open_arena_with(_i, NEEDS_SHARING, "arena_pool");
  if (at.pool == NULL) return;
  tarn_pool *pool = own_pool_with(at.place, NULL, 0, TARN_POOL_SHAREABLE);
  tarn_alloc_options options[2] = {options_for(SIZE, NULL, TARN_ALLOC_ZERO),
                                   options_for(SIZE, NULL, TARN_ALLOC_NO_WAIT)};
  tarn_block blocks[2];
  tarn_block copy;
  void *user = NULL;
  int fd = -1;
  options[1].user = &at;
  assert_ok(tarn_pool_alloc_many(pool, options, 2, blocks));
  assert_ok(tarn_block_user(&blocks[1], &user));
  ck_assert_ptr_eq(user, &at);
  assert_ok(tarn_pool_export(&blocks[1], &fd));
  assert_ok(tarn_pool_import(pool, fd, SIZE, &copy));
  close(fd);
  assert_ok(tarn_block_user(&copy, &user));
  ck_assert_ptr_null(user);
  assert_ok(tarn_pool_limit(pool, stats_of(pool).reserved_bytes + SIZE));
  tarn_pool_stats before = stats_of(pool);
  tarn_block none[2];
  assert_status(tarn_pool_alloc_many(pool, options, 2, none), TARN_FULL);
  options[1].align = 1 << 30;
  assert_ok(tarn_pool_limit(pool, 0));
  assert_ok(tarn__front_check(pool));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, before.reserved_bytes);
  ck_assert_uint_eq(stats_of(pool).device_allocs, before.device_allocs);
  give(copy);
  give(blocks[0]);
  give(blocks[1]);
}

// --- captures ----------------------------------------------------------------

// What the stream uses in the capture is at work when the graph is launched,
// however idle the stream is now.
TEST_LOOP(in_a_capture_no_stream_counts_as_done, 2 * TEST_DEVICES) {
  static const char *const strategies[] = {"page_unit_pool", "arena_pool"};
  arena_place at = open_arena_with(_i / 2, 0, "arena_pool");
  tarn_pool *pool =
      own_pool_with(at.place, strategies[_i % 2], 0, TARN_POOL_DEFER);
  tarn_stream *a = stream_on(&at);
  assert_ok(tarn_pool_begin_capture(pool));
  tarn_block first = take_on(pool, SIZE, a);
  give_on(first, a);
  tarn_block other = take_with(pool, SIZE, NULL, TARN_ALLOC_NO_WAIT);
  ck_assert_uint_ne(other.address, first.address);
  tarn_block again = take_on(pool, SIZE, a);
  ck_assert_uint_eq(again.address, first.address);
  give_on(again, a);
  give(other);
  assert_ok(tarn_pool_end_capture(pool));
  assert_ok(tarn_pool_end_graphs(pool));
}

// --- several at once ---------------------------------------------------------

// One of the call must not wait, so that giving back what came for another does
// not either.
TEST_LOOP(what_goes_back_waits_for_nobody, ALL_STRATEGIES *LIBRARY_DEVICES) {
  const char *strategy = any_strategy(_i % ALL_STRATEGIES);
  arena_place at = open_arena_at(16 * MIB, _i / ALL_STRATEGIES, 0, strategy);
  tarn_stream *a = stream_on(&at);
  tarn_block busy = take_on(at.pool, MIB, a);
  tarn_alloc_options options[2] = {
      options_for(3 * MIB, NULL, 0),
      options_for(4 * MIB, NULL, TARN_ALLOC_NO_WAIT),
  };
  tarn_block blocks[2];
  static hold held;
  hold_begin(&held, a);
  bool keeps = keeps_idle(strategy);
  if (keeps) give_on(busy, a);
  size_t reserved = stats_of(at.pool).reserved_bytes;
  assert_ok(tarn_pool_limit(at.pool, reserved + 6 * MIB));
  assert_status(tarn_pool_alloc_many(at.pool, options, 2, blocks), TARN_FULL);
  assert_ok(tarn__front_check(at.pool));
  hold_end(&held);
  if (!keeps) give_on(busy, a);
}
