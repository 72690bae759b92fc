// Strategies: no_pool, exchanging one for another while blocks are out, names,
// and what TARN_POOL says.
#include "kit.h"
#include "support/strategy.h"

// --- no_pool ---------------------------------------------------------------

TEST(no_pool_asks_the_device_each_time) {
  tarn_pool *pool = host_pool("no_pool");
  for (unsigned i = 1; i <= 20; i++) {
    tarn_block block = take(pool, 4096);
    tarn_pool_stats held = stats_of(pool);
    ck_assert_uint_eq(held.device_allocs, i);
    ck_assert_uint_eq(held.device_frees, i - 1);
    give(block);
    tarn_pool_stats after = stats_of(pool);
    ck_assert_uint_eq(after.device_frees, i);
    ck_assert_uint_eq(after.reserved_bytes, 0);
    ck_assert_uint_eq(after.misses, i);
    ck_assert_uint_eq(after.hits, 0);
  }
}

TEST(no_pool_holds_what_is_live_and_no_more) {
  tarn_pool *pool = host_pool("no_pool");
  tarn_block blocks[50];
  size_t sum = 0;
  for (size_t i = 0; i < 50; i++) {
    blocks[i] = take(pool, i * 777 + 1);
    sum += i * 777 + 1;
    ck_assert_uint_eq(blocks[i].size, i * 777 + 1);
    ck_assert_uint_eq(stats_of(pool).reserved_bytes, sum);
    ck_assert_uint_eq(stats_of(pool).live_bytes, sum);
  }
  for (size_t i = 0; i < 50; i++) {
    give(blocks[i]);
    sum -= i * 777 + 1;
    ck_assert_uint_eq(stats_of(pool).reserved_bytes, sum);
    assert_ok(tarn_pool_trim(pool, 0));
    ck_assert_uint_eq(stats_of(pool).reserved_bytes, sum);
  }
}

// --- exchanging ------------------------------------------------------------

static void fill(tarn_block *blocks, int count, tarn_pool *pool) {
  for (int i = 0; i < count; i++) {
    blocks[i] = take(pool, 5000);
    memset(bytes_of(blocks[i]), i + 1, blocks[i].size);
  }
}

static void check_and_give(tarn_block block, int value) {
  unsigned char *bytes = bytes_of(block);
  for (size_t k = 0; k < block.size; k += 63)
    ck_assert_int_eq(bytes[k], value);
  memset(bytes, 0, block.size);
  give(block);
}

TEST(blocks_survive_their_strategy) {
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_block old[10];
  tarn_block young[10];
  fill(old, 10, pool);
  assert_ok(use_strategy(TARN_HOST, "no_pool"));
  ck_assert_str_eq(stats_of(pool).strategy, "no_pool");
  fill(young, 10, pool);
  assert_ok(tarn__front_check(pool));
  for (int i = 0; i < 10; i++) {
    tarn_block found;
    assert_ok(tarn_pool_block_of(pool, old[i].address, &found, NULL));
    assert_same_block(found, old[i]);
    check_and_give(old[i], i + 1);
    check_and_give(young[i], i + 1);
    assert_ok(tarn__front_check(pool));
  }
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
}

TEST(idle_memory_goes_back_at_once) {
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_block kept = take(pool, 4096);
  give(take(pool, 8192));
  give(take(pool, 16384));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 28672);
  assert_ok(use_strategy(TARN_HOST, "no_pool"));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 4096);
  ck_assert_uint_eq(stats_of(pool).device_frees, 2);
  give(kept);
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
}

TEST(a_replaced_strategy_keeps_nothing_and_ends) {
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_block old[4];
  fill(old, 4, pool);
  size_t held = tarn_host_memory();
  assert_ok(use_strategy(TARN_HOST, "page_unit_pool"));
  ck_assert(!tarn_list_empty(&pool->replaced));
  for (size_t i = 0; i < 4; i++) {
    ck_assert(!tarn_list_empty(&pool->replaced));
    give(old[i]);
    ck_assert_uint_eq(stats_of(pool).reserved_bytes, (3 - i) * 8192);
    assert_ok(tarn__front_check(pool));
  }
  ck_assert(tarn_list_empty(&pool->replaced));
  // The new one has no table of classes yet.
  ck_assert_uint_lt(tarn_host_memory(), held);
}

