// Accesses: the short way for bytes that are there, and the ends of all.
//
// The short way is for a range that is a span of its own, without open writers
// and without work under way: then there is nothing to cut, to plan or to wait
// for, and a thread that uses the buffer alone comes through the gate with
// plain stores. Whatever else, the errand does.
//
// An end cannot fail for want of memory: its range is pinned, so nothing has to
// be cut, and where no use can be left behind the host waits for the stream.
#include "synced/access.h"

#include <assert.h>
#include <stdio.h>

#include "base/callbacks.h"
#include "base/status.h"
#include "synced/errand.h"
#include "synced/protect.h"
#include "synced/settle.h"

// --- beginning, the short way ------------------------------------------------

static inline uint32_t side_at_once(const tarn__core *core, tarn_place place) {
  bool again = place.device == core->last_place.device &&
               place.kind == core->last_place.kind;
  if (again) return core->last_side;
  for (uint32_t i = 0; i < core->side_count; i++) {
    tarn_place known = core->sides[i].end.place;
    if (known.device == place.device && known.kind == place.kind) return i;
  }
  return TARN__NO_SIDE;
}

// The span that is the range and no more; NULL: there is none.
static inline tarn__span *span_at(const tarn__core *core, size_t start,
                                  size_t end) {
  tarn__span *span = core->spans.first;
  if (span == NULL || start >= core->size) return NULL;
  if (span->start != start) span = tarn__spans_find(&core->spans, start);
  return span->start == start && span->end == end ? span : NULL;
}

static inline bool may_read(const tarn__span *span, uint64_t bit) {
  return span->writer == NULL && span->uses == NULL && (span->valid & bit) != 0;
}

// To discard bytes that are stale is counted, which is not for here.
static inline bool may_write(const tarn__span *span, uint64_t bit) {
  return may_read(span, bit) && span->readers == 0;
}

static inline void fill(tarn_access *access, const tarn__end *at, size_t start,
                        size_t size) {
  access->address = at->address + start;
  access->pointer = at->pointer != NULL ? (char *)at->pointer + start : NULL;
  access->size = size;
  access->offset = start;
}

static inline bool begin_at_once(tarn_synced *buffer, const tarn__wish *wish,
                                 tarn_access *access) {
  tarn__core *core = buffer->core;
  uint32_t side = side_at_once(core, wish->place);
  if (core->slow || side == TARN__NO_SIDE) return false;
  uint64_t bit = tarn__side_bit(side);
  tarn__side *at = &core->sides[side];
  tarn__span *span = span_at(core, wish->start, wish->end);
  bool reads = wish->mode == TARN_READ;
  if (span == NULL || at->busy || at->outside) return false;
  if (reads ? !may_read(span, bit) : !may_write(span, bit)) return false;
  if (reads) {
    span->readers++;
  } else {
    span->writer = access;
  }
  tarn__span_pin(span, span);
  if (wish->mode != TARN_WRITE_DISCARD) {
    tarn__core_counts(core, side, side)->valid += wish->end - wish->start;
  }
  fill(access, &at->end, wish->start, wish->end - wish->start);
  access->stream = wish->stream;
  access->mode = wish->mode;
  access->side = side;
  access->buffer = buffer;
  tarn_list_add_tail(&core->accesses, &access->node);
  at->accesses++;
  buffer->accesses++;
  return true;
}

// Only through a gate that is this thread's own; so the buffer is not a
// parent's either.
static inline bool try_short_begin(tarn_synced *buffer, const tarn__wish *wish,
                                   tarn_access *access) {
  tarn__seat *seat = tarn__gate_try_owned(&buffer->core->gate);
  if (seat == NULL) return false;
  bool begun = begin_at_once(buffer, wish, access);
  tarn__gate_leave_owned(seat);
  return begun;
}

// --- beginning ---------------------------------------------------------------

static tarn_status check_mode(uint32_t mode) {
  uint32_t plain = mode & ~TARN_ACCESS_WAIT;
  bool known = plain == TARN_READ || plain == TARN_WRITE_DISCARD ||
               plain == TARN_READ_WRITE;
  return known
             ? TARN_OK
             : tarn__fail(TARN_E_INVALID, "synced: no access mode 0x%x", mode);
}

