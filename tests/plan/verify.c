// Plans are checked: what is right passes, each thing that can be wrong is
// found and named, and on thousands of plans, spoiled ones among them, the
// sweep agrees with comparing each buffer with each other.
#include <inttypes.h>
#include <string.h>

#include "kit.h"
#include "plan_model.h"
#include "support/faults.h"

#define TOP UINT64_MAX

static void assert_good(const tarn_plan_problem *problem,
                        const uint64_t *offsets, const uint32_t *arenas,
                        uint64_t expected) {
  uint64_t height = TOP;
  assert_ok(tarn_plan_verify(problem, offsets, arenas, &height));
  ck_assert_uint_eq(height, expected);
}

static void assert_bad(const tarn_plan_problem *problem,
                       const uint64_t *offsets, const uint32_t *arenas,
                       const char *what) {
  uint64_t height = TOP;
  assert_status(tarn_plan_verify(problem, offsets, arenas, &height),
                TARN_E_CORRUPT);
  ck_assert_uint_eq(height, 0);
  ck_assert_str_eq(tarn_last_error(), what);
}

// --- what is right -----------------------------------------------------------

TEST(plans_that_are_right_pass) {
  const tarn_plan_buffer buffers[] = {{.first = 0, .last = 3, .size = 4},
                                      {.first = 1, .last = 5, .size = 8},
                                      {.first = 3, .last = 6, .size = 2}};
  const uint64_t offsets[] = {8, 0, 8};
  const tarn_plan_problem problem = problem_of(buffers, COUNT(buffers));
  assert_good(&problem, offsets, NULL, 12);
  const tarn_plan_problem empty = problem_of(NULL, 0);
  assert_good(&empty, NULL, NULL, 0);
}

TEST(bytes_are_shared_in_gaps) {
  const tarn_plan_gap gap = {2, 4};
  const tarn_plan_buffer buffers[] = {
      {.first = 0, .last = 6, .size = 4, .gaps = &gap, .gap_count = 1},
      {.first = 2, .last = 4, .size = 4},
      {.first = 3, .last = 5, .size = 4}};
  const tarn_plan_problem two = problem_of(buffers, 2);
  const tarn_plan_problem three = problem_of(buffers, 3);
  assert_good(&two, (const uint64_t[]){0, 0}, NULL, 4);
  assert_good(&three, (const uint64_t[]){0, 0, 4}, NULL, 8);
  assert_bad(
      &three, (const uint64_t[]){0, 4, 0}, NULL,
      "buffer 0 at [0, 4) and buffer 2 at [0, 4) share bytes in time step 4");
  assert_bad(
      &three, (const uint64_t[]){0, 0, 3}, NULL,
      "buffer 1 at [0, 4) and buffer 2 at [3, 7) share bytes in time step 3");
}

TEST(pairs_share_at_one_offset_only) {
  const tarn_plan_buffer buffers[] = {{.first = 0, .last = 3, .size = 4},
                                      {.first = 2, .last = 5, .size = 8},
                                      {.first = 2, .last = 3, .size = 2}};
  const tarn_plan_pair pairs[] = {{0, 1}, {0, 2}};
  tarn_plan_problem problem = problem_of(buffers, 2);
  problem.pairs = pairs;
  problem.pair_count = 1;
  assert_good(&problem, (const uint64_t[]){0, 0}, NULL, 8);
  assert_good(&problem, (const uint64_t[]){8, 0}, NULL, 12);
  assert_bad(
      &problem, (const uint64_t[]){2, 0}, NULL,
      "buffer 0 at [2, 6) and buffer 1 at [0, 8) share bytes in time step 2");
  // One takes it; the other finds what both have become.
  problem.count = 3;
  problem.pair_count = 2;
  assert_good(&problem, (const uint64_t[]){0, 0, 8}, NULL, 10);
  assert_good(&problem, (const uint64_t[]){8, 0, 8}, NULL, 12);
  assert_bad(
      &problem, (const uint64_t[]){0, 0, 0}, NULL,
      "buffer 1 at [0, 8) and buffer 2 at [0, 2) share bytes in time step 2");
  assert_bad(
      &problem, (const uint64_t[]){0, 0, 6}, NULL,
      "buffer 1 at [0, 8) and buffer 2 at [6, 8) share bytes in time step 2");
  // Without the pair nothing is shared.
  problem.count = 2;
  problem.pair_count = 0;
  assert_bad(
      &problem, (const uint64_t[]){0, 0}, NULL,
      "buffer 0 at [0, 4) and buffer 1 at [0, 8) share bytes in time step 2");
}

