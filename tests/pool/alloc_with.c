// Requests with options: what is read of them, tags and pointers, growth, the
// program's function, cleared blocks, and every failure on the way.
#include "support/faults.h"
#include "support/hold.h"
#include "support/strategy.h"
#include "tarn/account.h"
#include "tarn/capture.h"
#include "tarn/misuse.h"
#include "with_kit.h"

static const size_t SIZE = (size_t)256 * KIB;

// --- what is read ------------------------------------------------------------

TEST_LOOP(plain_options_are_a_plain_request, ALL_STRATEGIES) {
  tarn_pool *pool = host_pool(any_strategy(_i));
  tarn_tag tag = tag_of("weights");
  tarn_alloc_options options = {
      .struct_size = sizeof options, .size = 5000, .align = 8192, .tag = tag};
  tarn_block block;
  assert_ok(tarn_pool_alloc_with(pool, &options, &block));
  ck_assert_uint_ge(block.size, 5000);
  ck_assert_uint_eq(block.address % 8192, 0);
  ck_assert_uint_eq(tag_stats_of(pool, tag).live_bytes, 5000);
  void *user = &block;
  assert_ok(tarn_block_user(&block, &user));
  ck_assert_ptr_null(user);
  give(block);
  ck_assert_uint_eq(tag_stats_of(pool, tag).live_blocks, 0);
}

static void refuse_options(tarn_pool *pool, tarn_alloc_options options,
                           const char *text) {
  tarn_block block;
  memset(&block, 0xff, sizeof block);
  assert_status(tarn_pool_alloc_with(pool, &options, &block), TARN_E_INVALID);
  assert_zero_block(block);
  assert_error_says(text);
}

TEST(wrong_options_change_nothing) {
  tarn_pool *pool = host_pool("arena_pool");
  tarn_alloc_options good = options_for(100, NULL, TARN_ALLOC_NO_CALLBACK);
  tarn_alloc_options bad = good;
  tarn_block block;
  bad.flags = TARN_ALLOC_ZERO | 1u << 20;
  refuse_options(pool, bad, "0x100000");
  bad = good;
  bad.struct_size = 8;
  refuse_options(pool, bad, "struct_size");
  bad = good;
  bad.size = 0;
  refuse_options(pool, bad, "size is 0");
  bad.size = SIZE_MAX;
  refuse_options(pool, bad, "overflow");
  bad = good;
  bad.align = 24;
  refuse_options(pool, bad, "24");
  bad = good;
  bad.tag = 65000;
  refuse_options(pool, bad, "65000");
  refuse_options(NULL, good, "pool");
  assert_status(tarn_pool_alloc_with(pool, NULL, &block), TARN_E_INVALID);
  ck_assert_uint_eq(stats_of(pool).live_blocks, 0);
  // A caller of the first version, which may leave struct_size 0.
  good.struct_size = 0;
  assert_ok(tarn_pool_alloc_with(pool, &good, &block));
  give(block);
}

// --- pointers ----------------------------------------------------------------

static void *user_of(tarn_block block) {
  void *user = NULL;
  assert_ok(tarn_block_user(&block, &user));
  return user;
}

static tarn_block take_for(tarn_pool *pool, size_t size, void *user) {
  tarn_alloc_options options = options_for(size, NULL, 0);
  tarn_block block;
  options.user = user;
  assert_ok(tarn_pool_alloc_with(pool, &options, &block));
  return block;
}

TEST_LOOP(a_pointer_is_the_blocks_for_as_long_as_it_is_out, ALL_STRATEGIES) {
  int tensors[300];
  tarn_block blocks[300];
  tarn_pool *pool = host_pool(any_strategy(_i));
  for (size_t i = 0; i < 300; i++)
    blocks[i] = take_for(pool, 1000, i % 3 == 0 ? NULL : &tensors[i]);
  for (size_t i = 0; i < 300; i++) {
    tarn_block found;
    assert_ok(tarn_block_of(TARN_HOST, blocks[i].address, &found, NULL));
    ck_assert_ptr_eq(user_of(found), i % 3 == 0 ? NULL : &tensors[i]);
  }
  void *user = tensors;
  give(blocks[1]);
  assert_status(tarn_block_user(&blocks[1], &user), TARN_E_INVALID);
  ck_assert_ptr_null(user);
  assert_error_says("freed before");
  tarn_block again = take(pool, 1000);
  ck_assert_ptr_null(user_of(again));
  give(again);
  for (size_t i = 0; i < 300; i++)
    if (i != 1) give(blocks[i]);
  assert_status(tarn_block_user(NULL, &user), TARN_E_INVALID);
  assert_status(tarn_block_user(&(tarn_block){0}, &user), TARN_E_INVALID);
}

