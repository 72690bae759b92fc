// In place: which pairs come to lie at one offset, and which do not.
#include "kit.h"
#include "support/faults.h"

static void assert_bound(const tarn_plan_problem *problem, uint64_t expected) {
  uint64_t bound = 0;
  assert_ok(tarn_plan_lower_bound(problem, &bound));
  ck_assert_uint_eq(bound, expected);
}

TEST(a_result_takes_the_place) {
  const tarn_plan_buffer buffers[] = {{.first = 0, .last = 3, .size = 4},
                                      {.first = 2, .last = 5, .size = 4}};
  const tarn_plan_pair pairs[] = {{0, 1}};
  tarn_plan_problem problem = with_pairs(buffers, 2, pairs, 1);
  assert_bound(&problem, 4);
  tarn_plan *plan = solve(&problem, &plain);
  assert_answer(plan, "optimal");
  ck_assert_uint_eq(info_of(plan).height, 4);
  ck_assert_uint_eq(tarn_plan_offsets(plan)[0], tarn_plan_offsets(plan)[1]);
  tarn_plan_destroy(plan);
  problem.pair_count = 0;
  assert_height(&problem, "optimal", 8);
}

// The middle one has no step of its own.
TEST(places_go_through_a_chain) {
  const tarn_plan_buffer buffers[] = {{.first = 0, .last = 2, .size = 4},
                                      {.first = 1, .last = 3, .size = 6},
                                      {.first = 2, .last = 3, .size = 5},
                                      {.first = 2, .last = 4, .size = 1}};
  const tarn_plan_pair pairs[] = {{0, 1}, {1, 2}, {1, 3}};
  tarn_plan_problem problem = with_pairs(buffers, 4, pairs, 3);
  assert_bound(&problem, 7);
  assert_height(&problem, "optimal", 7);
}

TEST(of_two_takers_one_takes) {
  const tarn_plan_buffer buffers[] = {{.first = 0, .last = 2, .size = 4},
                                      {.first = 1, .last = 3, .size = 4},
                                      {.first = 1, .last = 2, .size = 4}};
  const tarn_plan_pair pairs[] = {{0, 1}, {0, 2}, {0, 1}};
  tarn_plan_problem problem = with_pairs(buffers, 3, pairs, 3);
  assert_bound(&problem, 8);
  assert_height(&problem, "optimal", 8);
}

TEST(of_two_givers_one_gives) {
  const tarn_plan_buffer buffers[] = {{.first = 0, .last = 3, .size = 2},
                                      {.first = 1, .last = 3, .size = 6},
                                      {.first = 2, .last = 4, .size = 5}};
  const tarn_plan_pair pairs[] = {{0, 2}, {1, 2}};
  tarn_plan_problem problem = with_pairs(buffers, 3, pairs, 2);
  assert_bound(&problem, 8);
  assert_height(&problem, "optimal", 8);
}

// In the place of the first the second would meet the third.
TEST(it_may_be_better_not_to_merge) {
  const tarn_plan_buffer buffers[] = {
      {.first = 0, .last = 2, .size = 2, .flags = TARN_PLAN_FIXED},
      {.first = 1, .last = 4, .size = 2},
      {.first = 3, .last = 5, .size = 2, .flags = TARN_PLAN_FIXED}};
  const tarn_plan_pair pairs[] = {{0, 1}};
  tarn_plan_problem problem = with_pairs(buffers, 3, pairs, 1);
  assert_height(&problem, "optimal", 4);
}

TEST(fixed_offsets_decide) {
  tarn_plan_buffer buffers[] = {
      {.first = 0, .last = 2, .size = 2, .flags = TARN_PLAN_FIXED},
      {.first = 1, .last = 3, .size = 4, .flags = TARN_PLAN_FIXED}};
  const tarn_plan_pair pairs[] = {{0, 1}};
  tarn_plan_problem problem = with_pairs(buffers, 2, pairs, 1);
  assert_height(&problem, "optimal", 4);
  buffers[1].offset = 2;
  assert_height(&problem, "optimal", 6);
  buffers[1].offset = 1;
  assert_height(&problem, "infeasible", 0);
}

TEST(a_place_must_be_aligned_for_both) {
  tarn_plan_buffer buffers[] = {
      {.first = 0, .last = 2, .size = 2, .offset = 2, .flags = TARN_PLAN_FIXED},
      {.first = 1, .last = 3, .size = 3, .alignment = 4}};
  const tarn_plan_pair pairs[] = {{0, 1}};
  tarn_plan_problem problem = with_pairs(buffers, 2, pairs, 1);
  assert_height(&problem, "optimal", 7);
  buffers[0].flags = 0;
  buffers[0].alignment = 6;
  assert_height(&problem, "optimal", 3);
}

