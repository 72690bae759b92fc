// Trimming to a target: how much each strategy gives back, and what it keeps.
#include "arena_kit.h"
#include "support/strategy.h"
#include "tarn/strategy.h"

static const size_t PAGE = 4096;

static size_t reserved(tarn_pool *pool) {
  assert_ok(tarn__front_check(pool));
  return stats_of(pool).reserved_bytes;
}

static void trim(tarn_pool *pool, size_t target, size_t expected) {
  assert_ok(tarn_pool_trim(pool, target));
  ck_assert_uint_eq(reserved(pool), expected);
}

TEST(page_unit_pool_gives_the_largest_back_first) {
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_block blocks[10];
  for (size_t i = 0; i < 10; i++)
    blocks[i] = take(pool, (i + 1) * PAGE);
  give_many(blocks, 10);
  trim(pool, 55 * PAGE, 55 * PAGE);
  trim(pool, 30 * PAGE, 28 * PAGE);  // without those of 8, 9 and 10 pages
  ck_assert_uint_eq(stats_of(pool).device_frees, 3);
  give(take(pool, 7 * PAGE));
  ck_assert_uint_eq(stats_of(pool).hits, 1);
  trim(pool, 2 * PAGE, PAGE);
  trim(pool, 0, 0);
}

TEST(what_is_out_stays) {
  for (int i = 0; i < ALL_STRATEGIES; i++) {
    tarn_pool *pool = host_pool(any_strategy(i));
    tarn_block kept = take(pool, 100 * PAGE);
    memset(bytes_of(kept), 0x5a, kept.size);
    give(take(pool, 100 * PAGE));
    assert_ok(tarn_pool_trim(pool, PAGE));
    ck_assert_uint_ge(reserved(pool), kept.size);
    ck_assert_int_eq(bytes_of(kept)[kept.size - 1], 0x5a);
    give(kept);
    trim(pool, 0, 0);
  }
}

TEST_LOOP(arena_pool_stops_at_the_page, TEST_DEVICES) {
  arena_place p = open_arena_with(_i, TEST_NEEDS_RANGES, "arena_pool:page=2M");
  if (p.pool == NULL) return;
  tarn_block blocks[8];
  take_many(p.pool, SIM_PAGE, blocks, 8);
  give_many(blocks, 6);
  trim(p.pool, 100 * SIM_PAGE, 8 * SIM_PAGE);
  trim(p.pool, 6 * SIM_PAGE + 1, 6 * SIM_PAGE);
  ck_assert_uint_eq(stats_of(p.pool).device_frees, 2);
  trim(p.pool, 3 * SIM_PAGE, 3 * SIM_PAGE);
  trim(p.pool, SIM_PAGE, 2 * SIM_PAGE);  // are out
  assert_taken(&p, 2 * SIM_PAGE);
  give(blocks[6]);
  give(blocks[7]);
}

TEST(more_than_a_batch_of_pages) {
  arena_place p = open_arena("cpu:0", "arena_pool:page=64K");
  size_t page = 64 * KIBIBYTE;
  give(take(p.pool, 300 * page));
  ck_assert_uint_eq(reserved(p.pool), 300 * page);
  trim(p.pool, 100 * page, 100 * page);
  give(take(p.pool, 300 * page));
  trim(p.pool, 299 * page, 299 * page);
}

TEST(segments_and_chunks_go_whole) {
  arena_place p = open_arena("fake:0", "arena_pool");
  size_t size = MIB;  // the most at once there
  tarn_block blocks[3];
  for (int i = 0; i < 3; i++)
    blocks[i] = take(p.pool, size);
  give_many(blocks, 3);
  trim(p.pool, 3 * size, 3 * size);
  trim(p.pool, 2 * size + 1, 2 * size);
  trim(p.pool, 2 * size - 1, size);
  assert_ok(use_strategy(p.place, "buddy_pool:init=1M,realloc=1M,max=1M"));
  for (int i = 0; i < 3; i++)
    blocks[i] = take(p.pool, size);
  give_many(blocks, 3);
  trim(p.pool, size + 1, size);
}

// --- strategies of programs ------------------------------------------------

static tarn_status trim_all(void *self, const tarn_source *source) {
  (void)self;
  return source->refuse(source, TARN_E_DEVICE, "was called");
}

static void fill(tarn_pool *pool) {
  tarn_block blocks[4];
  take_many(pool, PAGE, blocks, 4);
  give_many(blocks, 4);
}

TEST(a_strategy_of_a_program_asks_whether_it_is_enough) {
  assert_ok(tarn_pool_register(TarnPoolStrategy()));
  tarn_pool *pool = host_pool("power_pool");
  fill(pool);
  trim(pool, 4 * PAGE, 4 * PAGE);
  trim(pool, 3 * PAGE - 1, 2 * PAGE);
  trim(pool, 0, 0);
}

TEST(it_is_not_called_where_there_is_nothing_to_do) {
  tarn_strategy strategy = *TarnPoolStrategy();
  strategy.name = "trims";
  strategy.trim = trim_all;
  assert_ok(tarn_pool_register(&strategy));
  tarn_pool *pool = host_pool("trims");
  fill(pool);
  assert_ok(tarn_pool_trim(pool, 4 * PAGE));
  assert_status(tarn_pool_trim(pool, 4 * PAGE - 1), TARN_E_DEVICE);
  assert_error_says("was called");
}