// In a step that is played pieces are never taken nor given back.
TEST(steps_have_pointers_too) {
  int tensor = 0;
  tarn_pool *pool = host_pool("arena_pool");
  tarn_block kept = take(pool, MIB);
  for (int step = 0; step < 1200; step++) {
    bool has_user = step % 3 == 0;
    tarn_block a = take_for(pool, 8192, has_user ? &tensor : NULL);
    tarn_block b = take(pool, 12288);
    ck_assert_ptr_eq(user_of(a), has_user ? &tensor : NULL);
    ck_assert_ptr_null(user_of(b));
    give(a);
    give(b);
  }
  ck_assert_ptr_nonnull(pool->steps.cursor.layout);
  ck_assert_uint_gt(pool->steps.cursor.layout->rounds, 100);
  assert_ok(tarn__front_check(pool));
  give(kept);
}

// Flags change nothing of what a step serves.
TEST(steps_serve_requests_with_flags) {
  tarn_pool *pool = host_pool("arena_pool");
  const uint32_t flags =
      TARN_ALLOC_NO_WAIT | TARN_ALLOC_NO_GROW | TARN_ALLOC_NO_CALLBACK;
  for (int step = 0; step < 600; step++) {
    tarn_block a = take(pool, 8192);
    tarn_block b =
        step < 400 ? take(pool, 12288) : take_with(pool, 12288, NULL, flags);
    give(a);
    give(b);
  }
  ck_assert_ptr_nonnull(pool->steps.cursor.layout);
  ck_assert_uint_eq(pool->steps.cursor.missed, 0);
}

// The pool may grow for it as for any other.
TEST_LOOP(a_step_stays_where_the_pool_may_grow, 2) {
  static const uint32_t flags[] = {TARN_ALLOC_NO_CALLBACK, TARN_ALLOC_NO_WAIT};
  tarn_pool *pool = host_pool("arena_pool");
  for (int step = 0; step < 600; step++) {
    tarn_block a = take(pool, 8192);
    tarn_block b = take(pool, 12288);
    give(a);
    give(b);
  }
  const tarn__pool_step_layout *layout = pool->steps.cursor.layout;
  ck_assert_ptr_nonnull(layout);
  tarn_block block =
      take_with(pool, stats_of(pool).reserved_bytes, NULL, flags[_i]);
  ck_assert_ptr_eq(pool->steps.layouts[0], layout);
  ck_assert_ptr_nonnull(layout->pieces);
  give(block);
}

// --- growth ------------------------------------------------------------------

TEST_LOOP(what_must_not_grow_uses_what_is_there, ALL_STRATEGIES *TEST_DEVICES) {
  const char *strategy = any_strategy(_i % ALL_STRATEGIES);
  arena_place at = open_arena_at(16 * MIB, _i / ALL_STRATEGIES, 0, strategy);
  refuse_with(at.pool, SIZE, NULL, TARN_ALLOC_NO_GROW, TARN_FULL);
  assert_error_says("TARN_ALLOC_NO_GROW");
  ck_assert_uint_eq(stats_of(at.pool).reserved_bytes, 0);
  ck_assert_uint_eq(stats_of(at.pool).device_allocs, 0);
  give(take(at.pool, SIZE));
  tarn_pool_stats before = stats_of(at.pool);
  tarn_block block;
  tarn_status status =
      try_with(at.pool, SIZE, NULL, TARN_ALLOC_NO_GROW, &block);
  ck_assert_int_eq(status, keeps_idle(strategy) ? TARN_OK : TARN_FULL);
  refuse_with(at.pool, 4 * MIB, NULL, TARN_ALLOC_NO_GROW, TARN_FULL);
  tarn_pool_stats after = stats_of(at.pool);
  ck_assert_uint_eq(after.device_allocs, before.device_allocs);
  ck_assert_uint_eq(after.device_frees, before.device_frees);
  ck_assert_uint_eq(after.reserved_bytes, before.reserved_bytes);
  if (status == TARN_OK) give(block);
}

