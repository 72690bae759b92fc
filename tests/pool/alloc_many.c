// Several blocks at once: all or none, and after none all that tells of blocks
// is as it was.
#include "support/faults.h"
#include "support/hold.h"
#include "support/strategy.h"
#include "tarn/account.h"
#include "tarn/misuse.h"
#include "with_kit.h"

enum { COUNT = 8 };
static const size_t SIZE = (size_t)256 * KIB;

static tarn_tag tags[2];

// Blocks of several sizes; number |wrong| is more than there can be.
static void describe(tarn_alloc_options options[COUNT], size_t wrong) {
  for (size_t i = 0; i < COUNT; i++) {
    options[i] = options_for(SIZE + i * 4096, NULL, 0);
    options[i].tag = tags[i % 2];
    if (i == wrong) options[i].align = (size_t)1 << 62;
  }
}

TEST_LOOP(all_of_them_come, ALL_STRATEGIES *TEST_DEVICES) {
  tarn_alloc_options options[COUNT];
  tarn_block blocks[COUNT];
  int tensor = 0;
  const char *strategy = any_strategy(_i % ALL_STRATEGIES);
  arena_place at = open_arena_at(64 * MIB, _i / ALL_STRATEGIES, 0, strategy);
  tags[1] = tag_of("weights");
  describe(options, COUNT);
  options[3].user = &tensor;
  assert_ok(tarn_pool_alloc_many(at.pool, options, COUNT, blocks));
  assert_ok(tarn__front_check(at.pool));
  ck_assert_uint_eq(stats_of(at.pool).live_blocks, COUNT);
  ck_assert_uint_eq(stats_of(at.pool).allocs, COUNT);
  ck_assert_uint_eq(tag_stats_of(at.pool, tags[1]).live_blocks, COUNT / 2);
  for (size_t i = 0; i < COUNT; i++) {
    void *user = NULL;
    ck_assert_uint_ge(blocks[i].size, options[i].size);
    assert_ok(tarn_block_user(&blocks[i], &user));
    ck_assert_ptr_eq(user, i == 3 ? &tensor : NULL);
    for (size_t j = 0; j < i; j++)
      ck_assert(blocks[i].address + blocks[i].size <= blocks[j].address ||
                blocks[j].address + blocks[j].size <= blocks[i].address);
  }
  give(blocks[5]);
  blocks[5] = take(at.pool, SIZE);
  give_many(blocks, COUNT);
}

TEST(none_of_none_and_wrong_ones) {
  tarn_alloc_options options[COUNT];
  tarn_block blocks[COUNT];
  tarn_pool *pool = host_pool("arena_pool");
  assert_ok(tarn_pool_alloc_many(pool, NULL, 0, NULL));
  assert_status(tarn_pool_alloc_many(NULL, NULL, 0, NULL), TARN_E_INVALID);
  assert_status(tarn_pool_alloc_many(pool, NULL, 1, blocks), TARN_E_INVALID);
  describe(options, COUNT);
  options[6].size = 0;
  memset(blocks, 0xff, sizeof blocks);
  assert_status(tarn_pool_alloc_many(pool, options, COUNT, blocks),
                TARN_E_INVALID);
  assert_error_says("block 7 of 8");
  for (size_t i = 0; i < COUNT; i++)
    assert_zero_block(blocks[i]);
  describe(options, COUNT);
  options[2].struct_size = sizeof options[2] + 8;
  assert_status(tarn_pool_alloc_many(pool, options, COUNT, blocks),
                TARN_E_INVALID);
  assert_error_says("struct_size");
  ck_assert_uint_eq(stats_of(pool).allocs, 0);
}

// A later version's struct is longer: its array has other steps.
TEST(options_of_another_version) {
  struct {
    tarn_alloc_options known;
    size_t unknown;
  } later[3];
  tarn_block blocks[3];
  tarn_pool *pool = host_pool("arena_pool");
  memset(later, 0, sizeof later);
  for (size_t i = 0; i < 3; i++) {
    later[i].known = options_for(1000 * (i + 1), NULL, 0);
    later[i].known.struct_size = sizeof later[i];
  }
  assert_ok(tarn_pool_alloc_many(pool, &later[0].known, 3, blocks));
  ck_assert_uint_eq(stats_of(pool).live_bytes, 6000);
  give_many(blocks, 3);
}

