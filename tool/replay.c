// Runs the requests of a trace through one strategy.
//
//   strategy ─► baseline ─► iteration ─► restore ─► iteration ─► ... ─► end
//   strategy ─► the same, with each request timed by itself ─► ... ─► end
//
// The end: free all, trim, and count to 0.
#include "replay.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct runner {
  const tarn_trace *trace;
  replay_pass pass;
  const replay_options *options;
  const stopwatch *watch;
  tool_progress *progress;
  replay_result *result;
  tarn_place place;
  tarn_pool *pool;
  uint64_t *spare;  // as many as requests
} runner;

// ---------------------------------------------------------------------------
// Between iterations
// ---------------------------------------------------------------------------

static bool is_out(const runner *r, size_t index) {
  return replay_pass_is_out(&r->pass, (uint32_t)index);
}

static void give_from(runner *r, size_t first) {
  for (size_t i = first; i < r->trace->block_count; i++) {
    if (is_out(r, i) && !replay_pass_give(&r->pass, (uint32_t)i)) {
      replay_pass_note(&r->pass);
    }
  }
}

static void take_baseline(runner *r) {
  for (size_t i = 0; i < r->trace->baseline_count; i++) {
    if (!is_out(r, i) && !replay_pass_take(&r->pass, (uint32_t)i)) {
      replay_pass_note(&r->pass);
    }
  }
}

// Makes the state that every iteration starts from.
static void restore(runner *r) {
  give_from(r, r->trace->baseline_count);
  take_baseline(r);
}

static tarn_pool_stats query(const runner *r) {
  tarn_pool_stats stats = {.struct_size = sizeof stats};
  if (tarn_pool_query(r->pool, &stats) != TARN_OK) {
    stats = (tarn_pool_stats){0};
  }
  return stats;
}

// ---------------------------------------------------------------------------
// What requests took
// ---------------------------------------------------------------------------

// Of the requests of one kind, in an iteration that timed each by itself.
typedef struct kind_times {
  size_t count;
  double ns;  // of all, without the clock's; noise can make it negative
  double median, p99;
} kind_times;

static bool is_of(const request *item, bool allocs) {
  return (item->size > 0) == allocs;
}

static kind_times sum_up(runner *r, bool allocs) {
  kind_times out = {0};
  const request_list *requests = r->pass.requests;
  for (size_t i = 0; i < requests->count; i++) {
    uint64_t ticks = r->pass.ticks[i];
    if (!is_of(&requests->items[i], allocs) || ticks == REPLAY_NOT_SERVED)
      continue;
    r->spare[out.count++] = ticks;
    out.ns += stopwatch_ns(r->watch, (double)ticks - r->watch->empty_mean);
  }
  stopwatch_sort(r->spare, out.count);
  out.median = stopwatch_spread(r->watch, r->spare, out.count, 50);
  out.p99 = stopwatch_spread(r->watch, r->spare, out.count, 99);
  return out;
}

// Of the time of an iteration. By the count of requests, where they are too few
// or too short for the clock.
static double share_of_allocs(const kind_times *allocs,
                              const kind_times *frees) {
  if (frees->count == 0) return 1;
  if (allocs->count > 0 && allocs->ns > 0 && frees->ns > 0) {
    return allocs->ns / (allocs->ns + frees->ns);
  }
  return (double)allocs->count / (double)(allocs->count + frees->count);
}

// A figure without a request is missing. What is shorter than the clock can
// tell is as long as the mean.
static void split(runner *r, replay_iteration *out) {
  kind_times allocs = sum_up(r, true);
  kind_times frees = sum_up(r, false);
  double share = share_of_allocs(&allocs, &frees);
  out->alloc_ms = out->free_ms = out->alloc_ns_median = out->alloc_ns_p99 = NAN;
  if (frees.count > 0) out->free_ms = out->pass_ms * (1 - share);
  if (allocs.count == 0) return;
  out->alloc_ms = out->pass_ms * share;
  double mean = out->alloc_ms * 1e6 / (double)allocs.count;
  out->alloc_ns_median = allocs.median > 0 ? allocs.median : mean;
  out->alloc_ns_p99 = fmax(allocs.p99, out->alloc_ns_median);
}