TEST(arenas_are_apart) {
  const tarn_plan_buffer buffers[] = {{.first = 0, .last = 3, .size = 4},
                                      {.first = 0,
                                       .last = 3,
                                       .size = 4,
                                       .flags = TARN_PLAN_IN_ARENA,
                                       .arena = 1}};
  const uint64_t capacities[] = {0, 5};
  tarn_plan_problem problem = problem_of(buffers, 2);
  problem.capacities = capacities;
  problem.arena_count = 2;
  const uint64_t offsets[] = {0, 0};
  assert_good(&problem, offsets, (const uint32_t[]){0, 1}, 8);
  assert_bad(
      &problem, offsets, (const uint32_t[]){1, 1},
      "buffer 0 at [0, 4) and buffer 1 at [0, 4) share bytes in time step 0");
  assert_bad(&problem, offsets, (const uint32_t[]){0, 0},
             "buffer 1: in arena 0, but it must lie in 1");
  assert_bad(&problem, offsets, NULL,
             "buffer 1: in arena 0, but it must lie in 1");
  assert_bad(&problem, offsets, (const uint32_t[]){2, 1},
             "buffer 0: in arena 2 of 2");
  assert_bad(&problem, (const uint64_t[]){0, 2}, (const uint32_t[]){0, 1},
             "buffer 1: at [2, 6) in arena 1, which has 5 bytes");
}

// --- what is wrong -----------------------------------------------------------

TEST(offsets_are_held_to_their_buffers) {
  const tarn_plan_buffer aligned = {
      .first = 0, .last = 1, .size = 4, .alignment = 8};
  const tarn_plan_buffer fixed = {
      .first = 0, .last = 1, .size = 4, .flags = TARN_PLAN_FIXED, .offset = 16};
  const tarn_plan_problem one = problem_of(&aligned, 1);
  const tarn_plan_problem other = problem_of(&fixed, 1);
  const uint64_t capacity = 20;
  tarn_plan_problem within = problem_of(&aligned, 1);
  within.capacities = &capacity;
  within.arena_count = 1;
  assert_good(&one, (const uint64_t[]){24}, NULL, 28);
  assert_bad(&one, (const uint64_t[]){12}, NULL,
             "buffer 0: its offset 12 is not a multiple of its alignment 8");
  assert_good(&other, (const uint64_t[]){16}, NULL, 20);
  assert_bad(&other, (const uint64_t[]){0}, NULL,
             "buffer 0: at offset 0, but it is fixed at 16");
  assert_good(&within, (const uint64_t[]){16}, NULL, 20);
  assert_bad(&within, (const uint64_t[]){24}, NULL,
             "buffer 0: at [24, 28) in arena 0, which has 20 bytes");
}

TEST(no_offset_overflows) {
  const tarn_plan_buffer buffers[] = {{.first = 0, .last = TOP, .size = 4},
                                      {.first = 0, .last = TOP, .size = 4}};
  const uint64_t capacities[] = {0, 0};
  tarn_plan_problem problem = problem_of(buffers, 2);
  assert_good(&problem, (const uint64_t[]){TOP - 4, 0}, NULL, TOP);
  assert_good(&problem, (const uint64_t[]){TOP - 4, TOP - 8}, NULL, TOP);
  assert_bad(&problem, (const uint64_t[]){TOP - 4, TOP - 7}, NULL,
             "buffer 0 at [18446744073709551611, 18446744073709551615) and "
             "buffer 1 at [18446744073709551608, 18446744073709551612) share "
             "bytes in time step 0");
  assert_bad(&problem, (const uint64_t[]){0, TOP - 3}, NULL,
             "buffer 1: its offset 18446744073709551612 and size 4 are 2^64 or "
             "more");
  assert_bad(&problem, (const uint64_t[]){TOP, 0}, NULL,
             "buffer 0: its offset 18446744073709551615 and size 4 are 2^64 or "
             "more");
  problem.capacities = capacities;
  problem.arena_count = 2;
  assert_bad(&problem, (const uint64_t[]){TOP - 4, 0}, (const uint32_t[]){0, 1},
             "arena 1: with its height, 4, all arenas are 2^64 bytes or more");
}

