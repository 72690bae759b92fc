// Dry replays, for the memory that they would have held.
//
// `tarn replay` runs the same requests, but times each of them. Nothing is
// timed here, so that a user who waits for the answer has it at once: a few
// workers take one strategy after the other, each with blocks of its own. One
// of them makes the plan.
#include "what_if.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kit/format.h"
#include "moment.h"
#include "trace_problem.h"

enum { ERROR_SIZE = 512, WORKERS_MOST = 4 };

// Of the plan: as many nodes as are searched in some hundredths of a second, so
// that the same trace gives the same figure, and a limit for what is slow.
static const uint64_t plan_nodes = 5000;
static const double plan_seconds = 1;

typedef struct trial {
  const tarn_trace *trace;
  tarn_device *device;
  uint64_t capacity;
  uint64_t needed;
  uint64_t refused_most;   // bytes of a refused request that counts
  tarn_block *blocks;      // of each block of the trace; pool NULL: not out
  char error[ERROR_SIZE];  // why a strategy could not be had
} trial;

// The result of one replay.
typedef struct outcome {
  uint64_t reserved;
  uint64_t refused;  // requests
} outcome;

// ---------------------------------------------------------------------------
// One replay
// ---------------------------------------------------------------------------

static void take(trial *t, tarn_pool *pool, uint32_t block, outcome *out) {
  tarn_status status = tarn_pool_alloc(pool, t->trace->blocks[block].size, 0,
                                       NULL, &t->blocks[block]);
  out->refused += status != TARN_OK;
}

static void give_back(trial *t, uint32_t block, outcome *out) {
  if (t->blocks[block].pool == NULL) return;  // it was refused
  out->refused += tarn_pool_free(&t->blocks[block], NULL) != TARN_OK;
  t->blocks[block] = (tarn_block){0};
}

// A request that was refused when it was recorded: it is unknown how long it
// would have been kept.
static void ask(const trial *t, tarn_pool *pool, uint64_t size, outcome *out) {
  tarn_block block = {0};
  if (size == 0 || size > t->refused_most) return;
  tarn_status status = tarn_pool_alloc(pool, size, 0, NULL, &block);
  if (status == TARN_OK) status = tarn_pool_free(&block, NULL);
  out->refused += status != TARN_OK;
}

static void run_events(trial *t, tarn_pool *pool, outcome *out) {
  const tarn_trace *trace = t->trace;
  for (size_t i = 0; i < trace->baseline_count; i++)
    take(t, pool, (uint32_t)i, out);
  for (size_t i = 0; i < trace->event_count; i++) {
    const tarn_trace_event *event = &trace->events[i];
    if (event->kind == TARN_TRACE_ALLOC) take(t, pool, event->block, out);
    if (event->kind == TARN_TRACE_FREE) give_back(t, event->block, out);
    if (event->kind == TARN_TRACE_OOM) ask(t, pool, event->size, out);
  }
}

static tarn_status run_pool(trial *t, tarn_pool *pool, outcome *out) {
  tarn_pool_stats stats = {.struct_size = sizeof stats};
  run_events(t, pool, out);
  tarn_status status = tarn_pool_query(pool, &stats);
  out->reserved = stats.reserved_peak_bytes;
  for (size_t i = 0; i < t->trace->block_count; i++)
    give_back(t, (uint32_t)i, out);
  return status;
}

static bool run_once(trial *t, const char *strategy, size_t limit,
                     outcome *out) {
  tarn_pool_options options = {.struct_size = sizeof options,
                               .strategy = strategy,
                               .limit = limit,
                               .flags = TARN_POOL_DRY};
  tarn_pool *pool = NULL;
  *out = (outcome){0};
  tarn_status status =
      tarn_pool_create(tarn_place_on(t->device), &options, &pool);
  if (status == TARN_OK) {
    assert(pool != NULL);
    status = run_pool(t, pool, out);
    tarn_status destroyed = tarn_pool_destroy(pool);
    if (status == TARN_OK) status = destroyed;
  }
  if (status == TARN_OK) return true;
  snprintf(t->error, sizeof t->error, "%s: %s", strategy, tarn_last_error());
  return false;
}

// ---------------------------------------------------------------------------
// Rows
// ---------------------------------------------------------------------------

static what_if_fits compare(uint64_t reserved, uint64_t capacity) {
  if (capacity == 0) return FITS_UNASKED;
  return reserved <= capacity ? FITS : FITS_NOT;
}

