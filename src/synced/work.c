// The work of streams on a buffer: points, waits, and failed streams.
#include "synced/work.h"

#include "base/status.h"
#include "synced/sides.h"

// --- streams that failed -----------------------------------------------------

static bool is_of_timeline(const tarn__synced_use *use, void *context) {
  return use->timeline == context;
}

// The sides of void writes of the timeline in |span|.
static uint64_t void_sides(const tarn__synced_span *span,
                           const tarn__synced_timeline *timeline) {
  uint64_t sides = 0;
  for (const tarn__synced_use *use = span->uses; use != NULL; use = use->next) {
    bool never = use->timeline == timeline && use->writes &&
                 tarn__timeline_is_void(timeline, use->number);
    if (never) sides |= tarn__side_bit(use->side);
  }
  return sides;
}

static void sweep_span(tarn__synced_core *core, tarn__synced_span *span,
                       tarn__synced_timeline *timeline) {
  uint64_t gone = span->valid & void_sides(span, timeline);
  if (gone != 0) {
    uint64_t left = span->valid & ~gone;
    tarn__span_set(core, span, left, span->written);
    if (tarn__span_is_lost(span)) {
      tarn__core_note_loss(core, TARN__LOSS_FAILED,
                           (uint32_t)__builtin_ctzll(gone), span->node.start,
                           span->end);
    }
  }
  if (span->uses != NULL) {
    tarn__span_forget(&core->spans, span, is_of_timeline, timeline);
  }
}

void tarn__work_sweep(tarn__synced_core *core,
                      tarn__synced_timeline *timeline) {
  tarn__timeline_hold(timeline);
  for (tarn__synced_span *span = core->spans.first; span != NULL;
       span = span->next)
    sweep_span(core, span, timeline);
  tarn__timeline_release(timeline);
  tarn__spans_join(&core->spans, 0, core->size);
}

void tarn__work_settle(tarn__synced_core *core, tarn__synced_point *point,
                       tarn_status status) {
  tarn__synced_timeline *timeline = point->timeline;
  tarn__timeline_hold(timeline);
  tarn__timeline_release_point(timeline, point, status);
  if (timeline->failed && timeline->uses > 0) tarn__work_sweep(core, timeline);
  tarn__timeline_release(timeline);
}

// Holds the last point of a timeline of |stream| that is not over; NULL: none.
static tarn__synced_point *hold_point_of(const tarn__synced_core *core,
                                         const tarn_stream *stream) {
  tarn__synced_point *point = NULL;
  tarn__synced_timeline *timeline = core->timelines.first;
  for (; timeline != NULL && point == NULL; timeline = timeline->next) {
    if (timeline->serial != tarn_stream_serial(stream)) continue;
    point = tarn__timeline_hold_point(timeline, timeline->issued);
  }
  return point;
}

// A stream may have several timelines: its own, and those of followed buffers.
static void fail_stream(tarn__synced_core *core, const tarn_stream *stream) {
  tarn__synced_point *point = NULL;
  while ((point = hold_point_of(core, stream)) != NULL)
    tarn__work_settle(core, point, TARN_E_DEVICE);
}

// --- points ------------------------------------------------------------------

// The timeline is busy from begin to end.
static tarn_status record(tarn__synced_core *core,
                          tarn__synced_timeline *timeline, tarn_stream *stream,
                          uint64_t *out_number) {
  tarn__synced_point *point = NULL;
  while (timeline->busy)
    tarn__core_sleep(core);
  tarn_status status = tarn__timeline_begin_point(timeline, &point);
  if (status != TARN_OK) return status;
  tarn__core_leave(core);
  status = tarn__point_record(point, stream);
  tarn__core_enter(core);
  *out_number = tarn__timeline_end_point(timeline, point);
  tarn__core_wake(core);
  return status;
}

tarn_status tarn__work_ask(tarn__synced_core *core,
                           tarn__synced_timeline *timeline) {
  tarn__synced_point *point =
      tarn__timeline_hold_point(timeline, timeline->done + 1);
  if (point == NULL) return TARN_PENDING;
  tarn__core_leave(core);
  tarn_status status = tarn__point_query(point);
  tarn__core_enter(core);
  tarn__work_settle(core, point, status);
  return status;
}

