// Measures one allocator with one workload.
#include "pool_bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "course.h"
#include "kit/memory.h"
#include "pool_passes.h"
#include "probe.h"

#define SAMPLED_NS 2.5e8  // for the passes that are sampled
#define ROUNDS_NS 1e9     // for all first and second passes, if they are quick
#define LATE_TO_BEGIN_ANEW 0.1  // of the process's time
#define LATE_TO_SAMPLE 0.8
enum { ROUNDS_MOST = 9, SAMPLES_MOST = 3000000 };

_Static_assert((int)PEER_TEXT_SIZE <= (int)CHILD_TEXT_SIZE, "a reason fits");

// ---------------------------------------------------------------------------
// Samples
// ---------------------------------------------------------------------------

// How many passes there is room to take samples of.
static size_t sampled_most(const pool_bench *bench) {
  size_t passes = pool_passes_room(bench);
  size_t most = SAMPLES_MOST / (bench->requests->count + 1);
  if (most > POOL_PASSES_SAMPLED) most = POOL_PASSES_SAMPLED;
  if (most < POOL_PASSES_SAMPLED_LEAST) most = POOL_PASSES_SAMPLED_LEAST;
  return passes < most ? passes : most;
}

// Long passes have requests enough in a few.
static size_t sampled_passes(const pool_runner *r) {
  double pass_ns = r->result->iteration_ms[POOL_BENCH_SECOND] * 1e6;
  size_t most = sampled_most(r->bench);
  if (r->passes < most) most = r->passes;
  if (!(pass_ns * (double)most > SAMPLED_NS)) return most;
  size_t passes = (size_t)(SAMPLED_NS / pass_ns);
  if (passes < POOL_PASSES_SAMPLED_LEAST) passes = POOL_PASSES_SAMPLED_LEAST;
  return passes < most ? passes : most;
}

static bool is_alloc(const pool_runner *r, size_t index) {
  return r->requests->items[index].size > 0;
}

// By turns, so that what is taken off was measured under the same weather.
// |*passes| is how many there was time for.
static bool take_samples(pool_runner *r, size_t *passes) {
  for (size_t i = 0; i < *passes; i++) {
    size_t at = i * r->requests->count;
    if (!pool_pass(r, &r->samples[at])) return false;
    pool_pass_empty(r, &r->empty[at]);
    if (pool_passes_late(r, LATE_TO_SAMPLE)) *passes = i + 1;
  }
  return true;
}

// The mean of the middle half: as robust as the median, but finer than a tick,
// which is a third of the shortest request.
static double middle(uint64_t *ticks, size_t count) {
  uint64_t sum = 0;
  size_t skip = count / 4;
  stopwatch_sort(ticks, count);
  for (size_t i = skip; i < count - skip; i++)
    sum += ticks[i];
  return count > 0 ? (double)sum / (double)(count - 2 * skip) : 0;
}

static double middle_of_request(pool_runner *r, const uint64_t *samples,
                                size_t passes, size_t index) {
  for (size_t i = 0; i < passes; i++) {
    r->spare[i] = samples[i * r->requests->count + index];
  }
  return middle(r->spare, passes);
}

// Which part of a pass its allocs take: half, as they are half of the requests,
// where the clock cannot tell.
static double alloc_share(pool_runner *r, size_t passes) {
  double alloc = 0, all = 0;
  for (size_t i = 0; i < r->requests->count; i++) {
    double ticks = middle_of_request(r, r->samples, passes, i) -
                   middle_of_request(r, r->empty, passes, i);
    all += ticks;
    if (is_alloc(r, i)) alloc += ticks;
  }
  return alloc > 0 && alloc < all ? alloc / all : 0.5;
}

// Of each alloc what is above the middle of no request in its place.
static double alloc_p99(pool_runner *r, size_t passes) {
  size_t requests = r->requests->count, count = 0;
  uint64_t *above = r->spare + passes;  // in front works middle_of_request
  for (size_t i = 0; i < requests; i++) {
    if (!is_alloc(r, i)) continue;
    double empty = middle_of_request(r, r->empty, passes, i);
    for (size_t k = 0; k < passes; k++) {
      double ticks = (double)r->samples[k * requests + i] - empty;
      above[count++] = ticks > 0 ? (uint64_t)ceil(ticks) : 0;
    }
  }
  stopwatch_sort(above, count);
  double p99 = (double)stopwatch_percentile(above, count, 99);
  return stopwatch_ns(r->bench->watch, p99);
}

