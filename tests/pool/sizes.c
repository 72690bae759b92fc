// Sizes that a device names, and what each strategy makes of them: the chunk
// and the padding, the first allocation and later ones, the largest chunk.
#include <time.h>

#include "sizes_kit.h"
#include "support/fake_extension.h"
#include "tarn/capture.h"

// --- the chunk and the padding ---------------------------------------------

TEST_LOOP(blocks_are_padded_and_rounded_up_to_the_chunk, ALL_STRATEGIES) {
  const char *strategy = any_strategy(_i);
  static const size_t sizes[] = {1, 1000, 65436, 65437, 200000};
  fake.min_chunk = 65536;
  fake.padding = 100;
  open_fake();
  tarn_pool *pool = device_pool(strategy);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    tarn_block block = take(pool, sizes[i]);
    size_t chunks = (sizes[i] + 100 + 65535) / 65536 * 65536;
    bool is_exact = strcmp(strategy, "power_pool") != 0;
    if (is_exact) ck_assert_uint_eq(block.size, chunks - 100);
    ck_assert_uint_ge(block.size, chunks - 100);
    ck_assert_uint_eq((block.size + 100) % 65536, 0);
    ck_assert_uint_eq(block.address % 65536, 0);
    give(block);
  }
}

TEST_LOOP(the_device_is_asked_for_multiples_of_the_chunk, ALL_STRATEGIES) {
  const char *strategy = any_strategy(_i);
  fake.min_chunk = 65536;
  fake.padding = 100;
  open_fake();
  tarn_pool *pool = device_pool(strategy);
  tarn_block block = take(pool, 1000);
  // Two of them take more than they need, so that others fit in too.
  bool shares = strcmp(strategy, "arena_pool") == 0 ||
                strcmp(strategy, "buddy_pool") == 0;
  ck_assert_msg(fake_seen.live_bytes == (shares ? MIB : 65536), "%s: %zu",
                strategy, fake_seen.live_bytes);
  ck_assert_uint_eq(reserved(pool), fake_seen.live_bytes);
  tarn_block second = take(pool, 70000);
  ck_assert_uint_eq(fake_seen.live_bytes % 65536, 0);
  ck_assert_uint_eq(reserved(pool), fake_seen.live_bytes);
  give(block);
  give(second);
}

TEST_LOOP(dry_pools_round_up_as_well, ALL_STRATEGIES) {
  const char *strategy = any_strategy(_i);
  fake.min_chunk = 65536;
  fake.padding = 100;
  open_fake();
  tarn_pool *pool =
      own_pool_with(tarn_place_on(device), strategy, 0, TARN_POOL_DRY);
  tarn_block block = take(pool, 1000);
  ck_assert_uint_eq(block.size, 65436);
  ck_assert_uint_eq(reserved(pool) % 65536, 0);
  give(block);
  ck_assert_uint_eq(fake_seen.allocations, 0);
}

// --- the first allocation, later ones, and the largest chunk ---------------

enum { BLOCKS = 13, BLOCK = 500 * KIB };

static void name_sizes(void) {
  fake.init_size = 6 * MIB;
  fake.realloc_size = 3 * MIB;
  fake.max_chunk = MIB;
  fake.max_alloc = 0;
}

TEST_LOOP(sizes_that_a_plug_in_names_bind, ALL_STRATEGIES) {
  const char *strategy = any_strategy(_i);
  if (!keeps_idle(strategy)) return;
  name_sizes();
  open_fake();
  tarn_pool *pool = device_pool(strategy);
  tarn_block small = take(pool, 1000);
  ck_assert_msg(reserved(pool) == 6 * MIB, "%s: %zu", strategy, reserved(pool));
  tarn_block blocks[BLOCKS];
  take_many(pool, BLOCK, blocks, BLOCKS);
  ck_assert_msg(reserved(pool) == 9 * MIB, "%s: %zu", strategy, reserved(pool));
  ck_assert_uint_eq(stats_of(pool).device_allocs, 2);

  tarn_block large = take(pool, MIB + MIB / 4);
  ck_assert_uint_eq(reserved(pool), 10 * MIB + MIB / 4);
  ck_assert_uint_eq(fake_seen.live_bytes, reserved(pool));
  give(large);
  ck_assert_uint_eq(reserved(pool), 9 * MIB);
  tarn_block whole = take(pool, MIB);  // the largest that is not direct
  ck_assert_uint_eq(reserved(pool), 9 * MIB);
  give(whole);
  ck_assert_uint_eq(fake_seen.live_bytes, 9 * MIB);

  give(small);
  give_many(blocks, BLOCKS);
  ck_assert_uint_eq(reserved(pool), 9 * MIB);
  assert_ok(tarn_pool_trim(pool, 8 * MIB));
  ck_assert_uint_le(reserved(pool), 6 * MIB);
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_eq(reserved(pool), 0);
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
}