// If no thread ever waits for a stream, as with a gradient that one stream uses
// again and again, points would pile up: beyond a few the oldest is queried.
// The caller holds the timeline.
static void look_back(tarn__synced_core *core,
                      tarn__synced_timeline *timeline) {
  enum { FEW_POINTS = 2 };
  tarn_status status = TARN_OK;
  while (status == TARN_OK && timeline->point_count > FEW_POINTS)
    status = tarn__work_ask(core, timeline);
}

tarn_status tarn__work_wait(tarn__synced_core *core, tarn_stream *stream) {
  tarn__core_leave(core);
  tarn_status status = tarn_stream_synchronize(stream);
  tarn__core_enter(core);
  if (status == TARN_E_DEVICE) fail_stream(core, stream);
  return status;
}

tarn_status tarn__work_point(tarn__synced_core *core, tarn_stream *stream,
                             tarn__synced_position *out_position) {
  tarn__synced_timeline *timeline = NULL;
  uint64_t number = 0;
  *out_position = (tarn__synced_position){.timeline = NULL};
  tarn_status status = tarn__timeline_of(&core->timelines, stream, &timeline);
  if (status != TARN_OK) return tarn__work_wait(core, stream);
  look_back(core, timeline);
  (void)record(core, timeline, stream, &number);
  if (number == 0) status = tarn__work_wait(core, stream);
  if (number != 0 && !tarn__timeline_is_over(timeline, number)) {
    *out_position =
        (tarn__synced_position){.timeline = timeline, .number = number};
  } else {
    tarn__timeline_release(timeline);
  }
  return status;
}

// --- reached uses
// --------------------------------------------------------------

// Uses of a failed stream are left to the sweep, which needs to know their
// writes.
static bool is_reached(const tarn__synced_use *use, void *context) {
  (void)context;
  return use->timeline != NULL && use->number <= use->timeline->done;
}

void tarn__work_prune(tarn__synced_core *core, tarn__synced_span *span) {
  if (span->uses != NULL) {
    tarn__span_forget(&core->spans, span, is_reached, NULL);
  }
}

// --- waiting for all uses ----------------------------------------------------

static bool is_over(const tarn__synced_use *use, void *context) {
  (void)context;
  return use->timeline != NULL &&
         tarn__timeline_is_over(use->timeline, use->number);
}

static const tarn__synced_use *use_of(const tarn__synced_span *span,
                                      uint32_t side) {
  const tarn__synced_use *use = span->uses;
  while (use != NULL && use->side != side && side != TARN__NO_SIDE)
    use = use->next;
  return use;
}

// Removes uses in the range that are over; returns one that is not, or NULL.
static const tarn__synced_use *find_use(tarn__synced_core *core, uint32_t side,
                                        size_t start, size_t end) {
  const tarn__synced_use *use = NULL;
  if (start == end) return NULL;
  tarn__synced_span *span = tarn__spans_find(&core->spans, start);
  while (span != NULL && span->node.start < end && use == NULL) {
    tarn__span_forget(&core->spans, span, is_over, NULL);
    use = use_of(span, side);
    span = span->next;
  }
  return use;
}

static tarn_status wait_for(tarn__synced_core *core,
                            const tarn__synced_use *use) {
  if (use->timeline == NULL) {
    tarn__core_sleep(core);
    return TARN_OK;
  }
  tarn__synced_point *point =
      tarn__timeline_hold_point(use->timeline, use->number);
  if (point == NULL) return TARN_OK;
  tarn__core_leave(core);
  tarn_status status = tarn__point_wait(point);
  tarn__core_enter(core);
  tarn__work_settle(core, point, status);
  return status == TARN_E_DEVICE ? TARN_OK : status;
}

tarn_status tarn__side_rest(tarn__synced_core *core, uint32_t side,
                            size_t start, size_t end) {
  tarn_status status = TARN_OK;
  for (;;) {
    const tarn__synced_use *use = find_use(core, side, start, end);
    if (use == NULL || status != TARN_OK) break;
    status = wait_for(core, use);
  }
  if (start < end) tarn__spans_join(&core->spans, start, end);
  return status;
}

