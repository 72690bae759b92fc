// kit.h - small problems, and plans of them that are checked.
#ifndef TARN_TESTS_PLAN_KIT_H_
#define TARN_TESTS_PLAN_KIT_H_

#include <string.h>

#include "support/run.h"
#include "tarn/plan.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

// Work is limited by nodes alone, so that no machine is too slow.
static const tarn_plan_options plain = {
    .struct_size = sizeof plain, .time_limit_s = 250, .node_limit = 200000};

static inline tarn_plan_problem problem_of(const tarn_plan_buffer *buffers,
                                           size_t count) {
  return (tarn_plan_problem){.struct_size = sizeof(tarn_plan_problem),
                             .buffers = buffers,
                             .count = count};
}

// In one arena of |*capacity|; NULL: without a limit.
static inline tarn_plan_problem within(const tarn_plan_buffer *buffers,
                                       size_t count, const uint64_t *capacity) {
  tarn_plan_problem problem = problem_of(buffers, count);
  problem.capacities = capacity;
  problem.arena_count = capacity != NULL;
  return problem;
}

static inline tarn_plan_problem with_pairs(const tarn_plan_buffer *buffers,
                                           size_t count,
                                           const tarn_plan_pair *pairs,
                                           size_t pair_count) {
  tarn_plan_problem problem = problem_of(buffers, count);
  problem.pairs = pairs;
  problem.pair_count = pair_count;
  return problem;
}

static inline tarn_plan_info info_of(const tarn_plan *plan) {
  tarn_plan_info info = {.struct_size = sizeof info};
  assert_ok(tarn_plan_query(plan, &info));
  return info;
}

// A plan of |problem|; where it has offsets, they have been checked.
static inline tarn_plan *solve(const tarn_plan_problem *problem,
                               const tarn_plan_options *options) {
  tarn_plan *plan = NULL;
  assert_ok(tarn_plan_solve(problem, options, &plan));
  tarn_plan_info info = info_of(plan);
  bool there =
      info.answer == TARN_PLAN_OPTIMAL || info.answer == TARN_PLAN_FEASIBLE;
  ck_assert_int_eq(tarn_plan_offsets(plan) != NULL, there);
  ck_assert_int_eq(tarn_plan_arenas(plan) != NULL, there);
  if (there) {
    uint64_t height = 0;
    assert_ok(tarn_plan_verify(problem, tarn_plan_offsets(plan),
                               tarn_plan_arenas(plan), &height));
    ck_assert_uint_eq(height, info.height);
    ck_assert_uint_le(info.lower_bound, info.height);
  }
  return plan;
}

#define assert_answer(plan, expected) \
  ck_assert_str_eq(tarn_plan_answer_name(info_of(plan).answer), expected)

// Solves |problem| with |options|, for |answer|.
static inline void assert_solved(const tarn_plan_problem *problem,
                                 const tarn_plan_options *options,
                                 const char *answer) {
  tarn_plan *plan = solve(problem, options);
  assert_answer(plan, answer);
  tarn_plan_destroy(plan);
}

// Solves |problem| for |answer| and |height|.
static inline void assert_height(const tarn_plan_problem *problem,
                                 const char *answer, uint64_t height) {
  tarn_plan *plan = solve(problem, &plain);
  assert_answer(plan, answer);
  ck_assert_uint_eq(info_of(plan).height, height);
  tarn_plan_destroy(plan);
}

#endif  // TARN_TESTS_PLAN_KIT_H_