// With the capacity as its limit a pool gives back what it does not use before
// it refuses.
static bool squeeze(trial *t, what_if_row *row) {
  outcome out;
  if (t->needed > t->capacity) return true;  // nothing could
  if (!run_once(t, row->strategy, (size_t)t->capacity, &out)) return false;
  if (out.refused > 0 || out.reserved > t->capacity) return true;
  row->reserved_bytes = out.reserved;
  row->fits = FITS;
  row->squeezed = true;
  return true;
}

static bool run_row(trial *t, const char *strategy, what_if_row *row) {
  outcome out;
  if (!run_once(t, strategy, 0, &out)) return false;
  *row = (what_if_row){.strategy = strategy,
                       .reserved_bytes = out.reserved,
                       .served_bytes = t->needed,
                       .fits = compare(out.reserved, t->capacity)};
  if (out.refused > 0 && t->capacity > 0) row->fits = FITS_NOT;
  return row->fits != FITS_NOT || squeeze(t, row);
}

static bool run_plan(trial *t, what_if_row *row) {
  trace_problem p = trace_problem_make(t->trace, 0, t->refused_most);
  tarn_plan_options options = {.struct_size = sizeof options,
                               .node_limit = plan_nodes,
                               .time_limit_s = plan_seconds};
  tarn_plan *plan = NULL;
  tarn_status status = tarn_plan_solve(&p.problem, &options, &plan);
  if (status == TARN_OK) {
    uint64_t height = tarn_plan_height(plan, 0);
    *row = (what_if_row){.strategy = "plan",
                         .reserved_bytes = height,
                         .served_bytes = t->needed,
                         .fits = compare(height, t->capacity)};
  } else {
    snprintf(t->error, sizeof t->error, "plan: %s", tarn_last_error());
  }
  tarn_plan_destroy(plan);
  trace_problem_deinit(&p);
  return status == TARN_OK;
}

// ---------------------------------------------------------------------------
// Workers
// ---------------------------------------------------------------------------

typedef struct crew {
  trial common;  // what each worker begins with
  const options_list *strategies;
  what_if_row *rows;  // of each strategy
  bool with_plan;     // the row behind them
  atomic_size_t next;
  pthread_mutex_t lock;    // of error
  char error[ERROR_SIZE];  // the last one; "": none
} crew;

static size_t count_jobs(const crew *c) {
  return c->strategies->count + (c->with_plan ? 1 : 0);
}

static void note_error(crew *c, const trial *t) {
  (void)pthread_mutex_lock(&c->lock);
  snprintf(c->error, sizeof c->error, "%s", t->error);
  (void)pthread_mutex_unlock(&c->lock);
}

// The plan comes first: it may take longest.
static bool run_job(crew *c, trial *own, size_t job) {
  if (c->with_plan && job == 0) {
    return run_plan(own, &c->rows[c->strategies->count]);
  }
  if (c->with_plan) job--;
  return run_row(own, c->strategies->items[job], &c->rows[job]);
}

static void *work(void *context) {
  crew *c = context;
  trial own = c->common;
  own.blocks = tool_array(own.trace->block_count + 1, sizeof *own.blocks);
  for (;;) {
    size_t job = atomic_fetch_add(&c->next, 1);
    if (job >= count_jobs(c)) break;
    if (!run_job(c, &own, job)) note_error(c, &own);
  }
  free(own.blocks);
  return NULL;
}

static size_t count_workers(size_t jobs) {
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  size_t most = processors > 1 ? (size_t)processors : 1;
  if (most > WORKERS_MOST) most = WORKERS_MOST;
  return jobs < most ? jobs : most;
}

// This thread is one of the workers, and does it all if there are no others.
static void run_all(crew *c) {
  pthread_t others[WORKERS_MOST];
  size_t begun = 0, wanted = count_workers(count_jobs(c));
  while (begun + 1 < wanted &&
         pthread_create(&others[begun], NULL, work, c) == 0) {
    begun++;
  }
  (void)work(c);
  for (size_t i = 0; i < begun; i++)
    (void)pthread_join(others[i], NULL);
}

static void add_recorded(const tarn_trace *trace, uint64_t capacity,
                         uint64_t refused_most, what_if *out) {
  if (!moment_knows_spans(trace)) return;
  uint64_t wanted = 0;
  uint64_t held = moment_held_peak(trace, refused_most, &wanted);
  out->rows[out->count++] =
      (what_if_row){.strategy = "as recorded",
                    .reserved_bytes = held,
                    .served_bytes = trace->live_peak_bytes,
                    .fits = compare(wanted, capacity)};
}