TEST(many_strategies_may_be_ending) {
  enum { COUNT = 30 };
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_block blocks[COUNT];
  for (int i = 0; i < COUNT; i++) {
    blocks[i] = take(pool, 4096);
    memset(bytes_of(blocks[i]), i, 4096);
    assert_ok(use_strategy(TARN_HOST, i % 3 ? "page_unit_pool" : "no_pool"));
  }
  assert_ok(tarn__front_check(pool));
  for (int i = COUNT; i-- > 0;)
    check_and_give(blocks[i], i);
  ck_assert(tarn_list_empty(&pool->replaced));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
  ck_assert_uint_eq(stats_of(pool).allocs, COUNT);
}

TEST(an_unused_strategy_ends_at_once) {
  tarn_pool *pool = host_pool("page_unit_pool");
  give(take(pool, 100));
  assert_ok(use_strategy(TARN_HOST, "no_pool"));
  ck_assert(tarn_list_empty(&pool->replaced));
}

TEST(the_same_name_means_a_fresh_one) {
  tarn_pool *pool = host_pool("page_unit_pool");
  give(take(pool, 4096));
  give(take(pool, 4096));
  ck_assert_uint_eq(stats_of(pool).hits, 1);
  assert_ok(use_strategy(TARN_HOST, "page_unit_pool"));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
  give(take(pool, 4096));
  ck_assert_uint_eq(stats_of(pool).hits, 1);
  ck_assert_uint_eq(stats_of(pool).misses, 2);
}

TEST(statistics_go_on) {
  tarn_pool *pool = host_pool("page_unit_pool");
  assert_ok(tarn_pool_limit(pool, 8 * MIB));
  tarn_block a = take(pool, 4096);
  give(take(pool, 4 * MIB));
  give(take(pool, 4 * MIB));
  tarn_pool_stats before = stats_of(pool);
  assert_ok(use_strategy(TARN_HOST, "no_pool"));
  tarn_pool_stats after = stats_of(pool);
  before.strategy = "no_pool";
  before.reserved_bytes = 4096;  // the idle memory went back
  before.device_frees++;
  assert_same_stats(before, after);
  ck_assert_uint_eq(after.live_peak_bytes, 4 * MIB + 4096);
  give(a);
  give(take(pool, 100));
  ck_assert_uint_eq(stats_of(pool).allocs, before.allocs + 1);
  ck_assert_uint_eq(stats_of(pool).frees, before.frees + 2);
  ck_assert_uint_eq(stats_of(pool).hits, before.hits);
  ck_assert_uint_eq(stats_of(pool).misses, before.misses + 1);
}

TEST(a_wrong_name_changes_nothing) {
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_block idle = take(pool, 4096);
  give(idle);
  tarn_pool_stats before = stats_of(pool);
  assert_status(use_strategy(TARN_HOST, "buddy"), TARN_E_INVALID);
  assert_error_says(
      "no strategy 'buddy': there are arena_pool, page_unit_pool");
  assert_same_stats(before, stats_of(pool));
  tarn_block again = take(pool, 4096);
  ck_assert_uint_eq(again.address, idle.address);
  give(again);
}

TEST(removing_returns_to_the_default) {
  tarn_pool *pool = host_pool("no_pool");
  tarn_block old = take(pool, 100);
  assert_ok(use_strategy(TARN_HOST, NULL));
  ck_assert_str_eq(stats_of(pool).strategy, "arena_pool");
  ck_assert_uint_eq(old.size, 100);
  tarn_block young = take(pool, 100);
  ck_assert_uint_eq(young.size, 512);
  give(old);
  size_t held = stats_of(pool).reserved_bytes;
  give(young);
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, held);
  give(take(pool, 100));
  ck_assert_uint_eq(stats_of(pool).hits, 1);
}

// --- names -----------------------------------------------------------------

