// Pools without memory: addresses and statistics as ever, and no call of the
// device.
#include "arena_kit.h"
#include "support/faults.h"
#include "support/threads.h"

static const tarn_addr NOBODY_S = UINT64_C(1) << 55;
static const size_t GIB = (size_t)1 << 30;

static tarn_pool *dry_at(tarn_place place, const char *strategy, size_t limit) {
  return own_pool_with(place, strategy, limit, TARN_POOL_DRY);
}

// --- nothing is asked of the device ----------------------------------------

static void use(tarn_pool *pool) {
  tarn_block blocks[40];
  for (size_t i = 0; i < 40; i++) {
    size_t align = (size_t)1 << (i % 31);
    assert_ok(tarn_pool_alloc(pool, 1 + i * i * 3333, align, NULL, &blocks[i]));
    require(blocks[i].address >= NOBODY_S);
    require(blocks[i].address % align == 0);
    for (size_t j = 0; j < i; j++) {
      require(blocks[i].address >= blocks[j].address + blocks[j].size ||
              blocks[j].address >= blocks[i].address + blocks[i].size);
    }
  }
  tarn_block found;
  assert_ok(tarn_pool_block_of(pool, blocks[7].address, &found, NULL));
  assert_same_block(found, blocks[7]);
  assert_ok(tarn_pool_resize(&blocks[9], 5, NULL));
  assert_ok(tarn__front_check(pool));
  for (size_t i = 0; i < 40; i += 2)
    give(blocks[i]);
  assert_status(tarn_pool_free(&blocks[0], NULL), TARN_E_INVALID);
  assert_ok(tarn_pool_trim(pool, 0));
  assert_ok(tarn__front_check(pool));
  for (size_t i = 1; i < 40; i += 2)
    assert_ok(tarn_pool_free_address(pool, blocks[i].address, NULL));
  assert_ok(tarn_pool_trim(pool, 0));
  assert_ok(tarn__front_check(pool));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
}

TEST_LOOP(the_device_is_asked_for_nothing, ALL_STRATEGIES) {
  arena_place p = open_faulty(ARENA_CAPACITY, "page_unit_pool");
  tarn_pool *pool = dry_at(p.place, any_strategy(_i), 64 * GIB);
  assert_ok(tarn_sim_faults("*@1+"));  // all would fail
  use(pool);
  assert_ok(tarn_sim_faults(""));
  ck_assert_uint_eq(available_on(p.device), p.available);
  ck_assert_uint_gt(stats_of(pool).device_allocs, 0);
}

TEST_LOOP(it_works_at_each_device, TEST_DEVICES) {
  arena_place p = open_arena_with(_i, 0, "page_unit_pool");
  for (int j = 0; j < ALL_STRATEGIES; j++) {
    tarn_pool *pool = dry_at(p.place, any_strategy(j), 0);
    use(pool);
    end_own(pool);
  }
}

// --- the limit is what it pretends to have ---------------------------------

TEST_LOOP(the_limit_is_its_memory, ALL_STRATEGIES *TEST_DEVICES) {
  const char *strategy = any_strategy(_i % ALL_STRATEGIES);
  // Where the largest chunk is small: of larger ones buddy_pool gives none
  // back.
  arena_place p =
      open_arena_with(_i / ALL_STRATEGIES, TEST_NEEDS_RANGES | NEEDS_CAPACITY,
                      "page_unit_pool");
  if (p.pool == NULL) return;
  tarn_pool *pool = dry_at(p.place, strategy, 80 * GIB);
  tarn_block large = take(pool, 40 * GIB);
  tarn_block rest = take(pool, 16 * GIB);
  ck_assert_uint_ge(stats_of(pool).reserved_bytes, 56 * GIB);
  ck_assert_uint_le(stats_of(pool).reserved_bytes, 80 * GIB);
  refuse(pool, 30 * GIB, 0, TARN_FULL);
  give(large);
  large = take(pool, 60 * GIB);
  ck_assert_uint_le(stats_of(pool).reserved_peak_bytes, 80 * GIB);
  give(large);
  give(rest);
}

// Takes and gives |count| blocks and all memory each time.
static void take_and_trim(const char *strategy, size_t size, int count) {
  tarn_pool *pool = dry_at(TARN_HOST, strategy, (size_t)32 << 40);
  for (int i = 0; i < count; i++) {
    tarn_block block;
    require(tarn_pool_alloc(pool, size, 0, NULL, &block) == TARN_OK);
    require(tarn_pool_free(&block, NULL) == TARN_OK);
    require(tarn_pool_trim(pool, 0) == TARN_OK);
  }
  end_own(pool);
}

// More than there are addresses for, if they were not used again. arena_pool
// reserves twice what there is, whatever it takes.
TEST(addresses_come_again) {
  tarn_pool *pool = dry_at(TARN_HOST, NULL, 0);
  end_own(pool);
  size_t before = tarn_host_memory();
  take_and_trim("no_pool", (size_t)20 << 40, 3000);
  take_and_trim("page_unit_pool", (size_t)20 << 40, 3000);
  take_and_trim("buddy_pool", (size_t)20 << 40, 3000);
  take_and_trim("arena_pool", MIB, 1500);
  ck_assert_uint_eq(tarn_host_memory(), before);
}