// ---------------------------------------------------------------------------
// Iterations
// ---------------------------------------------------------------------------

static void iterate(runner *r, replay_iteration *out) {
  tarn_pool_stats before = query(r);
  out->pass_ms = replay_pass_run(&r->pass) / 1e6;
  tarn_pool_stats after = query(r);
  out->hits = after.hits - before.hits;
  out->misses = after.misses - before.misses;
}

static void sample(runner *r, replay_iteration *out) {
  replay_pass_sample(&r->pass);
  split(r, out);
}

static void show_progress(const runner *r, size_t iteration) {
  char text[REPLAY_TEXT_SIZE];
  snprintf(text, sizeof text, "%s, iteration %zu of %.64s", r->options->pool,
           iteration + 1, r->trace->name);
  tool_progress_step(r->progress, text);
}

static void iterate_all(runner *r, void (*one)(runner *, replay_iteration *)) {
  take_baseline(r);
  for (size_t i = 0; i < r->options->iterations; i++) {
    show_progress(r, i);
    if (i > 0) restore(r);
    one(r, &r->result->iterations[i]);
  }
}

// ---------------------------------------------------------------------------
// For the picture
// ---------------------------------------------------------------------------

static void note_address(runner *r, uint32_t index) {
  r->result->history.addresses[index] = replay_pass_address(&r->pass, index);
}

// A request that was refused while timed is refused here too, and counted
// there.
static void record_event(runner *r, const tarn_trace_event *event) {
  if (event->block == TARN_TRACE_NO_BLOCK) return;
  if (event->kind == TARN_TRACE_ALLOC &&
      replay_pass_take(&r->pass, event->block)) {
    note_address(r, event->block);
  }
  if (event->kind == TARN_TRACE_FREE && is_out(r, event->block)) {
    (void)replay_pass_give(&r->pass, event->block);
  }
}

static void record_history(runner *r) {
  replay_history *history = &r->result->history;
  const tarn_trace *trace = r->trace;
  history->addresses = tool_array(trace->block_count, sizeof(tarn_addr));
  history->reserved = tool_array(trace->event_count + 1, sizeof(uint64_t));
  restore(r);
  for (size_t i = 0; i < trace->baseline_count; i++) {
    note_address(r, (uint32_t)i);
  }
  history->reserved[0] = query(r).reserved_bytes;
  for (size_t i = 0; i < trace->event_count; i++) {
    record_event(r, &trace->events[i]);
    history->reserved[i + 1] = query(r).reserved_bytes;
  }
}

// ---------------------------------------------------------------------------
// Beginning and end
// ---------------------------------------------------------------------------

static bool fail(runner *r, const char *text) {
  snprintf(r->result->error, REPLAY_TEXT_SIZE, "%s", text);
  return false;
}

// Memory that is written to is really there: a pool that keeps everything could
// use up the machine and be killed. It is to refuse instead, in good time.
static tarn_status set_limit(runner *r) {
  size_t total = 0, free_bytes = 0;
  size_t asked = r->options->limit;
  if (!r->options->touch) return tarn_pool_limit(r->pool, asked);
  tarn_status status =
      tarn_device_memory(r->options->device, &total, &free_bytes);
  if (status != TARN_OK) return status;
  size_t limit = free_bytes - free_bytes / 10;
  if (asked != 0 && asked < limit) limit = asked;
  return tarn_pool_limit(r->pool, limit > 0 ? limit : 1);
}

static tarn_status open_pool(runner *r) {
  const replay_options *o = r->options;
  tarn_pool_options dry = {.struct_size = sizeof dry,
                           .strategy = o->pool,
                           .limit = o->limit,
                           .flags = TARN_POOL_DRY};
  if (o->dry) return tarn_pool_create(r->place, &dry, &r->pool);
  tarn_status status = tarn_pool_of(r->place, &r->pool);
  if (status == TARN_OK) status = tarn_pool_set_strategy(r->pool, o->pool);
  if (status == TARN_OK) status = tarn_pool_reset_peaks(r->pool);
  return status == TARN_OK ? set_limit(r) : status;
}

static void close_pool(runner *r) {
  if (r->options->dry) (void)tarn_pool_destroy(r->pool);
}