TEST(arguments_are_checked) {
  const tarn_plan_buffer none = {.first = 0, .last = 1};
  const tarn_plan_buffer one = {.first = 0, .last = 1, .size = 1};
  const tarn_plan_problem wrong = problem_of(&none, 1);
  const tarn_plan_problem right = problem_of(&one, 1);
  const uint64_t offset = 0;
  uint64_t height = TOP;
  assert_status(tarn_plan_verify(&right, &offset, NULL, NULL), TARN_E_INVALID);
  assert_status(tarn_plan_verify(&right, NULL, NULL, &height), TARN_E_INVALID);
  assert_error_says("1 offsets at NULL");
  assert_status(tarn_plan_verify(NULL, &offset, NULL, &height), TARN_E_INVALID);
  assert_status(tarn_plan_verify(&wrong, &offset, NULL, &height),
                TARN_E_INVALID);
  assert_error_says("buffer 0: its size is 0");
  ck_assert_uint_eq(height, 0);
}

static void verify_some(void *context) {
  model_scene scene;
  uint64_t offsets[MODEL_MOST] = {0};
  uint64_t height = 0;
  (void)context;
  model_make(&scene, 39, MODEL_MOST, MODEL_GAPPED | MODEL_PAIRED);
  for (size_t i = 0; i < scene.problem.count; i++)
    offsets[i] = i * 10;
  tarn_status status = tarn_plan_verify(&scene.problem, offsets, NULL, &height);
  require(status == TARN_OK || status == TARN_E_NOMEM);
}

TEST(too_little_memory_is_an_error) {
  ck_assert_uint_gt(faults_sweep(verify_some, NULL), 4);
}

// --- many of which few are live ----------------------------------------------

static bool live_together(const tarn_plan_buffer *a,
                          const tarn_plan_buffer *b) {
  return a->first < b->last && b->first < a->last;
}

