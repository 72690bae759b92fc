// The end of an access, and the uses that it leaves in the spans.
//
// An end needs no memory: its range is pinned, so nothing has to be cut, and if
// there is no node for a use the host waits for the stream.
#include <assert.h>
#include <stdio.h>

#include "base/status.h"
#include "synced/access.h"
#include "synced/protect.h"
#include "synced/work.h"

// How an access ends.
typedef struct ending {
  tarn__synced_core *core;
  tarn_access *access;
  bool commits;                    // a write that has happened
  tarn__synced_position position;  // where its stream stood
  bool unfounded;                  // bytes that it read were void
  size_t lost;
} ending;

// A discarding write does not depend on earlier work. A write that reads does:
// if a stream that still writes there fails, its bytes are void.
static bool is_settled(const tarn__synced_use *use, void *context) {
  const ending *end = context;
  if (use->side != end->access->side) return false;
  return end->access->mode == TARN_WRITE_DISCARD || !use->writes ||
         tarn__timeline_is_over(use->timeline, use->number);
}

static void commit_write(ending *end, tarn__synced_span *span) {
  tarn__span_forget(&end->core->spans, span, is_settled, end);
  tarn__span_set(end->core, span, tarn__side_bit(end->access->side), true);
}

// Bytes that were read are void if a stream that wrote them has failed
// meanwhile.
static bool is_founded(const ending *end, const tarn__synced_span *span) {
  return end->access->mode == TARN_WRITE_DISCARD ||
         (span->valid & tarn__side_bit(end->access->side)) != 0;
}

static void take_write_back(ending *end, tarn__synced_span *span) {
  bool was_lost = tarn__span_is_lost(span);
  uint64_t left = span->valid & ~tarn__side_bit(end->access->side);
  tarn__span_set(end->core, span, left, span->written);
  if (was_lost || !tarn__span_is_lost(span)) return;
  end->lost += span->end - span->node.start;
  tarn__core_note_loss(end->core, TARN__LOSS_CANCELLED, end->access->side,
                       span->node.start, span->end);
}

static void leave_use(const ending *end, tarn__synced_span *span, bool writes) {
  if (end->position.timeline == NULL) return;
  tarn__span_use(&end->core->spans, span,
                 (tarn__synced_use){.timeline = end->position.timeline,
                                    .number = end->position.number,
                                    .side = end->access->side,
                                    .writes = writes});
}

static void end_in_span(ending *end, tarn__synced_span *span) {
  bool writes = end->access->mode != TARN_READ;
  if (!writes) {
    span->readers--;
  } else {
    span->writer = NULL;
    if (end->commits) {
      commit_write(end, span);
    } else {
      take_write_back(end, span);
    }
  }
  leave_use(end, span, writes);
}

// A write is committed as a whole or not at all; a read is told the failure.
static void check_founded(ending *end, const tarn__synced_span *span,
                          size_t stop) {
  for (; span != NULL && span->node.start < stop; span = span->next) {
    if (!is_founded(end, span)) end->unfounded = true;
  }
  if (end->unfounded) end->commits = false;
}

static void end_in_spans(ending *end) {
  tarn__synced_spans *spans = &end->core->spans;
  size_t start = end->access->offset;
  size_t stop = start + end->access->size;
  tarn__synced_span *first = tarn__spans_find(spans, start);
  tarn__synced_span *last = first;
  assert(first->node.start == start);
  if (end->commits || end->access->mode == TARN_READ) {
    check_founded(end, first, stop);
  }
  for (tarn__synced_span *span = first; span != NULL && span->node.start < stop;
       span = span->next) {
    end_in_span(end, span);
    last = span;
  }
  tarn__span_unpin(first, last);
  tarn__spans_join(spans, start, stop);
}

// Makes a point in the stream and reserves nodes for a use in each span. If
// that fails, the host waits for the stream and there is no use.
static tarn_status take_position(ending *end) {
  tarn_stream *stream = end->access->stream;
  if (stream == NULL) return TARN_OK;
  tarn__synced_core *core = end->core;
  tarn_status status = tarn__work_point(core, stream, &end->position);
  if (end->position.timeline == NULL) return status;
  size_t start = end->access->offset;
  status =
      tarn__spans_reserve(&core->spans, start, start + end->access->size, 1);
  if (status == TARN_OK) return TARN_OK;
  tarn__work_release(end->position);
  end->position.timeline = NULL;
  return tarn__work_wait(core, stream);
}

static tarn_status tell_failure(const ending *end, const char *why) {
  char text[TARN__CORE_TEXT];
  tarn__core_text(end->core, text);
  if (end->access->mode == TARN_READ) {
    return tarn__fail(TARN_E_DEVICE, "%s: the stream of an access failed: %s",
                      text, why);
  }
  return tarn__fail(TARN_E_DEVICE,
                    "%s: a write was cancelled, %zu bytes are lost: %s", text,
                    end->lost, why);
}

// With the lock, which is left for the point.
static tarn_status close_access(ending *end) {
  char why[256] = "";
  tarn_status status = take_position(end);
  if (status != TARN_OK) {
    end->commits = false;
    snprintf(why, sizeof why, "%s", tarn_last_error());
  }
  end_in_spans(end);
  tarn__work_release(end->position);
  if (end->unfounded && status == TARN_OK) {
    return tell_failure(end, "the stream that brought its bytes failed");
  }
  if (status != TARN_OK) status = tell_failure(end, why);
  return status;
}

tarn_status tarn__access_close(tarn_access *access, bool commits,
                               size_t *out_lost) {
  tarn_status status = tarn__synced_check(access->buffer);
  if (status != TARN_OK) return status;
  tarn__synced_core *core = access->buffer->core;
  ending end = {.core = core, .access = access, .commits = commits};
  tarn__core_enter(core);
  tarn__protect_tighten(core);
  if (access->side != TARN__NO_SIDE) status = close_access(&end);
  tarn__access_unlink(core, access);
  tarn__core_wake(core);
  tarn__core_leave(core);
  if (out_lost != NULL) *out_lost = end.lost;
  return status;
}
