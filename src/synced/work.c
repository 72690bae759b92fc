// The work of streams on a buffer: points, waits, failed streams, and devices
// that are about to close.
//
// A failure is found when a point is settled, and the timeline is swept at
// once: with the lock held, no use is of a failed timeline.
//
// A buffer with memory at a device keeps it open. A buffer that had memory
// there may still have events of its streams, which would keep it open too, and
// sides of it.
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

// Removes a failed timeline, which the caller holds, from all spans. Its writes
// that are not known to be done make the bytes invalid there.
static void sweep(tarn__synced_core *core, tarn__synced_timeline *timeline) {
  tarn__spans_each (span, &core->spans, 0, core->size)
    sweep_span(core, span, timeline);
  tarn__spans_join(&core->spans, 0, core->size);
}

void tarn__work_settle(tarn__synced_core *core, tarn__synced_point *point,
                       tarn_status status) {
  tarn__synced_timeline *timeline = point->timeline;
  tarn__timeline_hold(timeline);
  tarn__timeline_release_point(timeline, point, status);
  if (timeline->failed) sweep(core, timeline);
  tarn__timeline_release(timeline);
}

// Holds the last point of a timeline of |device| (NULL: of the stream |serial|)
// that is not over, which stands for all its points; NULL: none.
static tarn__synced_point *hold_last_point(const tarn__synced_core *core,
                                           const tarn_device *device,
                                           uint64_t serial) {
  tarn__synced_point *point = NULL;
  tarn__synced_timeline *timeline = core->timelines.first;
  for (; timeline != NULL && point == NULL; timeline = timeline->next) {
    bool meant = device != NULL ? timeline->device == device
                                : timeline->serial == serial;
    if (meant) point = tarn__timeline_hold_point(timeline, timeline->issued);
  }
  return point;
}

// A stream may have several timelines: its own, and those of followed buffers.
static void fail_stream(tarn__synced_core *core, const tarn_stream *stream) {
  uint64_t serial = tarn_stream_serial(stream);
  tarn__synced_point *point = NULL;
  while ((point = hold_last_point(core, NULL, serial)) != NULL)
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
  TARN__TRY(tarn__timeline_begin_point(timeline, &point));
  tarn__core_leave(core);
  tarn_status status = tarn__point_record(point, stream);
  tarn__core_enter(core);
  *out_number = tarn__timeline_end_point(timeline, point);
  tarn__core_wake(core);
  return status;
}

// Looks at a held point without the lock, and settles it.
static tarn_status look(tarn__synced_core *core, tarn__synced_point *point,
                        tarn_status how(tarn__synced_point *)) {
  tarn__core_leave(core);
  tarn_status status = how(point);
  tarn__core_enter(core);
  tarn__work_settle(core, point, status);
  return status;
}

// Queries the oldest points beyond |most|, until one is not reached. The caller
// holds the timeline.
static void ask(tarn__synced_core *core, tarn__synced_timeline *timeline,
                size_t most) {
  tarn__synced_point *point = NULL;
  tarn_status status = TARN_OK;
  while (status == TARN_OK && timeline->point_count > most &&
         (point = tarn__timeline_hold_point(timeline, timeline->done + 1)) !=
             NULL)
    status = look(core, point, tarn__point_query);
}

tarn_status tarn__work_wait(tarn__synced_core *core, tarn_stream *stream) {
  tarn__core_leave(core);
  tarn_status status = tarn_stream_synchronize(stream);
  tarn__core_enter(core);
  if (status == TARN_E_DEVICE) fail_stream(core, stream);
  return status;
}

// If no thread ever waits for a stream, as with a gradient that one stream uses
// again and again, points would pile up: all but a few are queried.
tarn_status tarn__work_point(tarn__synced_core *core, tarn_stream *stream,
                             tarn__synced_position *out_position) {
  enum { FEW_POINTS = 2 };
  tarn__synced_timeline *timeline = NULL;
  uint64_t number = 0;
  *out_position = (tarn__synced_position){.timeline = NULL};
  tarn_status status = tarn__timeline_of(&core->timelines, stream, &timeline);
  if (status != TARN_OK) return tarn__work_wait(core, stream);
  ask(core, timeline, FEW_POINTS);
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

// --- uses --------------------------------------------------------------------

static bool is_reached(const tarn__synced_use *use, void *context) {
  (void)context;
  return use->timeline != NULL &&
         tarn__timeline_is_over(use->timeline, use->number);
}

void tarn__work_prune(tarn__synced_core *core, tarn__synced_span *span) {
  if (span->uses != NULL) {
    tarn__span_forget(&core->spans, span, is_reached, NULL);
  }
}

bool tarn__core_is_copying(const tarn__synced_core *core, size_t start,
                           size_t end) {
  tarn__spans_each (span, &core->spans, start, end) {
    for (const tarn__synced_use *use = span->uses; use != NULL; use = use->next)
      if (use->timeline == NULL) return true;
  }
  return false;
}

// --- waiting for all uses ----------------------------------------------------

// Removes uses in the range that are over; returns one of the side's memory
// (TARN__NO_SIDE: of any side) that is not, or NULL.
static const tarn__synced_use *find_use(tarn__synced_core *core, uint32_t side,
                                        size_t start, size_t end) {
  tarn__spans_each (span, &core->spans, start, end) {
    tarn__work_prune(core, span);
    for (const tarn__synced_use *use = span->uses; use != NULL; use = use->next)
      if (side == TARN__NO_SIDE || use->side == side) return use;
  }
  return NULL;
}

bool tarn__core_is_in_use(tarn__synced_core *core, uint32_t side) {
  return find_use(core, side, 0, core->size) != NULL;
}

static tarn_status wait_for(tarn__synced_core *core,
                            const tarn__synced_use *use) {
  if (use->timeline == NULL) {
    tarn__core_sleep(core);
    return TARN_OK;
  }
  tarn__synced_point *point =
      tarn__timeline_hold_point(use->timeline, use->number);
  tarn_status status = look(core, point, tarn__point_wait);
  return status == TARN_E_DEVICE ? TARN_OK : status;
}

tarn_status tarn__side_rest(tarn__synced_core *core, uint32_t side,
                            size_t start, size_t end) {
  const tarn__synced_use *use = NULL;
  tarn_status status = TARN_OK;
  while (status == TARN_OK && (use = find_use(core, side, start, end)) != NULL)
    status = wait_for(core, use);
  tarn__spans_join(&core->spans, start, end);
  return status;
}

// --- querying streams --------------------------------------------------------

void tarn__core_settle(tarn__synced_core *core) {
  tarn__synced_timeline *timeline = core->timelines.first;
  if (timeline != NULL) tarn__timeline_hold(timeline);
  while (timeline != NULL) {
    ask(core, timeline, 0);
    tarn__synced_timeline *next = timeline->next;
    if (next != NULL) tarn__timeline_hold(next);
    tarn__timeline_release(timeline);
    timeline = next;
  }
}

// --- spans -------------------------------------------------------------------

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
  bool open = span->writer != NULL;
  return open ? span->valid & ~tarn__side_bit(span->writer->side) : span->valid;
}

