// Sums, worst cases, counts; each NaN where no row has a part in it.
#include "plan_sums.h"

#include <math.h>
#include <stddef.h>

static const bench_figure figures[PLAN_BENCH_SUMS] = {
    {"fitted", "of all", "files with a plan within the capacity", 1,
     SHEET_AT_LEAST},
    {"fit_seconds", "s", "for all of them together", NAN, SHEET_AT_MOST},
    {"bound_seconds", "s", "slowest of those whose capacity is the bound", 0.3,
     SHEET_AT_MOST},
    {"fit_peak", "bytes", "most that was resident for one", 32e6,
     SHEET_AT_MOST},
    {"peer_fitted", "of all", "the same of the peer", NAN, SHEET_AT_LEAST},
    {"peer_seconds", "s", "... those without a plan included", NAN,
     SHEET_AT_MOST},
    {"peer_over", "x", "peer_seconds over fit_seconds", 10, SHEET_AT_LEAST},
    {"peer_over_least", "x", "the least of that of one file", 1,
     SHEET_AT_LEAST},
    {"early_worst", "x bound", "highest after 0.1 s", 1.12, SHEET_AT_MOST},
    {"low_reached", "of all", "files with a plan as low as wanted", 1,
     SHEET_AT_LEAST},
    {"low_proved", "of all", "... that is proved to be the lowest", NAN,
     SHEET_AT_LEAST},
    {"wide_reached", "of all", "wide packings as low as wanted", 1,
     SHEET_AT_LEAST},
    {"narrow_reached", "of all", "narrow packings as low as wanted", NAN,
     SHEET_AT_LEAST},
    {"large_worst", "x bound", "highest of models, in time", 1.01,
     SHEET_AT_MOST},
    {"large_peak", "bytes", "most that was resident for one", 100e6,
     SHEET_AT_MOST},
};

// google/minimalloc's own problems: the goal is for all eleven together.
enum { ELEVEN = 11, ELEVEN_SECONDS = 3 };

// ---------------------------------------------------------------------------
// A row
// ---------------------------------------------------------------------------

static bool is_early(const plan_bench_row *row) {
  return row->part == PLAN_BENCH_EARLY;
}

uint64_t plan_bench_height(const plan_bench_row *row) {
  return is_early(row) ? row->took.early : row->took.height;
}

tarn_plan_answer plan_bench_answer(const plan_bench_row *row) {
  if (plan_bench_height(row) == row->took.height) return row->took.answer;
  return row->took.early == 0 ? TARN_PLAN_OUT_OF_TIME : TARN_PLAN_FEASIBLE;
}

// With a capacity all of the process counts, as it does of the peer.
double plan_bench_seconds(const plan_bench_row *row) {
  return row->part == PLAN_BENCH_FIT ? row->took.seconds
                                     : row->took.wanted_seconds;
}

bool plan_bench_is_met(const plan_bench_row *row) {
  uint64_t height = plan_bench_height(row);
  if (height == 0 || height > row->took.wanted) return false;
  if (!(plan_bench_seconds(row) <= row->limit)) return false;
  return !row->has_peer || row->peer_failed[0] != '\0' ||
         plan_bench_seconds(row) <= row->peer_seconds;
}

static double over_bound(const plan_bench_row *row) {
  uint64_t height = plan_bench_height(row);
  return height == 0 ? INFINITY : (double)height / (double)row->took.bound;
}

// ---------------------------------------------------------------------------
// All rows
// ---------------------------------------------------------------------------

// True: the row is among those, with this value.
typedef bool value_fn(const plan_bench_row *row, double *out);

static bool is_fitted(const plan_bench_row *row) {
  return row->took.height != 0 && row->took.height <= row->took.wanted;
}

static bool fitted(const plan_bench_row *row, double *out) {
  *out = is_fitted(row);
  return row->part == PLAN_BENCH_FIT;
}

static bool fit_seconds(const plan_bench_row *row, double *out) {
  *out = row->took.seconds;
  return row->part == PLAN_BENCH_FIT && row->has_capacity;
}

static bool bound_seconds(const plan_bench_row *row, double *out) {
  *out = row->took.seconds;
  return row->part == PLAN_BENCH_FIT && !row->has_capacity;
}

static bool fit_peak(const plan_bench_row *row, double *out) {
  *out = row->took.peak;
  return row->part == PLAN_BENCH_FIT && row->has_capacity;
}

static bool peer_fitted(const plan_bench_row *row, double *out) {
  *out = row->peer_failed[0] == '\0';
  return row->has_peer;
}

static bool peer_seconds(const plan_bench_row *row, double *out) {
  *out = row->peer_seconds;
  return row->has_peer && !isnan(row->peer_seconds);
}