// --- nothing has changed -----------------------------------------------------

static uint64_t events_of_blocks(tarn_pool *pool) {
  static tarn_pool_event events[4096];
  size_t count = 0;
  uint64_t next = 0;
  uint64_t found = 0;
  assert_ok(tarn_pool_events(pool, 0, events, 4096, &count, &next));
  for (size_t i = 0; i < count; i++) {
    tarn_pool_event_kind kind = events[i].kind;
    found += kind == TARN_POOL_EVENT_ALLOC || kind == TARN_POOL_EVENT_FREE ||
             kind == TARN_POOL_EVENT_FAIL;
  }
  return found;
}

// All that tells of blocks.
static void assert_as_before(tarn_pool *pool, tarn_pool_stats before,
                             const tarn_pool_tag_stats tags_before[2]) {
  tarn_pool_stats after = stats_of(pool);
  assert_ok(tarn__front_check(pool));
  ck_assert_uint_eq(after.failures, before.failures + 1);
  // What was asked of the device has happened, and has gone back; to make room
  // more may have.
  ck_assert_uint_le(after.reserved_bytes, before.reserved_bytes);
  after.reserved_bytes = before.reserved_bytes;
  after.device_allocs = before.device_allocs;
  after.device_frees = before.device_frees;
  after.reserved_peak_bytes = before.reserved_peak_bytes;
  assert_same_stats(after, before);
  for (size_t i = 0; i < 2; i++) {
    tarn_pool_tag_stats now = tag_stats_of(pool, tags[i]);
    ck_assert_int_eq(memcmp(&now, &tags_before[i], sizeof now), 0);
  }
}

// For every block that cannot be had: by its alignment, by a device that is
// full, and at a limit.
TEST_LOOP(a_failed_call_leaves_no_trace, ALL_STRATEGIES *TEST_DEVICES) {
  tarn_alloc_options options[COUNT];
  tarn_block blocks[COUNT];
  arena_place at = open_arena_at(64 * MIB, _i / ALL_STRATEGIES, 0,
                                 any_strategy(_i % ALL_STRATEGIES));
  tags[1] = tag_of("weights");
  assert_ok(tarn_pool_account(at.pool, TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS));
  tarn_block kept = take_tagged(at.pool, SIZE, tags[1]);
  give(take(at.pool, SIZE));
  for (size_t wrong = 0; wrong < COUNT; wrong++) {
    tarn_pool_tag_stats tags_before[2] = {tag_stats_of(at.pool, tags[0]),
                                          tag_stats_of(at.pool, tags[1])};
    tarn_pool_stats before = stats_of(at.pool);
    uint64_t events = events_of_blocks(at.pool);
    describe(options, wrong);
    memset(blocks, 0xff, sizeof blocks);
    tarn_status status = tarn_pool_alloc_many(at.pool, options, COUNT, blocks);
    ck_assert_int_ne(status, TARN_OK);
    for (size_t i = 0; i < COUNT; i++)
      assert_zero_block(blocks[i]);
    assert_as_before(at.pool, before, tags_before);
    ck_assert_uint_eq(events_of_blocks(at.pool), events);
  }
  give(kept);
}