// One on the other, and one that is too large by some of them.
TEST(neighbours_are_found_however_far) {
  enum { MOST = 9000, STEPS = 4000, TRIES = 60 };
  static const size_t counts[] = {1, 2, 63, 64, 65, 4096, 4097, MOST};
  static tarn_plan_buffer buffers[MOST];
  static uint64_t offsets[MOST];
  for (size_t c = 0; c < COUNT(counts); c++) {
    size_t count = counts[c];
    uint64_t state = count;
    uint64_t height;
    const tarn_plan_problem problem = problem_of(buffers, count);
    for (size_t i = 0; i < count; i++) {
      uint64_t first = model_random(&state, STEPS);
      offsets[i] = i;
      buffers[i] =
          (tarn_plan_buffer){.first = first,
                             .last = first + 1 + model_random(&state, 5),
                             .size = 1};
    }
    for (int i = 0; i < TRIES; i++) {
      size_t large = model_random(&state, count);
      size_t end = large + 1 + model_random(&state, count - large);
      bool good = true;
      for (size_t k = large + 1; k < end && good; k++)
        good = !live_together(&buffers[large], &buffers[k]);
      buffers[large].size = end - large;
      require(tarn_plan_verify(&problem, offsets, NULL, &height) ==
              (good ? TARN_OK : TARN_E_CORRUPT));
      buffers[large].size = 1;
    }
  }
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

// --- beside the model --------------------------------------------------------

typedef struct agreed {
  size_t good;
  size_t bad;
} agreed;

static void compare(const tarn_plan_problem *problem, const uint64_t *offsets,
                    const uint32_t *arenas, agreed *n) {
  uint64_t expected = 0;
  uint64_t height = 0;
  bool is_plan = model_is_plan(problem, offsets, arenas, &expected);
  tarn_status status = tarn_plan_verify(problem, offsets, arenas, &height);
  require(status == (is_plan ? TARN_OK : TARN_E_CORRUPT));
  if (is_plan) require(height == expected);
  n->good += is_plan;
  n->bad += !is_plan;
}

static uint64_t some_offset(const tarn_plan_problem *problem, size_t index,
                            uint64_t *state, uint64_t range) {
  const tarn_plan_buffer *b = &problem->buffers[index];
  bool keep = model_random(state, 20) != 0;
  if (keep && (b->flags & TARN_PLAN_FIXED) != 0) return b->offset;
  uint64_t offset = model_random(state, range);
  if (keep && b->alignment > 1) offset -= offset % b->alignment;
  if (model_random(state, 200) == 0) return TOP - model_random(state, 12);
  return offset;
}

// Small ones, at any offsets: so that each way to be wrong comes up alone.
TEST_LOOP(small_plans_are_judged_as_by_the_model, MODEL_KINDS) {
  enum { PROBLEMS = 400, PLANS = 40 };
  agreed n = {0};
  for (uint64_t i = 0; i < PROBLEMS; i++) {
    model_scene scene;
    uint64_t state = i;
    model_make(&scene, i, 5, (unsigned)_i);
    scene.problem.arena_count = i % 3;
    scene.problem.capacities = scene.capacities;
    scene.capacities[0] = model_random(&state, 3) == 0 ? 16 : 0;
    for (int j = 0; j < PLANS; j++) {
      uint64_t offsets[MODEL_MOST] = {0};
      uint32_t arenas[MODEL_MOST] = {0};
      for (size_t b = 0; b < scene.problem.count; b++) {
        scene.buffers[b].flags |= TARN_PLAN_IN_ARENA;
        offsets[b] = some_offset(&scene.problem, b, &state, 24);
        arenas[b] = (uint32_t)model_random(&state, 40) == 0;
      }
      compare(&scene.problem, offsets, i % 2 == 0 ? NULL : arenas, &n);
    }
  }
  ck_assert_uint_gt(n.good, 1000);
  ck_assert_uint_gt(n.bad, 1000);
}

enum { LARGE = 300 };

typedef struct large {
  tarn_plan_problem problem;
  tarn_plan_buffer buffers[LARGE];
  tarn_plan_gap gaps[LARGE];
  uint64_t offsets[LARGE];
  uint64_t capacities[2];
  uint32_t arenas[LARGE];
} large;

static void make_large_buffer(large *all, size_t index, uint64_t *state) {
  tarn_plan_buffer *b = &all->buffers[index];
  b->first = model_random(state, 2000);
  b->last = b->first + 1 + model_random(state, 300);
  b->size = 1 + model_random(state, 1000);
  b->alignment = model_random(state, 4) == 0 ? 16 : 0;
  all->arenas[index] = (uint32_t)model_random(state, 2);
  if (b->last - b->first < 8 || model_random(state, 3) != 0) return;
  tarn_plan_gap *gap = &all->gaps[index];
  gap->first = b->first + 2 + model_random(state, (b->last - b->first) / 2);
  gap->last = gap->first + 1;
  b->gaps = gap;
  b->gap_count = 1;
}

static bool is_in_the_way(const large *all, size_t count, uint64_t offset,
                          uint64_t *out_end) {
  tarn_plan_problem two = {.struct_size = sizeof two, .count = 2};
  for (size_t i = 0; i < count; i++) {
    const tarn_plan_buffer both[] = {all->buffers[i], all->buffers[count]};
    const uint64_t offsets[] = {all->offsets[i], offset};
    const uint32_t arenas[] = {0, all->arenas[i] != all->arenas[count]};
    const uint64_t capacities[2] = {0};
    uint64_t height = 0;
    two.buffers = both;
    two.capacities = capacities;
    two.arena_count = 2;
    *out_end = all->offsets[i] + all->buffers[i].size;
    if (!model_is_plan(&two, offsets, arenas, &height)) return true;
  }
  return false;
}

// Each on top of what is in its way.
static void lay_out(large *all) {
  for (size_t i = 0; i < LARGE; i++) {
    uint64_t offset = 0;
    uint64_t end = 0;
    while (is_in_the_way(all, i, offset, &end))
      offset = (end + 15) / 16 * 16;
    all->offsets[i] = offset;
  }
}

TEST_LOOP(large_plans_are_judged_as_by_the_model, 4) {
  enum { SPOILED = 300 };
  static large all;
  agreed n = {0};
  uint64_t state = (uint64_t)_i;
  memset(&all, 0, sizeof all);
  all.problem = problem_of(all.buffers, LARGE);
  all.problem.capacities = all.capacities;
  all.problem.arena_count = 2;
  for (size_t i = 0; i < LARGE; i++)
    make_large_buffer(&all, i, &state);
  lay_out(&all);
  compare(&all.problem, all.offsets, all.arenas, &n);
  ck_assert_uint_eq(n.good, 1);
  for (int i = 0; i < SPOILED; i++) {
    size_t index = model_random(&state, LARGE);
    uint64_t before = all.offsets[index];
    uint64_t by = 16 * (1 + model_random(&state, 30));
    bool up = model_random(&state, 2) == 0 || by > before;
    all.offsets[index] = up ? before + by : before - by;
    compare(&all.problem, all.offsets, all.arenas, &n);
    all.offsets[index] = before;
  }
  ck_assert_uint_gt(n.good, 10);
  ck_assert_uint_gt(n.bad, 100);
}

int main(void) {
  faults_install();
  return run_tests();
}
