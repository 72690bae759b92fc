// Steps that repeat: when they are learned, what is played, and what ends it.
#include "arena_kit.h"
#include "support/strategy.h"

enum {
  BLOCKS = 40,
  STEPS_TO_LEARN = 60,  // of 2 * BLOCKS events: more than enough
};

static arena_place at;
static tarn_stream *stream;  // NULL: the host
static tarn_block out[BLOCKS];

static size_t size_of(size_t i) {
  return (i % 7 + 1) * 6000 + i;  // less than fake:0 gives at once, in all
}

static void take_one(size_t i) {
  out[i] = take_on(at.pool, size_of(i), stream);
}

static void give_one(size_t i) {
  give_on(out[i], stream);
}

// Layers forward, and backward again; every third block is gone at once.
static void forward(size_t from, size_t to) {
  for (size_t i = from; i < to; i++) {
    take_one(i);
    if (i % 3 == 0) give_one(i);
  }
}

static void backward(size_t from, size_t to) {
  for (size_t i = to; i-- > from;) {
    if (i % 3 != 0) give_one(i);
  }
}

static void play_step(void) {
  forward(0, BLOCKS);
  backward(0, BLOCKS);
}

static const tarn__pool_step_layout *layout(void) {
  return at.pool->steps.cursor.layout;
}

static void play_many(void) {
  for (size_t i = 0; i < STEPS_TO_LEARN; i++)
    play_step();
}

static void learn(void) {
  play_many();
  ck_assert_msg(layout() != NULL, "%s, %s: %s", at.name,
                stream != NULL ? "on a stream" : "by the host",
                tarn_last_error());
  assert_ok(tarn__front_check(at.pool));
}

static void open_on(const char *device, bool with_stream) {
  at = open_arena_of(ARENA_CAPACITY, device, "arena_pool");
  stream = NULL;
  if (with_stream) stream = stream_on(&at);
}

// Every case by the host and on a stream, on each device.
#define CASES_ON_DEVICES (2 * TEST_DEVICES)

static void open_case(int number) {
  open_on(test_devices[number / 2], number % 2 != 0);
}

TEST_LOOP(a_step_that_repeats_is_learned, CASES_ON_DEVICES) {
  open_case(_i);
  learn();
  tarn_pool_stats before = stats_of(at.pool);
  tarn_addr addresses[BLOCKS];
  forward(0, BLOCKS);
  for (size_t i = 0; i < BLOCKS; i++)
    addresses[i] = out[i].address;
  backward(0, BLOCKS);
  for (size_t step = 0; step < 10; step++) {
    forward(0, BLOCKS);
    for (size_t i = 0; i < BLOCKS; i++) {
      ck_assert_uint_eq(out[i].address, addresses[i]);
      ck_assert_uint_ge(out[i].size, size_of(i));
    }
    backward(0, BLOCKS);
  }
  tarn_pool_stats after = stats_of(at.pool);
  ck_assert_uint_eq(after.device_allocs, before.device_allocs);
  ck_assert_uint_eq(after.reserved_bytes, before.reserved_bytes);
  ck_assert_uint_eq(after.allocs - before.allocs, 11 * BLOCKS);
  ck_assert_uint_eq(after.frees - before.frees, 11 * BLOCKS);
  ck_assert_uint_eq(after.hits - before.hits, 11 * BLOCKS);
  ck_assert_uint_eq(after.live_blocks, 0);
  ck_assert_uint_eq(after.live_peak_bytes, before.live_peak_bytes);
}

TEST_LOOP(the_books_are_right_at_any_moment, CASES_ON_DEVICES) {
  open_case(_i);
  learn();
  assert_ok(tarn_pool_reset_peaks(at.pool));
  size_t live = 0;
  size_t peak = 0;
  for (size_t i = 0; i < BLOCKS; i++) {
    take_one(i);
    live += size_of(i);
    if (live > peak) peak = live;
    ck_assert_uint_eq(stats_of(at.pool).live_bytes, live);
    if (i % 3 == 0) {
      give_one(i);
      live -= size_of(i);
    }
    ck_assert_uint_eq(stats_of(at.pool).live_bytes, live);
    ck_assert_uint_eq(stats_of(at.pool).live_peak_bytes, peak);
    assert_ok(tarn__front_check(at.pool));
  }
  backward(0, BLOCKS);
  play_step();
  play_step();
  ck_assert_uint_eq(stats_of(at.pool).live_peak_bytes, peak);
  ck_assert_uint_eq(tag_stats_of(at.pool, 0).live_peak_bytes, peak);
  ck_assert_uint_eq(tag_stats_of(at.pool, 0).live_bytes, 0);
}

