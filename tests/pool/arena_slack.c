// What arena_pool may hold beyond its live peak before pages move: the option,
// its default, the limit, and a device that has no more.
#include "arena_kit.h"
#include "support/strategy.h"

enum { PAGES = 8 };

// Every second page of eight is a hole then.
static arena_place open_with_holes(int device, const char *strategy,
                                   tarn_block *blocks) {
  arena_place p = open_arena_with(device, TEST_NEEDS_RANGES, strategy);
  if (p.pool == NULL) return p;
  take_many(p.pool, SIM_PAGE, blocks, PAGES);
  for (int i = 0; i < PAGES; i += 2)
    give(blocks[i]);
  return p;
}

static void close_with_holes(arena_place *p, const tarn_block *blocks) {
  for (int i = 1; i < PAGES; i += 2)
    give(blocks[i]);
  close_arena(p);
}

// A block of |size|, which fits in no hole: |more| pages are new.
static void check_new_pages(int device, const char *strategy, size_t limit,
                            size_t size, size_t more) {
  tarn_block blocks[PAGES];
  arena_place p = open_with_holes(device, strategy, blocks);
  if (p.pool == NULL) return;
  tarn_pool_stats before = stats_of(p.pool);
  assert_ok(tarn_pool_limit(p.pool, limit * SIM_PAGE));
  tarn_block block = take(p.pool, size);
  tarn_pool_stats stats = stats_of(p.pool);
  ck_assert_uint_eq(stats.reserved_bytes, (PAGES + more) * SIM_PAGE);
  ck_assert_uint_eq(stats.device_allocs, before.device_allocs + more);
  ck_assert_uint_eq(stats.device_frees, before.device_frees);
  assert_taken(&p, (PAGES + more) * SIM_PAGE);
  assert_ok(tarn__front_check(p.pool));
  give(block);
  assert_ok(tarn_pool_limit(p.pool, 0));
  close_with_holes(&p, blocks);
}

// Of all pages that a block lacks, or of none.
TEST_LOOP(holes_keep_their_pages_within_the_slack, TEST_DEVICES) {
  check_new_pages(_i, "arena_pool:page=2M,slack=0", 0, 4 * SIM_PAGE, 0);
  check_new_pages(_i, "arena_pool:page=2M,slack=7M", 0, 4 * SIM_PAGE, 0);
  check_new_pages(_i, "arena_pool:page=2M,slack=8M", 0, 4 * SIM_PAGE, 4);
  check_new_pages(_i, "arena_pool:page=2M,slack=1G", 0, 4 * SIM_PAGE, 4);
}

// 2% of 16 MiB are less than that. The small block lacks a page.
TEST_LOOP(the_slack_is_two_mebibytes_at_least, TEST_DEVICES) {
  check_new_pages(_i, "arena_pool:page=2M", 0, 1000, 1);
  check_new_pages(_i, "arena_pool:page=2M", 0, 2 * SIM_PAGE, 0);
}

// 2% of 200 MiB are two pages.
TEST_LOOP(the_slack_is_a_fiftieth_of_a_large_peak, TEST_DEVICES) {
  arena_place p = open_arena_at((size_t)512 * MIB, _i, TEST_NEEDS_RANGES,
                                "arena_pool:page=2M");
  if (p.pool == NULL) return;
  enum { MANY = 100 };
  tarn_block blocks[MANY];
  take_many(p.pool, SIM_PAGE, blocks, MANY);
  for (int i = 0; i < MANY; i += 2)
    give(blocks[i]);
  tarn_block large = take(p.pool, 2 * SIM_PAGE);
  ck_assert_uint_eq(stats_of(p.pool).reserved_bytes, (MANY + 2) * SIM_PAGE);
  tarn_block small = take(p.pool, 1000);
  ck_assert_uint_eq(stats_of(p.pool).reserved_bytes, (MANY + 2) * SIM_PAGE);
  give(large);
  give(small);
  for (int i = 1; i < MANY; i += 2)
    give(blocks[i]);
}

