// Runs the requests of a trace through one strategy.
//
//   use strategy ─► baseline ─► iteration ─► restore ─► iteration ─► ...
//                                                  ... ─► free all ─► trim ─►
//                                                  0?
#include "replay.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "kit/requests.h"

typedef struct runner {
  const tarn_trace *trace;
  request_list requests;  // of the trace
  const replay_options *options;
  const stopwatch *watch;
  replay_result *result;
  tarn_place place;
  tarn_pool *pool;
  tarn_block *blocks;  // of each block of the trace; pool NULL: not out
  uint64_t *ticks;     // of each alloc of the present iteration
  size_t alloc_count;
  size_t free_count;
  uint64_t free_ticks;  // of them all
  bool host_touches;    // the host can write to the device's memory
  size_t page;
} runner;

// ---------------------------------------------------------------------------
// One request
// ---------------------------------------------------------------------------

static void note_failure(runner *r) {
  if (r->result->failed++ > 0) return;
  snprintf(r->result->first_failure, REPLAY_TEXT_SIZE, "%s", tarn_last_error());
}

static bool is_out(const runner *r, uint32_t index) {
  return r->blocks[index].pool != NULL;
}

static void write_pages(volatile unsigned char *bytes, size_t size,
                        size_t page) {
  for (size_t at = 0; at < size; at += page)
    bytes[at] = 1;
}

// Writes to each page of a new block, through the device where the host cannot
// reach; |*out_ticks| is what that took.
static bool touch(runner *r, uint32_t index, uint64_t *out_ticks) {
  tarn_addr address = r->blocks[index].address;
  size_t size = r->trace->blocks[index].size;
  void *bytes = NULL;
  tarn_status status = TARN_OK;
  if (r->host_touches) {
    status = tarn_device_host_view(r->place, address, size, &bytes);
    if (status != TARN_OK) return false;
  }
  uint64_t begin = stopwatch_now(r->watch);
  if (bytes != NULL) {
    write_pages(bytes, size, r->page);
  } else {
    status = tarn_device_set(r->options->device, address, 1, size, NULL);
  }
  *out_ticks = stopwatch_since(r->watch, begin);
  return status == TARN_OK;
}

// The timed code touches none of the replayer's own memory but the stack: first
// touches of its arrays would be counted as the pool's.
static void request_alloc(runner *r, uint32_t index, size_t size) {
  tarn_block block = {0};
  uint64_t touch_ticks = 0;
  uint64_t begin = stopwatch_now(r->watch);
  bool served = tarn_pool_alloc(r->pool, size, 0, NULL, &block) == TARN_OK;
  uint64_t ticks = stopwatch_since(r->watch, begin);
  r->blocks[index] = block;
  if (served && r->options->touch) served = touch(r, index, &touch_ticks);
  if (!served) note_failure(r);
  r->ticks[r->alloc_count++] = ticks + touch_ticks;
}

static void request_free(runner *r, uint32_t index) {
  if (!is_out(r, index)) return;  // its alloc had been refused
  tarn_block block = r->blocks[index];
  uint64_t begin = stopwatch_now(r->watch);
  bool served = tarn_pool_free(&block, NULL) == TARN_OK;
  r->free_ticks += stopwatch_since(r->watch, begin);
  r->free_count++;
  r->blocks[index] = (tarn_block){0};
  if (!served) note_failure(r);
}

static void run_request(runner *r, const request *item) {
  if (item->size > 0) {
    request_alloc(r, item->slot, item->size);
  } else {
    request_free(r, item->slot);
  }
}

// The same untimed. A failed call leaves the block zero: not out.
static bool take(runner *r, uint32_t index) {
  return tarn_pool_alloc(r->pool, r->trace->blocks[index].size, 0, NULL,
                         &r->blocks[index]) == TARN_OK;
}

static bool give_back(runner *r, uint32_t index) {
  tarn_block block = r->blocks[index];
  r->blocks[index] = (tarn_block){0};
  return tarn_pool_free(&block, NULL) == TARN_OK;
}

// ---------------------------------------------------------------------------
// Iterations
// ---------------------------------------------------------------------------

static void free_beyond_baseline(runner *r) {
  for (size_t i = r->trace->baseline_count; i < r->trace->block_count; i++) {
    if (is_out(r, (uint32_t)i) && !give_back(r, (uint32_t)i)) note_failure(r);
  }
}

static void take_baseline(runner *r) {
  for (size_t i = 0; i < r->trace->baseline_count; i++) {
    if (!is_out(r, (uint32_t)i) && !take(r, (uint32_t)i)) note_failure(r);
  }
}

// Makes the state that every iteration starts from.
static void restore(runner *r) {
  free_beyond_baseline(r);
  take_baseline(r);
}

static void free_all(runner *r) {
  for (size_t i = 0; i < r->trace->block_count; i++) {
    if (is_out(r, (uint32_t)i) && !give_back(r, (uint32_t)i)) note_failure(r);
  }
}