// Of passes that take seconds there are too few.
static bool run_samples(pool_runner *r) {
  if (pool_passes_endless(r)) return true;
  size_t passes = sampled_passes(r);
  if (!take_samples(r, &passes)) return false;
  double share = alloc_share(r, passes);
  r->result->alloc_ns_median = r->result->pair_ns * share;
  r->result->free_ns_median = r->result->pair_ns * (1 - share);
  r->result->alloc_ns_p99 =
      fmax(alloc_p99(r, passes), r->result->alloc_ns_median);
  return true;
}

// ---------------------------------------------------------------------------
// What is held
// ---------------------------------------------------------------------------

// Blocks that are not touched are not resident: only the allocator knows.
static bool asks_allocator(const pool_runner *r) {
  return r->type->on_device || r->type == &peer_free_list || !r->bench->touched;
}

// Asked after each request of one thread.
static bool find_held(pool_runner *r, size_t *out_peak) {
  const request_list *requests = r->requests;
  for (size_t i = 0; i < requests->count; i++) {
    peer_request *serve = is_alloc(r, i) ? r->type->alloc : r->type->free;
    if (!serve(r->self, &requests->items[i])) {
      snprintf(r->result->failed, CHILD_TEXT_SIZE,
               "a request was refused: %.200s", r->type->refusal());
      return false;
    }
    size_t held = r->type->held(r->self);
    if (held > *out_peak) *out_peak = held;
  }
  return true;
}

static bool find_resident(pool_runner *r, size_t *out_peak) {
  size_t peak = r->resident_peak;
  if (!pool_passes_endless(r)) {
    memory_forget_peak();
    if (!pool_pass(r, NULL)) return false;
    peak = memory_resident_peak();
  }
  if (peak > r->resident && r->resident > 0) *out_peak = peak - r->resident;
  return true;
}

static bool run_held(pool_runner *r) {
  size_t peak = 0;
  uint64_t live = r->bench->live_peak_bytes;
  if (!asks_allocator(r)) {
    if (!find_resident(r, &peak)) return false;
  } else if (r->crossing == NULL || r->type->on_device) {
    if (r->type->held != NULL && !find_held(r, &peak)) return false;
  }
  if (peak > 0 && live > 0) {
    r->result->reserved_over_live = (double)peak / (double)live;
  }
  return true;
}

// ---------------------------------------------------------------------------
// The process
// ---------------------------------------------------------------------------

static pool_bench_result nothing_known(void) {
  return (pool_bench_result){.alloc_ns_median = NAN,
                             .free_ns_median = NAN,
                             .alloc_ns_p99 = NAN,
                             .by_address_ns_median = NAN,
                             .iteration_ms = {NAN, NAN, NAN},
                             .mops = NAN,
                             .reserved_over_live = NAN,
                             .varies_ms = NAN,
                             .pair_ns = NAN};
}

static void make_room(pool_runner *r) {
  size_t passes = pool_passes_room(r->bench);
  size_t samples = sampled_most(r->bench) * r->bench->requests->count;
  r->by_block = tool_array_ready(passes, sizeof *r->by_block);
  r->by_address = tool_array_ready(passes, sizeof *r->by_address);
  r->by_touch = tool_array_ready(passes, sizeof *r->by_touch);
  r->samples = tool_array_ready(samples, sizeof *r->samples);
  r->empty = tool_array_ready(samples, sizeof *r->empty);
  r->spare = tool_array_ready(samples + passes, sizeof *r->spare);
}

static void clear_room(pool_runner *r) {
  touch_buffer_destroy(r->touched);
  crossing_destroy(r->crossing);
  hogs_stop(r->hogs);
  free(r->spare);
  free(r->empty);
  free(r->samples);
  free(r->by_touch);
  free(r->by_address);
  free(r->by_block);
}

static bool fail(pool_runner *r, const char *why) {
  snprintf(r->result->failed, CHILD_TEXT_SIZE, "%s", why);
  return false;
}

// The hogs first: they have all processors that the caller may use yet.
static bool start_threads(pool_runner *r) {
  r->requests = r->bench->requests;
  if (r->bench->hogs > 0) {
    r->hogs = hogs_start(r->bench->hogs);
    if (r->hogs == NULL) return fail(r, "no more threads can be started");
  }
  if (r->bench->threads < 2) return true;
  r->crossing =
      crossing_create(r->bench->requests, r->bench->threads, r->bench->spread);
  if (r->crossing == NULL) return fail(r, "no more threads can be started");
  r->requests = crossing_requests(r->crossing);
  return true;
}

static const char *device_of(const pool_bench *bench) {
  return bench->device != NULL ? bench->device : "cpu:0";
}

