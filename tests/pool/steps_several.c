// Steps of several shapes that take turns: each is learned, they share the
// ground, and what comes first tells which it is.
#include "arena_kit.h"
#include "support/strategy.h"
#include "support/threads.h"

enum {
  BLOCKS = 60,
  FEW_SHAPES = 5,
  TURNS = 300,
  LAST_TURNS = 100,  // of them: all are known by then
};

static arena_place at;
static tarn_block out[BLOCKS];
static uint64_t state;
static uint64_t requests;
static uint64_t planned;

static void setup(void) {
  state = 0x9e3779b97f4a7c15u;
}

static size_t random_below(size_t limit) {
  return next_random(&state) % limit;
}

static bool is_planned(const tarn_block *block) {
  return tarn__pieces_at(&at.pool->pieces, block->id)->planned;
}

static void take_one(size_t i, size_t size) {
  out[i] = take(at.pool, size);
  requests++;
  planned += is_planned(&out[i]) ? 1 : 0;
}

// Lengths that differ, as buckets have them.
static size_t size_of(size_t shape, size_t i) {
  return (i % 7 + 1) * 3000 + i * 64 + shape * 1024;
}

// Layers forward, and backward again; every third block is gone at once.
// |common|: blocks that all shapes have.
static void play_part(size_t shape, size_t common, size_t count) {
  for (size_t i = 0; i < count; i++) {
    take_one(i, size_of(i < common ? 0 : shape, i));
    if (i % 3 == 0) give(out[i]);
  }
}

static void play_back(size_t count) {
  for (size_t i = count; i-- > 0;)
    if (i % 3 != 0) give(out[i]);
}

static void play(size_t shape, size_t common) {
  play_part(shape, common, BLOCKS);
  play_back(BLOCKS);
}

static void count_anew(void) {
  requests = planned = 0;
}

static void open_host(void) {
  at = open_arena_of(ARENA_CAPACITY, "cpu:0", "arena_pool");
}

// At random among |shapes|.
static void play_turns(size_t shapes, size_t common) {
  for (size_t turn = 0; turn < TURNS; turn++) {
    if (turn == TURNS - LAST_TURNS) count_anew();
    play(random_below(shapes), common);
    if (turn % 16 == 0) assert_ok(tarn__front_check(at.pool));
  }
}

TEST(shapes_that_take_turns_are_learned) {
  open_host();
  play_turns(FEW_SHAPES, 0);
  ck_assert_uint_eq(at.pool->steps.count, FEW_SHAPES);
  ck_assert_uint_eq(planned, requests);
}

TEST(the_ground_is_as_large_as_the_largest_needs) {
  open_host();
  play_turns(FEW_SHAPES, 0);
  const tarn__pool_steps *steps = &at.pool->steps;
  size_t largest = 0;
  for (size_t i = 0; i < steps->count; i++)
    if (steps->layouts[i]->size > largest) largest = steps->layouts[i]->size;
  ck_assert_uint_eq(steps->ground.size, largest);
  tarn_pool_stats stats = stats_of(at.pool);
  ck_assert_uint_le(stats.reserved_bytes,
                    stats.live_peak_bytes + (size_t)3 * MIB);
}

// What comes first is the same, and where they part the other goes on.
TEST(shapes_that_begin_alike_are_told_apart) {
  open_host();
  play_turns(2, BLOCKS / 2);
  ck_assert_uint_eq(at.pool->steps.count, 2);
  ck_assert_uint_ge(planned, requests * 8 / 10);
}

// Where the learned step was left, another is listened to once in a while.
TEST(a_shape_that_begins_as_one_that_is_known_is_learned) {
  open_host();
  for (size_t i = 0; i < 40; i++)
    play(0, 0);
  ck_assert_uint_eq(at.pool->steps.count, 1);
  for (size_t i = 0; i < 200; i++)
    play(i % 3 == 0 ? 0 : 1, 4);
  ck_assert_uint_eq(at.pool->steps.count, 2);
}

// As validation after training: what is kept for the way back goes at once, and
// there is none.
TEST(a_step_may_end_early) {
  open_host();
  for (size_t i = 0; i < 40; i++)
    play(0, 0);
  count_anew();
  for (size_t i = 0; i < 20; i++) {
    for (size_t j = 0; j < BLOCKS / 2; j++) {
      take_one(j, size_of(0, j));
      give(out[j]);
    }
    assert_ok(tarn__front_check(at.pool));
  }
  for (size_t i = 0; i < 20; i++)
    play(0, 0);
  ck_assert_uint_eq(planned, requests);
  ck_assert_uint_eq(at.pool->steps.count, 1);
}