// A peak that a step reaches on top of what was taken beside it.
TEST(peaks_count_what_lies_beside_the_step) {
  open_on("cpu:0", false);
  learn();
  size_t peak = stats_of(at.pool).live_peak_bytes;
  tarn_block beside = take(at.pool, 3000);
  for (size_t i = 0; i < 5; i++)
    play_step();
  ck_assert_ptr_nonnull(layout());
  ck_assert_uint_eq(stats_of(at.pool).live_peak_bytes, peak + 3000);
  give(beside);
}

TEST_LOOP(misuse_is_stopped_on_layout, CASES_ON_DEVICES) {
  open_case(_i);
  learn();
  forward(0, BLOCKS);
  tarn_block gone = out[3];  // freed at once
  tarn_block there = out[4];
  for (int i = 0; i < 3; i++) {
    assert_status(tarn_pool_free(&gone, stream), TARN_E_INVALID);
    ck_assert_ptr_nonnull(strstr(tarn_last_error(), "freed before"));
    tarn_block inside = there;
    inside.address += 512;
    assert_status(tarn_pool_free(&inside, stream), TARN_E_INVALID);
    assert_status(tarn_pool_free_address(at.pool, there.address + 512, stream),
                  TARN_E_INVALID);
    inside = there;
    inside.generation--;
    assert_status(tarn_pool_free(&inside, stream), TARN_E_INVALID);
  }
  tarn_block found;
  assert_ok(tarn_pool_block_of(at.pool, there.address, &found, NULL));
  ck_assert_uint_eq(found.id, there.id);
  ck_assert_uint_eq(found.generation, there.generation);
  ck_assert_ptr_nonnull(layout());
  backward(0, BLOCKS);
  for (size_t i = 0; i < BLOCKS; i++)
    assert_status(tarn_pool_free(&out[i], stream), TARN_E_INVALID);
  tarn_addr address = out[4].address;
  assert_status(tarn_pool_free_address(at.pool, address, stream),
                TARN_E_INVALID);
  ck_assert_ptr_nonnull(strstr(tarn_last_error(), "untagged"));
}

TEST_LOOP(blocks_can_be_freed_by_address, CASES_ON_DEVICES) {
  open_case(_i);
  learn();
  for (size_t step = 0; step < 3; step++) {
    forward(0, BLOCKS);
    for (size_t i = BLOCKS; i-- > 0;) {
      if (i % 3 == 0) continue;
      assert_ok(tarn_pool_free_address(at.pool, out[i].address, stream));
      assert_status(tarn_pool_free_address(at.pool, out[i].address, stream),
                    TARN_E_INVALID);
    }
  }
  ck_assert_ptr_nonnull(layout());
}

TEST_LOOP(what_comes_in_between_is_served_beside, CASES_ON_DEVICES) {
  open_case(_i);
  learn();
  for (size_t step = 0; step < 5; step++) {
    forward(0, BLOCKS / 2);
    tarn_block extra = take_on(at.pool, 1000 + step, stream);
    forward(BLOCKS / 2, BLOCKS);
    give_on(extra, stream);
    backward(0, BLOCKS);
    assert_ok(tarn__front_check(at.pool));
  }
  ck_assert_ptr_nonnull(layout());
  ck_assert_uint_ge(layout()->rounds, 5);
}

TEST_LOOP(a_free_may_come_early, CASES_ON_DEVICES) {
  open_case(_i);
  learn();
  for (size_t step = 0; step < 5; step++) {
    forward(0, BLOCKS);
    give_one(BLOCKS - 3);  // 37: not the next one
    backward(BLOCKS - 2, BLOCKS);
    backward(0, BLOCKS - 3);
    assert_ok(tarn__front_check(at.pool));
  }
  ck_assert_ptr_nonnull(layout());
  ck_assert_uint_ge(layout()->rounds, 4);
}

