// What two ranks should reach on the cpu device, and what they have reached.
#include <math.h>
#include <string.h>

#include "whole_bench.h"

// Goals by size of rows.
enum { SIZES = 3 };
static const size_t sizes[SIZES] = {64, 256, 1024};

typedef enum measure {
  OVER_MEMCPY,
  OVER_MPI,
  OVER_PLAIN,
  OVER_CONTINUOUS,
} measure;

typedef struct aim {
  const char *name;
  bool is_mapped;
  measure measure;
  double goals[SIZES];
} aim;

static const aim aims[] = {
    {"gather_over_memcpy", true, OVER_MEMCPY, {.42, .75, .90}},
    {"gather_over_mpi_window", true, OVER_MPI, {2.0, 1.6, 1.15}},
    {"gather_over_plain_gather", true, OVER_PLAIN, {1.2, .95, .95}},
    {"gather_over_continuous", false, OVER_CONTINUOUS, {.80, .70, .70}},
    {"gather_over_mpi_alltoallv", false, OVER_MPI, {1.5, 1.8, 2.0}},
};
enum { AIMS = sizeof aims / sizeof aims[0] };

_Static_assert(WHOLE_KINDS *((AIMS + 1) * SIZES + 1) <= WHOLE_GOALS_MOST,
               "all goals fit");

static const double ready_goal = 0.5;
static const double small_goal = 1.0;

static bool has_size(size_t row_bytes) {
  for (size_t i = 0; i < SIZES; i++) {
    if (sizes[i] == row_bytes) return true;
  }
  return false;
}

static bool is_mapped(whole_kind kind) {
  return kind.type != TARN_WHOLE_DISTRIBUTED;
}

static const whole_figure *find(const whole_result *r, whole_kind kind,
                                size_t row_bytes) {
  for (size_t i = 0; i < r->count; i++) {
    const whole_figure *f = &r->figures[i];
    if (f->op == WHOLE_GATHER && !f->zipf && f->row_bytes == row_bytes &&
        f->kind.type == kind.type && f->kind.on_host == kind.on_host) {
      return f;
    }
  }
  return NULL;
}

// The two were measured one after the other, each beside its own memcpy.
static double over_continuous(const whole_result *r, const whole_figure *f) {
  whole_kind kind = {TARN_WHOLE_CONTINUOUS, f->kind.on_host};
  const whole_figure *other = find(r, kind, f->row_bytes);
  return other != NULL ? f->over_memcpy / other->over_memcpy : NAN;
}

static double value_of(const whole_result *r, const whole_figure *f,
                       measure m) {
  switch (m) {
    case OVER_MEMCPY:
      return f->over_memcpy;
    case OVER_MPI:
      return f->over_mpi;
    case OVER_PLAIN:
      return f->over_plain;
    case OVER_CONTINUOUS:
      return over_continuous(r, f);
  }
  return NAN;
}

static size_t add_rows(const whole_result *r, whole_kind kind, const aim *a,
                       whole_goal *out) {
  size_t count = 0;
  for (size_t i = 0; i < SIZES && a->is_mapped == is_mapped(kind); i++) {
    const whole_figure *f = find(r, kind, sizes[i]);
    if (f == NULL) continue;
    out[count++] = (whole_goal){.name = a->name,
                                .kind = kind,
                                .row_bytes = sizes[i],
                                .value = value_of(r, f, a->measure),
                                .goal = a->goals[i]};
  }
  return count;
}

// Of one type, whose rows are in one piece: as NumPy's are.
static size_t add_smalls(const whole_result *r, whole_kind kind,
                         whole_goal *out) {
  size_t count = 0;
  for (size_t i = 0; i < r->small_count; i++) {
    const whole_small *small = &r->smalls[i];
    if (kind.type != TARN_WHOLE_CONTINUOUS || small->kind.type != kind.type ||
        small->kind.on_host != kind.on_host || !has_size(small->row_bytes)) {
      continue;
    }
    out[count++] = (whole_goal){.name = "small_gather_over_take",
                                .kind = kind,
                                .row_bytes = small->row_bytes,
                                .value = small->over_take,
                                .goal = small_goal,
                                .at_most = true};
  }
  return count;
}

static whole_goal ready_of(const whole_made *made) {
  return (whole_goal){.name = "ready_over_touch",
                      .kind = made->kind,
                      .value = made->ready_ms / made->touch_ms,
                      .goal = ready_goal,
                      .at_most = true};
}

static bool has_goals(const whole_bench *bench) {
  return bench->ranks == 2 && strncmp(bench->device, "cpu", 3) == 0;
}

size_t whole_goals(const whole_bench *bench, const whole_result *result,
                   whole_goal *out) {
  size_t count = 0;
  if (!has_goals(bench)) return 0;
  for (size_t i = 0; i < WHOLE_KINDS; i++) {
    const whole_made *made = &result->made[i];
    if (made->kind.type == 0) continue;  // not reached
    for (size_t a = 0; a < AIMS; a++)
      count += add_rows(result, made->kind, &aims[a], out + count);
    count += add_smalls(result, made->kind, out + count);
    out[count++] = ready_of(made);
  }
  return count;
}

bool whole_goal_is_met(const whole_goal *goal) {
  return goal->at_most ? goal->value <= goal->goal : goal->value >= goal->goal;
}
