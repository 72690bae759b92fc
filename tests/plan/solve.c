// Solving as a caller sees it: answers, limits, progress, threads.
#include <math.h>
#include <stdlib.h>

#include "kit.h"
#include "support/effort.h"
#include "support/faults.h"

enum { MANY = 120 };

static void make_many(tarn_plan_buffer *buffers) {
  uint64_t state = 11;
  for (size_t i = 0; i < MANY; i++) {
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    uint64_t first = (state >> 33) % 60;
    buffers[i] = (tarn_plan_buffer){.first = first,
                                    .last = first + 1 + (state >> 45) % 25,
                                    .size = 100 + (state >> 51) % 900};
  }
}

TEST(the_header_s_example) {
  tarn_plan_buffer buffers[] = {{.first = 0, .last = 3, .size = 1024},
                                {.first = 1, .last = 5, .size = 4096},
                                {.first = 3, .last = 6, .size = 1024}};
  tarn_plan_problem problem = problem_of(buffers, 3);
  tarn_plan *plan = solve(&problem, NULL);
  assert_answer(plan, "optimal");
  ck_assert_uint_eq(info_of(plan).height, 5120);
  ck_assert_uint_eq(info_of(plan).lower_bound, 5120);
  ck_assert_uint_eq(info_of(plan).count, 3);
  ck_assert_uint_eq(tarn_plan_height(plan, 0), 5120);
  ck_assert(!info_of(plan).cancelled);
  tarn_plan_destroy(plan);
}

TEST(nothing_is_a_problem_too) {
  const uint64_t capacities[] = {4, 4};
  tarn_plan_problem problem = problem_of(NULL, 0);
  for (size_t arenas = 0; arenas <= 2; arenas++) {
    problem.capacities = capacities;
    problem.arena_count = arenas;
    assert_height(&problem, "optimal", 0);
  }
  uint64_t previous = 0;
  uint32_t arena = 0;
  tarn_plan_options options = plain;
  options.previous = &previous;
  options.previous_arenas = &arena;
  assert_solved(&problem, &options, "optimal");
}

TEST(gaps_alignments_and_fixed_ones_are_kept) {
  const tarn_plan_gap gap = {2, 8};
  const tarn_plan_buffer buffers[] = {
      {.first = 0, .last = 10, .size = 6, .gaps = &gap, .gap_count = 1},
      {.first = 2, .last = 8, .size = 6},
      {.first = 0,
       .last = 10,
       .size = 2,
       .offset = 10,
       .flags = TARN_PLAN_FIXED},
      {.first = 9, .last = 10, .size = 3, .alignment = 7}};
  tarn_plan_problem problem = problem_of(buffers, 4);
  assert_height(&problem, "optimal", 12);
}

// At 0, 16 and 30; of multiples of 4, which divides all sizes and two of the
// alignments, 44 would be the least.
TEST(alignments_need_not_divide_each_other) {
  const uint64_t capacity = 42;
  const tarn_plan_buffer buffers[] = {
      {.first = 0, .last = 1, .size = 12, .alignment = 16},
      {.first = 0, .last = 1, .size = 12, .alignment = 16},
      {.first = 0, .last = 1, .size = 12, .alignment = 6}};
  tarn_plan_problem problem = problem_of(buffers, 3);
  assert_height(&problem, "optimal", 42);
  problem.capacities = &capacity;
  problem.arena_count = 1;
  assert_height(&problem, "feasible", 42);
}

// A capacity is enough, unless the lowest is asked for.
TEST(a_capacity_is_a_goal) {
  const uint64_t capacity = 1000;
  const tarn_plan_buffer buffers[] = {{.first = 0, .last = 2, .size = 4},
                                      {.first = 1, .last = 3, .size = 4}};
  tarn_plan_problem problem = within(buffers, 2, &capacity);
  tarn_plan_options options = plain;
  options.minimise = true;
  assert_solved(&problem, &options, "optimal");
}

TEST(answers_have_names) {
  ck_assert_str_eq(tarn_plan_answer_name(TARN_PLAN_OPTIMAL), "optimal");
  ck_assert_str_eq(tarn_plan_answer_name(TARN_PLAN_FEASIBLE), "feasible");
  ck_assert_str_eq(tarn_plan_answer_name(TARN_PLAN_INFEASIBLE), "infeasible");
  ck_assert_str_eq(tarn_plan_answer_name(TARN_PLAN_OUT_OF_TIME), "out_of_time");
  ck_assert_str_eq(tarn_plan_answer_name((tarn_plan_answer)4), "?");
  ck_assert_str_eq(tarn_plan_answer_name((tarn_plan_answer)-1), "?");
}