// Blocks of one size with others between them, whose holes are too small.
TEST_LOOP(idle_pages_move, TEST_DEVICES) {
  enum { BLOCKS = 8 };
  arena_place at = open_arena_at(64 * MIB, _i, 0, "arena_pool:steps=0");
  bool ranges = device_has(at.device, TEST_NEEDS_RANGES);
  tarn_block blocks[2 * BLOCKS];
  for (size_t i = 0; i < 2 * BLOCKS; i++)
    blocks[i] = take(at.pool, MIB);
  for (size_t i = 0; i < BLOCKS; i++)
    give(blocks[2 * i]);
  tarn_pool_stats before = stats_of(at.pool);
  tarn_block block;
  tarn_status status =
      try_with(at.pool, 4 * MIB, NULL, TARN_ALLOC_NO_GROW, &block);
  tarn_pool_stats after = stats_of(at.pool);
  ck_assert_int_eq(status, ranges ? TARN_OK : TARN_FULL);
  ck_assert_uint_eq(after.device_allocs, before.device_allocs);
  ck_assert_uint_eq(after.reserved_bytes, before.reserved_bytes);
  if (status == TARN_OK) give(block);
  for (size_t i = 0; i < BLOCKS; i++)
    give(blocks[2 * i + 1]);
}

// --- the program's function --------------------------------------------------

static bool count_call(tarn_pool *pool, const tarn_pool_need *need,
                       void *context) {
  (void)pool;
  (void)need;
  ++*(size_t *)context;
  return false;
}

TEST_LOOP(the_program_is_not_asked, ALL_STRATEGIES) {
  tarn_pool *pool = host_pool(any_strategy(_i));
  size_t calls = 0;
  assert_ok(tarn_pool_on_full(pool, count_call, &calls));
  assert_ok(tarn_pool_limit(pool, MIB));
  refuse_with(pool, 2 * MIB, NULL, TARN_ALLOC_NO_CALLBACK, TARN_FULL);
  ck_assert_uint_eq(calls, 0);
  refuse_with(pool, 2 * MIB, NULL, TARN_ALLOC_NO_WAIT, TARN_FULL);
  ck_assert_uint_eq(calls, 1);
  refuse_with(pool, 2 * MIB, NULL, TARN_ALLOC_NO_GROW, TARN_FULL);
  ck_assert_uint_eq(calls, 2);
}

// --- cleared -----------------------------------------------------------------

// Behind what is queued on the stream, and before what is queued after.
TEST_LOOP(a_cleared_block_is_zero_in_the_order_of_its_stream,
          ALL_STRATEGIES *TEST_DEVICES) {
  static unsigned char bytes[300];
  static unsigned char out[300];
  const char *strategy = any_strategy(_i % ALL_STRATEGIES);
  arena_place at = open_arena_at(16 * MIB, _i / ALL_STRATEGIES, 0, strategy);
  tarn_stream *a = stream_on(&at);
  tarn_block block = take_on(at.pool, 300, a);
  memset(bytes, 0x5a, sizeof bytes);
  assert_ok(tarn_copy_h2d(at.device, block.address, bytes, 300, a));
  give_on(block, a);
  block = take_with(at.pool, 299, a, TARN_ALLOC_ZERO);
  size_t all = keeps_idle(strategy) ? 300 : 299;
  assert_ok(tarn_copy_d2h(at.device, out, block.address, all, a));
  assert_ok(tarn_stream_synchronize(a));
  for (size_t i = 0; i < 299; i++)
    require(out[i] == 0);
  if (all == 300) ck_assert_uint_eq(out[299], 0x5a);
  give_on(block, a);
}