// Touches nothing, but is open like any other.
static tarn_status open_empty(tarn_synced *buffer, const tarn__wish *wish,
                              tarn_access *access) {
  tarn__core *core = buffer->core;
  tarn__core_enter(core);
  tarn_status status = tarn__core_admit(core);
  if (status == TARN_OK) status = tarn__place_check(wish->place);
  if (status == TARN_OK) {
    access->buffer = buffer;
    access->offset = wish->start;
    access->mode = wish->mode & ~TARN_ACCESS_WAIT;
    access->side = TARN__NO_SIDE;
    tarn_list_add_tail(&core->accesses, &access->node);
    buffer->accesses++;
  }
  tarn__core_leave(core);
  return status;
}

tarn_status tarn__access_open(tarn_synced *buffer, const tarn__wish *wish,
                              tarn_access *access) {
  tarn__errand errand;
  if (wish->start == wish->end) return open_empty(buffer, wish, access);
  tarn__core *core = buffer->core;
  tarn__core_enter(core);
  bool is_plain = (wish->mode & TARN_ACCESS_WAIT) == 0;
  if (is_plain && begin_at_once(buffer, wish, access)) {
    tarn__core_leave(core);
    return TARN_OK;
  }
  tarn__errand_init(&errand, core, wish, access);
  tarn_status status = tarn__errand_run(&errand);
  if (status == TARN_OK) {
    access->buffer = buffer;
    buffer->accesses++;
  }
  tarn__core_leave(core);
  tarn__errand_deinit(&errand);
  return status;
}

static tarn_status begin_at_length(tarn_synced *buffer, size_t offset,
                                   size_t size, const tarn__wish *wish,
                                   tarn_access *access) {
  tarn__wish whole = *wish;
  tarn_status status = check_mode(wish->mode);
  if (status == TARN_OK) {
    status = tarn__synced_range(buffer, offset, size, &whole.start, &whole.end);
  }
  *access = (tarn_access){.address = 0};
  return status == TARN_OK ? tarn__access_open(buffer, &whole, access) : status;
}

tarn_status tarn_synced_begin(tarn_synced *buffer, size_t offset, size_t size,
                              tarn_place place, uint32_t mode,
                              tarn_stream *stream, tarn_access *out_access) {
  if (out_access == NULL) return tarn__fail(TARN_E_INVALID, "access: NULL");
  tarn__wish wish = {.place = place, .mode = mode, .stream = stream};
  if (buffer != NULL && offset <= buffer->size &&
      tarn__callbacks_running == 0) {
    size_t most = buffer->size - offset;
    wish.start = buffer->offset + offset;
    wish.end = wish.start + (size < most ? size : most);
    bool fits = size <= most || size == TARN_ALL;
    bool known = mode == TARN_READ || mode == TARN_READ_WRITE ||
                 mode == TARN_WRITE_DISCARD;
    if (fits && known && try_short_begin(buffer, &wish, out_access)) {
      return TARN_OK;
    }
  }
  return begin_at_length(buffer, offset, size, &wish, out_access);
}

// --- ending, the short way ---------------------------------------------------

static inline void close_in_list(tarn__core *core, tarn_access *access) {
  tarn_list_del(&access->node);
  access->buffer->accesses--;
  if (access->side != TARN__NO_SIDE) core->sides[access->side].accesses--;
  access->buffer = NULL;
}

static inline bool end_at_once(tarn__core *core, tarn_access *access) {
  tarn__span *span =
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
    if (span->valid != bit || !span->written) {
      tarn__span_set(core, span, bit, true);
    }
    span->writer = NULL;
  }
  tarn__span_unpin(span, span);
  if (core->spans.count > 1) {
    tarn__spans_join(&core->spans, span->start, span->end);
  }
  close_in_list(core, access);
  return true;
}

static inline bool try_short_end(tarn_access *access) {
  tarn__core *core = access->buffer->core;
  tarn__seat *seat = tarn__gate_try_owned(&core->gate);
  if (seat == NULL) return false;
  bool ended = end_at_once(core, access);
  tarn__gate_leave_owned(seat);
  return ended;
}

// --- ending ------------------------------------------------------------------

// How an access ends.
typedef struct ending {
  tarn__core *core;
  tarn_access *access;
  bool commits;             // a write that has happened
  tarn__position position;  // where its stream stood
  bool unfounded;           // but some of what it read was not there
  size_t lost;
} ending;

// Who discards has nothing to do with what was at work there before. Who reads
// as well builds on it: if a stream that is still to write there fails, the
// bytes are void.
static bool is_settled(const tarn__use *use, void *context) {
  const ending *end = context;
  if (use->side != end->access->side) return false;
  return end->access->mode == TARN_WRITE_DISCARD || !use->writes ||
         tarn__lane_is_over(use->lane, use->number);
}

