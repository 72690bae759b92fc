// Why there is no plan: which buffers are named.
#include "kit.h"
#include "support/faults.h"

// Infeasible, because of just these.
static void assert_conflict(const tarn_plan_problem *problem,
                            const size_t *expected, size_t count) {
  tarn_plan *plan = solve(problem, &plain);
  assert_answer(plan, "infeasible");
  ck_assert_uint_eq(info_of(plan).conflict_count, count);
  ck_assert(info_of(plan).conflict_minimal);
  ck_assert_uint_eq(tarn_plan_height(plan, 0), 0);
  for (size_t i = 0; i < count; i++)
    ck_assert_uint_eq(tarn_plan_conflict(plan)[i], expected[i]);
  tarn_plan_destroy(plan);
}

TEST(one_is_too_large) {
  const uint64_t capacity = 8;
  tarn_plan_buffer buffers[] = {{.first = 0, .last = 2, .size = 4},
                                {.first = 5, .last = 6, .size = 9}};
  tarn_plan_problem problem = within(buffers, 2, &capacity);
  assert_conflict(&problem, (const size_t[]){1}, 1);
  buffers[1].size = 4;
  buffers[1].offset = 5;
  buffers[1].flags = TARN_PLAN_FIXED;
  assert_conflict(&problem, (const size_t[]){1}, 1);
}

// No capacity is needed for that.
TEST(two_are_fixed_where_they_collide) {
  const tarn_plan_gap gap = {2, 4};
  tarn_plan_buffer buffers[] = {
      {.first = 0, .last = 9, .size = 4},
      {.first = 0,
       .last = 6,
       .size = 4,
       .offset = 2,
       .flags = TARN_PLAN_FIXED,
       .gaps = &gap,
       .gap_count = 1},
      {.first = 1, .last = 4, .size = 4, .offset = 5, .flags = TARN_PLAN_FIXED},
      {.first = 2, .last = 4, .size = 3, .offset = 2, .flags = TARN_PLAN_FIXED},
  };
  tarn_plan_problem problem = within(buffers, 4, NULL);
  assert_conflict(&problem, (const size_t[]){1, 2}, 2);
  buffers[2].offset = 6;
  assert_height(&problem, "optimal", 14);
}

// The first gives its place to one; the other collides with that one.
TEST(three_are_fixed_at_one_place) {
  const tarn_plan_buffer buffers[] = {
      {.first = 0, .last = 2, .size = 4, .flags = TARN_PLAN_FIXED},
      {.first = 1, .last = 3, .size = 4, .flags = TARN_PLAN_FIXED},
      {.first = 1, .last = 4, .size = 4, .flags = TARN_PLAN_FIXED}};
  const tarn_plan_pair pairs[] = {{0, 1}, {0, 2}};
  tarn_plan_problem problem = within(buffers, 3, NULL);
  problem.pairs = pairs;
  problem.pair_count = 2;
  assert_conflict(&problem, (const size_t[]){1, 2}, 2);
}

TEST(of_a_step_the_largest_are_named) {
  const uint64_t capacity = 10;
  const tarn_plan_buffer buffers[] = {{.first = 0, .last = 3, .size = 1},
                                      {.first = 0, .last = 3, .size = 6},
                                      {.first = 2, .last = 4, .size = 2},
                                      {.first = 2, .last = 4, .size = 5},
                                      {.first = 3, .last = 5, .size = 3}};
  tarn_plan_problem problem = within(buffers, 5, &capacity);
  assert_conflict(&problem, (const size_t[]){1, 3}, 2);
}

TEST(pairs_are_part_of_the_reason) {
  const uint64_t capacity = 7;
  const tarn_plan_buffer buffers[] = {{.first = 0, .last = 2, .size = 4},
                                      {.first = 1, .last = 3, .size = 4},
                                      {.first = 1, .last = 2, .size = 4},
                                      {.first = 1, .last = 2, .size = 1}};
  const tarn_plan_pair pairs[] = {{0, 1}, {0, 2}};
  tarn_plan_problem problem = within(buffers, 4, &capacity);
  problem.pairs = pairs;
  problem.pair_count = 2;
  assert_conflict(&problem, (const size_t[]){1, 2}, 2);
}

