// What is wrong with a problem or with options is said, with the place.
#include <math.h>

#include "kit.h"
#include "plan/instance.h"

// Each of these changes a good problem or good options in one way.
static tarn_plan_gap gap;
static tarn_plan_buffer buffers[2];
static tarn_plan_pair pair;
static uint64_t capacities[2];
static tarn_plan_problem problem;
static tarn_plan_options options;

static void reset(void) {
  gap = (tarn_plan_gap){2, 4};
  buffers[0] = (tarn_plan_buffer){.first = 0, .last = 6, .size = 8};
  buffers[1] = (tarn_plan_buffer){.first = 5, .last = 9, .size = 8};
  pair = (tarn_plan_pair){0, 1};
  capacities[0] = capacities[1] = 100;
  problem = with_pairs(buffers, 2, &pair, 1);
  options = plain;
}

// All three that take a problem refuse it, and say |part|.
static void assert_refused(const char *part) {
  uint64_t offsets[2] = {0, 8};
  uint64_t value = 7;
  tarn_plan *plan = (tarn_plan *)(void *)offsets;
  assert_status(tarn_plan_solve(&problem, &options, &plan), TARN_E_INVALID);
  assert_error_says(part);
  ck_assert_ptr_null(plan);
  assert_status(tarn_plan_lower_bound(&problem, &value), TARN_E_INVALID);
  assert_error_says(part);
  ck_assert_uint_eq(value, 0);
  assert_status(tarn_plan_verify(&problem, offsets, NULL, &value),
                TARN_E_INVALID);
  assert_error_says(part);
  reset();
}

static void assert_option_refused(const char *part) {
  tarn_plan *plan = NULL;
  assert_status(tarn_plan_solve(&problem, &options, &plan), TARN_E_INVALID);
  assert_error_says(part);
  ck_assert_ptr_null(plan);
  reset();
}

TEST(a_buffer_makes_sense) {
  reset();
  buffers[1].size = 0;
  assert_refused("buffer 1: its size is 0");
  buffers[1].last = 5;
  assert_refused("buffer 1: needed in no time step of [5, 5)");
  buffers[0].first = 7;
  assert_refused("buffer 0: needed in no time step of [7, 6)");
  buffers[0].flags = 12;
  assert_refused("buffer 0: unknown flags 0xc");
}

TEST(gaps_lie_in_order_within) {
  reset();
  buffers[0].gap_count = 1;
  assert_refused("buffer 0: 1 gaps at NULL");
  const tarn_plan_gap bad[] = {{0, 4}, {2, 2}, {4, 2}, {2, 6}, {2, 7}};
  for (size_t i = 0; i < COUNT(bad); i++) {
    gap = bad[i];
    buffers[0].gaps = &gap;
    buffers[0].gap_count = 1;
    assert_refused("buffer 0: gap 0, [");
  }
  const tarn_plan_gap touching[] = {{1, 2}, {2, 3}};
  buffers[0].gaps = touching;
  buffers[0].gap_count = 2;
  assert_refused("buffer 0: gap 1, [2, 3)");
}

TEST(a_place_can_be_taken) {
  reset();
  buffers[1].flags = TARN_PLAN_FIXED;
  buffers[1].alignment = 8;
  buffers[1].offset = 12;
  assert_refused(
      "buffer 1: the fixed offset 12 is not a multiple of its "
      "alignment 8");
  buffers[1].flags = TARN_PLAN_IN_ARENA;
  buffers[1].arena = 1;
  assert_refused("buffer 1: arena 1 of 1");
  problem.capacities = capacities;
  problem.arena_count = 2;
  buffers[0].flags = TARN_PLAN_FIXED;
  assert_refused("buffer 0: its offset is fixed, but its arena is not");
}

TEST(pairs_meet_in_one_step) {
  reset();
  pair.taker = 2;
  assert_refused("pair 0: buffers 0 and 2 of 2");
  pair.giver = 9;
  assert_refused("pair 0: buffers 9 and 1 of 2");
  pair.taker = 0;
  assert_refused(
      "pair 0: the last time step of buffer 0, 5, is not the first of");
  buffers[1].first = 4;
  assert_refused(
      "pair 0: the last time step of buffer 0, 5, is not the first of "
      "buffer 1, 4");
}

// What gives its place holds something before: it has an earlier step. What
// takes it may have no later one.
TEST(a_giver_has_an_earlier_step) {
  reset();
  buffers[0].first = 5;
  assert_refused(
      "pair 0: buffer 0 has no time step of its own before 5, in which it "
      "gives its place");
  buffers[0].first = 4;
  buffers[1].last = 6;
  uint64_t bound = 0;
  assert_ok(tarn_plan_lower_bound(&problem, &bound));
  ck_assert_uint_eq(bound, 8);
}