TEST_LOOP(the_padding_is_inside, ALL_STRATEGIES) {
  const char *strategy = any_strategy(_i);
  name_sizes();
  fake.padding = 100;
  open_fake();
  tarn_pool *pool = device_pool(strategy);
  size_t direct = keeps_idle(strategy) ? 0 : 1;
  tarn_block first = take(pool, MIB - 100);
  size_t asked = stats_of(pool).device_allocs;
  tarn_block second = take(pool, MIB - 100);
  ck_assert_uint_eq(stats_of(pool).device_allocs, asked + direct);
  tarn_block third = take(pool, MIB - 99);
  ck_assert_uint_eq(stats_of(pool).device_allocs, asked + direct + 1);
  ck_assert_uint_eq(third.size, MIB + 256 - 100);
  ck_assert_uint_eq(fake_seen.live_bytes, reserved(pool));
  give(first);
  give(second);
  give(third);
}

TEST_LOOP(replaced_strategies_give_their_chunks_back, ALL_STRATEGIES) {
  const char *strategy = any_strategy(_i);
  if (!keeps_idle(strategy)) return;
  name_sizes();
  open_fake();
  tarn_pool *pool = device_pool(strategy);
  tarn_block small = take(pool, 1000);
  tarn_block other = take(pool, 2000);
  tarn_block large = take(pool, 2 * MIB);
  give(take(pool, 3000));  // idle, beside what is out
  assert_ok(tarn_pool_set_strategy(pool, "no_pool"));
  give(other);
  ck_assert_uint_eq(reserved(pool), 8 * MIB);
  give(large);
  ck_assert_uint_eq(reserved(pool), 6 * MIB);
  give(small);
  ck_assert_uint_eq(reserved(pool), 0);
  ck_assert(tarn_list_empty(&pool->replaced));
}

// Memory comes back to the stock of a pool whose classes are many, is joined,
// and serves other sizes.
TEST_LOOP(many_sizes_out_of_few_chunks, ALL_STRATEGIES) {
  const char *strategy = any_strategy(_i);
  if (!keeps_idle(strategy)) return;
  name_sizes();
  fake.padding = 40;
  open_fake();
  enum { MANY = 200 };
  tarn_pool *pool = device_pool(strategy);
  tarn_block blocks[MANY];
  for (size_t round = 0; round < 3; round++) {
    for (size_t i = 0; i < MANY; i++)
      blocks[i] = take(pool, (i * 37 + round) % 50 * 1000 + 1);
    for (size_t i = 0; i < MANY; i++)
      give(blocks[i * 73 % MANY]);
    assert_ok(tarn_pool_trim(pool, round == 1 ? 4 * MIB : 0));
    assert_ok(tarn__front_check(pool));
  }
  ck_assert_uint_eq(reserved(pool), 0);
}

TEST_LOOP(chunks_of_several_streams, ALL_STRATEGIES) {
  const char *strategy = any_strategy(_i);
  if (!keeps_idle(strategy)) return;
  name_sizes();
  open_fake();
  tarn_stream *a = stream_of(device);
  tarn_stream *b = stream_of(device);
  tarn_pool *pool = device_pool(strategy);
  tarn_block first = take_on(pool, 5000, a);
  tarn_block second = take_on(pool, 7000, b);
  give_on(first, a);
  give_on(second, b);
  tarn_block third = take_on(pool, 300 * KIB, b);
  ck_assert_uint_eq(reserved(pool), 6 * MIB);
  give_on(third, b);
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_eq(reserved(pool), 0);
}

