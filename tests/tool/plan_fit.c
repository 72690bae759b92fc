// What must move or shrink for buffers to fit, and traces as problems.
#include <stdlib.h>

#include "overfull.h"
#include "plan_fit.h"
#include "support/run.h"
#include "trace_problem.h"
#include "why_kit.h"

enum { MOST = 40 };

static const double seconds = 2;

static tarn_plan_problem problem_of(const tarn_plan_buffer *buffers,
                                    size_t count, const uint64_t *capacity) {
  return (tarn_plan_problem){.struct_size = sizeof(tarn_plan_problem),
                             .buffers = buffers,
                             .count = count,
                             .capacities = capacity,
                             .arena_count = 1};
}

// ---------------------------------------------------------------------------
// Which go where too much is needed
// ---------------------------------------------------------------------------

static uint64_t peak_without(const tarn_plan_problem *problem,
                             const bool *moved) {
  uint64_t peak = 0;
  for (size_t i = 0; i < problem->count; i++) {
    uint64_t live = 0, step = problem->buffers[i].first;
    for (size_t j = 0; j < problem->count; j++) {
      const tarn_plan_buffer *b = &problem->buffers[j];
      if (!moved[j] && b->first <= step && step < b->last) live += b->size;
    }
    if (live > peak) peak = live;
  }
  return peak;
}

static void make_random(tarn_plan_buffer *buffers) {
  for (size_t i = 0; i < MOST; i++) {
    uint64_t first = chance(100);
    buffers[i] = (tarn_plan_buffer){.first = first,
                                    .last = first + 1 + chance(30),
                                    .size = 1 + chance(100)};
  }
}

// Nothing is taken out in vain: none of them could come back.
static void require_needed(const tarn_plan_problem *problem, uint64_t target,
                           bool *moved) {
  for (size_t i = 0; i < problem->count; i++) {
    if (!moved[i]) continue;
    moved[i] = false;
    require(peak_without(problem, moved) > target);
    moved[i] = true;
  }
}

TEST(what_is_left_is_not_too_much) {
  tarn_plan_buffer buffers[MOST];
  bool moved[MOST];
  chance_state = 7;
  for (int round = 0; round < 300; round++) {
    make_random(buffers);
    tarn_plan_problem problem = problem_of(buffers, MOST, NULL);
    uint64_t target = 1 + chance(900);
    overfull_choose(&problem, target, moved);
    require(peak_without(&problem, moved) <= target);
    require_needed(&problem, target, moved);
  }
}

// One that is large enough, not all of the small ones; and the smallest of
// those.
TEST(few_are_chosen) {
  const tarn_plan_buffer buffers[] = {
      {.first = 0, .last = 9, .size = 10}, {.first = 0, .last = 9, .size = 10},
      {.first = 0, .last = 9, .size = 25}, {.first = 4, .last = 5, .size = 25},
      {.first = 0, .last = 9, .size = 70},
  };
  bool moved[5];
  tarn_plan_problem problem = problem_of(buffers, 5, NULL);
  overfull_choose(&problem, 92, moved);
  ck_assert(!moved[0] && !moved[1] && !moved[2] && !moved[3] && moved[4]);
  overfull_choose(&problem, 120, moved);
  ck_assert(!moved[0] && !moved[1] && moved[2] && !moved[3] && !moved[4]);
}

// More than some hundred: the rest goes in one sweep.
TEST(many_are_chosen) {
  enum { COUNT = 3000 };
  tarn_plan_buffer *buffers = calloc(COUNT, sizeof *buffers);
  bool *moved = calloc(COUNT, sizeof *moved);
  ck_assert_ptr_nonnull(buffers);
  ck_assert_ptr_nonnull(moved);
  for (size_t i = 0; i < COUNT; i++)
    buffers[i] = (tarn_plan_buffer){.first = i, .last = i + 100, .size = 1};
  tarn_plan_problem problem = problem_of(buffers, COUNT, NULL);
  overfull_choose(&problem, 10, moved);
  size_t count = 0;
  for (size_t i = 0; i < COUNT; i++)
    count += moved[i];
  ck_assert_uint_eq(peak_without(&problem, moved), 10);
  ck_assert_uint_lt(count, COUNT);
  free(buffers);
  free(moved);
}

TEST(none_are_chosen_where_all_fit) {
  const tarn_plan_buffer one = {.last = 1, .size = 5};
  bool moved = true;
  tarn_plan_problem problem = problem_of(&one, 1, NULL);
  overfull_choose(&problem, 5, &moved);
  ck_assert(!moved);
  problem.count = 0;
  overfull_choose(&problem, 5, &moved);
  ck_assert(!moved);
}

// ---------------------------------------------------------------------------
// Moving
// ---------------------------------------------------------------------------

