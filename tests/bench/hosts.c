// What is said of gathers over several machines: which goals a link has.

#include "bench/hosts_bench.h"
#include "support/run.h"

static const hosts_link links[] = {
    [HOSTS_FREE] = {.both_gbs = 1.2, .round_us = 9},
    [HOSTS_LIMITED] = {.both_gbs = .46, .round_us = 9},
    [HOSTS_LONG] = {.both_gbs = .1, .round_us = 2100}};

// By Tarn and by MPI, many rows and few.
static hosts_result some_result(hosts_length length) {
  static const size_t rows[] = {64, 256, 1024};
  hosts_result r = {.link = links[length], .count = 12};
  for (size_t i = 0; i < r.count; i++)
    r.figures[i] =
        (hosts_figure){.type = TARN_WHOLE_DISTRIBUTED,
                       .op = i % 2 == 0 ? HOSTS_GATHER : HOSTS_ALLTOALLV,
                       .row_bytes = rows[i / 2 % 3],
                       .is_small = i >= 6,
                       .over_alltoallv = 1.6,
                       .over_link = 0.93};
  return r;
}

static size_t count_goals(hosts_length length, const char *name, double value) {
  hosts_goal goals[HOSTS_GOALS_MOST];
  hosts_result r = some_result(length);
  size_t count = hosts_goals(&r, goals);
  for (size_t i = 0; i < count; i++) {
    ck_assert_str_eq(goals[i].name, name);
    ck_assert_double_eq_tol(goals[i].value, value, 1e-9);
    ck_assert_int_eq((int)goals[i].figure->op, (int)HOSTS_GATHER);
  }
  return count;
}

TEST(a_link_is_free_limited_or_long) {
  for (int i = 0; i < 3; i++)
    ck_assert_int_eq((int)hosts_length_of(&links[i]), i);
}

TEST(each_link_has_its_goals) {
  ck_assert_uint_eq(count_goals(HOSTS_FREE, "gather_over_alltoallv", 1.6), 3);
  ck_assert_uint_eq(count_goals(HOSTS_LIMITED, "gather_over_link", 0.93), 2);
  ck_assert_uint_eq(count_goals(HOSTS_LONG, "small_gather_over_alltoallv", 1.6),
                    3);
}

static size_t count_by_zipf(size_t ranks, tarn_whole_type type,
                            hosts_goal *goals) {
  hosts_result r = some_result(HOSTS_FREE);
  r.ranks = ranks;
  r.machines = 2;
  for (size_t i = 0; i < r.count; i++) {
    r.figures[i].zipf = true;
    r.figures[i].type = type;
    r.figures[i].wire_over_needed = 1.25;
  }
  return hosts_goals(&r, goals);
}

TEST(hierarchical_memory_has_goals_by_zipf) {
  hosts_goal goals[HOSTS_GOALS_MOST];
  ck_assert_uint_eq(count_by_zipf(4, TARN_WHOLE_DISTRIBUTED, goals), 0);
  ck_assert_uint_eq(count_by_zipf(2, TARN_WHOLE_HIERARCHICAL, goals), 0);
  ck_assert_uint_eq(count_by_zipf(4, TARN_WHOLE_HIERARCHICAL, goals), 2);
  ck_assert_double_eq_tol(goals[0].value, 1.6, 1e-9);
  ck_assert_double_eq_tol(goals[1].value, 0.8, 1e-9);
}

// Zipf's law has none of the others.
TEST(goals_are_for_uniform_indices) {
  hosts_goal goals[HOSTS_GOALS_MOST];
  hosts_result r = some_result(HOSTS_FREE);
  for (size_t i = 0; i < r.count; i++)
    r.figures[i].zipf = true;
  ck_assert_uint_eq(hosts_goals(&r, goals), 0);
}