TEST(no_plan_has_nothing) {
  tarn_plan_info info = {.struct_size = sizeof info};
  tarn_plan_destroy(NULL);
  assert_status(tarn_plan_query(NULL, &info), TARN_E_INVALID);
  ck_assert_ptr_null(tarn_plan_offsets(NULL));
  ck_assert_ptr_null(tarn_plan_arenas(NULL));
  ck_assert_ptr_null(tarn_plan_conflict(NULL));
  ck_assert_uint_eq(tarn_plan_height(NULL, 0), 0);
}

// 0 stands for the first version; a later one's fields stay as they are.
TEST(structs_may_grow) {
  const tarn_plan_buffer buffers[] = {{.first = 0, .last = 2, .size = 4}};
  tarn_plan_problem problem = problem_of(buffers, 1);
  tarn_plan_options options = {.struct_size = 0, .threads = 2};
  problem.struct_size = 0;
  tarn_plan *plan = NULL;
  assert_ok(tarn_plan_solve(&problem, &options, &plan));
  struct {
    tarn_plan_info info;
    uint64_t later;
  } grown = {.info.struct_size = sizeof grown, .later = 5};
  assert_ok(tarn_plan_query(plan, &grown.info));
  ck_assert_uint_eq(grown.info.struct_size, sizeof grown.info);
  ck_assert_uint_eq(grown.info.height, 4);
  ck_assert_uint_eq(grown.later, 5);
  tarn_plan_info info = {.struct_size = 0};
  assert_ok(tarn_plan_query(plan, &info));
  ck_assert_uint_eq(info.height, 4);
  info.struct_size = 8;
  assert_status(tarn_plan_query(plan, &info), TARN_E_INVALID);
  assert_status(tarn_plan_query(plan, NULL), TARN_E_INVALID);
  tarn_plan_destroy(plan);
}

// --- limits ------------------------------------------------------------------

typedef struct hearing {
  size_t calls;
  size_t stop_at;
  tarn_plan_progress last;
  bool worse;
  size_t unsearched;  // better plans that cost no search
} hearing;

static bool hear(const tarn_plan_progress *progress, void *user) {
  hearing *h = user;
  ck_assert_uint_eq(progress->struct_size, sizeof *progress);
  if (progress->nodes == 0 && progress->height != h->last.height) {
    h->unsearched++;
  }
  if (h->calls > 0) {
    bool higher = h->last.height != 0 && progress->height > h->last.height;
    h->worse |= higher || progress->lower_bound < h->last.lower_bound ||
                progress->nodes < h->last.nodes ||
                progress->seconds < h->last.seconds;
  }
  h->last = *progress;
  return ++h->calls != h->stop_at;
}

TEST(progress_only_gets_better) {
  tarn_plan_buffer buffers[MANY];
  make_many(buffers);
  const tarn_plan_pair pairs[] = {{0, 1}};
  buffers[0] = (tarn_plan_buffer){.first = 3, .last = 9, .size = 400};
  buffers[1] = (tarn_plan_buffer){.first = 8, .last = 12, .size = 700};
  tarn_plan_problem problem = problem_of(buffers, MANY);
  problem.pairs = pairs;
  for (problem.pair_count = 0; problem.pair_count < 2; problem.pair_count++) {
    hearing h = {0};
    tarn_plan_options options = plain;
    options.node_limit = 20000;
    options.progress = hear;
    options.user = &h;
    tarn_plan *plan = solve(&problem, &options);
    ck_assert_uint_gt(h.calls, 0);
    ck_assert(!h.worse);
    ck_assert_uint_le(info_of(plan).height, h.last.height);
    ck_assert(!info_of(plan).cancelled);
    tarn_plan_destroy(plan);
  }
}

// Also of a plan that needs no search.
TEST(the_first_plan_is_heard_of) {
  const tarn_plan_buffer buffers[] = {{.first = 0, .last = 2, .size = 4},
                                      {.first = 1, .last = 3, .size = 8}};
  tarn_plan_problem problem = problem_of(buffers, 2);
  hearing h = {0};
  tarn_plan_options options = plain;
  options.progress = hear;
  options.user = &h;
  tarn_plan *plan = solve(&problem, &options);
  ck_assert_uint_eq(h.calls, 1);
  ck_assert_uint_eq(h.last.height, 12);
  ck_assert_uint_eq(h.last.lower_bound, 12);
  tarn_plan_destroy(plan);
}