TEST(what_has_no_address_is_full) {
  tarn_pool *pool = dry_at(TARN_HOST, "no_pool", 0);
  refuse(pool, (size_t)1 << 56, 0, TARN_FULL);
  refuse(pool, SIZE_MAX, 0, TARN_FULL);
  give(take(pool, 100));
}

// --- a dry run tells what a real one would do ------------------------------

enum { SLOTS = 48, STEPS = 3000 };

// The same requests of both: both serve them or neither does.
static void step(tarn_pool *const pools[2], tarn_block blocks[2][SLOTS],
                 uint64_t *random) {
  size_t slot = next_random(random) % SLOTS;
  size_t size = 1 + next_random(random) % (1u << (next_random(random) % 21));
  if (blocks[0][slot].pool != NULL) {
    for (int i = 0; i < 2; i++) {
      require(tarn_pool_free(&blocks[i][slot], NULL) == TARN_OK);
      blocks[i][slot] = (tarn_block){0};
    }
    return;
  }
  tarn_status real = tarn_pool_alloc(pools[0], size, 0, NULL, &blocks[0][slot]);
  tarn_status dry = tarn_pool_alloc(pools[1], size, 0, NULL, &blocks[1][slot]);
  require(real == dry);
}

// Whether its addresses are known to be less aligned than arena_pool asks for:
// then it takes a bit more than a dry one, of which the addresses have any
// alignment.
static bool is_below_arenas(const arena_place *at) {
  enum { USUAL = 256 };
  tarn_device_info info = {.struct_size = sizeof info};
  assert_ok(tarn_device_query(at->device, &info));
  return info.alignment > 1 && info.alignment < USUAL;
}

TEST_LOOP(its_statistics_are_those_of_a_real_run,
          ALL_STRATEGIES *TEST_DEVICES) {
  const char *strategy = any_strategy(_i % ALL_STRATEGIES);
  arena_place p = open_arena_with(_i / ALL_STRATEGIES, 0, "page_unit_pool");
  if (is_below_arenas(&p) && strcmp(strategy, "arena_pool") == 0) {
    note_skipped("a dry arena_pool beside a real one", p.name);
    return;
  }
  size_t limit = (size_t)24 * MIB;
  tarn_pool *pools[2] = {own_pool_with(p.place, strategy, limit, 0),
                         dry_at(p.place, strategy, limit)};
  tarn_block blocks[2][SLOTS] = {0};
  uint64_t random = 88172645463325252u;
  for (int i = 0; i < STEPS; i++) {
    step(pools, blocks, &random);
    if (i % 500 == 0) {
      assert_same_stats(stats_of(pools[0]), stats_of(pools[1]));
      assert_ok(tarn__front_check(pools[1]));
    }
  }
  assert_same_stats(stats_of(pools[0]), stats_of(pools[1]));
  for (int i = 0; i < 2; i++) {
    for (size_t j = 0; j < SLOTS; j++)
      if (blocks[i][j].pool != NULL) give(blocks[i][j]);
    end_own(pools[i]);
  }
}

// --- streams ---------------------------------------------------------------

// They are real, and so is it that one waits for the other.
TEST(streams_are_as_ever) {
  arena_place p = open_arena("fake:0", "page_unit_pool");
  tarn_stream *a = stream_on(&p);
  tarn_stream *b = stream_on(&p);
  tarn_pool *pool = dry_at(p.place, "arena_pool", 4 * GIB);
  tarn_block first = take_on(pool, MIB, a);
  give_on(first, a);
  tarn_block second = take_on(pool, MIB, b);
  ck_assert_uint_eq(second.address, first.address);
  ck_assert_uint_eq(stats_of(pool).stream_crossings, 1);
  ck_assert_uint_eq(fake_seen.waits, 0);
  give_on(second, b);
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_ge(fake_seen.waits, 1);
}

// --- without host memory ---------------------------------------------------

static void create_and_use(void *context) {
  const char *const *strategy = context;
  tarn_pool_options options = {.struct_size = sizeof options,
                               .strategy = *strategy,
                               .limit = GIB,
                               .flags = TARN_POOL_DRY};
  tarn_pool *pool = NULL;
  tarn_block blocks[4] = {0};
  tarn_status status = tarn_pool_create(TARN_HOST, &options, &pool);
  require(status == TARN_OK || status == TARN_E_NOMEM);
  require((pool != NULL) == (status == TARN_OK));
  if (status != TARN_OK) return;
  for (size_t i = 0; i < 4; i++) {
    status = tarn_pool_alloc(pool, 1 + i * 100000, 0, NULL, &blocks[i]);
    require(status == TARN_OK || status == TARN_E_NOMEM);
  }
  assert_ok(tarn__front_check(pool));
  for (size_t i = 0; i < 4; i++)
    if (blocks[i].pool != NULL) give(blocks[i]);
  assert_ok(tarn__front_check(pool));
  assert_ok(tarn_pool_destroy(pool));
}

TEST(nothing_is_lost_without_host_memory) {
  faults_install();
  (void)host_pool("page_unit_pool");
  for (int i = 0; i < ALL_STRATEGIES; i++) {
    const char *strategy = any_strategy(i);
    ck_assert_uint_gt(faults_sweep(create_and_use, &strategy), 5);
  }
}
