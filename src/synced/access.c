// Accesses, and copies ahead of them: a short way for valid bytes, and the
// transfer for all others.
//
// The short way is for a range that is exactly a span, without open writers and
// uses: there is nothing to cut, plan or wait for, and a thread that uses the
// buffer alone takes the lock with plain stores. The span must be the first or
// the most recent one, so that the short way calls no function. The shortest
// way repeats an access of the whole buffer: what the former one has found out
// still holds (tarn__synced_ready). The middle way is for a part of a span.
#include "synced/access.h"

#include <assert.h>

#include "base/status.h"
#include "synced/protect.h"
#include "synced/sides.h"

// --- beginning, the short way ------------------------------------------------

static __attribute__((noinline)) uint32_t search(tarn__synced_core *core,
                                                 tarn_place place) {
  uint32_t side = tarn__side_at(core, place);
  if (side == TARN__NO_SIDE) return TARN__NO_SIDE;
  core->last_place = place;
  core->last_side = side;
  return side;
}

static inline uint32_t side_at_once(tarn__synced_core *core, tarn_place place) {
  return tarn__route_is_same(core->last_place, place) ? core->last_side
                                                      : search(core, place);
}

// The span that is exactly the range, if it is the first or most recent one.
static inline tarn__synced_span *span_at(const tarn__synced_core *core,
                                         size_t start, size_t end) {
  tarn__synced_span *span = core->spans.first;
  if (span != NULL && span->node.start != start) span = core->spans.recent;
  bool is_it = span != NULL && span->node.start == start && span->end == end;
  return is_it ? span : NULL;
}

static inline bool is_free(const tarn__synced_span *span, bool reads) {
  return span->writer == NULL && span->uses == NULL &&
         (reads || span->readers == 0);
}

// Enters the access into |span|, which is its range and has no conflict.
static inline void enter(tarn__synced_span *span, uint32_t side,
                         const tarn__synced_request *request,
                         tarn_access *access) {
  tarn_synced *buffer = request->buffer;
  tarn__synced_core *core = buffer->core;
  tarn__synced_side *at = &core->sides[side];
  if (request->mode == TARN_READ) {
    span->readers++;
  } else {
    span->writer = access;
  }
  tarn__span_pin(span, span);
  if (request->mode != TARN_WRITE_DISCARD) {
    tarn__core_counts(core, side, side)->valid += request->end - request->start;
  }
  tarn__access_fill(access, &at->end, request);
  access->side = side;
  access->buffer = buffer;
  tarn_list_add_tail(&core->accesses, &access->node);
}

static inline bool begin_at_once(const tarn__synced_request *request,
                                 tarn_access *access) {
  tarn__synced_core *core = request->buffer->core;
  uint32_t side = side_at_once(core, request->place);
  tarn__synced_span *span = span_at(core, request->start, request->end);
  if (core->slow || side == TARN__NO_SIDE || span == NULL) return false;
  const tarn__synced_side *at = &core->sides[side];
  bool may = !at->busy && !at->outside &&
             is_free(span, request->mode == TARN_READ) &&
             (span->valid & tarn__side_bit(side)) != 0;
  if (may) enter(span, side, request, access);
  return may;
}

// --- beginning, the shortest way ---------------------------------------------

// The arguments of tarn_synced_begin but for the access. They come from
// registers and stay there.
typedef struct call {
  tarn_synced *buffer;
  size_t offset;
  size_t size;
  tarn_place place;
  uint32_t mode;
  tarn_stream *stream;
} call;

// After |access| was begun in the short way, with those arguments. Of a buffer
// of several spans, and while threads sleep, nothing is ready: an end joins the
// spans and wakes the threads, which have cleared what was ready.
static inline void make_ready(tarn__synced_core *core,
                              const tarn_access *access, size_t offset,
                              size_t size, tarn_place place) {
  if (core->spans.map.count > 1 || core->sleepers > 0) return;
  core->ready = (tarn__synced_ready){
      .buffer = access->buffer,
      .offset = offset,
      .size = size,
      .place = place,
      .side = access->side,
      .address = access->address,
      .pointer = access->pointer,
      .valid = &tarn__core_counts(core, access->side, access->side)->valid};
}

static inline bool is_plain(uint32_t mode) {
  return mode - TARN_READ <= TARN_READ_WRITE - TARN_READ;
}

// Whether an access with those arguments finds all as the former one did.
static inline bool is_ready(const tarn__synced_core *core, const call *c) {
  const tarn__synced_ready *ready = &core->ready;
  const tarn__synced_span *span = &core->spans.whole;
  return ready->buffer == c->buffer && ready->offset == c->offset &&
         ready->size == c->size &&
         tarn__route_is_same(ready->place, c->place) && span->writer == NULL &&
         (c->mode == TARN_READ || (is_plain(c->mode) && span->readers == 0));
}