// --- querying streams --------------------------------------------------------

static void ask(tarn__synced_core *core, tarn__synced_timeline *timeline) {
  tarn_status status = TARN_OK;
  while (status == TARN_OK)
    status = tarn__work_ask(core, timeline);
}

void tarn__core_settle(tarn__synced_core *core) {
  tarn__synced_timeline *timeline = core->timelines.first;
  if (timeline != NULL) tarn__timeline_hold(timeline);
  while (timeline != NULL) {
    ask(core, timeline);
    tarn__synced_timeline *next = timeline->next;
    if (next != NULL) tarn__timeline_hold(next);
    tarn__timeline_release(timeline);
    timeline = next;
  }
}

// --- spans -------------------------------------------------------------------

uint64_t tarn__span_newest(const tarn__synced_span *span) {
  uint64_t valid = span->valid;
  for (const tarn__synced_use *use = span->uses; use != NULL; use = use->next) {
    if (!use->writes || use->timeline == NULL) continue;
    if (tarn__timeline_is_void(use->timeline, use->number)) {
      valid &= ~tarn__side_bit(use->side);
    }
  }
  return valid;
}

uint64_t tarn__span_pending(const tarn__synced_span *span) {
  uint64_t pending = 0;
  for (const tarn__synced_use *use = span->uses; use != NULL; use = use->next) {
    if (!use->writes) continue;
    if (use->timeline == NULL ||
        !tarn__timeline_is_over(use->timeline, use->number)) {
      pending |= tarn__side_bit(use->side);
    }
  }
  return pending;
}

// An open write may be cancelled: its side does not count as a copy.
static uint64_t committed(const tarn__synced_span *span) {
  uint64_t newest = tarn__span_newest(span);
  bool open = span->writer != NULL;
  return open ? newest & ~tarn__side_bit(span->writer->side) : newest;
}

bool tarn__span_is_only_at(const tarn__synced_span *span, uint32_t side) {
  return span->written && committed(span) == tarn__side_bit(side);
}

bool tarn__span_is_missing_at(const tarn__synced_span *span, uint32_t side) {
  uint64_t newest = tarn__span_newest(span);
  bool lost = span->written && newest == 0;
  return !lost && (newest & tarn__side_bit(side)) == 0;
}

// --- uses --------------------------------------------------------------------

bool tarn__core_is_in_use(const tarn__synced_core *core, uint32_t side) {
  const tarn__synced_span *span = core->spans.first;
  for (; span != NULL; span = span->next) {
    for (const tarn__synced_use *use = span->uses; use != NULL;
         use = use->next) {
      if (use->side == side) return true;
    }
  }
  return false;
}

bool tarn__core_is_copying(const tarn__synced_core *core, size_t start,
                           size_t end) {
  if (start == end) return false;
  const tarn__synced_span *span = tarn__spans_find(&core->spans, start);
  for (; span != NULL && span->node.start < end; span = span->next) {
    for (const tarn__synced_use *use = span->uses; use != NULL;
         use = use->next) {
      if (use->timeline == NULL) return true;
    }
  }
  return false;
}

// --- runs --------------------------------------------------------------------

static size_t end_of_run(const tarn__synced_span *span, uint32_t side,
                         tarn__synced_span_test *test) {
  while (span->next != NULL && test(span->next, side))
    span = span->next;
  return span->end;
}

bool tarn__core_find_run(const tarn__synced_core *core, size_t from,
                         uint32_t side, tarn__synced_span_test *test,
                         tarn__synced_run *out_run) {
  *out_run = (tarn__synced_run){0, 0};
  if (from >= core->size) return false;
  const tarn__synced_span *span = tarn__spans_find(&core->spans, from);
  while (span != NULL && !test(span, side))
    span = span->next;
  if (span == NULL) return false;
  *out_run = (tarn__synced_run){span->node.start, end_of_run(span, side, test)};
  return true;
}