// The block stays out while the step goes on, and may not be written over.
TEST_LOOP(a_free_may_come_late, CASES_ON_DEVICES) {
  open_case(_i);
  learn();
  forward(0, BLOCKS);
  backward(BLOCKS - 2, BLOCKS);
  backward(0, BLOCKS - 3);
  tarn_block late = out[BLOCKS - 3];
  for (size_t step = 0; step < 3; step++) {
    forward(0, BLOCKS);
    for (size_t i = 0; i < BLOCKS; i++) {
      bool apart = i % 3 == 0 || out[i].address + out[i].size <= late.address ||
                   late.address + late.size <= out[i].address;
      ck_assert_msg(apart, "block %zu", i);
    }
    backward(0, BLOCKS);
    assert_ok(tarn__front_check(at.pool));
  }
  give_on(late, stream);
}

TEST_LOOP(another_program_strikes_the_layout, CASES_ON_DEVICES) {
  open_case(_i);
  learn();
  forward(0, BLOCKS / 2);
  // The program does something else from now on.
  tarn_block blocks[BLOCKS];
  for (size_t i = 0; i < BLOCKS; i++)
    blocks[i] = take_on(at.pool, 9000 + i, stream);
  backward(0, BLOCKS / 2);
  for (size_t i = 0; i < BLOCKS; i++)
    give_on(blocks[i], stream);
  for (size_t round = 0; round < 20; round++) {
    for (size_t i = 0; i < BLOCKS; i++)
      blocks[i] = take_on(at.pool, 9000 + i + round, stream);
    for (size_t i = 0; i < BLOCKS; i++)
      give_on(blocks[i], stream);
  }
  ck_assert_ptr_null(layout());
  assert_ok(tarn__front_check(at.pool));
  learn();
}

TEST_LOOP(trimming_gives_the_layout_back, CASES_ON_DEVICES) {
  open_case(_i);
  learn();
  assert_ok(tarn_pool_trim(at.pool, stats_of(at.pool).reserved_bytes));
  ck_assert_ptr_nonnull(layout());
  forward(0, BLOCKS);
  assert_ok(tarn_pool_trim(at.pool, 0));
  ck_assert_ptr_null(layout());
  assert_ok(tarn__front_check(at.pool));
  backward(0, BLOCKS);
  assert_ok(tarn_pool_trim(at.pool, 0));
  ck_assert_uint_eq(stats_of(at.pool).reserved_bytes, 0);
  learn();
  assert_ok(tarn_pool_trim(at.pool, 0));
  ck_assert_uint_eq(stats_of(at.pool).reserved_bytes, 0);
}

TEST_LOOP(a_switch_strikes_the_layout, CASES_ON_DEVICES) {
  open_case(_i);
  learn();
  forward(0, BLOCKS);
  assert_ok(use_strategy(at.place, "page_unit_pool"));
  ck_assert_ptr_null(layout());
  assert_ok(tarn__front_check(at.pool));
  backward(0, BLOCKS);
  ck_assert_uint_eq(stats_of(at.pool).reserved_bytes, 0);
  play_step();
  assert_ok(use_strategy(at.place, "arena_pool"));
  learn();
}

TEST_LOOP(resizing_strikes_the_layout, CASES_ON_DEVICES) {
  open_case(_i);
  learn();
  forward(0, BLOCKS);
  assert_ok(tarn_pool_resize(&out[4], size_of(4) / 2, stream));
  ck_assert_ptr_null(layout());
  assert_ok(tarn__front_check(at.pool));
  backward(0, BLOCKS);
  learn();
}

// What is idle on the layout serves others before a request is refused.
TEST_LOOP(a_limit_strikes_the_layout, CASES_ON_DEVICES) {
  open_case(_i);
  if (!device_has(at.device, TEST_NEEDS_RANGES)) return;
  learn();
  size_t reserved = stats_of(at.pool).reserved_bytes;
  assert_ok(tarn_pool_limit(at.pool, reserved));
  take_one(1);
  tarn_block large = take_on(at.pool, reserved / 2, stream);
  ck_assert_ptr_null(layout());
  assert_ok(tarn__front_check(at.pool));
  give_on(large, stream);
  give_one(1);
  assert_ok(tarn_pool_limit(at.pool, 0));
}