// 3 at 0, then 2 and 4 have no multiples of 4 that are free below 9.
TEST(alignments_are_part_of_the_reason) {
  const uint64_t capacity = 9;
  const tarn_plan_buffer buffers[] = {
      {.first = 0, .last = 2, .size = 3, .alignment = 4},
      {.first = 0, .last = 2, .size = 1},
      {.first = 0, .last = 2, .size = 2, .alignment = 4},
      {.first = 0, .last = 2, .size = 3, .alignment = 4}};
  tarn_plan_problem problem = within(buffers, 4, &capacity);
  assert_conflict(&problem, (const size_t[]){0, 2, 3}, 3);
}

// The fixed ones leave 2 below and 2 above: what needs 3 has its bytes, but
// no place. What happens elsewhere is not named.
TEST(a_search_s_proof_is_narrowed_down) {
  enum { OTHERS = 40 };
  const uint64_t capacity = 6;
  tarn_plan_buffer buffers[OTHERS + 3];
  for (size_t i = 0; i < OTHERS; i++) {
    buffers[i] = (tarn_plan_buffer){
        .first = i, .last = i + 2, .size = 1 + i % 3, .alignment = 1};
  }
  buffers[OTHERS] = (tarn_plan_buffer){.first = 90,
                                       .last = 93,
                                       .size = 2,
                                       .offset = 2,
                                       .flags = TARN_PLAN_FIXED};
  buffers[OTHERS + 1] = (tarn_plan_buffer){.first = 92, .last = 95, .size = 3};
  buffers[OTHERS + 2] = (tarn_plan_buffer){.first = 92, .last = 93, .size = 1};
  tarn_plan_problem problem = within(buffers, OTHERS + 3, &capacity);
  assert_conflict(&problem, (const size_t[]){OTHERS, OTHERS + 1}, 2);
}

// When all nodes are spent for the proof, the set is not narrowed down.
TEST(without_nodes_the_set_stays_large) {
  const uint64_t capacity = 6;
  const tarn_plan_buffer buffers[] = {{.first = 0, .last = 2, .size = 1},
                                      {.first = 90,
                                       .last = 93,
                                       .size = 2,
                                       .offset = 2,
                                       .flags = TARN_PLAN_FIXED},
                                      {.first = 92, .last = 95, .size = 3}};
  tarn_plan_problem problem = within(buffers, 3, &capacity);
  tarn_plan *plan = solve(&problem, &plain);
  tarn_plan_options options = plain;
  options.node_limit = info_of(plan).nodes;
  tarn_plan_destroy(plan);
  for (; options.node_limit > 0; options.node_limit--) {
    plan = solve(&problem, &options);
    tarn_plan_info info = info_of(plan);
    if (info.answer == TARN_PLAN_INFEASIBLE) {
      ck_assert_uint_ge(info.conflict_count, 2);
      ck_assert(!info.conflict_minimal || info.conflict_count == 2);
    } else {
      ck_assert_ptr_null(tarn_plan_conflict(plan));
      ck_assert_uint_eq(info.conflict_count, 0);
    }
    tarn_plan_destroy(plan);
  }
}

TEST(a_plan_has_no_conflict) {
  const tarn_plan_buffer buffers[] = {{.first = 0, .last = 2, .size = 1}};
  tarn_plan_problem problem = within(buffers, 1, NULL);
  tarn_plan *plan = solve(&problem, NULL);
  ck_assert_ptr_null(tarn_plan_conflict(plan));
  tarn_plan_destroy(plan);
}

static void solve_or_not(void *user) {
  tarn_plan *plan = NULL;
  tarn_status status = tarn_plan_solve(user, &plain, &plan);
  require(status == TARN_OK || status == TARN_E_NOMEM);
  require((plan != NULL) == (status == TARN_OK));
  tarn_plan_destroy(plan);
}

TEST(every_fault_is_survived) {
  const uint64_t capacity = 6;
  const tarn_plan_buffer buffers[] = {{.first = 0, .last = 2, .size = 1},
                                      {.first = 90,
                                       .last = 93,
                                       .size = 2,
                                       .offset = 2,
                                       .flags = TARN_PLAN_FIXED},
                                      {.first = 92, .last = 95, .size = 3}};
  tarn_plan_problem problem = within(buffers, 3, &capacity);
  ck_assert_uint_gt(faults_sweep(solve_or_not, &problem), 20);
  const tarn_plan_buffer fixed[] = {
      {.first = 0, .last = 2, .size = 1, .flags = TARN_PLAN_FIXED},
      {.first = 1, .last = 3, .size = 2, .flags = TARN_PLAN_FIXED}};
  problem = within(fixed, 2, NULL);
  ck_assert_uint_gt(faults_sweep(solve_or_not, &problem), 20);
}

int main(void) {
  faults_install();
  return run_tests();
}