// Each one that is better, and not the last alone.
TEST(quick_plans_are_heard_of) {
  tarn_plan_buffer buffers[MANY];
  make_many(buffers);
  tarn_plan_problem problem = problem_of(buffers, MANY);
  hearing h = {0};
  tarn_plan_options options = plain;
  options.node_limit = 1;
  options.progress = hear;
  options.user = &h;
  tarn_plan_destroy(solve(&problem, &options));
  ck_assert_uint_ge(h.unsearched, 2);
}

TEST(a_caller_may_have_enough) {
  tarn_plan_buffer buffers[MANY];
  make_many(buffers);
  tarn_plan_problem problem = problem_of(buffers, MANY);
  hearing h = {.stop_at = 1};
  tarn_plan_options options = plain;
  options.time_limit_s = INFINITY;
  options.progress = hear;
  options.user = &h;
  tarn_plan *plan = solve(&problem, &options);
  ck_assert_ptr_nonnull(tarn_plan_offsets(plan));
  ck_assert(info_of(plan).cancelled);
  ck_assert_uint_eq(h.calls, 1);
  tarn_plan_destroy(plan);
}

// Whatever the limits, there is a plan: that costs no nodes.
TEST(the_first_plan_comes_in_any_case) {
  tarn_plan_buffer buffers[MANY];
  make_many(buffers);
  tarn_plan_problem problem = problem_of(buffers, MANY);
  tarn_plan_options options = plain;
  options.node_limit = 1;
  tarn_plan *plan = solve(&problem, &options);
  ck_assert_ptr_nonnull(tarn_plan_offsets(plan));
  ck_assert_uint_le(info_of(plan).nodes, 2);
  tarn_plan_destroy(plan);
  options =
      (tarn_plan_options){.struct_size = sizeof options, .time_limit_s = 1e-9};
  plan = solve(&problem, &options);
  ck_assert_ptr_nonnull(tarn_plan_offsets(plan));
  tarn_plan_destroy(plan);
}

// --- threads -----------------------------------------------------------------

static void assert_same_again(const tarn_plan_problem *problem,
                              uint32_t threads) {
  tarn_plan_options options = plain;
  options.node_limit = 5000;
  options.threads = threads;
  tarn_plan *one = solve(problem, &options);
  tarn_plan *two = solve(problem, &options);
  ck_assert_uint_eq(info_of(one).height, info_of(two).height);
  ck_assert_uint_eq(info_of(one).nodes, info_of(two).nodes);
  ck_assert_uint_eq(info_of(one).answer, info_of(two).answer);
  size_t bytes = problem->count * sizeof(uint64_t);
  ck_assert_mem_eq(tarn_plan_offsets(one), tarn_plan_offsets(two), bytes);
  tarn_plan_destroy(one);
  tarn_plan_destroy(two);
}

TEST(the_same_limits_give_the_same_plan) {
  tarn_plan_buffer buffers[MANY];
  make_many(buffers);
  const tarn_plan_pair pairs[] = {{0, 1}};
  buffers[0] = (tarn_plan_buffer){.first = 3, .last = 9, .size = 400};
  buffers[1] = (tarn_plan_buffer){.first = 8, .last = 12, .size = 700};
  const uint64_t capacities[] = {6000, 0};
  for (uint32_t threads = 1; threads <= 4; threads++) {
    tarn_plan_problem problem = problem_of(buffers, MANY);
    assert_same_again(&problem, threads);
    problem.pairs = pairs;
    problem.pair_count = 1;
    assert_same_again(&problem, threads);
    problem.capacities = capacities;
    problem.arena_count = 2;
    assert_same_again(&problem, threads);
  }
}

// --- large problems ----------------------------------------------------------

// Too many that are live together for any search.
enum { LARGE = 9000 };

static tarn_plan_buffer *make_large(void) {
  static const uint64_t sizes[] = {512, 4096, 65536, 786432, 1048576};
  tarn_plan_buffer *buffers = calloc(LARGE, sizeof *buffers);
  require(buffers != NULL);
  uint64_t state = 3;
  for (size_t i = 0; i < LARGE; i++) {
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    uint64_t first = (state >> 33) % 8000;
    buffers[i] = (tarn_plan_buffer){.first = first,
                                    .last = first + 1 + (state >> 45) % 600,
                                    .size = sizes[(state >> 57) % 5]};
  }
  return buffers;
}