TEST(sums_stay_below_2_to_the_63) {
  reset();
  buffers[0].size = UINT64_C(1) << 62;
  buffers[1].size = UINT64_C(1) << 62;
  assert_refused("buffer 1: the sum of sizes, alignments and fixed offsets");
  buffers[0].size = UINT64_MAX;
  assert_refused("buffer 0: the sum");
  buffers[1].alignment = UINT64_MAX;
  assert_refused("buffer 1: the sum");
  buffers[0].flags = TARN_PLAN_FIXED;
  buffers[0].offset = UINT64_MAX;
  assert_refused("buffer 0: the sum");
}

// Items at multiples of 2^62 could not lie above each other, and their
// alignments were in no sum that was checked. One that is a multiple of the
// other was.
TEST(alignments_of_merged_ones_stay_small) {
  const tarn_plan_pair in_place = {.giver = 0, .taker = 1};
  const bool merged = true;
  tarn_plan_buffer two[] = {
      {.first = 0, .last = 2, .size = 1, .alignment = UINT64_C(1) << 61},
      {.first = 1, .last = 3, .size = 1, .alignment = 3}};
  tarn_plan_problem whole = problem_of(two, 2);
  whole.pairs = &in_place;
  whole.pair_count = 1;
  tarn__plan_instance in;
  assert_ok(tarn__plan_problem_check(&whole));
  assert_status(tarn__plan_instance_make(&whole, NULL, &merged, &in),
                TARN_E_INVALID);
  two[0].alignment = (UINT64_C(1) << 31) - 1;
  two[1].alignment = (UINT64_C(1) << 31);
  assert_status(tarn__plan_instance_make(&whole, NULL, &merged, &in),
                TARN_E_INVALID);
  assert_error_says("buffer 1");
  two[0].alignment = UINT64_C(1) << 61;
  assert_ok(tarn__plan_instance_make(&whole, NULL, &merged, &in));
  ck_assert_uint_eq(in.items[0].alignment, UINT64_C(1) << 61);
  tarn__plan_instance_free(&in);
}

TEST(parts_are_there) {
  reset();
  problem.buffers = NULL;
  assert_refused("plan: 2 buffers at NULL");
  problem.pairs = NULL;
  assert_refused("plan: 1 pairs at NULL");
  problem.arena_count = 2;
  assert_refused("plan: 2 arenas at NULL");
  problem.count = (size_t)UINT32_MAX;
  assert_refused("plan: more than 2^32");
  problem.struct_size = 3;
  assert_refused("plan problem: NULL or struct_size");
  tarn_plan *plan = NULL;
  assert_status(tarn_plan_solve(NULL, NULL, &plan), TARN_E_INVALID);
  assert_status(tarn_plan_solve(&problem, NULL, NULL), TARN_E_INVALID);
  assert_status(tarn_plan_lower_bound(&problem, NULL), TARN_E_INVALID);
}

TEST(options_make_sense) {
  reset();
  options.struct_size = 8;
  assert_option_refused("plan options: unknown struct_size 8");
  options.time_limit_s = -1;
  assert_option_refused("plan options: time_limit_s is -1");
  options.time_limit_s = NAN;
  assert_option_refused("plan options: time_limit_s is");
  options.threads = 1025;
  assert_option_refused("plan options: 1025 threads");
  const uint64_t previous[2] = {0, 8};
  options.previous = previous;
  problem.capacities = capacities;
  problem.arena_count = 2;
  assert_option_refused(
      "plan options: several arenas, but previous_arenas is NULL");
}

TEST(a_bound_counts_what_is_needed_at_once) {
  reset();
  uint64_t bound = 0;
  problem.pair_count = 0;
  assert_ok(tarn_plan_lower_bound(&problem, &bound));
  ck_assert_uint_eq(bound, 16);
  reset();
  assert_ok(tarn_plan_lower_bound(&problem, &bound));
  ck_assert_uint_eq(bound, 8);
  buffers[0].flags = TARN_PLAN_FIXED;
  buffers[0].offset = 32;
  assert_ok(tarn_plan_lower_bound(&problem, &bound));
  ck_assert_uint_eq(bound, 40);
  problem.count = problem.pair_count = 0;
  assert_ok(tarn_plan_lower_bound(&problem, &bound));
  ck_assert_uint_eq(bound, 0);
}
