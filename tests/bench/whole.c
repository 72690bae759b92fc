// The parts of `tarn bench whole`: which rows are asked for, what stands in
// them, and what is said of the goals.
#include <math.h>
#include <string.h>

#include "bench/whole_bench.h"
#include "bench/whole_indices.h"
#include "support/run.h"

enum { DRAWN = 4096 };

// --- indices ---------------------------------------------------------------

TEST(indices_are_of_the_table) {
  static int64_t drawn[DRAWN];
  whole_draw_uniform(drawn, DRAWN, 10, 7);
  size_t seen[10] = {0};
  for (size_t i = 0; i < DRAWN; i++) {
    require(drawn[i] >= 0 && drawn[i] < 10);
    seen[drawn[i]]++;
  }
  for (size_t i = 0; i < 10; i++)
    ck_assert_uint_gt(seen[i], DRAWN / 20);
}

// Of as many rows as the prime by which they are put in another order, too.
TEST(different_indices_are) {
  static const size_t tables[] = {DRAWN, 1000003, 2000006, 1000033};
  static int64_t drawn[DRAWN];
  static bool seen[2000006];
  for (size_t t = 0; t < 4; t++) {
    memset(seen, 0, sizeof seen);
    whole_draw_different(drawn, DRAWN, tables[t], 3);
    for (size_t i = 0; i < DRAWN; i++) {
      require(drawn[i] >= 0 && (size_t)drawn[i] < tables[t]);
      require(!seen[drawn[i]]);
      seen[drawn[i]] = true;
    }
  }
}

static size_t most_often(const int64_t *drawn, size_t rows) {
  static size_t seen[DRAWN];
  size_t most = 0;
  memset(seen, 0, sizeof seen);
  for (size_t i = 0; i < DRAWN; i++) {
    require(drawn[i] >= 0 && (size_t)drawn[i] < rows);
    if (++seen[drawn[i]] > most) most = seen[drawn[i]];
  }
  return most;
}

// The most wanted of 4096 rows is one in ln(2) / ln(4097), or a twelfth.
TEST(zipf_wants_few_rows) {
  static int64_t drawn[DRAWN];
  whole_draw_zipf(drawn, DRAWN, DRAWN, 5);
  size_t most = most_often(drawn, DRAWN);
  ck_assert_uint_gt(most, DRAWN / 16);
  ck_assert_uint_lt(most, DRAWN / 9);
  whole_draw_uniform(drawn, DRAWN, DRAWN, 5);
  ck_assert_uint_lt(most_often(drawn, DRAWN), DRAWN / 100);
}

// With a larger exponent the most wanted one is wanted more often.
TEST(a_power_wants_fewer_rows) {
  static int64_t drawn[DRAWN];
  whole_draw_zipf(drawn, DRAWN, DRAWN, 5);
  size_t zipf = most_often(drawn, DRAWN);
  whole_draw_power(drawn, DRAWN, DRAWN, 1.05, 5);
  size_t few = most_often(drawn, DRAWN);
  whole_draw_power(drawn, DRAWN, DRAWN, 2, 5);
  ck_assert_uint_gt(few, zipf);
  ck_assert_uint_gt(most_often(drawn, DRAWN), few);
}

// --- rows ------------------------------------------------------------------

TEST(a_wrong_row_is_seen) {
  static const int64_t indices[] = {3, 0, 3};
  float table[4 * 5];
  float rows[3 * 5];
  whole_fill(table, 20, 0);
  whole_rows_fill(rows, indices, 3, 5, 2);
  for (size_t i = 0; i < 5; i++)
    ck_assert_float_eq(rows[i], table[15 + i] + 2);
  ck_assert(whole_rows_right(rows, indices, 3, 5, 2));
  ck_assert(!whole_rows_right(rows, indices, 3, 5, 1));
  for (size_t i = 0; i < 15; i++) {
    rows[i] += 1;
    ck_assert(!whole_rows_right(rows, indices, 3, 5, 2));
    rows[i] -= 1;
  }
  rows[7] = NAN;
  ck_assert(!whole_rows_right(rows, indices, 3, 5, 2));
}

// Elements of different rows are not the same: a gather of the wrong row would
// not be seen.
TEST(rows_differ) {
  static float elements[DRAWN];
  whole_fill(elements, DRAWN, UINT64_C(1) << 33);
  for (size_t i = 1; i < DRAWN; i++)
    require(elements[i] < elements[0] || elements[i] > elements[0]);
}

// --- goals -----------------------------------------------------------------

static whole_result some_result(void) {
  whole_result r = {.count = 2};
  r.figures[0] = (whole_figure){.kind = {TARN_WHOLE_CONTINUOUS, true},
                                .op = WHOLE_GATHER,
                                .row_bytes = 256,
                                .over_memcpy = 0.8,
                                .over_mpi = 1.5,
                                .over_plain = NAN};
  r.figures[1] = (whole_figure){.kind = {TARN_WHOLE_DISTRIBUTED, true},
                                .op = WHOLE_GATHER,
                                .row_bytes = 256,
                                .over_memcpy = 0.6,
                                .over_mpi = 1.9};
  for (size_t i = 0; i < WHOLE_KINDS; i++)
    r.made[i] = (whole_made){whole_kind_at(i), .ready_ms = 3, .touch_ms = 10};
  return r;
}

static const whole_goal *find_goal(const whole_goal *goals, size_t all,
                                   const char *name) {
  for (size_t i = 0; i < all; i++) {
    if (strcmp(goals[i].name, name) == 0) return &goals[i];
  }
  ck_abort_msg("no goal %s", name);
}

TEST(goals_are_met_or_not) {
  whole_goal goals[WHOLE_GOALS_MOST];
  whole_bench bench = {.device = "cpu:0", .ranks = 2};
  whole_result r = some_result();
  size_t all = whole_goals(&bench, &r, goals);
  ck_assert_uint_eq(all, 3 + 2 + WHOLE_KINDS);
  ck_assert(whole_goal_is_met(find_goal(goals, all, "gather_over_memcpy")));
  ck_assert(
      !whole_goal_is_met(find_goal(goals, all, "gather_over_mpi_window")));
  const whole_goal *over = find_goal(goals, all, "gather_over_continuous");
  ck_assert_double_eq_tol(over->value, 0.75, 1e-9);
  ck_assert(whole_goal_is_met(over));
  ck_assert(
      whole_goal_is_met(find_goal(goals, all, "gather_over_mpi_alltoallv")));
  const whole_goal *ready = find_goal(goals, all, "ready_over_touch");
  ck_assert_double_eq_tol(ready->value, 0.3, 1e-9);
  ck_assert(ready->at_most && whole_goal_is_met(ready));
  ck_assert_uint_eq(whole_goals(&bench, &(whole_result){0}, goals), 0);
  bench.ranks = 3;
  ck_assert_uint_eq(whole_goals(&bench, &r, goals), 0);
}