static inline void enter_again(tarn__synced_core *core, const call *c,
                               tarn_access *access) {
  const tarn__synced_ready *ready = &core->ready;
  if (c->mode == TARN_READ) {
    core->spans.whole.readers++;
  } else {
    core->spans.whole.writer = access;
  }
  if (c->mode != TARN_WRITE_DISCARD) *ready->valid += core->size;
  access->address = ready->address;
  access->pointer = ready->pointer;
  access->size = core->size;
  access->buffer = c->buffer;
  access->offset = 0;
  access->stream = c->stream;
  access->mode = c->mode;
  access->side = ready->side;
  tarn_list_add_tail(&core->accesses, &access->node);
}

// --- beginning, at length ---------------------------------------------------

static tarn_status check_mode(uint32_t mode) {
  uint32_t plain = mode & ~TARN_ACCESS_WAIT;
  bool known = plain == TARN_READ || plain == TARN_WRITE_DISCARD ||
               plain == TARN_READ_WRITE;
  return known ? TARN_OK
               : tarn__fail(TARN_E_INVALID, "synced: unknown access mode 0x%x",
                            mode);
}

// Whether an access of a part of |span| needs no wait and no copy. |*out_from|:
// the side whose bytes it discards; TARN__NO_SIDE: none.
static bool is_at_hand(const tarn__synced_span *span, uint32_t side,
                       const tarn__synced_request *request,
                       uint32_t *out_from) {
  uint64_t bit = tarn__side_bit(side);
  *out_from = TARN__NO_SIDE;
  bool there = (span->valid & bit) != 0;
  if (span->end < request->end || !is_free(span, request->mode == TARN_READ)) {
    return false;
  }
  if (there || request->mode != TARN_WRITE_DISCARD) return there;
  bool several = (span->valid & (span->valid - 1)) != 0;
  if (span->written && span->valid != 0 && !several) {
    *out_from = (uint32_t)__builtin_ctzll(span->valid);
  }
  return !span->written || !several;
}

// The middle way, for rows of a table: needs a cut only. With the lock.
static bool begin_in_part(const tarn__synced_request *request,
                          tarn_access *access) {
  tarn__synced_core *core = request->buffer->core;
  uint32_t from = TARN__NO_SIDE;
  uint32_t side = side_at_once(core, request->place);
  if (core->slow || side == TARN__NO_SIDE) return false;
  const tarn__synced_side *at = &core->sides[side];
  if (at->busy || at->outside || !tarn__side_has_memory(at)) return false;
  const tarn__synced_span *whole =
      tarn__spans_find(&core->spans, request->start);
  bool may = is_at_hand(whole, side, request, &from) &&
             tarn__spans_reserve(&core->spans, request->start, request->end,
                                 0) == TARN_OK;
  if (!may) return false;
  tarn__synced_span *span =
      tarn__spans_cut(&core->spans, request->start, request->end);
  enter(span, side, request, access);
  if (from != TARN__NO_SIDE) {
    tarn__core_counts(core, from, side)->discarded += access->size;
  }
  return true;
}

// The general part of tarn_synced_begin.
static __attribute__((cold, noinline)) tarn_status begin_at_length(
    tarn_synced *buffer, size_t offset, size_t size, tarn_place place,
    uint32_t mode, tarn_stream *stream, tarn_access *out_access) {
  tarn__synced_request request = {
      .place = place, .mode = mode, .stream = stream, .buffer = buffer};
  if (out_access == NULL)
    return tarn__fail(TARN_E_INVALID, "synced: out_access is NULL");
  *out_access = (tarn_access){.address = 0};
  TARN__TRY(check_mode(mode));
  TARN__TRY(
      tarn__synced_range(buffer, offset, size, &request.start, &request.end));
  assert(buffer != NULL);
  tarn__core_enter(buffer->core);
  bool may = (mode & TARN_ACCESS_WAIT) == 0 && request.start < request.end;
  if (may && (begin_at_once(&request, out_access) ||
              begin_in_part(&request, out_access))) {
    tarn__core_leave(buffer->core);
    return TARN_OK;
  }
  return tarn__transfer_run(buffer->core, &request, out_access);
}

