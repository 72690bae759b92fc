// Accesses: a short way for valid bytes, and the transfer for all others.
//
// The short way is for a range that is exactly a span, without open writers and
// uses: there is nothing to cut, plan or wait for, and a thread that uses the
// buffer alone takes the lock with plain stores. The span must be the first or
// the most recent one, so that the short way calls no function. The middle way
// is for a part of such a span.
#include "synced/access.h"

#include <assert.h>

#include "base/status.h"
#include "synced/transfer.h"
#include "synced/work.h"

// --- beginning, the short way ------------------------------------------------

static bool is_same(tarn_place a, tarn_place b) {
  return a.device == b.device && a.kind == b.kind;
}

static __attribute__((noinline)) uint32_t search(tarn__synced_core *core,
                                                 tarn_place place) {
  uint32_t side = 0;
  while (side < core->side_count &&
         !is_same(core->sides[side].end.place, place))
    side++;
  if (side == core->side_count) return TARN__NO_SIDE;
  core->last_place = place;
  core->last_side = side;
  return side;
}

static inline uint32_t side_at_once(tarn__synced_core *core, tarn_place place) {
  return is_same(core->last_place, place) ? core->last_side
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
static inline void enter(tarn_synced *buffer, tarn__synced_span *span,
                         uint32_t side, const tarn__synced_request *request,
                         tarn_access *access) {
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
  at->accesses++;
  buffer->accesses++;
}

static inline bool begin_at_once(tarn_synced *buffer,
                                 const tarn__synced_request *request,
                                 tarn_access *access) {
  tarn__synced_core *core = buffer->core;
  uint32_t side = side_at_once(core, request->place);
  tarn__synced_span *span = span_at(core, request->start, request->end);
  if (core->slow || side == TARN__NO_SIDE || span == NULL) return false;
  const tarn__synced_side *at = &core->sides[side];
  bool may = !at->busy && !at->outside &&
             is_free(span, request->mode == TARN_READ) &&
             (span->valid & tarn__side_bit(side)) != 0;
  if (may) enter(buffer, span, side, request, access);
  return may;
}

// Only if this thread owns the lock; so the buffer is not from before a fork.
static inline bool try_short_begin(tarn_synced *buffer,
                                   const tarn__synced_request *request,
                                   tarn_access *access) {
  tarn__owner_slot *slot = tarn__biased_lock_try(&buffer->core->lock);
  if (slot == NULL) return false;
  bool begun = begin_at_once(buffer, request, access);
  tarn__biased_lock_leave_owned(slot);
  return begun;
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
static bool begin_in_part(tarn_synced *buffer,
                          const tarn__synced_request *request,
                          tarn_access *access) {
  tarn__synced_core *core = buffer->core;
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
  enter(buffer, span, side, request, access);
  if (from != TARN__NO_SIDE) {
    tarn__core_counts(core, from, side)->discarded += access->size;
  }
  return true;
}

// An access of 0 bytes touches nothing, but is open like others.
static tarn_status open_empty(tarn_synced *buffer,
                              const tarn__synced_request *request,
                              tarn_access *access) {
  tarn__synced_core *core = buffer->core;
  tarn__core_enter(core);
  tarn_status status = tarn__core_admit(core);
  if (status == TARN_OK) status = tarn__place_check(request->place);
  if (status == TARN_OK) {
    access->buffer = buffer;
    access->offset = request->start;
    access->mode = request->mode & ~TARN_ACCESS_WAIT;
    access->side = TARN__NO_SIDE;
    tarn_list_add_tail(&core->accesses, &access->node);
    buffer->accesses++;
  }
  tarn__core_leave(core);
  return status;
}

tarn_status tarn__access_open(tarn_synced *buffer,
                              const tarn__synced_request *request,
                              tarn_access *access) {
  tarn__synced_transfer transfer;
  if (request->start == request->end)
    return open_empty(buffer, request, access);
  tarn__synced_core *core = buffer->core;
  tarn__core_enter(core);
  bool waits = (request->mode & TARN_ACCESS_WAIT) != 0;
  if (!waits && (begin_at_once(buffer, request, access) ||
                 begin_in_part(buffer, request, access))) {
    tarn__core_leave(core);
    return TARN_OK;
  }
  tarn__transfer_init(&transfer, core, request, access);
  tarn_status status = tarn__transfer_run(&transfer);
  if (status == TARN_OK) {
    access->buffer = buffer;
    buffer->accesses++;
  }
  tarn__core_leave(core);
  tarn__transfer_deinit(&transfer);
  return status;
}

// The general part of tarn_synced_begin.
static __attribute__((cold, noinline)) tarn_status begin_at_length(
    tarn_synced *buffer, size_t offset, size_t size, tarn_place place,
    uint32_t mode, tarn_stream *stream, tarn_access *out_access) {
  tarn__synced_request request = {
      .place = place, .mode = mode, .stream = stream};
  if (out_access == NULL)
    return tarn__fail(TARN_E_INVALID, "synced: out_access is NULL");
  *out_access = (tarn_access){.address = 0};
  tarn_status status = check_mode(mode);
  if (status == TARN_OK) {
    status =
        tarn__synced_range(buffer, offset, size, &request.start, &request.end);
  }
  if (status != TARN_OK) return status;
  assert(buffer != NULL);
  return tarn__access_open(buffer, &request, out_access);
}

static inline bool is_plain(uint32_t mode) {
  return mode - TARN_READ <= TARN_READ_WRITE - TARN_READ;
}

tarn_status tarn_synced_begin(tarn_synced *buffer, size_t offset, size_t size,
                              tarn_place place, uint32_t mode,
                              tarn_stream *stream, tarn_access *out_access) {
  bool sound = buffer != NULL && out_access != NULL && is_plain(mode) &&
               tarn__callbacks_running == 0 && offset <= buffer->size;
  if (sound) {
    size_t most = buffer->size - offset;
    tarn__synced_request request = {.start = buffer->offset + offset,
                                    .place = place,
                                    .mode = mode,
                                    .stream = stream};
    request.end = request.start + (size == TARN_ALL ? most : size);
    bool fits = size <= most || size == TARN_ALL;
    if (fits && try_short_begin(buffer, &request, out_access)) return TARN_OK;
  }
  return begin_at_length(buffer, offset, size, place, mode, stream, out_access);
}

// --- ending, the short way ---------------------------------------------------

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
    if (span->valid != bit || !span->written) {
      tarn__span_set(core, span, bit, true);
    }
    span->writer = NULL;
  }
  tarn__span_unpin(span, span);
  if (core->spans.map.count > 1) {
    tarn__spans_join(&core->spans, span->node.start, span->end);
  }
  tarn__access_unlink(core, access);
  return true;
}

static inline bool try_short_end(tarn_access *access) {
  tarn__synced_core *core = access->buffer->core;
  tarn__owner_slot *slot = tarn__biased_lock_try(&core->lock);
  if (slot == NULL) return false;
  bool ended = end_at_once(core, access);
  tarn__biased_lock_leave_owned(slot);
  return ended;
}

static tarn_status check_open(const tarn_access *access) {
  bool is_open = access != NULL && access->buffer != NULL;
  return is_open ? TARN_OK
                 : tarn__fail(TARN_E_INVALID, "synced: the access is not open");
}

tarn_status tarn_synced_end(tarn_access *access) {
  tarn_status status = check_open(access);
  if (status != TARN_OK) return status;
  bool is_short = access->stream == NULL && tarn__callbacks_running == 0;
  if (is_short && try_short_end(access)) return TARN_OK;
  return tarn__access_close(access, true, NULL);
}

tarn_status tarn_synced_cancel(tarn_access *access, size_t *out_lost) {
  if (out_lost != NULL) *out_lost = 0;
  tarn_status status = check_open(access);
  return status == TARN_OK ? tarn__access_close(access, false, out_lost)
                           : status;
}