static const tarn_plan_buffer *sorted;

static int by_size_and_begin(const void *x, const void *y) {
  const tarn_plan_buffer *a = &sorted[*(const uint32_t *)x];
  const tarn_plan_buffer *b = &sorted[*(const uint32_t *)y];
  if (a->size != b->size) return a->size > b->size ? -1 : 1;
  if (a->first != b->first) return a->first < b->first ? -1 : 1;
  return (a > b) - (a < b);
}

// The largest first, of equals what begins first, each as low as it fits. What
// lies there is kept in a list by offset.
static uint64_t height_by_size(const tarn_plan_buffer *buffers) {
  static uint32_t order[LARGE];
  static uint32_t lying[LARGE];
  static uint64_t at[LARGE];
  uint64_t height = 0;
  for (uint32_t i = 0; i < LARGE; i++)
    order[i] = i;
  sorted = buffers;
  qsort(order, LARGE, sizeof *order, by_size_and_begin);
  for (size_t i = 0; i < LARGE; i++) {
    const tarn_plan_buffer *b = &buffers[order[i]];
    uint64_t low = 0;
    for (size_t k = 0; k < i; k++) {
      const tarn_plan_buffer *other = &buffers[lying[k]];
      uint64_t end = at[lying[k]] + other->size;
      if (other->first >= b->last || b->first >= other->last) continue;
      if (at[lying[k]] >= low + b->size) break;
      if (end > low) low = end;
    }
    size_t to = i;
    for (; to > 0 && at[lying[to - 1]] > low; to--)
      lying[to] = lying[to - 1];
    lying[to] = order[i];
    at[order[i]] = low;
    if (height < low + b->size) height = low + b->size;
  }
  return height;
}

// All nodes are used, on moves; two runs are equal.
TEST_LOOP(moves_are_nodes, THREADS_ARE_WATCHED ? 0 : 1) {
  enum { NODES = 10000 };
  tarn_plan_buffer *buffers = make_large();
  tarn_plan_problem problem = problem_of(buffers, LARGE);
  tarn_plan_options options = plain;
  options.time_limit_s = INFINITY;
  options.node_limit = NODES;
  tarn_plan *plan = solve(&problem, &options);
  tarn_plan *again = solve(&problem, &options);
  assert_answer(plan, "feasible");
  ck_assert_uint_eq(info_of(plan).nodes, NODES);
  ck_assert_uint_eq(info_of(again).nodes, NODES);
  ck_assert_mem_eq(tarn_plan_offsets(plan), tarn_plan_offsets(again),
                   LARGE * sizeof(uint64_t));
  tarn_plan_destroy(plan);
  tarn_plan_destroy(again);
  free(buffers);
}

TEST_LOOP(no_plan_is_higher_than_greedy_by_size, THREADS_ARE_WATCHED ? 0 : 1) {
  tarn_plan_buffer *buffers = make_large();
  tarn_plan_problem problem = problem_of(buffers, LARGE);
  tarn_plan_options options = plain;
  options.time_limit_s = INFINITY;
  options.node_limit = 1;
  tarn_plan *plan = solve(&problem, &options);
  uint64_t by_size = height_by_size(buffers);
  ck_assert_uint_le(info_of(plan).height, by_size);
  options.node_limit = 40000;
  tarn_plan *moved = solve(&problem, &options);
  ck_assert_uint_lt(info_of(moved).height, info_of(plan).height);
  tarn_plan_destroy(plan);
  tarn_plan_destroy(moved);
  free(buffers);
}

static void solve_or_not(void *user) {
  tarn_plan_options options = plain;
  options.node_limit = 50;
  options.threads = 2;
  tarn_plan *plan = NULL;
  tarn_status status = tarn_plan_solve(user, &options, &plan);
  require(status == TARN_OK || status == TARN_E_NOMEM);
  require((plan != NULL) == (status == TARN_OK));
  tarn_plan_destroy(plan);
}

TEST(every_fault_is_survived) {
  tarn_plan_buffer buffers[MANY];
  make_many(buffers);
  tarn_plan_problem problem = problem_of(buffers, MANY / 4);
  ck_assert_uint_gt(faults_sweep(solve_or_not, &problem), 10);
}

int main(void) {
  faults_install();
  return run_tests();
}
