// What streams are at: marks, waits, and streams that fail.
#include "synced/work.h"

#include "base/status.h"
#include "synced/sides.h"

// --- streams that failed -----------------------------------------------------

static bool is_of_lane(const tarn__synced_use *use, void *context) {
  return use->lane == context;
}

// The sides that the lane was to write in |span| and has not.
static uint64_t void_sides(const tarn__synced_span *span,
                           const tarn__synced_timeline *lane) {
  uint64_t sides = 0;
  for (const tarn__synced_use *use = span->uses; use != NULL; use = use->next) {
    bool never = use->lane == lane && use->writes &&
                 tarn__lane_is_void(lane, use->number);
    if (never) sides |= tarn__side_bit(use->side);
  }
  return sides;
}

static void sweep_span(tarn__synced_core *core, tarn__synced_span *span,
                       tarn__synced_timeline *lane) {
  uint64_t gone = span->valid & void_sides(span, lane);
  if (gone != 0) {
    uint64_t left = span->valid & ~gone;
    tarn__span_set(core, span, left, span->written);
    if (tarn__span_is_lost(span)) {
      tarn__core_note_loss(core, TARN__LOSS_FAILED,
                           (uint32_t)__builtin_ctzll(gone), span->start,
                           span->end);
    }
  }
  if (span->uses != NULL) {
    tarn__span_forget(&core->spans, span, is_of_lane, lane);
  }
}

void tarn__work_sweep(tarn__synced_core *core, tarn__synced_timeline *lane) {
  tarn__lane_hold(lane);
  for (tarn__synced_span *span = core->spans.first; span != NULL;
       span = span->next)
    sweep_span(core, span, lane);
  tarn__lane_release(lane);
  tarn__spans_join(&core->spans, 0, core->size);
}

void tarn__work_settle(tarn__synced_core *core, tarn__synced_point *mark,
                       tarn_status status) {
  tarn__synced_timeline *lane = mark->lane;
  tarn__lane_hold(lane);
  tarn__lane_release_mark(lane, mark, status);
  if (lane->failed && lane->uses > 0) tarn__work_sweep(core, lane);
  tarn__lane_release(lane);
}

// The last mark of a lane of |stream| that is not over, held; NULL: none.
static tarn__synced_point *hold_mark_of(const tarn__synced_core *core,
                                        const tarn_stream *stream) {
  tarn__synced_point *mark = NULL;
  tarn__synced_timeline *lane = core->lanes.first;
  for (; lane != NULL && mark == NULL; lane = lane->next) {
    if (lane->serial != tarn_stream_serial(stream)) continue;
    mark = tarn__lane_hold_mark(lane, lane->issued);
  }
  return mark;
}

// There may be several lanes: of its own, and of a buffer that was followed.
static void fail_stream(tarn__synced_core *core, const tarn_stream *stream) {
  tarn__synced_point *mark = NULL;
  while ((mark = hold_mark_of(core, stream)) != NULL)
    tarn__work_settle(core, mark, TARN_E_DEVICE);
}

// --- marks -------------------------------------------------------------------

// The lane is busy from one to the other.
static tarn_status record(tarn__synced_core *core, tarn__synced_timeline *lane,
                          tarn_stream *stream, uint64_t *out_number) {
  tarn__synced_point *mark = NULL;
  while (lane->busy)
    tarn__core_sleep(core);
  tarn_status status = tarn__lane_begin_mark(lane, &mark);
  if (status != TARN_OK) return status;
  tarn__core_leave(core);
  status = tarn__mark_record(mark, stream);
  tarn__core_enter(core);
  *out_number = tarn__lane_end_mark(lane, mark);
  tarn__core_wake(core);
  return status;
}

tarn_status tarn__work_ask(tarn__synced_core *core,
                           tarn__synced_timeline *lane) {
  tarn__synced_point *mark = tarn__lane_hold_mark(lane, lane->done + 1);
  if (mark == NULL) return TARN_PENDING;
  tarn__core_leave(core);
  tarn_status status = tarn__mark_query(mark);
  tarn__core_enter(core);
  tarn__work_settle(core, mark, status);
  return status;
}

// Where nobody ever waits for what a stream does, as with a gradient that the
// same stream uses again, marks would pile up: beyond a few the oldest is
// asked. The lane is held.
static void look_back(tarn__synced_core *core, tarn__synced_timeline *lane) {
  enum { FEW_MARKS = 2 };
  tarn_status status = TARN_OK;
  while (status == TARN_OK && lane->mark_count > FEW_MARKS)
    status = tarn__work_ask(core, lane);
}

tarn_status tarn__work_wait(tarn__synced_core *core, tarn_stream *stream) {
  tarn__core_leave(core);
  tarn_status status = tarn_stream_synchronize(stream);
  tarn__core_enter(core);
  if (status == TARN_E_DEVICE) fail_stream(core, stream);
  return status;
}

tarn_status tarn__work_mark(tarn__synced_core *core, tarn_stream *stream,
                            tarn__synced_position *out_position) {
  tarn__synced_timeline *lane = NULL;
  uint64_t number = 0;
  *out_position = (tarn__synced_position){.lane = NULL};
  tarn_status status = tarn__lane_of(&core->lanes, stream, &lane);
  if (status != TARN_OK) return tarn__work_wait(core, stream);
  look_back(core, lane);
  (void)record(core, lane, stream, &number);
  if (number == 0) status = tarn__work_wait(core, stream);
  if (number != 0 && !tarn__lane_is_over(lane, number)) {
    *out_position = (tarn__synced_position){.lane = lane, .number = number};
  } else {
    tarn__lane_release(lane);
  }
  return status;
}

// --- uses that are no news any more ------------------------------------------

// Those of a stream that has failed are left to the sweep, which sees what they
// were to write.
static bool is_reached(const tarn__synced_use *use, void *context) {
  (void)context;
  return use->lane != NULL && use->number <= use->lane->done;
}

void tarn__work_prune(tarn__synced_core *core, tarn__synced_span *span) {
  if (span->uses != NULL) {
    tarn__span_forget(&core->spans, span, is_reached, NULL);
  }
}

// --- waiting until all is over -----------------------------------------------

static bool is_over(const tarn__synced_use *use, void *context) {
  (void)context;
  return use->lane != NULL && tarn__lane_is_over(use->lane, use->number);
}

static const tarn__synced_use *use_of(const tarn__synced_span *span,
                                      uint32_t side) {
  const tarn__synced_use *use = span->uses;
  while (use != NULL && use->side != side && side != TARN__NO_SIDE)
    use = use->next;
  return use;
}

// A use in the range that is not over; those that are go.
static const tarn__synced_use *find_use(tarn__synced_core *core, uint32_t side,
                                        size_t start, size_t end) {
  const tarn__synced_use *use = NULL;
  if (start == end) return NULL;
  tarn__synced_span *span = tarn__spans_find(&core->spans, start);
  while (span != NULL && span->start < end && use == NULL) {
    tarn__span_forget(&core->spans, span, is_over, NULL);
    use = use_of(span, side);
    span = span->next;
  }
  return use;
}

static tarn_status wait_for(tarn__synced_core *core,
                            const tarn__synced_use *use) {
  if (use->lane == NULL) {
    tarn__core_sleep(core);
    return TARN_OK;
  }
  tarn__synced_point *mark = tarn__lane_hold_mark(use->lane, use->number);
  if (mark == NULL) return TARN_OK;
  tarn__core_leave(core);
  tarn_status status = tarn__mark_wait(mark);
  tarn__core_enter(core);
  tarn__work_settle(core, mark, status);
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