static uint64_t add_sizes(uint64_t a, uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t count_needed(const tarn_trace *trace, uint64_t refused_most) {
  uint64_t live = trace->baseline_bytes, needed = trace->live_peak_bytes;
  for (size_t i = 0; i < trace->event_count; i++) {
    const tarn_trace_event *event = &trace->events[i];
    if (event->kind == TARN_TRACE_ALLOC)
      live += trace->blocks[event->block].size;
    if (event->kind == TARN_TRACE_FREE)
      live -= trace->blocks[event->block].size;
    if (event->kind != TARN_TRACE_OOM || event->size > refused_most) continue;
    uint64_t then = add_sizes(live, event->size);
    if (then > needed) needed = then;
  }
  return needed;
}

static void leave_untried(const tool_verb *verb, const tarn_trace *trace,
                          what_if *out) {
  char needed[FORMAT_SIZE];
  out->untried = true;
  tool_say(verb, "%s: %s were needed at once: too much to try other allocators",
           trace->name, format_bytes(needed, out->needed_bytes));
}

// About the time of a plan: each block is fitted in among the live ones.
static uint64_t work_of_plan(const tarn_trace *trace) {
  uint64_t live = 0, work = trace->baseline_count;
  for (size_t i = 0; i < trace->event_count; i++) {
    const tarn_trace_event *event = &trace->events[i];
    if (event->kind == TARN_TRACE_ALLOC) work += ++live;
    if (event->kind != TARN_TRACE_FREE) continue;
    live -= trace->blocks[event->block].born != TARN_TRACE_BASELINE;
  }
  return work;
}

static bool can_plan(const tool_verb *verb, const what_if_question *q) {
  if (!q->with_plan || work_of_plan(q->trace) <= WHAT_IF_PLAN_MOST) {
    return q->with_plan;
  }
  tool_say(verb,
           "%s: too large to be planned at once: tarn plan takes its time",
           q->trace->name);
  return false;
}

bool what_if_run(const tool_verb *verb, const what_if_question *q,
                 what_if *out) {
  uint64_t refused_most = q->with_refused ? WHAT_IF_MOST : 0;
  *out = (what_if){.needed_bytes = count_needed(q->trace, refused_most),
                   .asked = q->capacity > 0};
  out->rows = tool_array(q->pools->count + 2, sizeof *out->rows);
  add_recorded(q->trace, q->capacity, refused_most, out);
  crew c = {.common = {.trace = q->trace,
                       .device = q->device,
                       .capacity = q->capacity,
                       .needed = out->needed_bytes,
                       .refused_most = refused_most},
            .strategies = q->pools,
            .rows = &out->rows[out->count],
            .lock = PTHREAD_MUTEX_INITIALIZER};
  if (q->pools->count == 0 && !q->with_plan) return true;
  if (out->needed_bytes > WHAT_IF_MOST) {
    leave_untried(verb, q->trace, out);
    return true;
  }
  c.with_plan = can_plan(verb, q);
  run_all(&c);
  out->count += count_jobs(&c);
  if (c.error[0] == '\0') return true;
  tool_say(verb, "%s: %s", q->trace->name, c.error);
  return false;
}

static tarn_status try_pool(const void *device, const char *pool) {
  tarn_device *const *opened = device;
  return options_pool_try_dry(tarn_place_on(*opened), pool, 0);
}

tool_exit what_if_pools_check(const tool_verb *verb, options_list *pools,
                              tarn_device **out_device) {
  static const char usual[] = "no_pool,page_unit_pool,buddy_pool,arena_pool";
  if (pools->count == 0) options_pools_split(usual, pools);
  if (pools->count == 1 && strcmp(pools->items[0], "none") == 0)
    options_list_free(pools);
  tool_exit status = options_once(verb, "pool", pools);
  if (status != TOOL_DONE || pools->count == 0) return status;
  if (tarn_device_open("cpu:0", out_device) != TARN_OK)
    return tool_fail(verb, "%s", tarn_last_error());
  return options_pools_check(verb, pools, try_pool, out_device);
}

bool what_if_any_fits(const what_if *w) {
  bool asked = w->asked && w->untried;
  for (size_t i = 0; i < w->count; i++) {
    if (w->rows[i].fits == FITS) return true;
    asked |= w->rows[i].fits == FITS_NOT;
  }
  return !asked;
}

void what_if_deinit(what_if *w) {
  free(w->rows);
  *w = (what_if){0};
}
