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

typedef struct given {
  const char *what;
  tarn_plan_buffer buffers[4];
  uint64_t previous[4];
  uint64_t capacity;  // 0: none
  const char *answer;
  uint64_t height;       // 0: any
  uint64_t lower_bound;  // 0: any
  size_t moved;
  bool may_move_more;
  uint64_t offsets[4];
  size_t offset_count;
  size_t conflict_count;
} given;

static const given givens[] = {
    {.what = "sizes were halved; there are better plans, but this one holds",
     .buffers = {{.first = 0, .last = 2, .size = 4},
                 {.first = 1, .last = 3, .size = 4},
                 {.first = 2, .last = 4, .size = 4}},
     .previous = {0, 8, 16},
     .answer = "feasible",
     .height = 20,
     .lower_bound = 8,
     .offsets = {0, 8, 16},
     .offset_count = 3},
    {.what = "the lowest plan stays the lowest",
     .buffers = {{.first = 0, .last = 2, .size = 4},
                 {.first = 1, .last = 3, .size = 4},
                 {.first = 2, .last = 4, .size = 4}},
     .previous = {4, 0, 4},
     .answer = "optimal",
     .offsets = {4, 0, 4},
     .offset_count = 3},
    {.what = "the second has grown into the third, which is smaller and moves",
     .buffers = {{.first = 0, .last = 4, .size = 8},
                 {.first = 0, .last = 4, .size = 8},
                 {.first = 2, .last = 4, .size = 4},
                 {.first = 4, .last = 5, .size = 4, .alignment = 2}},
     .previous = {0, 8, 14, 1},
     .capacity = 24,
     .answer = "optimal",
     .moved = 2,
     .offsets = {0, 8, 16},
     .offset_count = 3},
    {.what = "without a capacity: no higher than a new plan",
     .buffers = {{.first = 0, .last = 4, .size = 8},
                 {.first = 0, .last = 4, .size = 8},
                 {.first = 2, .last = 4, .size = 4}},
     .previous = {0, 8, 14},
     .answer = "optimal",
     .height = 20,
     .moved = 1},
    {.what = "spread over 4 bytes more than are needed",
     .buffers = {{.first = 0, .last = 4, .size = 8},
                 {.first = 0, .last = 4, .size = 8},
                 {.first = 2, .last = 4, .size = 4}},
     .previous = {0, 16, 20},
     .answer = "optimal",
     .height = 20,
     .moved = 1,
     .may_move_more = true},
    {.what = "the larger leaves no room where it was: a new plan",
     .buffers = {{.first = 0, .last = 4, .size = 4},
                 {.first = 0, .last = 4, .size = 4}},
     .previous = {1, 6},
     .capacity = 8,
     .answer = "optimal",
     .moved = 2},
    {.what = "wrong offsets do no harm; the first buffer is new",
     .buffers = {{.first = 0, .last = 4, .size = 4},
                 {.first = 0, .last = 4, .size = 4},
                 {.first = 0, .last = 4, .size = 4, .alignment = 2},
                 {.first = 0,
                  .last = 4,
                  .size = 4,
                  .offset = 8,
                  .flags = TARN_PLAN_FIXED}},
     .previous = {UINT64_MAX, UINT64_MAX - 2, 3, 0},
     .answer = "optimal",
     .height = 16,
     .moved = 3},
    {.what = "the one between is new, and has not moved",
     .buffers = {{.first = 0, .last = 4, .size = 4},
                 {.first = 0, .last = 4, .size = 7},
                 {.first = 0, .last = 4, .size = 4}},
     .previous = {1, TARN_PLAN_NO_OFFSET, 12},
     .capacity = 16,
     .answer = "feasible",
     .offsets = {1, 5, 12},
     .offset_count = 3},
    {.what = "there is no plan",
     .buffers = {{.first = 0, .last = 4, .size = 4},
                 {.first = 0, .last = 4, .size = 4}},
     .previous = {0, 4},
     .capacity = 7,
     .answer = "infeasible",
     .conflict_count = 2},
};

TEST_LOOP(offsets_stay_where_they_can, (int)COUNT(givens)) {
  const given *s = &givens[_i];
  size_t count = 0;
  while (count < 4 && s->buffers[count].size != 0)
    count++;
  tarn_plan_problem problem =
      within(s->buffers, count, s->capacity == 0 ? NULL : &s->capacity);
  tarn_plan_options options = after(s->previous);
  tarn_plan *plan = solve(&problem, &options);
  tarn_plan_info info = info_of(plan);
  ck_assert_msg(strcmp(tarn_plan_answer_name(info.answer), s->answer) == 0,
                "%s: %s", s->what, tarn_plan_answer_name(info.answer));
  if (s->height != 0) {
    ck_assert_uint_eq(info.height, s->height);
    ck_assert_uint_eq(tarn_plan_height(plan, 0), s->height);
  }
  if (s->lower_bound != 0) ck_assert_uint_eq(info.lower_bound, s->lower_bound);
  if (s->may_move_more) {
    ck_assert_uint_ge(info.moved_count, s->moved);
  } else {
    ck_assert_uint_eq(info.moved_count, s->moved);
  }
  ck_assert_uint_eq(info.conflict_count, s->conflict_count);
  assert_offsets(plan, s->offsets, s->offset_count);
  tarn_plan_destroy(plan);
}

static bool stop(const tarn_plan_progress *progress, void *user) {
  (void)progress;
  *(bool *)user = true;
  return false;
}

// A program that holds buffers which leave no room still gets a plan.
TEST(to_hold_costs_no_plan) {
  const uint64_t capacity = 8;
  const uint64_t previous[] = {1, 6};
  bool asked = false;
  const tarn_plan_buffer buffers[] = {{.first = 0, .last = 4, .size = 4},
                                      {.first = 0, .last = 4, .size = 4}};
  tarn_plan_problem problem = within(buffers, 2, &capacity);
  tarn_plan_options options = after(previous);
  options.progress = stop;
  options.user = &asked;
  tarn_plan *plan = solve(&problem, &options);
  ck_assert(asked);
  ck_assert(info_of(plan).cancelled);
  assert_answer(plan, "optimal");
  tarn_plan_destroy(plan);
}

// Merged pairs stay, and move, together.
TEST(pairs_in_place_stay) {
  const uint64_t previous[] = {2, 2, 0};
  const tarn_plan_buffer buffers[] = {{.first = 0, .last = 3, .size = 4},
                                      {.first = 2, .last = 5, .size = 4},
                                      {.first = 0, .last = 5, .size = 3}};
  const tarn_plan_pair pairs[] = {{0, 1}};
  tarn_plan_problem problem = with_pairs(buffers, 3, pairs, 1);
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

TEST(arenas_are_part_of_a_place) {
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
TEST(batches_shrink_and_grow) {
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

TEST(every_fault_is_survived) {
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

int main(void) {
  faults_install();
  return run_tests();
}
