// Plans from plans that were made before: what stays, and what moves.
#include "kit.h"
#include "support/faults.h"

static tarn_plan_options after(const uint64_t *previous) {
  tarn_plan_options options = plain;
  options.previous = previous;
  return options;
}

static void assert_offsets(const tarn_plan *plan, const uint64_t *expected,
                           size_t count) {
  for (size_t i = 0; i < count; i++)
    ck_assert_uint_eq(tarn_plan_offsets(plan)[i], expected[i]);
}

// All sizes have been halved; there are better plans, but this one holds.
START_TEST(what_has_shrunk_stays) {
  const uint64_t previous[] = {0, 8, 16};
  const tarn_plan_buffer buffers[] = {{.first = 0, .last = 2, .size = 4},
                                      {.first = 1, .last = 3, .size = 4},
                                      {.first = 2, .last = 4, .size = 4}};
  tarn_plan_problem problem = problem_of(buffers, 3);
  tarn_plan_options options = after(previous);
  tarn_plan *plan = solve(&problem, &options);
  assert_answer(plan, "feasible");
  assert_offsets(plan, previous, 3);
  ck_assert_uint_eq(info_of(plan).height, 20);
  ck_assert_uint_eq(info_of(plan).lower_bound, 8);
  ck_assert_uint_eq(info_of(plan).moved_count, 0);
  ck_assert_uint_eq(tarn_plan_height(plan, 0), 20);
  tarn_plan_destroy(plan);
}
END_TEST

START_TEST(the_lowest_stays_as_such) {
  const uint64_t previous[] = {4, 0, 4};
  const tarn_plan_buffer buffers[] = {{.first = 0, .last = 2, .size = 4},
                                      {.first = 1, .last = 3, .size = 4},
                                      {.first = 2, .last = 4, .size = 4}};
  tarn_plan_problem problem = problem_of(buffers, 3);
  tarn_plan_options options = after(previous);
  tarn_plan *plan = solve(&problem, &options);
  assert_answer(plan, "optimal");
  assert_offsets(plan, previous, 3);
  tarn_plan_destroy(plan);
}
END_TEST

// The second has grown into the third, which is smaller and goes on top.
START_TEST(the_smaller_moves) {
  const uint64_t capacity = 24;
  const uint64_t previous[] = {0, 8, 14, 1};
  const tarn_plan_buffer buffers[] = {
      {.first = 0, .last = 4, .size = 8},
      {.first = 0, .last = 4, .size = 8},
      {.first = 2, .last = 4, .size = 4},
      {.first = 4, .last = 5, .size = 4, .alignment = 2}};
  tarn_plan_problem problem = problem_of(buffers, 4);
  problem.capacities = &capacity;
  problem.arena_count = 1;
  tarn_plan_options options = after(previous);
  tarn_plan *plan = solve(&problem, &options);
  assert_answer(plan, "optimal");
  ck_assert_uint_eq(info_of(plan).moved_count, 2);
  ck_assert_uint_eq(tarn_plan_offsets(plan)[0], 0);
  ck_assert_uint_eq(tarn_plan_offsets(plan)[1], 8);
  ck_assert_uint_eq(tarn_plan_offsets(plan)[2], 16);
  tarn_plan_destroy(plan);
}
END_TEST

// The same without a capacity: no higher than a plan made afresh.
START_TEST(it_is_held_if_it_costs_no_height) {
  const uint64_t previous[] = {0, 8, 14};
  const tarn_plan_buffer buffers[] = {{.first = 0, .last = 4, .size = 8},
                                      {.first = 0, .last = 4, .size = 8},
                                      {.first = 2, .last = 4, .size = 4}};
  tarn_plan_problem problem = problem_of(buffers, 3);
  tarn_plan_options options = after(previous);
  tarn_plan *plan = solve(&problem, &options);
  assert_answer(plan, "optimal");
  ck_assert_uint_eq(info_of(plan).height, 20);
  ck_assert_uint_eq(info_of(plan).moved_count, 1);
  tarn_plan_destroy(plan);
  const uint64_t spread[] = {0, 16, 20};  // 4 more than is needed
  options = after(spread);
  plan = solve(&problem, &options);
  assert_answer(plan, "optimal");
  ck_assert_uint_eq(info_of(plan).height, 20);
  ck_assert_uint_ge(info_of(plan).moved_count, 1);
  tarn_plan_destroy(plan);
}
END_TEST

// Where it was the larger leaves no room: all is made anew.
START_TEST(what_is_in_the_way_moves) {
  const uint64_t capacity = 8;
  const uint64_t previous[] = {1, 6};
  const tarn_plan_buffer buffers[] = {{.first = 0, .last = 4, .size = 4},
                                      {.first = 0, .last = 4, .size = 4}};
  tarn_plan_problem problem = problem_of(buffers, 2);
  problem.capacities = &capacity;
  problem.arena_count = 1;
  tarn_plan_options options = after(previous);
  tarn_plan *plan = solve(&problem, &options);
  assert_answer(plan, "optimal");
  ck_assert_uint_eq(info_of(plan).moved_count, 2);
  tarn_plan_destroy(plan);
}
END_TEST