// One small block keeps the only segment; the rest of it serves any size.
TEST_LOOP(a_small_block_keeps_no_more_than_it_has, ALL_STRATEGIES) {
  const char *strategy = any_strategy(_i);
  if (!keeps_idle(strategy)) return;
  fake.init_size = fake.realloc_size = fake.max_chunk = 16 * MIB;
  fake.max_alloc = 0;
  open_fake();
  enum { IDLE = 14 };
  tarn_block blocks[IDLE];
  tarn_pool *pool = device_pool(strategy);
  assert_ok(tarn_pool_limit(pool, 16 * MIB));
  tarn_block small = take(pool, 4096);
  take_many(pool, MIB, blocks, IDLE);
  give_many(blocks, IDLE);
  ck_assert_uint_eq(reserved(pool), 16 * MIB);
  tarn_block large = take(pool, 8 * MIB);
  ck_assert_uint_eq(reserved(pool), 16 * MIB);
  give(large);
  give(small);
}

// Pieces of two streams become one hole when both are done.
TEST(pieces_of_streams_that_are_done_serve_any_size) {
  enum { IDLE = 14 };
  tarn_block blocks[IDLE];
  tarn_stream *streams[2];
  fake.init_size = fake.realloc_size = fake.max_chunk = 16 * MIB;
  fake.max_alloc = 0;
  open_fake();
  for (int i = 0; i < 2; i++)
    streams[i] = stream_of(device);
  tarn_pool *pool = device_pool("page_unit_pool");
  assert_ok(tarn_pool_limit(pool, 16 * MIB));
  tarn_block small = take(pool, 4096);
  for (size_t i = 0; i < IDLE; i++)
    blocks[i] = take_on(pool, MIB, streams[i % 2]);
  char out[8];
  assert_ok(tarn_copy_d2h(device, out, blocks[0].address, 8, streams[0]));
  for (size_t i = 0; i < IDLE; i++)
    give_on(blocks[i], streams[i % 2]);
  tarn_block large = take(pool, 8 * MIB);
  ck_assert_uint_eq(fake_seen.copies, 1);  // it was waited for
  give(large);
  give(small);
}

static bool note_need(tarn_pool *pool, const tarn_pool_need *need,
                      void *context) {
  (void)pool;
  *(tarn_pool_need *)context = *need;
  return false;
}

TEST_LOOP(the_largest_hole_is_one_of_what_is_idle, ALL_STRATEGIES) {
  const char *strategy = any_strategy(_i);
  if (!keeps_idle(strategy) || strcmp(strategy, "power_pool") == 0) return;
  fake.init_size = fake.realloc_size = fake.max_chunk = 16 * MIB;
  fake.max_alloc = 0;
  open_fake();
  tarn_pool_need need = {0};
  tarn_pool *pool = device_pool(strategy);
  assert_ok(tarn_pool_limit(pool, 20 * MIB));
  assert_ok(tarn_pool_on_full(pool, note_need, &need));
  tarn_block small = take(pool, 4096);
  refuse(pool, 16 * MIB, 0, TARN_FULL);
  ck_assert_uint_eq(need.idle_bytes, 16 * MIB - 4096);
  ck_assert_uint_ge(need.largest_hole, 8 * MIB);
  ck_assert_uint_le(need.largest_hole, need.idle_bytes);
  give(small);
}

// Each free is a few steps, however many blocks are out.
TEST_LOOP(blocks_of_a_replaced_strategy_are_freed_at_once, ALL_STRATEGIES) {
  const char *strategy = any_strategy(_i);
  fake.init_size = fake.realloc_size = fake.max_chunk = 256 * MIB;
  fake.max_alloc = 0;
  open_fake();
  enum { MANY = 20000 };
  static tarn_block blocks[MANY];
  if (!keeps_idle(strategy)) return;
  tarn_pool *pool = device_pool(strategy);
  take_many(pool, 256, blocks, MANY);
  assert_ok(tarn_pool_set_strategy(pool, "no_pool"));
  clock_t begin = clock();
  give_many(blocks, MANY);
  ck_assert_msg((clock() - begin) / CLOCKS_PER_SEC < 2, "%s", strategy);
  ck_assert_uint_eq(reserved(pool), 0);
}