TEST_LOOP(more_than_there_can_be_asks_the_device_for_nothing,
          ALL_STRATEGIES *TEST_DEVICES) {
  tarn_alloc_options options[COUNT];
  tarn_block blocks[COUNT];
  const char *strategy = any_strategy(_i % ALL_STRATEGIES);
  arena_place at =
      open_arena_at(64 * MIB, _i / ALL_STRATEGIES, NEEDS_CAPACITY, strategy);
  if (at.pool == NULL) return;
  describe(options, COUNT);
  assert_ok(tarn_pool_limit(at.pool, COUNT * SIZE - 1));
  assert_status(tarn_pool_alloc_many(at.pool, options, COUNT, blocks),
                TARN_FULL);
  assert_error_says("limit");
  ck_assert_uint_eq(stats_of(at.pool).device_allocs, 0);
  ck_assert_uint_eq(stats_of(at.pool).failures, 1);
  assert_ok(tarn_pool_limit(at.pool, 0));
  options[7].size = 64 * MIB;
  assert_status(tarn_pool_alloc_many(at.pool, options, COUNT, blocks),
                TARN_FULL);
  ck_assert_uint_eq(stats_of(at.pool).device_allocs, 0);
  for (size_t i = 0; i < COUNT; i++)
    options[i].flags = TARN_ALLOC_NO_GROW;
  options[7].size = SIZE;
  assert_status(tarn_pool_alloc_many(at.pool, options, COUNT, blocks),
                TARN_FULL);
  ck_assert_uint_eq(stats_of(at.pool).device_allocs, 0);
}

// --- steps -------------------------------------------------------------------

static void play_steps(tarn_pool *pool, size_t steps, bool many) {
  tarn_alloc_options options[3];
  tarn_block blocks[3];
  for (size_t step = 0; step < steps; step++) {
    for (size_t i = 0; i < 3; i++)
      options[i] = options_for((i + 1) * 8192, NULL, 0);
    if (many) {
      assert_ok(tarn_pool_alloc_many(pool, options, 3, blocks));
    } else {
      for (size_t i = 0; i < 3; i++)
        assert_ok(tarn_pool_alloc_with(pool, &options[i], &blocks[i]));
    }
    give_many(blocks, 3);
  }
}

TEST_LOOP(steps_are_learned_and_played, 2) {
  tarn_pool *pool = host_pool("arena_pool");
  play_steps(pool, 400, _i == 0);
  ck_assert_ptr_nonnull(pool->steps.cursor.layout);
  uint64_t rounds = pool->steps.cursor.layout->rounds;
  play_steps(pool, 100, _i != 0);  // the other way is the same step
  ck_assert_uint_ge(pool->steps.cursor.layout->rounds, rounds + 99);
  assert_ok(tarn__front_check(pool));
}

// Laying one out may wait, and takes memory.
TEST_LOOP(no_step_begins_where_one_of_them_must_not_wait_or_grow, 2) {
  static const uint32_t flags[] = {TARN_ALLOC_NO_WAIT, TARN_ALLOC_NO_GROW};
  tarn_pool *pool = host_pool("arena_pool");
  give(take(pool, MIB));
  for (int step = 0; step < 400; step++) {
    tarn_alloc_options options[2] = {options_for(8192, NULL, 0),
                                     options_for(12288, NULL, flags[_i])};
    tarn_block blocks[2];
    assert_ok(tarn_pool_alloc_many(pool, options, 2, blocks));
    give_many(blocks, 2);
  }
  ck_assert_ptr_null(pool->steps.cursor.layout);
}

TEST_LOOP(a_failed_call_leaves_steps_alone, TEST_DEVICES) {
  tarn_alloc_options options[COUNT];
  tarn_block blocks[COUNT];
  arena_place at = open_arena_at(64 * MIB, _i, 0, "arena_pool");
  play_steps(at.pool, 400, false);
  const tarn__pool_step_layout *layout = at.pool->steps.cursor.layout;
  const tarn__pool_step_event *next = at.pool->steps.cursor.at;
  uint64_t heard = at.pool->steps.recorder.count;
  uint64_t rounds = layout->rounds;
  ck_assert_ptr_nonnull(layout);
  for (size_t wrong = 0; wrong < COUNT; wrong++) {
    describe(options, wrong);
    ck_assert_int_ne(tarn_pool_alloc_many(at.pool, options, COUNT, blocks),
                     TARN_OK);
    ck_assert_ptr_eq(at.pool->steps.cursor.layout, layout);
    ck_assert_ptr_eq(at.pool->steps.cursor.at, next);
    ck_assert_uint_eq(layout->rounds, rounds);
    ck_assert_uint_eq(at.pool->steps.cursor.missed, 0);
    ck_assert_uint_eq(at.pool->steps.recorder.count, heard);
  }
  play_steps(at.pool, 10, false);
  ck_assert_uint_ge(layout->rounds, rounds + 9);
}