// Of the live peak, with the request: 50% of 16 MiB are four pages.
TEST_LOOP(a_slack_in_percent_is_of_the_peak, TEST_DEVICES) {
  check_new_pages(_i, "arena_pool:page=2M,slack=0%", 0, 4 * SIM_PAGE, 0);
  check_new_pages(_i, "arena_pool:page=2M,slack=49%", 0, 4 * SIM_PAGE, 0);
  check_new_pages(_i, "arena_pool:page=2M,slack=50%", 0, 4 * SIM_PAGE, 4);
  check_new_pages(_i, "arena_pool:page=2M,slack=1000%", 0, 4 * SIM_PAGE, 4);
}

TEST_LOOP(a_limit_goes_before_the_slack, TEST_DEVICES) {
  const char *strategy = "arena_pool:page=2M,slack=1G";
  check_new_pages(_i, strategy, PAGES + 4, 4 * SIM_PAGE, 4);
  check_new_pages(_i, strategy, PAGES + 3, 4 * SIM_PAGE, 0);
  check_new_pages(_i, strategy, PAGES, 4 * SIM_PAGE, 0);
}

TEST_LOOP(holes_serve_when_the_device_has_no_more, TEST_DEVICES) {
  arena_place p = open_arena_with(_i, TEST_NEEDS_RANGES | NEEDS_CAPACITY,
                                  "arena_pool:page=2M,slack=1G");
  if (p.pool == NULL) return;
  enum { ALL = 32 };
  tarn_block blocks[ALL];
  take_many(p.pool, SIM_PAGE, blocks, ALL);
  for (int i = 0; i < ALL; i += 2)
    give(blocks[i]);
  tarn_block large = take(p.pool, ALL / 2 * SIM_PAGE);
  tarn_pool_stats stats = stats_of(p.pool);
  ck_assert_uint_eq(stats.reserved_bytes, ALL * SIM_PAGE);
  ck_assert_uint_eq(stats.device_frees, 0);
  ck_assert_uint_eq(stats.failures, 0);
  refuse(p.pool, SIM_PAGE, 0, TARN_FULL);
  give(large);
  for (int i = 1; i < ALL; i += 2)
    give(blocks[i]);
}

// Requests of two sizes by turns, of which neither fits in the other's holes.
static uint64_t misses_of_a_step(const arena_place *p) {
  tarn_block blocks[PAGES];
  uint64_t before = stats_of(p->pool).misses;
  for (int i = 0; i < PAGES; i++)
    blocks[i] = take(p->pool, SIM_PAGE);
  for (int i = 0; i < PAGES; i += 2)
    give(blocks[i]);
  tarn_block large = take(p->pool, 4 * SIM_PAGE);
  for (int i = 1; i < PAGES; i += 2)
    give(blocks[i]);
  give(large);
  return stats_of(p->pool).misses - before;
}

static uint64_t misses_when_steady(int device, const char *strategy) {
  arena_place p = open_arena_with(device, TEST_NEEDS_RANGES, strategy);
  if (p.pool == NULL) return 0;
  uint64_t misses = 0;
  for (int i = 0; i < 4; i++)
    misses = misses_of_a_step(&p);
  close_arena(&p);
  return misses;
}

TEST_LOOP(a_step_that_comes_again_moves_nothing, TEST_DEVICES) {
  ck_assert_uint_eq(misses_when_steady(_i, "arena_pool:page=2M,slack=8M"), 0);
}

TEST(a_slack_that_is_none) {
  static const char *const wrong[] = {"%",   "x%",   "2%%", "2%x",   "1001%",
                                      "-1%", "2,5%", "10Q", "00001%"};
  arena_place p = open_arena("cpu:0", "arena_pool");
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    char strategy[64];
    snprintf(strategy, sizeof strategy, "arena_pool:slack=%s", wrong[i]);
    assert_status(use_strategy(p.place, strategy), TARN_E_INVALID);
  }
  assert_status(use_strategy(p.place, "arena_pool:slack=2%x"), TARN_E_INVALID);
  assert_error_says("slack=2%x is not a number of bytes, nor one of percent");
  assert_ok(use_strategy(p.place, "arena_pool:slack=2%"));
  assert_ok(use_strategy(p.place, "arena_pool:slack=9999999999999999999"));
  give(take(p.pool, MIB));
}
