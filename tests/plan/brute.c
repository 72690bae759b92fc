// The planner beside a model that tries everything, on thousands of small
// problems: with alignments, gaps, fixed offsets and pairs in place in all
// mixes, within no capacity, one that is enough and one that is not.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan_model.h"
#include "support/run.h"

enum {
  BUFFERS = 7,
  PROBLEMS_OF_A_KIND = 640,  // of 16 kinds
  ARENA_BUFFERS = 5,
  ARENA_PROBLEMS_OF_A_KIND = 60,
  EXHAUSTIVE_OF_A_KIND = 60,
  NODES = 2000000,  // far more than any of these needs
};

static model_scene scene;

// What is said of the present problem when a check fails.
#define check(condition)                                                     \
  do {                                                                       \
    if (!(condition)) {                                                      \
      model_show(&scene);                                                    \
      ck_abort_msg("kind %d, seed %" PRIu64 ": %s", kind, seed, #condition); \
    }                                                                        \
  } while (0)

static uint32_t all(void) {
  return (1u << scene.problem.count) - 1;
}

static tarn_plan *solve(bool minimise, tarn_plan_info *info) {
  tarn_plan_options options = {.struct_size = sizeof options,
                               .time_limit_s = INFINITY,
                               .node_limit = NODES,
                               .minimise = minimise};
  tarn_plan *plan = NULL;
  assert_ok(tarn_plan_solve(&scene.problem, &options, &plan));
  *info = (tarn_plan_info){.struct_size = sizeof *info};
  assert_ok(tarn_plan_query(plan, info));
  return plan;
}

// --- one arena ---------------------------------------------------------------

static void check_plan(int kind, uint64_t seed, const tarn_plan *plan,
                       const tarn_plan_info *info) {
  uint64_t height = 0;
  const uint64_t *offsets = tarn_plan_offsets(plan);
  const uint32_t *arenas = tarn_plan_arenas(plan);
  check(offsets != NULL && arenas != NULL);
  check(tarn_plan_verify(&scene.problem, offsets, arenas, &height) == TARN_OK);
  check(height == info->height);
  check(model_is_plan(&scene.problem, offsets, arenas, &height));
  check(height == info->height);
  check(info->lower_bound <= info->height);
  check(info->conflict_count == 0 && tarn_plan_conflict(plan) == NULL);
}

static uint32_t conflict_of(int kind, uint64_t seed, const tarn_plan *plan,
                            const tarn_plan_info *info) {
  const size_t *conflict = tarn_plan_conflict(plan);
  uint32_t mask = 0;
  check(conflict != NULL && info->conflict_count > 0);
  for (size_t i = 0; i < info->conflict_count; i++) {
    check(conflict[i] < scene.problem.count);
    check(i == 0 || conflict[i - 1] < conflict[i]);
    mask |= 1u << conflict[i];
  }
  return mask;
}

// What is named does not fit; and without any of it, if that is said, it does.
static bool check_conflict(int kind, uint64_t seed, const tarn_plan *plan,
                           const tarn_plan_info *info) {
  const uint64_t none = 0;
  const uint64_t *capacities =
      scene.problem.arena_count == 0 ? &none : scene.problem.capacities;
  size_t arenas =
      scene.problem.arena_count == 0 ? 1 : scene.problem.arena_count;
  uint32_t mask = conflict_of(kind, seed, plan, info);
  check(tarn_plan_offsets(plan) == NULL && info->height == 0);
  check(!model_fits(&scene, mask, capacities, arenas));
  for (size_t i = 0; info->conflict_minimal && i < scene.problem.count; i++) {
    if ((mask >> i & 1) == 0) continue;
    check(model_fits(&scene, mask & ~(1u << i), capacities, arenas));
  }
  return info->conflict_minimal;
}

typedef struct counts {
  size_t plans;
  size_t optimal;
  size_t infeasible;
  size_t minimal;
} counts;

static void check_without_capacity(int kind, uint64_t seed, uint64_t least,
                                   counts *n) {
  tarn_plan_info info;
  uint64_t bound = 0;
  tarn_plan *plan = solve(false, &info);
  assert_ok(tarn_plan_lower_bound(&scene.problem, &bound));
  check(bound <= least);
  if (least == UINT64_MAX) {
    check(info.answer == TARN_PLAN_INFEASIBLE);
    n->minimal += check_conflict(kind, seed, plan, &info);
    n->infeasible++;
  } else {
    check(info.answer == TARN_PLAN_OPTIMAL);
    check_plan(kind, seed, plan, &info);
    check(info.height == least && info.lower_bound == least);
    n->optimal++;
  }
  n->plans++;
  tarn_plan_destroy(plan);
}

static void check_within(int kind, uint64_t seed, uint64_t least,
                         uint64_t capacity, bool minimise, counts *n) {
  tarn_plan_info info;
  scene.capacities[0] = capacity;
  scene.problem.capacities = scene.capacities;
  scene.problem.arena_count = 1;
  tarn_plan *plan = solve(minimise, &info);
  if (least > capacity) {
    check(info.answer == TARN_PLAN_INFEASIBLE);
    n->minimal += check_conflict(kind, seed, plan, &info);
    n->infeasible++;
  } else {
    check(info.answer == TARN_PLAN_OPTIMAL ||
          (!minimise && info.answer == TARN_PLAN_FEASIBLE));
    check_plan(kind, seed, plan, &info);
    check(info.height <= capacity && info.lower_bound <= least);
    check(info.answer == TARN_PLAN_FEASIBLE || info.height == least);
    n->optimal += info.answer == TARN_PLAN_OPTIMAL;
  }
  n->plans++;
  tarn_plan_destroy(plan);
}

static void check_one(int kind, uint64_t seed, counts *n) {
  model_make(&scene, seed, BUFFERS, (unsigned)kind);
  uint64_t least = model_least(&scene, all());
  check_without_capacity(kind, seed, least, n);
  uint64_t state = seed;
  uint64_t capacity = least == UINT64_MAX ? 20 : least;
  check_within(kind, seed, least, capacity, seed % 2 == 0, n);
  if (seed / MODEL_KINDS % 2 == 0) {
    uint64_t more = capacity + model_random(&state, 4);
    check_within(kind, seed, least, more, true, n);
  }
  if (capacity > 1) check_within(kind, seed, least, capacity - 1, false, n);
  capacity = 1 + model_random(&state, capacity);
  check_within(kind, seed, least, capacity, true, n);
}

TEST_LOOP(the_optimum_is_that_of_trying, MODEL_KINDS) {
  counts n = {0};
  for (uint64_t i = 0; i < PROBLEMS_OF_A_KIND; i++) {
    check_one(_i, i * MODEL_KINDS + (uint64_t)_i, &n);
  }
  // All answers occur, and what is called a small set is one as a rule.
  ck_assert_uint_ge(n.plans, (size_t)3 * PROBLEMS_OF_A_KIND);
  ck_assert_uint_gt(n.optimal, n.plans / 3);
  ck_assert_uint_gt(n.infeasible, n.plans / 5);
  ck_assert_uint_ge(n.minimal, n.infeasible / 2);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

// --- the model itself --------------------------------------------------------

TEST_LOOP(the_model_misses_no_plan, MODEL_KINDS) {
  enum { LIMIT = 40 };
  int kind = _i;
  size_t found = 0;
  for (uint64_t i = 0; i < EXHAUSTIVE_OF_A_KIND; i++) {
    uint64_t seed = i * MODEL_KINDS + (uint64_t)kind;
    model_make(&scene, seed, 4, (unsigned)kind);
    uint64_t least = model_least(&scene, all());
    uint64_t of_all = model_least_of_all(&scene, LIMIT);
    check(of_all == (least < LIMIT ? least : UINT64_MAX));
    found += of_all < LIMIT;
  }
  ck_assert_uint_gt(found, EXHAUSTIVE_OF_A_KIND / 2);
}

// --- several arenas ----------------------------------------------------------

static void make_arenas(uint64_t *state) {
  size_t count = 2 + model_random(state, MODEL_ARENAS - 1);
  uint64_t least = model_least(&scene, all());
  if (least == UINT64_MAX) least = 16;
  scene.problem.arena_count = count;
  scene.problem.capacities = scene.capacities;
  for (size_t i = 0; i < count; i++) {
    bool limited = model_random(state, 4) != 0;
    scene.capacities[i] = limited ? 1 + model_random(state, least) : 0;
  }
  for (size_t i = 0; i < scene.problem.count; i++) {
    tarn_plan_buffer *b = &scene.buffers[i];
    bool home =
        (b->flags & TARN_PLAN_FIXED) != 0 || model_random(state, 4) == 0;
    if (home) b->flags |= TARN_PLAN_IN_ARENA;
    b->arena = (uint32_t)model_random(state, count);
  }
}

static void check_heights(int kind, uint64_t seed, const tarn_plan *plan,
                          const tarn_plan_info *info) {
  uint64_t sum = 0;
  for (size_t i = 0; i < scene.problem.arena_count; i++) {
    uint64_t height = tarn_plan_height(plan, i);
    check(scene.capacities[i] == 0 || height <= scene.capacities[i]);
    sum += height;
  }
  check(sum == info->height);
}

TEST_LOOP(plans_in_arenas_are_plans, MODEL_KINDS) {
  int kind = _i;
  size_t plans = 0;
  for (uint64_t i = 0; i < ARENA_PROBLEMS_OF_A_KIND; i++) {
    tarn_plan_info info;
    uint64_t seed = i * MODEL_KINDS + (uint64_t)kind;
    uint64_t state = seed + 17;
    model_make(&scene, seed, ARENA_BUFFERS, (unsigned)kind);
    make_arenas(&state);
    tarn_plan *plan = solve(false, &info);
    if (tarn_plan_offsets(plan) != NULL) {
      check_plan(kind, seed, plan, &info);
      check_heights(kind, seed, plan, &info);
      check(info.answer == TARN_PLAN_OPTIMAL ||
            info.answer == TARN_PLAN_FEASIBLE);
      plans++;
    } else if (info.answer == TARN_PLAN_INFEASIBLE) {
      check_conflict(kind, seed, plan, &info);
    } else {
      check(info.answer == TARN_PLAN_OUT_OF_TIME);
    }
    tarn_plan_destroy(plan);
  }
  ck_assert_uint_gt(plans, ARENA_PROBLEMS_OF_A_KIND / 8);
}