START_TEST(nonsense_is_no_harm) {
  const uint64_t previous[] = {UINT64_MAX, UINT64_MAX - 2, 3, 0};
  const tarn_plan_buffer buffers[] = {
      {.first = 0, .last = 4, .size = 4},
      {.first = 0, .last = 4, .size = 4},
      {.first = 0, .last = 4, .size = 4, .alignment = 2},
      {.first = 0,
       .last = 4,
       .size = 4,
       .offset = 8,
       .flags = TARN_PLAN_FIXED}};
  tarn_plan_problem problem = problem_of(buffers, 4);
  tarn_plan_options options = after(previous);
  tarn_plan *plan = solve(&problem, &options);
  assert_answer(plan, "optimal");
  ck_assert_uint_eq(info_of(plan).height, 16);
  ck_assert_uint_eq(info_of(plan).moved_count, 3);  // the first was nowhere
  tarn_plan_destroy(plan);
}
END_TEST

static bool stop(const tarn_plan_progress *progress, void *user) {
  (void)progress;
  *(bool *)user = true;
  return false;
}

// Who holds what leaves no room has a plan to fall back on.
START_TEST(to_hold_costs_no_plan) {
  const uint64_t capacity = 8;
  const uint64_t previous[] = {1, 6};
  bool asked = false;
  const tarn_plan_buffer buffers[] = {{.first = 0, .last = 4, .size = 4},
                                      {.first = 0, .last = 4, .size = 4}};
  tarn_plan_problem problem = problem_of(buffers, 2);
  problem.capacities = &capacity;
  problem.arena_count = 1;
  tarn_plan_options options = after(previous);
  options.progress = stop;
  options.user = &asked;
  tarn_plan *plan = solve(&problem, &options);
  ck_assert(asked);
  ck_assert(info_of(plan).cancelled);
  assert_answer(plan, "optimal");
  tarn_plan_destroy(plan);
}
END_TEST

// The one between them is new, and comes where there is room.
START_TEST(new_ones_have_not_moved) {
  const uint64_t capacity = 16;
  const uint64_t previous[] = {1, TARN_PLAN_NO_OFFSET, 12};
  const tarn_plan_buffer buffers[] = {{.first = 0, .last = 4, .size = 4},
                                      {.first = 0, .last = 4, .size = 7},
                                      {.first = 0, .last = 4, .size = 4}};
  tarn_plan_problem problem = problem_of(buffers, 3);
  problem.capacities = &capacity;
  problem.arena_count = 1;
  tarn_plan_options options = after(previous);
  tarn_plan *plan = solve(&problem, &options);
  assert_answer(plan, "feasible");
  assert_offsets(plan, (const uint64_t[]){1, 5, 12}, 3);
  ck_assert_uint_eq(info_of(plan).moved_count, 0);
  tarn_plan_destroy(plan);
}
END_TEST

START_TEST(that_there_is_none_is_said) {
  const uint64_t capacity = 7;
  const uint64_t previous[] = {0, 4};
  const tarn_plan_buffer buffers[] = {{.first = 0, .last = 4, .size = 4},
                                      {.first = 0, .last = 4, .size = 4}};
  tarn_plan_problem problem = problem_of(buffers, 2);
  problem.capacities = &capacity;
  problem.arena_count = 1;
  tarn_plan_options options = after(previous);
  tarn_plan *plan = solve(&problem, &options);
  assert_answer(plan, "infeasible");
  ck_assert_uint_eq(info_of(plan).conflict_count, 2);
  ck_assert_uint_eq(info_of(plan).moved_count, 0);
  tarn_plan_destroy(plan);
}
END_TEST

// Merged pairs stay, and move, together.
START_TEST(pairs_in_place_stay) {
  const uint64_t previous[] = {2, 2, 0};
  const tarn_plan_buffer buffers[] = {{.first = 0, .last = 3, .size = 4},
                                      {.first = 2, .last = 5, .size = 4},
                                      {.first = 0, .last = 5, .size = 3}};
  const tarn_plan_pair pairs[] = {{0, 1}};
  tarn_plan_problem problem = problem_of(buffers, 3);
  problem.pairs = pairs;
  problem.pair_count = 1;
  tarn_plan_options options = after(previous);
  tarn_plan *plan = solve(&problem, &options);
  assert_answer(plan, "optimal");
  ck_assert_uint_eq(info_of(plan).height, 7);
  tarn_plan_destroy(plan);
  const uint64_t capacity = 9;
  problem.capacities = &capacity;
  problem.arena_count = 1;
  plan = solve(&problem, &options);
  assert_answer(plan, "feasible");
  assert_offsets(plan, (const uint64_t[]){2, 2, 6}, 3);
  ck_assert_uint_eq(info_of(plan).moved_count, 1);
  tarn_plan_destroy(plan);
}
END_TEST