// --- streams, debugging ------------------------------------------------------

TEST_LOOP(each_has_its_stream, ALL_STRATEGIES *TEST_DEVICES) {
  const char *strategy = any_strategy(_i % ALL_STRATEGIES);
  arena_place at = open_arena_at(64 * MIB, _i / ALL_STRATEGIES, 0, strategy);
  tarn_stream *a = stream_on(&at);
  tarn_stream *b = stream_on(&at);
  tarn_block blocks[2];
  tarn_alloc_options options[2] = {options_for(SIZE, a, 0),
                                   options_for(2 * SIZE, b, TARN_ALLOC_ZERO)};
  give_on(take_on(at.pool, SIZE, b), b);
  assert_ok(tarn_pool_alloc_many(at.pool, options, 2, blocks));
  ck_assert_uint_eq(stats_of(at.pool).stream_crossings,
                    keeps_idle(strategy) ? 1 : 0);
  give_on(blocks[0], a);
  give_on(blocks[1], b);
}

TEST(pools_that_debug_take_back_what_they_dressed) {
  tarn_alloc_options options[COUNT];
  tarn_block blocks[COUNT];
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_pool_debug_options debug = {.struct_size = sizeof debug};
  assert_ok(tarn_pool_debug(pool, &debug));
  describe(options, COUNT - 1);
  tarn_pool_tag_stats tags_before[2] = {tag_stats_of(pool, tags[0]),
                                        tag_stats_of(pool, tags[1])};
  tarn_pool_stats before = stats_of(pool);
  ck_assert_int_ne(tarn_pool_alloc_many(pool, options, COUNT, blocks), TARN_OK);
  assert_as_before(pool, before, tags_before);
  describe(options, COUNT);
  assert_ok(tarn_pool_alloc_many(pool, options, COUNT, blocks));
  for (size_t i = 0; i < COUNT; i++) {
    ck_assert_uint_eq(blocks[i].size, options[i].size);
    memset(blocks[i].pointer, 1, blocks[i].size);
  }
  give_many(blocks, COUNT);
  assert_ok(tarn_pool_debug_check(pool));
  assert_ok(tarn_pool_debug(pool, NULL));
}

// --- every call may fail -----------------------------------------------------

TEST_LOOP(with_every_failure_it_is_all_or_none, ALL_STRATEGIES) {
  tarn_alloc_options options[COUNT];
  tarn_block blocks[COUNT];
  arena_place at = open_arena_of(64 * MIB, "fake:0", any_strategy(_i));
  tags[1] = tag_of("weights");
  bool failed = true;
  for (size_t n = 1; failed; n++) {
    describe(options, COUNT);
    options[2].flags = TARN_ALLOC_ZERO;
    options[4].user = &blocks[4];
    tarn_pool_stats before = stats_of(at.pool);
    faults_arm(n, FAULTS_ONCE);
    fake.strikes = true;
    tarn_status status = tarn_pool_alloc_many(at.pool, options, COUNT, blocks);
    fake.strikes = false;
    failed = faults_disarm();
    assert_ok(tarn__front_check(at.pool));
    tarn_pool_stats after = stats_of(at.pool);
    if (status == TARN_OK) {
      ck_assert_uint_eq(after.live_blocks, COUNT);
      give_many(blocks, COUNT);
    } else {
      ck_assert_uint_eq(after.live_bytes, 0);
      ck_assert_uint_eq(after.live_peak_bytes, before.live_peak_bytes);
      ck_assert_uint_eq(after.allocs, before.allocs);
      ck_assert_uint_eq(after.frees, before.frees);
      for (size_t i = 0; i < COUNT; i++)
        assert_zero_block(blocks[i]);
    }
    (void)tarn_pool_trim(at.pool, 0);
  }
  assert_ok(use_strategy(at.place, "no_pool"));
  ck_assert_uint_eq(stats_of(at.pool).reserved_bytes, 0);
}

int main(void) {
  faults_install();
  return run_tests();
}