// What this took where the peer took peer_seconds.
static bool both_seconds(const plan_bench_row *row, double *out) {
  *out = row->took.seconds;
  return row->has_peer && !isnan(row->peer_seconds);
}

// The time of a failed row is too short to be compared.
static bool peer_over(const plan_bench_row *row, double *out) {
  *out = row->peer_seconds / row->took.seconds;
  return row->has_peer && row->peer_failed[0] == '\0';
}

static bool early_over(const plan_bench_row *row, double *out) {
  *out = over_bound(row);
  return is_early(row);
}

static bool low_reached(const plan_bench_row *row, double *out) {
  *out = plan_bench_is_met(row);
  return row->part == PLAN_BENCH_LOW;
}

static bool low_proved(const plan_bench_row *row, double *out) {
  *out = is_fitted(row) && row->took.answer == TARN_PLAN_OPTIMAL;
  return row->part == PLAN_BENCH_LOW;
}

static bool wide_reached(const plan_bench_row *row, double *out) {
  *out = plan_bench_is_met(row);
  return row->part == PLAN_BENCH_WIDE;
}

static bool narrow_reached(const plan_bench_row *row, double *out) {
  *out = plan_bench_is_met(row);
  return row->part == PLAN_BENCH_NARROW;
}

// A plan that came too late is not counted.
static bool large_over(const plan_bench_row *row, double *out) {
  bool late = row->took.height <= row->took.wanted && !plan_bench_is_met(row);
  *out = late ? INFINITY : over_bound(row);
  return row->part == PLAN_BENCH_LARGE;
}

static bool large_peak(const plan_bench_row *row, double *out) {
  *out = row->took.peak;
  return row->part == PLAN_BENCH_LARGE;
}

// ---------------------------------------------------------------------------
// Sums
// ---------------------------------------------------------------------------

typedef struct tally {
  size_t count;
  double sum;
  double most;
  double least;
} tally;

// What failed has no figures.
static tally tally_of(const plan_bench_result *r, value_fn *value_of) {
  tally t = {.most = -INFINITY, .least = INFINITY};
  double value;
  for (size_t i = 0; i < r->count; i++) {
    if (!value_of(&r->rows[i], &value)) continue;
    t.count++;
    t.sum += value;
    if (value > t.most) t.most = value;
    if (value < t.least) t.least = value;
  }
  return t;
}

static double sum(tally t) {
  return t.count == 0 ? NAN : t.sum;
}

static double part(tally t) {
  return t.count == 0 ? NAN : t.sum / (double)t.count;
}

static double most(tally t) {
  return t.count == 0 ? NAN : t.most;
}

static double least(tally t) {
  return t.count == 0 ? NAN : t.least;
}

typedef struct way {
  value_fn *value_of;
  double (*of)(tally t);
} way;

static const way ways[PLAN_BENCH_SUMS] = {
    [PLAN_BENCH_FITTED] = {fitted, part},
    [PLAN_BENCH_FIT_SECONDS] = {fit_seconds, sum},
    [PLAN_BENCH_BOUND_SECONDS] = {bound_seconds, most},
    [PLAN_BENCH_FIT_PEAK] = {fit_peak, most},
    [PLAN_BENCH_PEER_FITTED] = {peer_fitted, part},
    [PLAN_BENCH_PEER_SECONDS] = {peer_seconds, sum},
    [PLAN_BENCH_PEER_OVER] = {both_seconds, NULL},
    [PLAN_BENCH_PEER_LEAST] = {peer_over, least},
    [PLAN_BENCH_EARLY_WORST] = {early_over, most},
    [PLAN_BENCH_LOW_REACHED] = {low_reached, part},
    [PLAN_BENCH_LOW_PROVED] = {low_proved, part},
    [PLAN_BENCH_WIDE_REACHED] = {wide_reached, part},
    [PLAN_BENCH_NARROW_REACHED] = {narrow_reached, part},
    [PLAN_BENCH_LARGE_WORST] = {large_over, most},
    [PLAN_BENCH_LARGE_PEAK] = {large_peak, most},
};

void plan_sums(plan_bench_result *result) {
  for (size_t i = 0; i < PLAN_BENCH_SUMS; i++) {
    tally t = tally_of(result, ways[i].value_of);
    result->sums[i].shown = figures[i];
    result->sums[i].value = ways[i].of != NULL ? ways[i].of(t) : NAN;
    if (i == PLAN_BENCH_FIT_SECONDS && t.count == ELEVEN) {
      result->sums[i].shown.goal = ELEVEN_SECONDS;
    }
  }
  result->sums[PLAN_BENCH_PEER_OVER].value =
      result->sums[PLAN_BENCH_PEER_SECONDS].value /
      sum(tally_of(result, both_seconds));
}