TEST(moves_make_it_fit) {
  const tarn_plan_buffer buffers[] = {
      {.first = 0, .last = 9, .size = 10},
      {.first = 0, .last = 9, .size = 30},
      {.first = 0, .last = 9, .size = 60},
      {.first = 4, .last = 5, .size = 20},
  };
  const uint64_t capacity = 100;
  tarn_plan_problem problem = problem_of(buffers, 4, &capacity);
  plan_moves moves = plan_fit_moves(&problem, seconds);
  ck_assert(moves.known);
  ck_assert_uint_eq(moves.count, 1);
  ck_assert_uint_eq(moves.items[0], 3);
  ck_assert_uint_eq(moves.bytes, 20);
  ck_assert_uint_eq(moves.height, 100);
  plan_moves_deinit(&moves);
}

// 4 units are needed at any moment, 5 for any plan: proved by trying all.
TEST(holes_are_moved_too) {
  const tarn_plan_buffer buffers[] = {
      {.first = 0, .last = 2, .size = 2, .flags = TARN_PLAN_FIXED},
      {.first = 0, .last = 9, .size = 1, .flags = TARN_PLAN_FIXED, .offset = 2},
      {.first = 3, .last = 9, .size = 3},
  };
  const uint64_t capacity = 4;
  tarn_plan_problem problem = problem_of(buffers, 3, &capacity);
  plan_moves moves = plan_fit_moves(&problem, seconds);
  ck_assert(moves.known);
  ck_assert_uint_eq(moves.count, 1);
  ck_assert_uint_eq(moves.items[0], 2);
  ck_assert_uint_eq(moves.height, 3);
  plan_moves_deinit(&moves);
}

// One that is larger than all there is goes.
TEST(what_cannot_fit_moves) {
  const tarn_plan_buffer buffers[] = {{.first = 0, .last = 1, .size = 200},
                                      {.first = 1, .last = 2, .size = 100}};
  const uint64_t capacity = 100;
  tarn_plan_problem problem = problem_of(buffers, 2, &capacity);
  plan_moves moves = plan_fit_moves(&problem, seconds);
  ck_assert(moves.known);
  ck_assert_uint_eq(moves.count, 1);
  ck_assert_uint_eq(moves.items[0], 0);
  plan_moves_deinit(&moves);
}

// A buffer that has gone gives no place and takes none, and the others have
// new numbers.
static void assert_left(const tarn_plan_buffer *buffers, size_t count,
                        tarn_plan_pair pair, size_t moved) {
  const uint64_t capacity = 250;
  tarn_plan_problem problem = problem_of(buffers, count, &capacity);
  problem.pairs = &pair;
  problem.pair_count = 1;
  plan_moves moves = plan_fit_moves(&problem, seconds);
  ck_assert(moves.known);
  ck_assert_uint_eq(moves.count, 1);
  ck_assert_uint_eq(moves.items[0], moved);
  ck_assert_uint_ge(moves.height, 200);  // which is needed at once
  ck_assert_uint_le(moves.height, capacity);
  plan_moves_deinit(&moves);
}

TEST(pairs_are_those_of_what_is_left) {
  // The last one takes the place of the one before.
  const tarn_plan_buffer in_front[] = {{.first = 0, .last = 9, .size = 1000},
                                       {.first = 4, .last = 7, .size = 100},
                                       {.first = 0, .last = 3, .size = 10},
                                       {.first = 2, .last = 5, .size = 100}};
  const tarn_plan_buffer between[] = {{.first = 0, .last = 9, .size = 1000},
                                      {.first = 0, .last = 3, .size = 10},
                                      {.first = 2, .last = 5, .size = 100},
                                      {.first = 4, .last = 7, .size = 100}};
  const tarn_plan_buffer giver[] = {{.first = 0, .last = 3, .size = 1000},
                                    {.first = 2, .last = 5, .size = 100},
                                    {.first = 4, .last = 7, .size = 100}};
  const tarn_plan_buffer taker[] = {{.first = 0, .last = 5, .size = 100},
                                    {.first = 4, .last = 9, .size = 1000},
                                    {.first = 4, .last = 8, .size = 100}};
  assert_left(in_front, 4, (tarn_plan_pair){2, 3}, 0);
  assert_left(between, 4, (tarn_plan_pair){1, 2}, 0);
  assert_left(giver, 3, (tarn_plan_pair){0, 1}, 0);
  assert_left(taker, 3, (tarn_plan_pair){0, 1}, 1);
}

TEST(without_a_limit_nothing_moves) {
  const tarn_plan_buffer one = {.last = 1, .size = 5};
  const uint64_t capacities[] = {0, 5};
  tarn_plan_problem problem = problem_of(&one, 1, capacities);
  ck_assert_uint_eq(plan_fit_capacity(&problem), 0);
  plan_moves moves = plan_fit_moves(&problem, seconds);
  ck_assert(!moves.known);
  problem.arena_count = 2;
  ck_assert_uint_eq(plan_fit_capacity(&problem), 0);
  problem.capacities = &capacities[1];
  problem.arena_count = 1;
  ck_assert_uint_eq(plan_fit_capacity(&problem), 5);
}