bool tarn__span_is_only_at(const tarn__synced_span *span, uint32_t side) {
  return span->written && committed(span) == tarn__side_bit(side);
}

bool tarn__span_is_missing_at(const tarn__synced_span *span, uint32_t side) {
  return !tarn__span_is_lost(span) && (span->valid & tarn__side_bit(side)) == 0;
}

// --- runs --------------------------------------------------------------------

bool tarn__core_find_run(const tarn__synced_core *core, size_t from,
                         uint32_t side, tarn__synced_span_test *test,
                         tarn__synced_run *out_run) {
  *out_run = (tarn__synced_run){0, 0};
  tarn__spans_each (span, &core->spans, from, core->size) {
    bool found = out_run->end > 0;
    if (!test(span, side)) {
      if (found) break;
      continue;
    }
    if (!found) out_run->start = span->node.start;
    out_run->end = span->end;
  }
  return out_run->end > 0;
}

// --- a device that is about to close -----------------------------------------

// Pinned memory of the host belongs to the device as well.
static bool has_memory_at(const tarn__synced_side *side,
                          const tarn_device *device) {
  if (side->end.address == 0) return false;
  if (side->end.place.device == device) return true;
  return side->block.pool != NULL &&
         tarn_pool_place(side->block.pool).device == device;
}

static const tarn__synced_side *side_at(const tarn__synced_core *core,
                                        const tarn_device *device) {
  for (uint32_t i = 0; i < core->side_count; i++) {
    if (has_memory_at(&core->sides[i], device)) return &core->sides[i];
  }
  return NULL;
}

// From here on no thread begins to use it, until that close is over.
static bool is_used(tarn__synced_core *core, const tarn_device *device) {
  if (core->device != device) return false;
  if (core->device_users > 0) return true;
  core->device_closing = true;
  core->device_asks++;
  return false;
}

static tarn_status object(const tarn__synced_core *core,
                          const tarn_device *device, bool used) {
  char text[TARN__CORE_TEXT];
  if (used) {
    return tarn__fail(TARN_E_STATE, "%s: cannot close: %s is using it",
                      tarn_device_name(device), tarn__core_text(core, text));
  }
  return tarn__fail(TARN_E_STATE, "%s: cannot close: %s has %zu bytes there",
                    tarn_device_name(device), tarn__core_text(core, text),
                    core->size);
}

// The caller holds the lock, which is released for each query. Pending work
// keeps the device open by its event. The lock is released without telling the
// trace of losses, which the next call on the buffer does: the trace function
// must not be called with the locks that are held here.
static void let_go(tarn__synced_core *core, const tarn_device *device) {
  tarn_status status = TARN_OK;
  while (status == TARN_OK || status == TARN_E_DEVICE) {
    tarn__synced_point *point = hold_last_point(core, device, 0);
    if (point == NULL) return;
    tarn__biased_lock_leave(&core->lock);
    status = tarn__point_query(point);
    tarn__core_enter(core);
    tarn__work_settle(core, point, status);
  }
}

static tarn_status ask_to_close(tarn__synced_core *core,
                                const tarn_device *device) {
  tarn__core_enter(core);
  const tarn__synced_side *side = side_at(core, device);
  if (side == NULL) let_go(core, device);
  bool used = side == NULL && is_used(core, device);
  tarn__biased_lock_leave(&core->lock);
  bool agrees = side == NULL && !used;
  return agrees ? TARN_OK : object(core, device, used);
}

static void forget(tarn__synced_core *core, const tarn_device *device) {
  if (core->device == device) core->device = NULL;
  if (core->last_place.device == device) {
    core->last_place = TARN_HOST;
    core->last_side = TARN__HOST_SIDE;
  }
  for (uint32_t i = 0; i < core->side_count; i++) {
    tarn_place *place = &core->sides[i].end.place;
    if (place->device == device) *place = tarn__nowhere;
  }
}

tarn_status tarn__core_on_close(tarn__synced_core *core,
                                const tarn_device *device, bool commit) {
  if (!commit) return ask_to_close(core, device);
  tarn__core_enter(core);
  forget(core, device);
  tarn__biased_lock_leave(&core->lock);
  return TARN_OK;
}
