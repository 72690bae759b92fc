// Ops by turns: each pass does every op once for each size of rows, every other
// pass in turned order. Ratios are of figures of the same pass.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit/tool.h"
#include "probe.h"
#include "whole_scene.h"

// By turns, as here.
typedef enum turn {
  TURN_MEMCPY = 0,
  TURN_ZIPF,
  TURN_PLAIN,
  TURN_ALONE,
  TURN_GATHER,
  TURN_SCATTER,
  TURN_ADD,
  TURN_WINDOW,
  TURN_ALLTOALLV,
  TURNS
} turn;

static const whole_job jobs[TURNS] = {
    [TURN_MEMCPY] = {.op = WHOLE_MEMCPY},
    [TURN_ZIPF] = {.op = WHOLE_GATHER, .zipf = true},
    [TURN_PLAIN] = {.op = WHOLE_PLAIN_GATHER, .alone = true},
    [TURN_ALONE] = {.op = WHOLE_GATHER, .alone = true},
    [TURN_GATHER] = {.op = WHOLE_GATHER},
    [TURN_SCATTER] = {.op = WHOLE_SCATTER},
    [TURN_ADD] = {.op = WHOLE_SCATTER_ADD},
    [TURN_WINDOW] = {.op = WHOLE_MPI_WINDOW},
    [TURN_ALLTOALLV] = {.op = WHOLE_MPI_ALLTOALLV},
};

// Of one size of rows. A measurement that failed once is not tried again.
typedef struct samples {
  double gbs[TURNS][WHOLE_PASSES_MOST];  // NaN: none
  char why[TURNS][WHOLE_TEXT_SIZE];
  bool is_skipped[TURNS];
} samples;

// Earlier measurements no longer count, nor do ratios to them.
static void note(samples *of, turn t, const whole_scene *s) {
  memcpy(of->why[t], s->why, sizeof of->why[t]);
  of->is_skipped[t] = s->status == TARN_E_UNSUPPORTED;
  for (size_t i = 0; i < WHOLE_PASSES_MOST; i++)
    of->gbs[t][i] = NAN;
}

// ---------------------------------------------------------------------------
// Passes
// ---------------------------------------------------------------------------

// False: no rank hears the others any more.
static bool take_turn(whole_scene *s, samples *of, turn t, size_t row_bytes,
                      double *out) {
  *out = NAN;
  if (of->why[t][0] != '\0' || !whole_job_fits(s, jobs[t])) return true;
  if (whole_job_do(s, jobs[t], row_bytes, out)) return true;
  *out = NAN;
  note(of, t, s);
  return !s->is_broken;
}

static bool pass_through(whole_scene *s, samples *all, size_t pass,
                         bool counts) {
  double gbs;
  for (size_t r = 0; r < s->bench->row_count; r++) {
    for (size_t i = 0; i < TURNS; i++) {
      turn t = (turn)(pass % 2 == 0 ? i : TURNS - 1 - i);
      if (!take_turn(s, &all[r], t, s->bench->row_bytes[r], &gbs)) return false;
      if (counts) all[r].gbs[t][pass] = gbs;
    }
  }
  return true;
}

// An operation with wrong results is not measured.
static bool check(whole_scene *s, samples *of, whole_op op, size_t row_bytes) {
  if (whole_check(s, op, row_bytes)) return true;
  for (turn t = 0; t < TURNS; t++) {
    if (jobs[t].op == op) note(of, t, s);
  }
  return !s->is_broken;
}

static bool check_all(whole_scene *s, samples *all) {
  static const whole_op ops[] = {WHOLE_GATHER, WHOLE_SCATTER, WHOLE_SCATTER_ADD,
                                 WHOLE_PLAIN_GATHER};
  enum { OPS = sizeof ops / sizeof *ops };
  for (size_t i = 0; i < s->bench->row_count * OPS; i++) {
    size_t r = i / OPS;
    whole_op op = ops[i % OPS];
    if (all[r].why[TURN_GATHER][0] != '\0') continue;
    if (!whole_job_fits(s, (whole_job){.op = op})) continue;
    if (!check(s, &all[r], op, s->bench->row_bytes[r])) return false;
  }
  return true;
}

// ---------------------------------------------------------------------------
// Figures
// ---------------------------------------------------------------------------

