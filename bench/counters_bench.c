// One alloc and one free that hit, with each counter switched on and off.
#include "counters_bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kit/tool.h"
#include "probe.h"

enum { SIZE = 4096, PAIRS = 1000, WARMING = 32 };

typedef struct row {
  counters_bench_row shown;
  uint32_t counters;
  bool tagged;
} row;

static const row rows[] = {
    {{"default", "tags and exact peaks; untagged"}, TARN_COUNT_DEFAULT, false},
    {{"tagged", "the same, under a tag"}, TARN_COUNT_DEFAULT, true},
    {{"no_tags", "exact peaks only"}, TARN_COUNT_PEAKS, false},
    {{"no_peaks", "tags only"}, TARN_COUNT_TAGS, false},
    {{"nothing", "neither: sums only"}, 0, false},
    {{"events", "as default, with events"},
     TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS,
     false},
    {{"events_times", "the same, with their times"},
     TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS | TARN_COUNT_TIMES,
     false},
};

_Static_assert(sizeof rows / sizeof rows[0] == COUNTERS_BENCH_ROWS,
               "every row has its place in a result");

counters_bench_row counters_bench_row_at(size_t index) {
  return rows[index].shown;
}

typedef enum way { BY_HANDLE, BY_ADDRESS, WAYS } way;

typedef struct runner {
  const counters_bench *bench;
  tarn_device *device;
  tarn_pool *pool;
  tarn_tag tag;
  double *ns[WAYS][COUNTERS_BENCH_ROWS];  // of each pass
  double *spare;                          // as many
} runner;

// ---------------------------------------------------------------------------
// The loops
// ---------------------------------------------------------------------------

typedef bool loop(tarn_pool *pool, tarn_tag tag, size_t count);

static bool plain_by_handle(tarn_pool *pool, tarn_tag tag, size_t count) {
  (void)tag;
  tarn_block block;
  for (size_t i = 0; i < count; i++) {
    if (tarn_pool_alloc(pool, SIZE, 0, NULL, &block) != TARN_OK ||
        tarn_pool_free(&block, NULL) != TARN_OK) {
      return false;
    }
  }
  return true;
}

static bool plain_by_address(tarn_pool *pool, tarn_tag tag, size_t count) {
  (void)tag;
  tarn_block block;
  for (size_t i = 0; i < count; i++) {
    if (tarn_pool_alloc(pool, SIZE, 0, NULL, &block) != TARN_OK ||
        tarn_pool_free_address(pool, block.address, NULL) != TARN_OK) {
      return false;
    }
  }
  return true;
}

static bool tagged_by_handle(tarn_pool *pool, tarn_tag tag, size_t count) {
  tarn_block block;
  tarn_alloc_options wanted = {
      .struct_size = sizeof wanted, .size = SIZE, .tag = tag};
  for (size_t i = 0; i < count; i++) {
    if (tarn_pool_alloc_with(pool, &wanted, &block) != TARN_OK ||
        tarn_pool_free(&block, NULL) != TARN_OK) {
      return false;
    }
  }
  return true;
}

static bool tagged_by_address(tarn_pool *pool, tarn_tag tag, size_t count) {
  tarn_block block;
  tarn_alloc_options wanted = {
      .struct_size = sizeof wanted, .size = SIZE, .tag = tag};
  for (size_t i = 0; i < count; i++) {
    if (tarn_pool_alloc_with(pool, &wanted, &block) != TARN_OK ||
        tarn_pool_free_address(pool, block.address, NULL) != TARN_OK) {
      return false;
    }
  }
  return true;
}

static loop *const loops[WAYS][2] = {{plain_by_handle, tagged_by_handle},
                                     {plain_by_address, tagged_by_address}};

// ---------------------------------------------------------------------------
// Passes
// ---------------------------------------------------------------------------

// The switching is not timed: the first pairs warm up.
static bool time_row(const runner *r, size_t index, way by, double *out_ns) {
  const row *what = &rows[index];
  const stopwatch *watch = r->bench->watch;
  loop *run = loops[by][what->tagged ? 1 : 0];
  if (tarn_pool_account(r->pool, what->counters) != TARN_OK) return false;
  if (!run(r->pool, r->tag, WARMING)) return false;
  uint64_t begin = stopwatch_now(watch);
  bool served = run(r->pool, r->tag, PAIRS);
  uint64_t ticks = stopwatch_since(watch, begin);
  *out_ns = stopwatch_ns(watch, (double)ticks) / PAIRS;
  return served;
}