TEST_LOOP(another_stream_strikes_the_layout, CASES_ON_DEVICES) {
  open_case(_i);
  tarn_stream *other = stream_on(&at);
  learn();
  forward(0, BLOCKS);
  give_on(out[BLOCKS - 2], other);  // 38: on the layout until then
  ck_assert(stream != NULL ? layout() == NULL : true);
  assert_ok(tarn__front_check(at.pool));
  for (size_t i = BLOCKS; i-- > 0;) {
    if (i % 3 != 0 && i != BLOCKS - 2) give_one(i);
  }
  play_step();
}

// Two streams by turns: the one with most requests is laid out.
TEST_LOOP(requests_of_other_streams_are_left_alone, TEST_DEVICES) {
  open_on(test_devices[_i], true);
  tarn_stream *other = stream_on(&at);
  for (size_t i = 0; i < STEPS_TO_LEARN; i++) {
    tarn_block copy = take_on(at.pool, 4096, other);
    play_step();
    give_on(copy, other);
  }
  ck_assert_ptr_nonnull(layout());
  ck_assert_uint_eq(layout()->count, BLOCKS);
  ck_assert_uint_gt(layout()->rounds, 0);
}

TEST(tags_are_part_of_a_step) {
  open_on("cpu:0", false);
  tarn_tag tag = tag_of("step");
  tarn_block blocks[BLOCKS];
  for (size_t step = 0; step < STEPS_TO_LEARN; step++) {
    for (size_t i = 0; i < BLOCKS; i++)
      blocks[i] = take_tagged(at.pool, size_of(i), i % 2 ? tag : 0);
    ck_assert_uint_eq(tag_stats_of(at.pool, tag).live_blocks, BLOCKS / 2);
    give_many(blocks, BLOCKS);
    ck_assert_uint_eq(tag_stats_of(at.pool, tag).live_blocks, 0);
  }
  ck_assert_ptr_nonnull(layout());
  assert_status(tarn_pool_free_address(at.pool, blocks[1].address, NULL),
                TARN_E_INVALID);
  ck_assert_ptr_nonnull(strstr(tarn_last_error(), "step"));
}

TEST(steps_zero_learns_none) {
  open_on("cpu:0", false);
  for (int i = 0; i < 2; i++) {
    assert_ok(use_strategy(
        at.place, i == 0 ? "arena_pool:steps=0" : "arena_pool:steps=39"));
    play_many();
    ck_assert_ptr_null(layout());
  }
  assert_ok(use_strategy(at.place, "arena_pool:steps=40"));
  learn();
}

// As many blocks as a step may have; of the last some are out together.
TEST(steps_of_many_blocks_are_learned) {
  enum { MANY = 65536, OUT = 16 };
  open_on("cpu:0", false);
  tarn_block many[OUT];
  for (size_t step = 0; step < 6; step++) {
    for (size_t i = 0; i < MANY; i++) {
      if (i >= OUT) give(many[i % OUT]);
      many[i % OUT] = take(at.pool, i * 40503 % MANY / 16 + 1);
    }
    give_many(many, OUT);
  }
  ck_assert_msg(layout() != NULL, "%s", tarn_last_error());
  ck_assert_uint_eq(layout()->count, MANY);
  ck_assert_uint_ge(layout()->rounds, 1);
  assert_ok(tarn__front_check(at.pool));
}

TEST(impossible_requests_match_nothing) {
  open_on("cpu:0", false);
  learn();
  for (size_t i = 0; i < BLOCKS; i++) {
    refuse(at.pool, 0, 0, TARN_E_INVALID);
    refuse(at.pool, size_of(i), 3, TARN_E_INVALID);
    tarn_block zero = {.pool = at.pool};
    assert_status(tarn_pool_free(&zero, NULL), TARN_E_INVALID);
    take_one(i);
    if (i % 3 == 0) give_one(i);
  }
  backward(0, BLOCKS);
  ck_assert_ptr_nonnull(layout());
}
