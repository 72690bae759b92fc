// Dry replays, for the memory that they would have held.
#include "what_if.h"

#include <stdlib.h>

#include "moment.h"
#include "replay.h"

typedef struct trial {
  const tool_verb *verb;
  const tarn_trace *trace;
  tarn_device *device;
  stopwatch watch;
  tool_progress progress;
  uint64_t capacity;
} trial;

// One replay of one iteration; false after a message.
static bool run_once(trial *t, const char *pool, size_t limit,
                     uint64_t *out_reserved, bool *out_served) {
  replay_result result;
  replay_options options = {.device = t->device,
                            .pool = pool,
                            .iterations = 1,
                            .dry = true,
                            .limit = limit};
  bool ran = replay_run(t->trace, &options, &t->watch, &t->progress, &result);
  *out_reserved = result.reserved_peak_bytes;
  *out_served = result.failed == 0;
  if (!ran) {
    tool_say(t->verb, "%s: %s: %s", t->trace->name, pool, result.error);
  }
  replay_result_deinit(&result);
  return ran;
}

static what_if_fits compare(uint64_t reserved, uint64_t capacity) {
  if (capacity == 0) return FITS_UNASKED;
  return reserved <= capacity ? FITS : FITS_NOT;
}

// With the capacity as its limit a pool gives back what it does not use before
// it refuses.
static bool squeeze(trial *t, what_if_row *row) {
  uint64_t reserved = 0;
  bool served = false;
  if (t->trace->live_peak_bytes > t->capacity) return true;  // nothing could
  if (!run_once(t, row->strategy, (size_t)t->capacity, &reserved, &served)) {
    return false;
  }
  if (!served || reserved > t->capacity) return true;
  row->reserved_bytes = reserved;
  row->fits = FITS;
  row->squeezed = true;
  return true;
}

static bool run_row(trial *t, const char *pool, what_if_row *row) {
  bool served = false;
  *row = (what_if_row){.strategy = pool};
  if (!run_once(t, pool, 0, &row->reserved_bytes, &served)) return false;
  row->fits = compare(row->reserved_bytes, t->capacity);
  if (!served && t->capacity > 0) row->fits = FITS_NOT;
  return row->fits != FITS_NOT || squeeze(t, row);
}

static void add_recorded(const trial *t, what_if *out) {
  if (!moment_knows_spans(t->trace)) return;
  uint64_t held = moment_held_peak(t->trace);
  out->rows[out->count++] = (what_if_row){.strategy = "as recorded",
                                          .reserved_bytes = held,
                                          .fits = compare(held, t->capacity)};
}

bool what_if_run(const tool_verb *verb, const tarn_trace *trace,
                 tarn_device *device, const options_list *pools,
                 uint64_t capacity, what_if *out) {
  trial t = {.verb = verb,
             .trace = trace,
             .device = device,
             .watch = stopwatch_start(),
             .capacity = capacity};
  *out = (what_if){0};
  out->rows = tool_array(pools->count + 1, sizeof *out->rows);
  add_recorded(&t, out);
  tool_progress_begin(&t.progress, pools->count);
  bool ran = true;
  for (size_t i = 0; ran && i < pools->count; i++) {
    ran = run_row(&t, pools->items[i], &out->rows[out->count]);
    out->count += ran;
  }
  tool_progress_end(&t.progress);
  return ran;
}

bool what_if_any_fits(const what_if *w) {
  bool asked = false;
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