// Of |count| values that may be NaN; NaN if all are.
static double median_of(const double *values, size_t count) {
  double there[WHOLE_PASSES_MOST * WHOLE_ROWS_MOST];
  size_t used = 0;
  for (size_t i = 0; i < count; i++) {
    if (!isnan(values[i])) there[used++] = values[i];
  }
  return used > 0 ? probe_median(there, used) : NAN;
}

static double median_ratio(const samples *of, turn a, turn b, size_t passes) {
  double ratios[WHOLE_PASSES_MOST];
  for (size_t i = 0; i < passes; i++)
    ratios[i] = of->gbs[a][i] / of->gbs[b][i];
  return median_of(ratios, passes);
}

static whole_figure figure_of(const whole_scene *s, const samples *of, turn t) {
  size_t passes = s->bench->passes;
  whole_figure f = {.kind = s->kind,
                    .op = jobs[t].op,
                    .zipf = jobs[t].zipf,
                    .over_mpi = NAN,
                    .over_plain = NAN,
                    .alone_gbs = NAN};
  f.gbs = median_of(of->gbs[t], passes);
  f.over_memcpy = median_ratio(of, t, TURN_MEMCPY, passes);
  memcpy(f.why, of->why[t], sizeof f.why);
  f.is_skipped = of->is_skipped[t];
  if (t != TURN_GATHER) return f;
  bool is_mapped = s->kind.type != TARN_WHOLE_DISTRIBUTED;
  turn mpi = is_mapped ? TURN_WINDOW : TURN_ALLTOALLV;
  f.over_mpi = median_ratio(of, t, mpi, passes);
  f.over_plain = median_ratio(of, TURN_ALONE, TURN_PLAIN, passes);
  f.alone_gbs = median_of(of->gbs[TURN_ALONE], passes);
  return f;
}

// A memcpy has no rows: those of all sizes are one figure.
static void add_memcpy(const whole_scene *s, const samples *all,
                       whole_result *out) {
  double gbs[WHOLE_PASSES_MOST * WHOLE_ROWS_MOST];
  size_t passes = s->bench->passes;
  for (size_t r = 0; r < s->bench->row_count; r++)
    memcpy(gbs + r * passes, all[r].gbs[TURN_MEMCPY], passes * sizeof *gbs);
  whole_figure f = figure_of(s, &all[0], TURN_MEMCPY);
  f.gbs = median_of(gbs, s->bench->row_count * passes);
  out->figures[out->count++] = f;
}

static bool is_shown(const whole_scene *s, turn t) {
  return t != TURN_MEMCPY && t != TURN_ALONE && whole_job_fits(s, jobs[t]);
}

static void add_figures(const whole_scene *s, const samples *all,
                        whole_result *out) {
  add_memcpy(s, all, out);
  for (size_t r = 0; r < s->bench->row_count; r++) {
    for (turn t = 0; t < TURNS; t++) {
      if (!is_shown(s, t)) continue;
      whole_figure f = figure_of(s, &all[r], t);
      f.row_bytes = s->bench->row_bytes[r];
      out->figures[out->count++] = f;
    }
  }
}

// ---------------------------------------------------------------------------
// One kind
// ---------------------------------------------------------------------------

// The first pass is not counted.
static bool measure(whole_scene *s, samples *all, whole_result *out) {
  if (!pass_through(s, all, 0, false)) return false;
  for (size_t pass = 0; pass < s->bench->passes; pass++) {
    if (!pass_through(s, all, pass, true)) return false;
  }
  if (!check_all(s, all)) return false;
  add_figures(s, all, out);
  return whole_small_measure(s, out);
}

static void note_failure(const whole_scene *s, whole_made *made) {
  if (made->why[0] != '\0') return;
  memcpy(made->why, s->why, sizeof made->why);
  made->is_skipped = s->status == TARN_E_UNSUPPORTED;
}

bool whole_kind_measure(whole_scene *s, whole_made *out_made,
                        whole_result *out) {
  *out_made = (whole_made){.kind = s->kind, .ready_ms = NAN, .touch_ms = NAN};
  samples *all = tool_array(s->bench->row_count, sizeof *all);
  bool did = whole_table_time(s, out_made) && whole_table_make(s, out_made) &&
             check_all(s, all) && measure(s, all, out);
  if (!did) note_failure(s, out_made);
  if (!s->is_broken && !whole_table_end(s)) note_failure(s, out_made);
  free(all);
  return !s->is_broken;
}