static bool run_pass(const runner *r, size_t pass) {
  enum { STEPS = COUNTERS_BENCH_ROWS * WAYS };
  for (size_t i = 0; i < STEPS; i++) {
    size_t at = pass % 2 == 0 ? i : STEPS - 1 - i;
    size_t index = at / WAYS;
    way by = at % WAYS == 0 ? BY_HANDLE : BY_ADDRESS;
    if (!time_row(r, index, by, &r->ns[by][index][pass])) return false;
  }
  return true;
}

static double median_more(const runner *r, size_t index, way by) {
  size_t passes = r->bench->passes;
  for (size_t i = 0; i < passes; i++)
    r->spare[i] = r->ns[by][index][i] - r->ns[by][0][i];
  return probe_median(r->spare, passes);
}

// The differences first: a median sorts what it is given.
static void sum_up(const runner *r, counters_bench_result *out) {
  for (size_t i = 0; i < COUNTERS_BENCH_ROWS; i++) {
    out->rows[i].more_by_handle = median_more(r, i, BY_HANDLE);
    out->rows[i].more_by_address = median_more(r, i, BY_ADDRESS);
  }
  for (size_t i = 0; i < COUNTERS_BENCH_ROWS; i++) {
    size_t passes = r->bench->passes;
    out->rows[i].by_handle = probe_median(r->ns[BY_HANDLE][i], passes);
    out->rows[i].by_address = probe_median(r->ns[BY_ADDRESS][i], passes);
  }
}

static bool run_all(const runner *r, counters_bench_result *out) {
  if (!run_pass(r, 0)) return false;  // from nothing: counts for nothing
  for (size_t i = 0; i < r->bench->passes; i++) {
    if (!run_pass(r, i)) return false;
  }
  sum_up(r, out);
  return true;
}

// ---------------------------------------------------------------------------
// The process
// ---------------------------------------------------------------------------

static void know_nothing(counters_bench_result *out) {
  for (size_t i = 0; i < COUNTERS_BENCH_ROWS; i++)
    out->rows[i] = (counters_bench_figures){NAN, NAN, NAN, NAN};
}

static bool open_pool(runner *r) {
  if (tarn_device_open(r->bench->device, &r->device) != TARN_OK) return false;
  tarn_place place = tarn_place_on(r->device);
  return tarn_pool_of(place, &r->pool) == TARN_OK &&
         tarn_pool_set_strategy(r->pool, r->bench->pool) == TARN_OK &&
         tarn_pool_tag("counted", &r->tag) == TARN_OK;
}

static void take_room(runner *r) {
  size_t passes = r->bench->passes;
  for (size_t i = 0; i < COUNTERS_BENCH_ROWS; i++) {
    r->ns[BY_HANDLE][i] = tool_array(passes, sizeof(double));
    r->ns[BY_ADDRESS][i] = tool_array(passes, sizeof(double));
  }
  r->spare = tool_array(passes, sizeof(double));
}

static void give_room(runner *r) {
  for (size_t i = 0; i < COUNTERS_BENCH_ROWS; i++) {
    free(r->ns[BY_HANDLE][i]);
    free(r->ns[BY_ADDRESS][i]);
  }
  free(r->spare);
}

// The last error has the reason of a refusal until the next call.
static void say_why(counters_bench_result *out) {
  snprintf(out->failed, sizeof out->failed, "%.250s", tarn_last_error());
}

static void measure(void *context, void *out_result) {
  counters_bench_result *out = out_result;
  runner r = {.bench = context};
  know_nothing(out);
  take_room(&r);
  if (!open_pool(&r) || !run_all(&r, out)) say_why(out);
  if (r.device != NULL) (void)tarn_device_close(r.device);
  give_room(&r);
}

static void only_open(void *context, void *out_result) {
  runner r = {.bench = context};
  if (!open_pool(&r)) say_why(out_result);
  if (r.device != NULL) (void)tarn_device_close(r.device);
}

static counters_bench_result run_child(const counters_bench *bench,
                                       child_work *work) {
  counters_bench_result result;
  counters_bench what = *bench;
  char why[CHILD_TEXT_SIZE];
  if (!child_run(work, &what, (child_limits){0}, &result, sizeof result, why)) {
    know_nothing(&result);
    snprintf(result.failed, sizeof result.failed, "%s", why);
  }
  return result;
}

counters_bench_result counters_bench_run(const counters_bench *bench) {
  return run_child(bench, measure);
}

bool counters_bench_try(const counters_bench *bench, char *why) {
  counters_bench_result result = run_child(bench, only_open);
  snprintf(why, CHILD_TEXT_SIZE, "%s", result.failed);
  return *why == '\0';
}