// Nothing is alive now; a strategy that says otherwise cannot be trusted.
static bool end_alike(runner *r) {
  give_from(r, 0);
  if (tarn_pool_trim(r->pool, 0) != TARN_OK) return fail(r, tarn_last_error());
  tarn_pool_stats stats = {.struct_size = sizeof stats};
  if (tarn_pool_query(r->pool, &stats) != TARN_OK) {
    return fail(r, tarn_last_error());
  }
  if (stats.live_bytes == 0 && stats.live_blocks == 0) return true;
  snprintf(r->result->error, REPLAY_TEXT_SIZE,
           "all blocks were freed, but the pool counts %zu bytes alive in %zu "
           "blocks",
           stats.live_bytes, stats.live_blocks);
  return false;
}

// Whole iterations. What is refused, held, and where blocks stand is told of
// these.
static void run_whole(runner *r) {
  replay_result *result = r->result;
  r->pass.counts = true;
  iterate_all(r, iterate);
  tarn_pool_stats stats = query(r);
  result->reserved_peak_bytes = stats.reserved_peak_bytes;
  result->moved_bytes = stats.moved_bytes;
  result->move_ms = (double)stats.move_ns / 1e6;
  if (r->options->history) record_history(r);
}

static void run_samples(runner *r) {
  r->pass.counts = false;
  iterate_all(r, sample);
}

static bool run_round(runner *r, void (*round)(runner *)) {
  if (open_pool(r) != TARN_OK) {
    (void)fail(r, tarn_last_error());
    close_pool(r);
    return false;
  }
  r->pass.pool = r->pool;
  round(r);
  bool ended = end_alike(r);
  close_pool(r);
  return ended;
}

static bool open_pass(runner *r) {
  const replay_options *o = r->options;
  r->pass.watch = r->watch;
  r->pass.touches = o->touch;
  size_t threads = o->threads > 0 ? o->threads : 1;
  if (!replay_pass_open(&r->pass, r->trace, o->device, threads)) {
    return fail(r, "no more threads can be started");
  }
  r->spare = tool_array_ready(r->pass.requests->count, sizeof *r->spare);
  return true;
}

bool replay_run(const tarn_trace *trace, const replay_options *options,
                const stopwatch *watch, tool_progress *progress,
                replay_result *out_result) {
  *out_result = (replay_result){.pool = options->pool,
                                .iteration_count = options->iterations};
  runner r = {.trace = trace,
              .options = options,
              .watch = watch,
              .progress = progress,
              .result = out_result,
              .place = tarn_place_on(options->device)};
  out_result->iterations =
      tool_array(options->iterations, sizeof(replay_iteration));
  bool done =
      open_pass(&r) && run_round(&r, run_whole) && run_round(&r, run_samples);
  out_result->failed = r.pass.failed;
  snprintf(out_result->first_failure, REPLAY_TEXT_SIZE, "%s",
           r.pass.first_failure);
  replay_pass_close(&r.pass);
  free(r.spare);
  return done;
}

void replay_result_deinit(replay_result *result) {
  free(result->iterations);
  free(result->history.addresses);
  free(result->history.reserved);
  *result = (replay_result){0};
}

// ---------------------------------------------------------------------------
// Figures
// ---------------------------------------------------------------------------

double replay_over_live(const tarn_trace *trace, const replay_result *result) {
  if (trace->live_peak_bytes == 0) return NAN;
  return (double)result->reserved_peak_bytes / (double)trace->live_peak_bytes;
}

static int compare_iterations(const void *a, const void *b) {
  const replay_iteration *x = *(const replay_iteration *const *)a;
  const replay_iteration *y = *(const replay_iteration *const *)b;
  return (x->alloc_ms > y->alloc_ms) - (x->alloc_ms < y->alloc_ms);
}

const replay_iteration *replay_steady(const replay_result *result) {
  size_t later = result->iteration_count - 1;
  if (later == 0) return &result->iterations[0];
  const replay_iteration **order = tool_array(later, sizeof *order);
  for (size_t i = 0; i < later; i++)
    order[i] = &result->iterations[i + 1];
  qsort(order, later, sizeof *order, compare_iterations);
  const replay_iteration *median = order[(later - 1) / 2];
  free(order);
  return median;
}