static void commit_write(ending *end, tarn__span *span) {
  tarn__span_forget(&end->core->spans, span, is_settled, end);
  tarn__span_set(end->core, span, tarn__side_bit(end->access->side), true);
}

// What a write builds upon is gone if a stream that brought it has failed
// meanwhile.
static bool is_founded(const ending *end, const tarn__span *span) {
  return end->access->mode == TARN_WRITE_DISCARD ||
         (span->valid & tarn__side_bit(end->access->side)) != 0;
}

static void take_write_back(ending *end, tarn__span *span) {
  bool was_lost = tarn__span_is_lost(span);
  uint64_t left = span->valid & ~tarn__side_bit(end->access->side);
  tarn__span_set(end->core, span, left, span->written);
  if (was_lost || !tarn__span_is_lost(span)) return;
  end->lost += span->end - span->start;
  tarn__core_note_loss(end->core, TARN__LOSS_CANCELLED, end->access->side,
                       span->start, span->end);
}

static void leave_use(const ending *end, tarn__span *span, bool writes) {
  if (end->position.lane == NULL) return;
  tarn__span_use(&end->core->spans, span,
                 (tarn__use){.lane = end->position.lane,
                             .number = end->position.number,
                             .side = end->access->side,
                             .writes = writes});
}

static void end_in_span(ending *end, tarn__span *span) {
  bool writes = end->access->mode != TARN_READ;
  if (!writes) {
    span->readers--;
  } else {
    span->writer = NULL;
    if (end->commits && is_founded(end, span)) {
      commit_write(end, span);
    } else {
      if (end->commits) end->unfounded = true;
      take_write_back(end, span);
    }
  }
  leave_use(end, span, writes);
}

static void end_in_spans(ending *end) {
  tarn__spans *spans = &end->core->spans;
  size_t start = end->access->offset;
  size_t stop = start + end->access->size;
  tarn__span *first = tarn__spans_find(spans, start);
  tarn__span *last = first;
  assert(first->start == start);
  for (tarn__span *span = first; span != NULL && span->start < stop;
       span = span->next) {
    end_in_span(end, span);
    last = span;
  }
  tarn__span_unpin(first, last);
  tarn__spans_join(spans, start, stop);
}

// Where the stream stands, with nodes to say so in each span; if that cannot be
// had, the host waits for the stream and there is nothing to say.
static tarn_status take_position(ending *end) {
  tarn_stream *stream = end->access->stream;
  if (stream == NULL) return TARN_OK;
  tarn__core *core = end->core;
  tarn_status status = tarn__work_mark(core, stream, &end->position);
  if (end->position.lane == NULL) return status;
  size_t start = end->access->offset;
  status =
      tarn__spans_reserve(&core->spans, start, start + end->access->size, 1);
  if (status == TARN_OK) return TARN_OK;
  tarn__work_release(end->position);
  end->position.lane = NULL;
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

// With the gate, which is left for the mark.
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

static tarn_status end_at_length(tarn_access *access, bool commits,
                                 size_t *out_lost) {
  tarn_status status = tarn__synced_check(access->buffer);
  if (status != TARN_OK) return status;
  tarn__core *core = access->buffer->core;
  ending end = {.core = core, .access = access, .commits = commits};
  tarn__core_enter(core);
  tarn__protect_tighten(core);
  if (access->side != TARN__NO_SIDE) status = close_access(&end);
  close_in_list(core, access);
  tarn__core_wake(core);
  tarn__core_leave(core);
  if (out_lost != NULL) *out_lost = end.lost;
  return status;
}

static tarn_status check_open(const tarn_access *access) {
  bool is_open = access != NULL && access->buffer != NULL;
  return is_open ? TARN_OK
                 : tarn__fail(TARN_E_INVALID, "synced: no open access");
}

tarn_status tarn_synced_end(tarn_access *access) {
  tarn_status status = check_open(access);
  if (status != TARN_OK) return status;
  bool is_short = access->stream == NULL && tarn__callbacks_running == 0;
  if (is_short && try_short_end(access)) return TARN_OK;
  return end_at_length(access, true, NULL);
}

tarn_status tarn_synced_cancel(tarn_access *access, size_t *out_lost) {
  if (out_lost != NULL) *out_lost = 0;
  tarn_status status = check_open(access);
  return status == TARN_OK ? end_at_length(access, false, out_lost) : status;
}