// ---------------------------------------------------------------------------
// Shrinking
// ---------------------------------------------------------------------------

TEST(the_factor_is_that_of_the_heights) {
  const tarn_plan_buffer buffers[] = {{.first = 0, .last = 2, .size = 1000},
                                      {.first = 1, .last = 3, .size = 3000}};
  const bool kept[] = {true, false};
  const uint64_t capacity = 3000;
  tarn_plan_problem problem = problem_of(buffers, 2, &capacity);
  uint64_t height = 0;
  uint64_t *offsets = plan_fit_unlimited(&problem, seconds, &height);
  ck_assert_ptr_nonnull(offsets);
  ck_assert_uint_eq(height, 4000);
  free(offsets);
  ck_assert_double_eq(plan_fit_factor(&problem, NULL, 4000, seconds), 0.75);
  // 2000 of 3000, cut to four digits.
  ck_assert_double_eq(plan_fit_factor(&problem, kept, 4000, seconds), 0.6666);
}

TEST(what_stays_may_be_too_much) {
  const tarn_plan_buffer buffers[] = {{.first = 0, .last = 2, .size = 1000},
                                      {.first = 1, .last = 3, .size = 3000}};
  const bool kept[] = {false, true};
  const uint64_t capacity = 3000;
  tarn_plan_problem problem = problem_of(buffers, 2, &capacity);
  ck_assert_double_eq(plan_fit_factor(&problem, kept, 4000, seconds), 0);
}

// Sizes shrink by whole units, and no further than to one.
TEST(units_stay_whole) {
  const tarn_plan_buffer buffers[] = {
      {.last = 1, .size = 512, .alignment = 256},
      {.last = 1, .size = 512, .alignment = 256}};
  const uint64_t capacities[] = {512, 256};
  tarn_plan_problem problem = problem_of(buffers, 2, &capacities[0]);
  ck_assert_double_eq(plan_fit_factor(&problem, NULL, 1024, seconds), 0.5);
  problem.capacities = &capacities[1];
  ck_assert_double_eq(plan_fit_factor(&problem, NULL, 1024, seconds), 0);
}

// ---------------------------------------------------------------------------
// Traces
// ---------------------------------------------------------------------------

static void assert_buffer(const trace_problem *p, size_t index, uint64_t first,
                          uint64_t last, uint64_t size) {
  const tarn_plan_buffer *b = &p->buffers[index];
  ck_assert_uint_eq(b->first, first);
  ck_assert_uint_eq(b->last, last);
  ck_assert_uint_eq(b->size, size);
}

TEST(a_trace_is_a_problem) {
  begin();
  tarn_trace_block old = {
      .size = 1000, .address = 1, .stack = TARN_TRACE_NO_STACK};
  assert_ok(tarn_trace_builder_old(builder, &old));
  alloc(0x10000, 256, TARN_TRACE_NO_STACK);
  event(TARN_TRACE_OOM, 0, 4097, TARN_TRACE_NO_STACK);
  release(1);
  alloc(0x20000, 1, TARN_TRACE_NO_STACK);
  release(0x20000);
  tarn_trace *trace = finish();
  trace_problem p = trace_problem_make(trace, 0, 0);
  ck_assert_uint_eq(p.problem.count, 3);
  trace_problem_deinit(&p);
  p = trace_problem_make(trace, 0, 4096);
  ck_assert_uint_eq(p.problem.count, 3);
  trace_problem_deinit(&p);
  p = trace_problem_make(trace, 0, 4097);
  ck_assert_uint_eq(p.problem.count, 4);
  assert_buffer(&p, 0, 0, 3, 1024);
  assert_buffer(&p, 1, 1, 6, 256);
  assert_buffer(&p, 2, 4, 5, 256);
  assert_buffer(&p, 3, 2, 3, 4352);
  ck_assert_uint_eq(p.buffers[3].alignment, TRACE_PROBLEM_ALIGNMENT);
  ck_assert(trace_problem_is_old(&p, 0) && !trace_problem_is_old(&p, 1));
  trace_problem_deinit(&p);
  p = trace_problem_make(trace, 1, 0);
  assert_buffer(&p, 0, 0, 3, 1000);
  trace_problem_deinit(&p);
  tarn_trace_destroy(trace);
}

// What is live after each event is live in the step of that number.
TEST(the_bound_is_the_peak) {
  for (uint32_t seed = 1; seed < 30; seed++) {
    tarn_trace *trace = random_trace(seed);
    trace_problem p = trace_problem_make(trace, 1, 0);
    uint64_t bound = 0;
    require(tarn_plan_lower_bound(&p.problem, &bound) == TARN_OK);
    require(bound == trace->live_peak_bytes);
    trace_problem_deinit(&p);
    tarn_trace_destroy(trace);
  }
}