TEST_LOOP(blocks_do_not_grow_beyond_the_largest_chunk, ALL_STRATEGIES) {
  name_sizes();
  open_fake();
  tarn_pool *pool = device_pool(any_strategy(_i));
  tarn_block block = take(pool, 2 * MIB);
  assert_ok(tarn_pool_resize(&block, MIB, NULL));
  ck_assert_uint_ge(block.size, MIB);
  assert_status(tarn_pool_resize(&block, 3 * MIB, NULL), TARN_FULL);
  tarn_block small = take(pool, 1000);
  assert_status(tarn_pool_resize(&small, 2 * MIB, NULL), TARN_FULL);
  give(block);
  give(small);
}

TEST_LOOP(pinned_and_unified_memory_are_not_bound, ALL_STRATEGIES) {
  const char *strategy = any_strategy(_i);
  name_sizes();
  fake.padding = 100;
  open_fake();
  for (int kind = TARN_PLACE_HOST; kind <= TARN_PLACE_UNIFIED; kind++) {
    if (kind == TARN_PLACE_DEVICE) continue;
    tarn_place place = {device, (tarn_place_kind)kind};
    tarn_pool *pool = own_pool_with(place, strategy, 0, 0);
    tarn_block small = take(pool, 1000);
    ck_assert_uint_le(reserved(pool), 2 * MIB);
    give(small);
    end_own(pool);
  }
}

// With ranges memory comes by pages; what exceeds the largest chunk is direct
// all the same.
TEST_LOOP(with_ranges_only_the_largest_chunk_binds, ALL_STRATEGIES) {
  const char *strategy = any_strategy(_i);
  name_sizes();
  fake_ext.there = true;
  open_fake();
  tarn_pool *pool = device_pool(strategy);
  tarn_block small = take(pool, 1000);
  ck_assert_msg(reserved(pool) <= MIB, "%s: %zu", strategy, reserved(pool));
  size_t before = reserved(pool);
  tarn_block large = take(pool, 2 * MIB);
  ck_assert_uint_eq(reserved(pool), before + 2 * MIB);
  give(large);
  ck_assert_uint_eq(reserved(pool), before);
  give(small);
}

TEST(direct_blocks_do_not_sleep) {
  name_sizes();
  fake_ext.there = true;
  open_fake();
  tarn_pool *pool = device_pool("arena_pool");
  tarn_block large = take_tagged(pool, 2 * MIB, tag_of("large"));
  assert_status(tarn_pool_sleep(pool, tag_of("large"), TARN_SLEEP_SAVE),
                TARN_E_UNSUPPORTED);
  assert_error_says("largest chunk");
  give(large);
}

// What a graph was captured with stays the pool's when it is freed.
TEST_LOOP(pools_for_captures_keep_large_blocks, 2) {
  name_sizes();
  open_fake();
  tarn_pool *pool = own_pool_with(tarn_place_on(device),
                                  _i == 0 ? "arena_pool" : "page_unit_pool", 0,
                                  TARN_POOL_DEFER);
  tarn_block large = take(pool, 2 * MIB);
  size_t held = reserved(pool);
  give(large);
  ck_assert_uint_eq(reserved(pool), held);
  ck_assert_uint_eq(stats_of(pool).device_frees, 0);
}

// A device that says 0 wants nothing to be kept.
TEST_LOOP(with_a_largest_chunk_of_0_nothing_is_kept, ALL_STRATEGIES) {
  fake.size_answer = C_ERROR;
  open_fake();
  tarn_pool *pool = device_pool(any_strategy(_i));
  give(take(pool, 1000));
  ck_assert_uint_eq(reserved(pool), 0);
}

// Steps are learned of what the pool keeps; the rest is direct in each.
TEST(direct_blocks_are_no_part_of_a_learned_step) {
  name_sizes();
  open_fake();
  tarn_pool *pool = device_pool("arena_pool");
  for (size_t step = 0; step < 20; step++) {
    tarn_block blocks[8];
    size_t asked = stats_of(pool).device_allocs;
    for (size_t i = 0; i < 8; i++)
      blocks[i] = take(pool, i == 3 ? 2 * MIB : 10000 + i * 1000);
    if (step > 0) {
      ck_assert_uint_eq(stats_of(pool).device_allocs, asked + 1);
    }
    give_many(blocks, 8);
    assert_ok(tarn__front_check(pool));
    ck_assert_uint_eq(reserved(pool), 6 * MIB);
  }
}