// The short way, by a thread that has entered the lock as its owner.
static __attribute__((noinline)) tarn_status begin_inside(
    tarn_synced *buffer, size_t offset, size_t size, tarn_place place,
    uint32_t mode, tarn_stream *stream, tarn_access *out_access) {
  tarn__synced_core *core = buffer->core;
  bool fits = offset <= buffer->size;
  size_t most = fits ? buffer->size - offset : 0;
  size_t wanted = size == TARN_ALL ? most : size;
  tarn__synced_request request = {.start = buffer->offset + offset,
                                  .end = buffer->offset + offset + wanted,
                                  .place = place,
                                  .mode = mode,
                                  .stream = stream,
                                  .buffer = buffer};
  bool begun = is_plain(mode) && fits && wanted <= most &&
               begin_at_once(&request, out_access);
  if (begun) make_ready(core, out_access, offset, size, place);
  tarn__biased_lock_leave_owned(tarn__biased_lock_slot);
  if (begun) return TARN_OK;
  return begin_at_length(buffer, offset, size, place, mode, stream, out_access);
}

// Enters if this thread owns the lock; so it is in no callback, and the buffer
// is not from before a fork. NULL: no.
static inline tarn__owner_slot *enter_owned(tarn__synced_core *core) {
  tarn__owner_slot *slot = tarn__biased_lock_slot;
  bool entered = tarn__biased_lock_is_mine(&core->lock, slot) &&
                 tarn__biased_lock_enter_owned(&core->lock, slot);
  if (!entered) return NULL;
  if (slot == NULL) __builtin_unreachable();  // an owner has one
  return slot;
}

// Keeps nothing across a call, so that it has no registers to save.
tarn_status tarn_synced_begin(tarn_synced *buffer, size_t offset, size_t size,
                              tarn_place place, uint32_t mode,
                              tarn_stream *stream, tarn_access *out_access) {
  if (buffer == NULL || out_access == NULL) {
    return begin_at_length(buffer, offset, size, place, mode, stream,
                           out_access);
  }
  tarn__synced_core *core = buffer->core;
  tarn__owner_slot *slot = enter_owned(core);
  if (slot == NULL) {
    return begin_at_length(buffer, offset, size, place, mode, stream,
                           out_access);
  }
  const call c = {buffer, offset, size, place, mode, stream};
  if (!is_ready(core, &c)) {
    return begin_inside(buffer, offset, size, place, mode, stream, out_access);
  }
  enter_again(core, &c, out_access);
  tarn__biased_lock_leave_owned(slot);
  return TARN_OK;
}

// --- ending, the short way ---------------------------------------------------

// Removes an access from the list, after the spans. With the lock.
static inline void unlink_access(tarn_access *access) {
  access->node.prev->next = access->node.next;
  access->node.next->prev = access->node.prev;
  access->buffer = NULL;
}

// A write makes the bytes valid at its side only.
static inline void commit_at_once(tarn__synced_core *core,
                                  tarn__synced_span *span, uint32_t side) {
  uint64_t bit = tarn__side_bit(side);
  if (span->valid != bit || !span->written) {
    tarn__span_set(core, span, bit, true);
  }
  span->writer = NULL;
}

// Whether |access| reads the whole buffer at the place that is ready.
static inline bool is_ready_to_end(const tarn__synced_core *core,
                                   const tarn_access *access) {
  return core->ready.buffer != NULL && access->side == core->ready.side &&
         access->mode == TARN_READ;
}

static inline bool end_at_once(tarn__synced_core *core, tarn_access *access) {
  tarn__synced_span *span =
      span_at(core, access->offset, access->offset + access->size);
  if (core->slow || core->sleepers > 0 || span == NULL || span->uses != NULL) {
    return false;
  }
  uint64_t bit = tarn__side_bit(access->side);
  if (access->mode != TARN_WRITE_DISCARD && (span->valid & bit) == 0) {
    return false;
  }
  if (access->mode == TARN_READ) {
    span->readers--;
  } else {
    commit_at_once(core, span, access->side);
  }
  tarn__span_unpin(span, span);
  if (core->spans.map.count > 1) {
    tarn__spans_join(&core->spans, span->node.start, span->end);
  }
  unlink_access(access);
  return true;
}

// --- ending, at length -------------------------------------------------------
//
// An end needs no memory: its range is pinned, so nothing has to be cut, and if
// there is no node for a use the host waits for the stream.

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
  if (writes && end->commits) commit_write(end, span);
  if (writes && !end->commits) take_write_back(end, span);
  leave_use(end, span, writes);
}

// A write is committed as a whole or not at all; a read gets the failure.
static void end_in_spans(ending *end) {
  tarn__synced_spans *spans = &end->core->spans;
  size_t start = end->access->offset;
  size_t stop = start + end->access->size;
  bool reads = end->access->mode == TARN_READ;
  if (end->commits || reads) {
    tarn__spans_each (span, spans, start, stop) {
      if (!is_founded(end, span)) end->unfounded = true;
    }
  }
  if (end->unfounded) end->commits = false;
  tarn__spans_each (span, spans, start, stop)
    end_in_span(end, span);
  tarn__spans_leave(spans, start, stop, !reads);
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
  tarn__failure failure = tarn__failure_of(take_position(end));
  bool failed = failure.status != TARN_OK;
  if (failed) end->commits = false;
  end_in_spans(end);
  tarn__work_release(end->position);
  if (failed) return tell_failure(end, failure.text);
  if (!end->unfounded) return TARN_OK;
  return tell_failure(end, "the stream that brought its bytes failed");
}

