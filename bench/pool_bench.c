// Measures one allocator with one workload.
#include "pool_bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "peers.h"
#include "tool/tool.h"

enum {
  PASSES_LEAST = 31,
  PASSES_MOST = 100001,
  PASSES_LONG = 5,      // of passes that take longer than LONG_PASS_NS
  PASSES_SAMPLED = 101  // at most
};
#define LONG_PASS_NS 1e8
#define ENOUGH_NS 2.5e8  // for the passes of one kind together, if short

_Static_assert((int)PEER_TEXT_SIZE <= (int)CHILD_TEXT_SIZE, "a reason fits");

// All of the harness's own memory is there before the allocator is, which may
// be the one that it comes from.
typedef struct runner {
  const pool_bench *bench;
  const peer_type *type;
  void *self;
  size_t passes;         // that count
  uint64_t *by_block;    // ticks of each of them ...
  uint64_t *by_address;  // ... and of as many by address
  uint64_t *samples;     // pass by pass, request by request
  uint64_t *empty;       // as many of no request
  uint64_t *spare;       // as many
  pool_bench_result *result;
} runner;

// ---------------------------------------------------------------------------
// Whole passes
// ---------------------------------------------------------------------------

static bool refused(runner *r) {
  snprintf(r->result->failed, CHILD_TEXT_SIZE, "a request was refused: %.200s",
           r->type->refusal());
  return false;
}

static bool time_pass(runner *r, peer_pass *pass, uint64_t *out_ticks) {
  const pool_bench *b = r->bench;
  uint64_t begin = stopwatch_now(b->watch);
  bool served = pass(r->self, b->requests, b->watch, NULL);
  *out_ticks = stopwatch_since(b->watch, begin);
  return served || refused(r);
}

static double ns_of(const runner *r, uint64_t ticks) {
  return stopwatch_ns(r->bench->watch, (double)ticks);
}

static double pairs(const runner *r) {
  return (double)r->bench->requests->count / 2;
}

// Short passes are repeated until the processor is awake and the median rests.
static size_t choose_passes(const runner *r, uint64_t second_ticks) {
  double ns = ns_of(r, second_ticks);
  if (r->bench->passes > 0) return r->bench->passes;
  if (ns > LONG_PASS_NS) return PASSES_LONG;
  if (!(ns * PASSES_MOST > ENOUGH_NS)) return PASSES_MOST;
  size_t passes = (size_t)(ENOUGH_NS / ns);
  return passes > PASSES_LEAST ? passes : PASSES_LEAST;
}

static bool run_first(runner *r) {
  uint64_t first = 0, second = 0;
  if (!time_pass(r, r->type->pass, &first) ||
      !time_pass(r, r->type->pass, &second)) {
    return false;
  }
  r->passes = choose_passes(r, second);
  r->result->iteration_ms[POOL_BENCH_FIRST] = ns_of(r, first) / 1e6;
  r->result->iteration_ms[POOL_BENCH_SECOND] = ns_of(r, second) / 1e6;
  return true;
}

// Sorts |ticks|.
static uint64_t median(uint64_t *ticks, size_t count) {
  stopwatch_sort(ticks, count);
  return stopwatch_percentile(ticks, count, 50);
}

// By turns, so that what disturbs one disturbs the other.
static bool time_passes(runner *r) {
  peer_pass *by_address = r->type->pass_by_address;
  for (size_t i = 0; i < r->passes; i++) {
    if (!time_pass(r, r->type->pass, &r->by_block[i])) return false;
    if (by_address == NULL) continue;
    if (!time_pass(r, by_address, &r->by_address[i])) return false;
  }
  return true;
}

static bool run_steady(runner *r) {
  if (!time_passes(r)) return false;
  double ns = ns_of(r, median(r->by_block, r->passes));
  r->result->iteration_ms[POOL_BENCH_STEADY] = ns / 1e6;
  r->result->pair_ns = ns / pairs(r);
  r->result->mops = 2 * pairs(r) * 1e3 / ns;
  if (r->type->pass_by_address != NULL) {
    r->result->by_address_ns_median =
        ns_of(r, median(r->by_address, r->passes)) / pairs(r);
  }
  return true;
}

// ---------------------------------------------------------------------------
// Samples
// ---------------------------------------------------------------------------

static size_t sampled_passes(size_t passes) {
  return passes < PASSES_SAMPLED ? passes : PASSES_SAMPLED;
}

static bool is_alloc(const runner *r, size_t index) {
  return r->bench->requests->items[index].size > 0;
}