static bool make_touched(pool_runner *r) {
  if (!r->bench->touched) return true;
  const char *device = r->type->on_device ? device_of(r->bench) : NULL;
  r->touched = touch_buffer_create(device, r->requests, r->result->failed);
  return r->touched != NULL;
}

static bool create(pool_runner *r) {
  peer_order order = {.name = r->bench->name,
                      .device = device_of(r->bench),
                      .requests = r->requests,
                      .threads = r->bench->threads};
  r->self = r->type->create(&order, r->result->failed);
  r->resident = memory_resident(getpid());
  return r->self != NULL;
}

static bool prepare(pool_runner *r) {
  r->type = peer_find(r->bench->name);
  if (r->type == NULL) return fail(r, "nothing has this name");
  if (r->type == &peer_harness && r->bench->touched) {
    return fail(r, PEER_NO_FIGURE "the loop is taken off with the touching");
  }
  return start_threads(r) && make_touched(r) && create(r);
}

static bool begin_anew(pool_runner *r) {
  r->type->destroy(r->self);
  return create(r);
}

// A library has one state in a process, and begins only once.
static bool is_quick(const pool_runner *r, size_t rounds, uint64_t begin_ns) {
  size_t most = r->bench->passes;
  if (most == 0 || most > ROUNDS_MOST) most = ROUNDS_MOST;
  return r->type->on_device && rounds < most &&
         !pool_passes_late(r, LATE_TO_BEGIN_ANEW) &&
         (double)(stopwatch_clock_ns() - begin_ns) < ROUNDS_NS;
}

static bool run_first(pool_runner *r) {
  double first[ROUNDS_MOST], second[ROUNDS_MOST];
  double *out = r->result->iteration_ms;
  uint64_t begin_ns = stopwatch_clock_ns();
  size_t rounds = 0;
  do {
    if (rounds > 0 && !begin_anew(r)) return false;
    if (!pool_passes_first(r)) return false;
    first[rounds] = out[POOL_BENCH_FIRST];
    second[rounds++] = out[POOL_BENCH_SECOND];
  } while (is_quick(r, rounds, begin_ns));
  out[POOL_BENCH_FIRST] = probe_median(first, rounds);
  out[POOL_BENCH_SECOND] = probe_median(second, rounds);
  return true;
}

// Blocks that a broken pass has left out end with the process, as does what
// works with them.
static void measure(void *context, void *out_result) {
  pool_runner r = {
      .bench = context, .result = out_result, .begin_ns = stopwatch_clock_ns()};
  *r.result = nothing_known();
  make_room(&r);
  if (!prepare(&r) || !run_first(&r) || !pool_passes_steady(&r) ||
      !run_samples(&r) || !run_held(&r)) {
    return;
  }
  r.type->destroy(r.self);
  clear_room(&r);
}

static void create_only(void *context, void *out_result) {
  pool_runner r = {.bench = context, .result = out_result};
  r.requests = r.bench->requests;
  r.type = peer_find(r.bench->name);
  if (r.type == NULL) {
    (void)fail(&r, "nothing has this name");
  } else if (create(&r)) {
    r.type->destroy(r.self);
  }
}

pool_bench_result pool_bench_not_run(const char *why) {
  pool_bench_result result = nothing_known();
  snprintf(result.failed, sizeof result.failed, "%s", why);
  return result;
}

// Of what was measured before it failed nothing stays: half a row misleads.
static pool_bench_result run_in_child(const pool_bench *bench,
                                      child_work *work) {
  pool_bench what = *bench;
  pool_bench_result result;
  char why[CHILD_TEXT_SIZE];
  if (child_run(work, &what, bench->limits, &result, sizeof result, why)) {
    if (result.failed[0] == '\0') return result;
    snprintf(why, sizeof why, "%s", result.failed);
  }
  return pool_bench_not_run(why);
}

pool_bench_result pool_bench_run(const pool_bench *bench) {
  return run_in_child(bench, measure);
}

static bool begins_with(const char *text, const char *begin) {
  return strncmp(text, begin, strlen(begin)) == 0;
}

bool pool_bench_is_finding(const pool_bench_result *result) {
  return begins_with(result->failed, PEER_MISSING) ||
         begins_with(result->failed, PEER_NO_FIGURE) ||
         begins_with(result->failed, CHILD_OVER);
}

bool pool_bench_try(const pool_bench *bench, char *why) {
  pool_bench_result result = run_in_child(bench, create_only);
  snprintf(why, CHILD_TEXT_SIZE, "%s", result.failed);
  return result.failed[0] == '\0';
}