TEST(strategies_have_names) {
  ck_assert_str_eq(tarn_pool_strategy_name(0), "arena_pool");
  ck_assert_str_eq(tarn_pool_strategy_name(1), "page_unit_pool");
  ck_assert_str_eq(tarn_pool_strategy_name(2), "no_pool");
  size_t count = 0;
  while (tarn_pool_strategy_name(count) != NULL) {
    const char *name = tarn_pool_strategy_name(count++);
    tarn_pool *pool = host_pool(name);
    ck_assert_str_eq(stats_of(pool).strategy, name);
  }
  ck_assert_uint_ge(count, 2);
  ck_assert_ptr_null(tarn_pool_strategy_name(count + 1));
  ck_assert_ptr_null(tarn_pool_strategy_name(SIZE_MAX));
}

TEST(a_place_has_one_pool) {
  tarn_device *cpu = open_device("cpu:0");
  tarn_pool *pool = pool_at(TARN_HOST);
  ck_assert_ptr_eq(pool_at(TARN_HOST), pool);
  ck_assert_ptr_eq(pool_at(tarn_place_on(cpu)), pool);
  ck_assert_ptr_eq(pool_at((tarn_place){cpu, TARN_PLACE_HOST}), pool);
  ck_assert_ptr_eq(pool_at((tarn_place){cpu, TARN_PLACE_UNIFIED}), pool);
  ck_assert(tarn_place_equal(tarn_pool_place(pool), TARN_HOST));
  assert_ok(use_strategy(tarn_place_on(cpu), "no_pool"));
  ck_assert_str_eq(stats_of(pool).strategy, "no_pool");
}

TEST(a_place_must_be_one) {
  tarn_pool *pool = (tarn_pool *)(void *)"none";
  tarn_place place = {NULL, (tarn_place_kind)9};
  assert_status(tarn_pool_of(place, &pool), TARN_E_INVALID);
  ck_assert_ptr_null(pool);
  assert_status(use_strategy(place, "no_pool"), TARN_E_INVALID);
  assert_status(use_strategy(place, NULL), TARN_E_INVALID);
  place.kind = TARN_PLACE_DEVICE;  // of no device
  assert_status(tarn_pool_of(place, &pool), TARN_E_INVALID);
}

// --- TARN_POOL -------------------------------------------------------------

TEST(the_environment_names_the_default) {
  setenv("TARN_POOL", "no_pool", 1);
  tarn_pool *pool = pool_at(TARN_HOST);
  ck_assert_str_eq(stats_of(pool).strategy, "no_pool");
  assert_ok(use_strategy(TARN_HOST, "page_unit_pool"));
  assert_ok(use_strategy(TARN_HOST, NULL));
  ck_assert_str_eq(stats_of(pool).strategy, "no_pool");
}

TEST(the_environment_may_set_options) {
  setenv("TARN_POOL", "page_unit_pool:page=64K", 1);
  tarn_block block = take(pool_at(TARN_HOST), 1);
  ck_assert_uint_eq(block.size, 65536);
  give(block);
}

TEST(an_empty_environment_says_nothing) {
  setenv("TARN_POOL", "", 1);
  ck_assert_str_eq(stats_of(pool_at(TARN_HOST)).strategy, "arena_pool");
}

TEST(a_bad_environment_is_an_error) {
  tarn_pool *pool = (tarn_pool *)(void *)"none";
  setenv("TARN_POOL", "turbo_pool", 1);
  assert_status(tarn_pool_of(TARN_HOST, &pool), TARN_E_INVALID);
  assert_error_says("no strategy 'turbo_pool'");
  ck_assert_ptr_null(pool);
  setenv("TARN_POOL", "page_unit_pool:page=5", 1);
  assert_status(tarn_pool_of(TARN_HOST, &pool), TARN_E_INVALID);
  assert_error_says("page=5 ");
  unsetenv("TARN_POOL");
  pool = pool_at(TARN_HOST);
  setenv("TARN_POOL", "turbo_pool", 1);
  assert_status(use_strategy(TARN_HOST, NULL), TARN_E_INVALID);
  assert_error_says("turbo_pool");
  ck_assert_str_eq(stats_of(pool).strategy, "arena_pool");
}