// By turns, so that what is taken off was measured under the same weather.
static bool take_samples(runner *r) {
  const pool_bench *b = r->bench;
  for (size_t i = 0; i < sampled_passes(r->passes); i++) {
    size_t at = i * b->requests->count;
    if (!r->type->pass(r->self, b->requests, b->watch, &r->samples[at])) {
      return refused(r);
    }
    (void)peer_empty_pass(NULL, b->requests, b->watch, &r->empty[at]);
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

static double middle_of_request(runner *r, const uint64_t *samples,
                                size_t index) {
  size_t passes = sampled_passes(r->passes);
  for (size_t i = 0; i < passes; i++) {
    r->spare[i] = samples[i * r->bench->requests->count + index];
  }
  return middle(r->spare, passes);
}

// Which part of a pass its allocs take.
static double alloc_share(runner *r) {
  double alloc = 0, all = 0;
  for (size_t i = 0; i < r->bench->requests->count; i++) {
    double ticks =
        middle_of_request(r, r->samples, i) - middle_of_request(r, r->empty, i);
    all += ticks;
    if (is_alloc(r, i)) alloc += ticks;
  }
  if (!(all > 0)) return 0.5;
  if (!(alloc > 0)) return 0;
  return alloc < all ? alloc / all : 1;
}

static double alloc_p99(runner *r) {
  size_t requests = r->bench->requests->count, count = 0;
  size_t all = sampled_passes(r->passes) * requests;
  for (size_t i = 0; i < all; i++) {
    if (is_alloc(r, i % requests)) r->spare[count++] = r->samples[i];
  }
  stopwatch_sort(r->spare, count);
  double p99 = (double)stopwatch_percentile(r->spare, count, 99);
  double empty = middle(r->empty, all);
  return p99 > empty ? stopwatch_ns(r->bench->watch, p99 - empty) : 0;
}

static bool run_samples(runner *r) {
  if (!take_samples(r)) return false;
  double share = alloc_share(r);
  r->result->alloc_ns_median = r->result->pair_ns * share;
  r->result->free_ns_median = r->result->pair_ns * (1 - share);
  r->result->alloc_ns_p99 = alloc_p99(r);
  return true;
}

// ---------------------------------------------------------------------------
// What is held
// ---------------------------------------------------------------------------

static bool run_held(runner *r) {
  const request_list *requests = r->bench->requests;
  size_t peak = 0;
  for (size_t i = 0; i < requests->count; i++) {
    peer_request *serve = is_alloc(r, i) ? r->type->alloc : r->type->free;
    if (!serve(r->self, &requests->items[i])) return refused(r);
    size_t held = r->type->held(r->self);
    if (held > peak) peak = held;
  }
  uint64_t live = r->bench->trace->live_peak_bytes;
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
                             .pair_ns = NAN};
}

static void make_room(runner *r) {
  size_t passes = r->bench->passes > 0 ? r->bench->passes : PASSES_MOST;
  size_t samples = sampled_passes(passes) * r->bench->requests->count;
  r->by_block = tool_array(passes, sizeof *r->by_block);
  r->by_address = tool_array(passes, sizeof *r->by_address);
  r->samples = tool_array(samples, sizeof *r->samples);
  r->empty = tool_array(samples, sizeof *r->empty);
  r->spare = tool_array(samples, sizeof *r->spare);
}

static void clear_room(runner *r) {
  free(r->spare);
  free(r->empty);
  free(r->samples);
  free(r->by_address);
  free(r->by_block);
}

static bool create(runner *r) {
  r->type = peer_find(r->bench->name);
  if (r->type == NULL) {
    snprintf(r->result->failed, CHILD_TEXT_SIZE, "nothing has this name");
    return false;
  }
  r->self =
      r->type->create(r->bench->name, r->bench->requests, r->result->failed);
  return r->self != NULL;
}

// Blocks that a broken pass has left out end with the process.
static void measure(void *context, void *out_result) {
  runner r = {.bench = context, .result = out_result};
  *r.result = nothing_known();
  make_room(&r);
  bool done = create(&r) && run_first(&r) && run_steady(&r) &&
              run_samples(&r) && run_held(&r);
  if (done) r.type->destroy(r.self);
  clear_room(&r);
}

static void create_only(void *context, void *out_result) {
  runner r = {.bench = context, .result = out_result};
  if (create(&r)) r.type->destroy(r.self);
}

// Of what was measured before it failed nothing stays: half a row misleads.
static pool_bench_result run_in_child(const pool_bench *bench,
                                      child_work *work) {
  pool_bench what = *bench;
  pool_bench_result result;
  char why[CHILD_TEXT_SIZE];
  if (child_run(work, &what, &result, sizeof result, why)) {
    if (result.failed[0] == '\0') return result;
    snprintf(why, sizeof why, "%s", result.failed);
  }
  result = nothing_known();
  snprintf(result.failed, sizeof result.failed, "%s", why);
  return result;
}

pool_bench_result pool_bench_run(const pool_bench *bench) {
  return run_in_child(bench, measure);
}

bool pool_bench_try(const pool_bench *bench, char *why) {
  pool_bench_result result = run_in_child(bench, create_only);
  snprintf(why, CHILD_TEXT_SIZE, "%s", result.failed);
  return result.failed[0] == '\0';
}