static tarn_pool_stats query(const runner *r) {
  tarn_pool_stats stats = {.struct_size = sizeof stats};
  if (tarn_pool_query(r->pool, &stats) != TARN_OK) {
    stats = (tarn_pool_stats){0};
  }
  return stats;
}

// A figure without a timed request is missing.
static void sum_up_frees(const runner *r, replay_iteration *out) {
  out->free_ms = NAN;
  if (r->free_count == 0) return;
  out->free_ms = stopwatch_ns(r->watch, (double)r->free_ticks) / 1e6;
}

static void sum_up_allocs(runner *r, replay_iteration *out) {
  uint64_t total = 0;
  out->alloc_ms = out->alloc_ns_median = out->alloc_ns_p99 = NAN;
  if (r->alloc_count == 0) return;
  for (size_t i = 0; i < r->alloc_count; i++)
    total += r->ticks[i];
  stopwatch_sort(r->ticks, r->alloc_count);
  uint64_t median = stopwatch_percentile(r->ticks, r->alloc_count, 50);
  uint64_t p99 = stopwatch_percentile(r->ticks, r->alloc_count, 99);
  out->alloc_ms = stopwatch_ns(r->watch, (double)total) / 1e6;
  out->alloc_ns_median = stopwatch_ns(r->watch, (double)median);
  out->alloc_ns_p99 = stopwatch_ns(r->watch, (double)p99);
}

static void iterate(runner *r, replay_iteration *out) {
  r->alloc_count = 0;
  r->free_count = 0;
  r->free_ticks = 0;
  tarn_pool_stats before = query(r);
  for (size_t i = 0; i < r->requests.count; i++) {
    run_request(r, &r->requests.items[i]);
  }
  tarn_pool_stats after = query(r);
  out->hits = after.hits - before.hits;
  out->misses = after.misses - before.misses;
  sum_up_allocs(r, out);
  sum_up_frees(r, out);
}

static void show_progress(const runner *r, tool_progress *progress,
                          size_t iteration) {
  char text[REPLAY_TEXT_SIZE];
  snprintf(text, sizeof text, "%s, iteration %zu of %.64s", r->options->pool,
           iteration + 1, r->trace->name);
  tool_progress_step(progress, text);
}

static void iterate_all(runner *r, tool_progress *progress) {
  take_baseline(r);
  for (size_t i = 0; i < r->options->iterations; i++) {
    show_progress(r, progress, i);
    if (i > 0) restore(r);
    iterate(r, &r->result->iterations[i]);
  }
  r->result->reserved_peak_bytes = query(r).reserved_peak_bytes;
}

// ---------------------------------------------------------------------------
// For the picture
// ---------------------------------------------------------------------------

static void note_address(runner *r, uint32_t index) {
  r->result->history.addresses[index] = r->blocks[index].address;
}

// A request that was refused while timed is refused here too, and counted
// there.
static void record_event(runner *r, const tarn_trace_event *event) {
  if (event->block == TARN_TRACE_NO_BLOCK) return;
  if (event->kind == TARN_TRACE_ALLOC && take(r, event->block)) {
    note_address(r, event->block);
  }
  if (event->kind == TARN_TRACE_FREE && is_out(r, event->block)) {
    (void)give_back(r, event->block);
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

static bool begin(runner *r) {
  tarn_device_info info = {.struct_size = sizeof info};
  long page = sysconf(_SC_PAGESIZE);
  if (open_pool(r) != TARN_OK ||
      tarn_device_query(r->options->device, &info) != TARN_OK) {
    (void)fail(r, tarn_last_error());
    close_pool(r);
    return false;
  }
  r->page = page > 0 ? (size_t)page : 4096;
  r->host_touches = info.host_accessible;
  return true;
}

// Nothing is alive now; a strategy that says otherwise cannot be trusted.
static bool end(runner *r) {
  free_all(r);
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

bool replay_run(const tarn_trace *trace, const replay_options *options,
                const stopwatch *watch, tool_progress *progress,
                replay_result *out_result) {
  *out_result = (replay_result){.pool = options->pool,
                                .iteration_count = options->iterations};
  runner r = {.trace = trace,
              .options = options,
              .watch = watch,
              .result = out_result,
              .place = tarn_place_on(options->device)};
  if (!begin(&r)) return false;
  r.blocks = tool_array(trace->block_count, sizeof *r.blocks);
  r.requests = requests_make(trace);
  r.ticks = tool_array(r.requests.count, sizeof *r.ticks);
  out_result->iterations =
      tool_array(options->iterations, sizeof(replay_iteration));
  iterate_all(&r, progress);
  if (options->history) record_history(&r);
  bool ended = end(&r);
  close_pool(&r);
  free(r.ticks);
  requests_deinit(&r.requests);
  free(r.blocks);
  return ended;
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