START_TEST(arenas_are_part_of_a_place) {
  const uint64_t capacities[] = {8, 8};
  const uint64_t previous[] = {0, 0, 4};
  const uint32_t arenas[] = {1, 0, 0};
  const uint32_t others[] = {1, 7, 1};
  const tarn_plan_buffer buffers[] = {{.first = 0, .last = 4, .size = 4},
                                      {.first = 0, .last = 4, .size = 4},
                                      {.first = 0, .last = 4, .size = 4}};
  tarn_plan_problem problem = problem_of(buffers, 3);
  problem.capacities = capacities;
  problem.arena_count = 2;
  tarn_plan_options options = after(previous);
  options.previous_arenas = arenas;
  tarn_plan *plan = solve(&problem, &options);
  assert_answer(plan, "feasible");
  ck_assert_uint_eq(info_of(plan).moved_count, 0);
  ck_assert_uint_eq(tarn_plan_arenas(plan)[0], 1);
  ck_assert_uint_eq(tarn_plan_height(plan, 0), 8);
  ck_assert_uint_eq(tarn_plan_height(plan, 1), 4);
  tarn_plan_destroy(plan);
  options.previous_arenas = others;
  plan = solve(&problem, &options);
  assert_answer(plan, "feasible");
  ck_assert_uint_eq(info_of(plan).moved_count, 1);
  tarn_plan_destroy(plan);
}
END_TEST

enum { MANY = 300 };

static void make_many(tarn_plan_buffer *buffers, uint64_t percent) {
  uint64_t state = 3;
  for (size_t i = 0; i < MANY; i++) {
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    uint64_t first = (state >> 33) % 200;
    uint64_t size = 1 + (100 + (state >> 51) % 900) * percent / 100;
    buffers[i] = (tarn_plan_buffer){
        .first = first, .last = first + 1 + (state >> 45) % 30, .size = size};
  }
}

// A smaller batch keeps all offsets; a larger one gets a plan as well.
START_TEST(batches_shrink_and_grow) {
  tarn_plan_buffer buffers[MANY];
  make_many(buffers, 100);
  tarn_plan_problem problem = problem_of(buffers, MANY);
  tarn_plan *large = solve(&problem, &plain);
  tarn_plan_options options = after(tarn_plan_offsets(large));
  make_many(buffers, 60);
  tarn_plan *plan = solve(&problem, &options);
  assert_offsets(plan, tarn_plan_offsets(large), MANY);
  ck_assert_uint_eq(info_of(plan).moved_count, 0);
  tarn_plan_destroy(plan);
  make_many(buffers, 101);
  plan = solve(&problem, &options);
  ck_assert_uint_gt(info_of(plan).moved_count, 0);
  tarn_plan_destroy(plan);
  tarn_plan_destroy(large);
}
END_TEST

typedef struct scene {
  const tarn_plan_problem *problem;
  const tarn_plan_options *options;
} scene;

static void solve_or_not(void *user) {
  const scene *s = user;
  tarn_plan *plan = NULL;
  tarn_status status = tarn_plan_solve(s->problem, s->options, &plan);
  require(status == TARN_OK || status == TARN_E_NOMEM);
  require((plan != NULL) == (status == TARN_OK));
  tarn_plan_destroy(plan);
}

START_TEST(every_fault_is_survived) {
  const uint64_t capacity = 8;
  const uint64_t previous[] = {1, 6};
  const tarn_plan_buffer buffers[] = {{.first = 0, .last = 4, .size = 4},
                                      {.first = 0, .last = 4, .size = 4}};
  tarn_plan_problem problem = problem_of(buffers, 2);
  tarn_plan_options options = after(previous);
  scene s = {&problem, &options};
  ck_assert_uint_gt(faults_sweep(solve_or_not, &s), 20);
  problem.capacities = &capacity;
  problem.arena_count = 1;
  ck_assert_uint_gt(faults_sweep(solve_or_not, &s), 20);
}
END_TEST

int main(void) {
  faults_install();
  Suite *suite = suite_create("plan previous");
  ADD_CASE(suite, "all", what_has_shrunk_stays, the_lowest_stays_as_such,
           arenas_are_part_of_a_place, batches_shrink_and_grow);
  ADD_CASE(suite, "some", the_smaller_moves, it_is_held_if_it_costs_no_height,
           what_is_in_the_way_moves, nonsense_is_no_harm, to_hold_costs_no_plan,
           new_ones_have_not_moved, that_there_is_none_is_said,
           pairs_in_place_stay, every_fault_is_survived);
  return run_suite(suite);
}
