// What of a buffer has landed, and runs of bytes that have something in common.
//
// Invariant: nothing here changes what is valid where, but for what streams
// that have failed were to write: whoever finds that takes it out, or the next
// one would take it for over.
#include "synced/settle.h"

#include "base/status.h"
#include "synced/access.h"
#include "synced/work.h"

tarn_status tarn__place_check(tarn_place place) {
  bool own =
      place.kind == TARN_PLACE_DEVICE || place.kind == TARN_PLACE_UNIFIED;
  if (place.kind == TARN_PLACE_HOST || (own && place.device != NULL)) {
    return TARN_OK;
  }
  return tarn__fail(TARN_E_INVALID, "synced: kind %d of %s is no place",
                    (int)place.kind, own ? "no device" : "a device");
}

// --- how far streams are -----------------------------------------------------

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

// What is being written may be cancelled: where it is, it is no copy.
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

// --- who is at work ----------------------------------------------------------

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

static tarn_status fetch_run(tarn__synced_core *core, tarn__synced_run run,
                             tarn_place place) {
  tarn__synced_request request = {
      .start = run.start, .end = run.end, .place = place, .mode = TARN_READ};
  tarn__core_leave(core);
  tarn_status status = tarn__fetch(core, &request, NULL, NULL);
  tarn__core_enter(core);
  return status;
}

tarn_status tarn__core_fetch_runs(tarn__synced_core *core, uint32_t side,
                                  tarn__synced_span_test *test,
                                  tarn_place place) {
  tarn__synced_run run = {0, 0};
  while (tarn__core_find_run(core, run.end, side, test, &run)) {
    tarn_status status = fetch_run(core, run, place);
    if (status != TARN_OK) return status;
  }
  return TARN_OK;
}
