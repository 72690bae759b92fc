// Times whole passes.
#include "pool_passes.h"

#include <math.h>
#include <stdio.h>

#include "kit/memory.h"
#include "probe.h"

enum {
  PASSES_LEAST = 31,
  PASSES_MOST = 100001,
  PASSES_LONG = 5,          // of passes that take longer than LONG_PASS_NS
  REQUESTS_IN_A_ROW = 4000  // at least, of threads that must meet first
};
#define LONG_PASS_NS 1e8
#define ENDLESS_PASS_NS 1e9
#define LATE_TO_BEGIN 0.5  // of the process's time
#define LATE_TO_GO_ON 0.6
#define ENOUGH_NS 2.5e8  // for the passes of one kind together, if short

size_t pool_passes_room(const pool_bench *bench) {
  return bench->passes > 0 ? bench->passes : PASSES_MOST;
}

// ---------------------------------------------------------------------------
// One pass
// ---------------------------------------------------------------------------

// What all threads are to do.
typedef struct shared_pass {
  peer_pass *pass;
  void *self;
  const peer_run *run;
} shared_pass;

static bool run_side(void *context, const crossing_side *side) {
  const shared_pass *all = context;
  peer_run mine = *all->run;
  mine.side = side;
  return all->pass(all->self, &mine);
}

static bool run_passes(pool_runner *r, peer_pass *pass, void *self,
                       uint32_t in_a_row, uint64_t *ticks) {
  peer_run run = {.requests = r->requests,
                  .watch = r->bench->watch,
                  .ticks = ticks,
                  .touched = r->touched != NULL};
  if (r->crossing == NULL) return pass(self, &run);
  shared_pass all = {.pass = pass, .self = self, .run = &run};
  return crossing_run(r->crossing, run_side, &all, in_a_row);
}

static bool refused(pool_runner *r) {
  snprintf(r->result->failed, CHILD_TEXT_SIZE, "a request was refused: %.200s",
           r->type->refusal());
  return false;
}

bool pool_pass(pool_runner *r, uint64_t *ticks) {
  return run_passes(r, r->type->pass, r->self, 1, ticks) || refused(r);
}

void pool_pass_empty(pool_runner *r, uint64_t *ticks) {
  if (r->touched == NULL) {
    (void)run_passes(r, peer_empty_pass, NULL, 1, ticks);
  } else {
    (void)run_passes(r, touch_pass, r->touched, 1, ticks);
  }
}

static bool time_passes(pool_runner *r, peer_pass *pass, void *self,
                        uint32_t in_a_row, double *out_ns) {
  const stopwatch *watch = r->bench->watch;
  uint64_t begin = stopwatch_now(watch);
  bool served = run_passes(r, pass, self, in_a_row, NULL);
  *out_ns = stopwatch_pass_ns(watch, begin) / in_a_row;
  return served || refused(r);
}

// ---------------------------------------------------------------------------
// All of them
// ---------------------------------------------------------------------------

static bool time_touching(pool_runner *r, uint32_t in_a_row, double *out_ns) {
  *out_ns = 0;
  if (r->touched == NULL) return true;
  return time_passes(r, touch_pass, r->touched, in_a_row, out_ns);
}

bool pool_passes_late(const pool_runner *r, double part) {
  double seconds = (double)(stopwatch_clock_ns() - r->begin_ns) / 1e9;
  double most = r->bench->limits.seconds;
  return most > 0 && seconds > part * most;
}

bool pool_passes_endless(const pool_runner *r) {
  double ms = r->result->iteration_ms[POOL_BENCH_SECOND];
  return r->bench->passes == 0 && (r->hurried || ms * 1e6 > ENDLESS_PASS_NS);
}

// Short passes are repeated until the processor is awake and the median rests.
static size_t choose_passes(const pool_runner *r, double ns) {
  if (r->bench->passes > 0) return r->bench->passes;
  if (ns > LONG_PASS_NS) return PASSES_LONG;
  if (!(ns * PASSES_MOST > ENOUGH_NS)) return PASSES_MOST;
  size_t passes = (size_t)(ENOUGH_NS / ns);
  return passes > PASSES_LEAST ? passes : PASSES_LEAST;
}

static uint32_t choose_in_a_row(const pool_runner *r) {
  size_t requests = r->requests->count;
  if (r->crossing == NULL || r->touched != NULL || requests == 0) return 1;
  return (uint32_t)(1 + REQUESTS_IN_A_ROW / requests);
}

static bool time_second(pool_runner *r, double *out_ns) {
  memory_forget_peak();
  bool served = time_passes(r, r->type->pass, r->self, 1, out_ns);
  r->resident_peak = memory_resident_peak();
  return served;
}

// The first touching warms up, the second counts.
bool pool_passes_first(pool_runner *r) {
  double ns[2] = {0, 0}, touching = 0;
  double *out = r->result->iteration_ms;
  if (!time_passes(r, r->type->pass, r->self, 1, &ns[0]) ||
      !time_second(r, &ns[1]) || !time_touching(r, 1, &touching) ||
      !time_touching(r, 1, &touching)) {
    return false;
  }
  out[POOL_BENCH_FIRST] = (ns[0] - touching) / 1e6;
  out[POOL_BENCH_SECOND] = (ns[1] - touching) / 1e6;
  r->hurried = pool_passes_late(r, LATE_TO_BEGIN);
  r->in_a_row = choose_in_a_row(r);
  r->passes = choose_passes(r, ns[1] * r->in_a_row);
  return true;
}

// By turns, so that what disturbs one disturbs the other.
static bool time_all(pool_runner *r, peer_pass *by_address) {
  for (size_t i = 0; i < r->passes; i++) {
    if (!time_passes(r, r->type->pass, r->self, r->in_a_row, &r->by_block[i]) ||
        !time_touching(r, r->in_a_row, &r->by_touch[i])) {
      return false;
    }
    r->by_block[i] -= r->by_touch[i];
    if (by_address != NULL &&
        !time_passes(r, by_address, r->self, r->in_a_row, &r->by_address[i])) {
      return false;
    }
    r->by_address[i] -= r->by_touch[i];
    if (pool_passes_late(r, LATE_TO_GO_ON)) r->passes = i + 1;
  }
  return true;
}

// Touching can vary by more than the requests take: the time is then unknown.
static double positive(double ns) {
  return ns > 0 ? ns : NAN;
}

static void sum_up(pool_runner *r, double ns) {
  double pairs = (double)r->requests->count / 2;
  r->result->iteration_ms[POOL_BENCH_STEADY] = ns / 1e6;
  r->result->pair_ns = positive(ns) / pairs;
  r->result->mops = 2 * pairs * 1e3 / positive(ns);
}

// The median distance of the passes from their median.
static double variation(const pool_runner *r, double median_ns) {
  for (size_t i = 0; i < r->passes; i++)
    r->by_block[i] = fabs(r->by_block[i] - median_ns);
  return probe_median(r->by_block, r->passes);
}

bool pool_passes_steady(pool_runner *r) {
  peer_pass *by_address = r->type->pass_by_address;
  if (pool_passes_endless(r)) {
    sum_up(r, r->result->iteration_ms[POOL_BENCH_SECOND] * 1e6);
    return true;
  }
  if (!time_all(r, by_address)) return false;
  double pairs = (double)r->requests->count / 2;
  double ns = probe_median(r->by_block, r->passes);
  sum_up(r, ns);
  r->result->varies_ms = variation(r, ns) / 1e6;
  if (by_address != NULL) {
    double address_ns = probe_median(r->by_address, r->passes);
    r->result->by_address_ns_median = positive(address_ns) / pairs;
  }
  return true;
}