// Blocks of one step that are freed in the next, whose places they take up.
TEST(blocks_live_on_into_another_step) {
  enum { KEPT = 6 };
  tarn_block kept[KEPT] = {{0}};
  open_host();
  for (size_t turn = 0; turn < TURNS; turn++) {
    size_t shape = random_below(3);
    if (turn == TURNS - LAST_TURNS) count_anew();
    for (size_t i = 0; i < KEPT && turn > 0; i++) {
      const unsigned char *bytes = bytes_of(kept[i]);
      ck_assert_uint_eq(bytes[0], i + 1);
      ck_assert_uint_eq(bytes[4999], i + 1);
    }
    play_part(shape, 0, BLOCKS / 2);
    for (size_t i = 0; i < KEPT; i++) {
      if (turn > 0) give(kept[i]);
      kept[i] = take(at.pool, 5000 + i);
      memset(bytes_of(kept[i]), (int)i + 1, 5000);
    }
    play_back(BLOCKS / 2);
    if (turn % 8 == 0) assert_ok(tarn__front_check(at.pool));
  }
  give_many(kept, KEPT);
  ck_assert_uint_ge(planned, requests / 2);
  assert_ok(tarn__front_check(at.pool));
}

// More than are kept: those that came last stay.
TEST(no_more_than_so_many_are_kept) {
  open_host();
  for (size_t shape = 0; shape < TARN__STEP_LAYOUTS + 4; shape++) {
    for (size_t i = 0; i < 20; i++)
      play(shape, 0);
    ck_assert_uint_le(at.pool->steps.count, TARN__STEP_LAYOUTS);
  }
  ck_assert_uint_eq(at.pool->steps.count, TARN__STEP_LAYOUTS);
  for (size_t shape = 4; shape < TARN__STEP_LAYOUTS + 4; shape++)
    play(shape, 0);
  count_anew();
  for (size_t shape = 4; shape < TARN__STEP_LAYOUTS + 4; shape++)
    play(shape, 0);
  ck_assert_uint_eq(planned, requests);
  assert_ok(tarn__front_check(at.pool));
}

TEST(all_together_have_as_many_blocks_as_a_step_may) {
  at = open_arena_of(ARENA_CAPACITY, "cpu:0", "arena_pool:steps=150");
  for (size_t i = 0; i < 120; i++)
    play(i / 10 % 3, 0);
  ck_assert_uint_eq(at.pool->steps.count, 2);
}

// One of three has no room. It does not push the others out time and again.
TEST(steps_in_use_stay_where_there_is_no_room_for_more) {
  at = open_arena_of(ARENA_CAPACITY, "cpu:0", "arena_pool:steps=150");
  for (size_t i = 0; i < 600; i++) {
    if (i == 300) count_anew();
    play(random_below(3), 0);
  }
  ck_assert_uint_eq(at.pool->steps.count, 2);
  ck_assert_uint_ge(planned, requests * 6 / 10);
  ck_assert_uint_gt(at.pool->steps.recorder.evidence, 4096);
  // Nothing else comes any more: then it is learned all the same.
  for (size_t i = 0; i < 1000 && planned < requests; i++) {
    count_anew();
    play(3, 0);
  }
  ck_assert_uint_eq(planned, requests);
  assert_ok(tarn__front_check(at.pool));
}

// The plans stay, and get ground again without being learned anew.
TEST(what_was_learned_outlives_its_ground) {
  open_host();
  play_turns(3, 0);
  ck_assert_uint_eq(at.pool->steps.count, 3);
  assert_ok(tarn_pool_trim(at.pool, 0));
  ck_assert_ptr_null(at.pool->steps.ground.owner);
  ck_assert_uint_eq(stats_of(at.pool).reserved_bytes, 0);
  ck_assert_uint_eq(at.pool->steps.count, 3);
  for (size_t i = 0; i < 12; i++)
    play(i % 3, 0);
  ck_assert_ptr_nonnull(at.pool->steps.ground.owner);
  count_anew();
  for (size_t i = 0; i < 12; i++)
    play(i % 3, 0);
  ck_assert_uint_eq(planned, requests);
  assert_ok(tarn__front_check(at.pool));
}

TEST(a_switch_forgets_all_of_them) {
  open_host();
  play_turns(3, 0);
  assert_ok(use_strategy(at.place, "arena_pool"));
  ck_assert_uint_eq(at.pool->steps.count, 0);
  assert_ok(tarn__front_check(at.pool));
  play_turns(3, 0);
  ck_assert_uint_eq(at.pool->steps.count, 3);
}

// On each stream the steps are other ones.
TEST(steps_of_another_stream_take_the_place_of_all) {
  open_host();
  play_turns(3, 0);
  tarn_stream *stream = stream_on(&at);
  for (size_t step = 0; step < 40; step++) {
    for (size_t i = 0; i < BLOCKS; i++)
      out[i] = take_on(at.pool, size_of(0, i), stream);
    for (size_t i = 0; i < BLOCKS; i++)
      give_on(out[i], stream);
  }
  ck_assert_uint_eq(at.pool->steps.count, 1);
  ck_assert_uint_ne(at.pool->steps.layouts[0]->serial, 0);
  assert_ok(tarn__front_check(at.pool));
}

FIXTURE(setup, NULL);