// Ends an open access; a write is committed or cancelled. |out_lost| may be
// NULL. Errors as for tarn_synced_end. Without the lock.
static __attribute__((noinline)) tarn_status close_general(tarn_access *access,
                                                           bool commits,
                                                           size_t *out_lost) {
  TARN__TRY(tarn__synced_check(access->buffer));
  tarn_status status = TARN_OK;
  tarn__synced_core *core = access->buffer->core;
  ending end = {.core = core, .access = access, .commits = commits};
  tarn__core_enter(core);
  tarn__protect_tighten(core);
  if (access->side != TARN__NO_SIDE) status = close_access(&end);
  unlink_access(access);
  tarn__core_wake(core);
  tarn__core_leave(core);
  if (out_lost != NULL) *out_lost = end.lost;
  return status;
}

static inline bool is_open(const tarn_access *access) {
  return access != NULL && access->buffer != NULL;
}

static __attribute__((cold, noinline)) tarn_status refuse_closed(void) {
  return tarn__fail(TARN_E_INVALID, "synced: the access is not open");
}

// By a thread that has entered the lock as its owner.
static __attribute__((noinline)) tarn_status end_inside(tarn_access *access) {
  bool ended = end_at_once(access->buffer->core, access);
  tarn__biased_lock_leave_owned(tarn__biased_lock_slot);
  return ended ? TARN_OK : close_general(access, true, NULL);
}

tarn_status tarn_synced_end(tarn_access *access) {
  if (!is_open(access)) return refuse_closed();
  tarn__synced_core *core = access->buffer->core;
  tarn__owner_slot *slot = access->stream == NULL ? enter_owned(core) : NULL;
  if (slot == NULL) return close_general(access, true, NULL);
  if (!is_ready_to_end(core, access)) return end_inside(access);
  core->spans.whole.readers--;
  unlink_access(access);
  tarn__biased_lock_leave_owned(slot);
  return TARN_OK;
}

tarn_status tarn_synced_cancel(tarn_access *access, size_t *out_lost) {
  if (out_lost != NULL) *out_lost = 0;
  if (!is_open(access)) return refuse_closed();
  return close_general(access, false, out_lost);
}

// --- copies ahead of an access -----------------------------------------------

tarn_status tarn__core_fetch_runs(tarn__synced_core *core,
                                  tarn__synced_run *io_run, uint32_t side,
                                  tarn__synced_span_test *test,
                                  tarn_place place) {
  while (tarn__core_find_run(core, io_run->end, side, test, io_run)) {
    tarn__synced_request request = {.start = io_run->start,
                                    .end = io_run->end,
                                    .place = place,
                                    .mode = TARN_READ};
    tarn_status status = tarn__transfer_run(core, &request, NULL);
    tarn__core_enter(core);
    TARN__TRY(status);
  }
  return TARN_OK;
}

static tarn_status check_event(const tarn_stream *stream,
                               const tarn_event *event) {
  if (event == NULL || stream != NULL) return TARN_OK;
  return tarn__fail(TARN_E_INVALID,
                    "synced: an event needs a stream, which is NULL");
}

tarn_status tarn_synced_prefetch(tarn_synced *buffer, size_t offset,
                                 size_t size, tarn_place place,
                                 tarn_stream *stream, tarn_event *event) {
  tarn__synced_request request = {
      .place = place, .mode = TARN_READ, .stream = stream};
  TARN__TRY(
      tarn__synced_range(buffer, offset, size, &request.start, &request.end));
  TARN__TRY(check_event(stream, event));
  tarn__core_enter(buffer->core);
  TARN__TRY(tarn__transfer_run(buffer->core, &request, NULL));
  return event != NULL ? tarn_event_record(event, stream) : TARN_OK;
}

tarn_status tarn_synced_push(tarn_synced *buffer, size_t offset, size_t size,
                             tarn_stream *stream, tarn_event *event) {
  tarn_place place;
  TARN__TRY(tarn__synced_device(buffer, &place));
  return tarn_synced_prefetch(buffer, offset, size, place, stream, event);
}

tarn_status tarn_synced_pull(tarn_synced *buffer, size_t offset, size_t size,
                             tarn_stream *stream, tarn_event *event) {
  return tarn_synced_prefetch(buffer, offset, size, TARN_HOST, stream, event);
}