// 2^40 and 3^20: they have one place together, which is not looked for. Then
// nothing is said to be proved.
TEST(alignments_too_large_together_prove_nothing) {
  const tarn_plan_buffer buffers[] = {
      {.first = 0, .last = 2, .size = 8, .alignment = UINT64_C(1) << 40},
      {.first = 1, .last = 3, .size = 8, .alignment = UINT64_C(3486784401)}};
  const tarn_plan_pair pairs[] = {{0, 1}};
  tarn_plan_problem problem = with_pairs(buffers, 2, pairs, 1);
  assert_height(&problem, "feasible", UINT64_C(3486784401) + 8);
  const uint64_t capacity = 16;
  problem.capacities = &capacity;
  problem.arena_count = 1;
  assert_height(&problem, "out_of_time", 0);
}

TEST(that_no_choice_fits_is_proved) {
  const uint64_t capacity = 7;
  const tarn_plan_buffer buffers[] = {{.first = 0, .last = 2, .size = 4},
                                      {.first = 1, .last = 3, .size = 4},
                                      {.first = 1, .last = 2, .size = 4}};
  const tarn_plan_pair pairs[] = {{0, 1}, {0, 2}};
  tarn_plan_problem problem = with_pairs(buffers, 3, pairs, 2);
  problem.capacities = &capacity;
  problem.arena_count = 1;
  tarn_plan *plan = solve(&problem, &plain);
  assert_answer(plan, "infeasible");
  ck_assert_uint_ge(info_of(plan).conflict_count, 2);
  tarn_plan_destroy(plan);
}

// Bytes suffice in each step, but not in one piece: only the search sees it.
TEST(that_no_choice_fits_is_searched) {
  const uint64_t capacity = 4;
  const tarn_plan_buffer buffers[] = {
      {.first = 0, .last = 3, .size = 1, .offset = 1, .flags = TARN_PLAN_FIXED},
      {.first = 2, .last = 5, .size = 2},
      {.first = 4, .last = 6, .size = 1, .offset = 2, .flags = TARN_PLAN_FIXED},
      {.first = 2, .last = 3, .size = 2}};
  const tarn_plan_pair pairs[] = {{0, 1}, {0, 3}};
  tarn_plan_problem problem = with_pairs(buffers, 4, pairs, 2);
  problem.capacities = &capacity;
  problem.arena_count = 1;
  assert_height(&problem, "infeasible", 0);
}

enum { LINKS = 3000 };

TEST(thousands_of_pairs_are_no_burden) {
  static tarn_plan_buffer buffers[2 * LINKS];
  static tarn_plan_pair pairs[LINKS - 1];
  for (size_t i = 0; i < LINKS; i++) {
    buffers[i] =
        (tarn_plan_buffer){.first = 2 * i, .last = 2 * i + 3, .size = 5};
    buffers[LINKS + i] =
        (tarn_plan_buffer){.first = 2 * i, .last = 2 * i + 1, .size = 3};
    if (i > 0) pairs[i - 1] = (tarn_plan_pair){i - 1, i};
  }
  tarn_plan_problem problem =
      with_pairs(buffers, (size_t)2 * LINKS, pairs, LINKS - 1);
  assert_bound(&problem, 8);
  assert_height(&problem, "optimal", 8);
}

// A grid of pairs in one step: of whom each gives and takes once.
TEST(all_with_all_is_a_matching) {
  enum { SIDE = 12 };
  tarn_plan_buffer buffers[2 * SIDE];
  tarn_plan_pair pairs[SIDE * SIDE];
  for (size_t i = 0; i < SIDE; i++) {
    buffers[i] = (tarn_plan_buffer){.first = 0, .last = 2, .size = i + 1};
    buffers[SIDE + i] =
        (tarn_plan_buffer){.first = 1, .last = 3, .size = SIDE - i};
    for (size_t k = 0; k < SIDE; k++)
      pairs[i * SIDE + k] = (tarn_plan_pair){i, SIDE + k};
  }
  tarn_plan_problem problem =
      with_pairs(buffers, COUNT(buffers), pairs, COUNT(pairs));
  assert_bound(&problem, 78);
  assert_height(&problem, "optimal", 78);
}

static void solve_or_not(void *user) {
  const tarn_plan_problem *problem = user;
  tarn_plan *plan = NULL;
  tarn_status status = tarn_plan_solve(problem, &plain, &plan);
  require(status == TARN_OK || status == TARN_E_NOMEM);
  require((plan != NULL) == (status == TARN_OK));
  tarn_plan_destroy(plan);
  uint64_t bound = 0;
  status = tarn_plan_lower_bound(problem, &bound);
  require(status == TARN_OK || (status == TARN_E_NOMEM && bound == 0));
}

TEST(every_fault_is_survived) {
  const tarn_plan_buffer buffers[] = {
      {.first = 0, .last = 2, .size = 2, .flags = TARN_PLAN_FIXED},
      {.first = 1, .last = 4, .size = 2},
      {.first = 3, .last = 5, .size = 2, .flags = TARN_PLAN_FIXED},
      {.first = 1, .last = 3, .size = 3}};
  const tarn_plan_pair pairs[] = {{0, 1}, {0, 3}};
  tarn_plan_problem problem = with_pairs(buffers, 4, pairs, 2);
  ck_assert_uint_gt(faults_sweep(solve_or_not, &problem), 20);
}

int main(void) {
  faults_install();
  return run_tests();
}