TEST_LOOP(what_cannot_be_cleared_goes_back, ALL_STRATEGIES) {
  arena_place at = open_faulty(16 * MIB, any_strategy(_i));
  give(take(at.pool, SIZE));
  tarn_pool_stats before = stats_of(at.pool);
  assert_ok(tarn_sim_faults("device_memory_set@1"));
  tarn_block block;
  memset(&block, 0xff, sizeof block);
  assert_status(try_with(at.pool, SIZE, NULL, TARN_ALLOC_ZERO, &block),
                TARN_E_DEVICE);
  assert_zero_block(block);
  assert_ok(tarn_sim_faults(NULL));
  tarn_pool_stats after = stats_of(at.pool);
  ck_assert_uint_eq(after.live_bytes, 0);
  ck_assert_uint_eq(after.live_peak_bytes, before.live_peak_bytes);
  ck_assert_uint_eq(after.allocs, before.allocs);
  ck_assert_uint_eq(after.failures, before.failures + 1);
}

TEST(no_graph_is_captured_with_cleared_blocks) {
  tarn_pool *pool = own_pool_with(TARN_HOST, NULL, 0, TARN_POOL_DEFER);
  give(take_with(pool, SIZE, NULL, TARN_ALLOC_ZERO));
  assert_ok(tarn_pool_begin_capture(pool));
  refuse_with(pool, SIZE, NULL, TARN_ALLOC_ZERO, TARN_E_STATE);
  give(take_with(pool, SIZE, NULL, TARN_ALLOC_NO_WAIT));
  assert_ok(tarn_pool_end_capture(pool));
  refuse_with(pool, SIZE, NULL, TARN_ALLOC_NO_WAIT, TARN_E_STATE);
  assert_ok(tarn_pool_end_graphs(pool));
}

TEST(a_pool_that_debugs_has_options_too) {
  int tensor = 0;
  tarn_pool *pool = host_pool("arena_pool");
  tarn_pool_debug_options debug = {.struct_size = sizeof debug};
  assert_ok(tarn_pool_debug(pool, &debug));
  tarn_alloc_options options =
      options_for(1000, NULL, TARN_ALLOC_ZERO | TARN_ALLOC_NO_WAIT);
  options.user = &tensor;
  tarn_block block;
  assert_ok(tarn_pool_alloc_with(pool, &options, &block));
  ck_assert_uint_eq(block.size, 1000);
  ck_assert_ptr_eq(user_of(block), &tensor);
  for (size_t i = 0; i < 1000; i++)
    require(bytes_of(block)[i] == 0);
  give(block);
  assert_ok(tarn_pool_debug_check(pool));
  assert_ok(tarn_pool_debug(pool, NULL));
}

// --- failures ----------------------------------------------------------------

static arena_place swept;

static void some_requests(void *context) {
  (void)context;
  static const uint32_t flags[] = {
      0,
      TARN_ALLOC_NO_WAIT,
      TARN_ALLOC_ZERO,
      TARN_ALLOC_NO_GROW,
      TARN_ALLOC_ZERO | TARN_ALLOC_NO_CALLBACK,
  };
  tarn_block blocks[10];
  size_t count = 0;
  for (size_t i = 0; i < 10; i++) {
    tarn_alloc_options options = options_for(SIZE + i, NULL, flags[i % 5]);
    options.user = &blocks[i];
    options.tag = (tarn_tag)(i % 2);
    tarn_status status =
        tarn_pool_alloc_with(swept.pool, &options, &blocks[count]);
    if (status != TARN_OK) {
      assert_zero_block(blocks[count]);
    } else {
      count++;
    }
    assert_ok(tarn__front_check(swept.pool));
  }
  while (count > 0)
    (void)tarn_pool_free(&blocks[--count], NULL);
  (void)tarn_pool_trim(swept.pool, 0);
}

TEST_LOOP(every_call_may_fail, ALL_STRATEGIES) {
  (void)tag_of("weights");
  swept = open_arena_of(16 * MIB, "fake:0", any_strategy(_i));
  bool failed = true;
  for (size_t n = 1; failed; n++) {
    faults_arm(n, FAULTS_ONCE);
    fake.strikes = true;
    some_requests(NULL);
    fake.strikes = false;
    failed = faults_disarm();
    assert_ok(tarn__front_check(swept.pool));
    ck_assert_uint_eq(stats_of(swept.pool).live_blocks, 0);
  }
  assert_ok(use_strategy(swept.place, "no_pool"));
  ck_assert_uint_eq(stats_of(swept.pool).reserved_bytes, 0);
}

int main(void) {
  faults_install();
  return run_tests();
}
