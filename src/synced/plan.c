// The plan of a transfer: waits and copies.
//
// A plan reads spans and changes nothing, so it can be dropped at any point. It
// is valid while the lock is held.
#include <assert.h>
#include <stdio.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "synced/transfer.h"

// --- arrays that begin on the stack ------------------------------------------

// Grows the full array |items|, which began as |few|.
static void *grow(void *items, const void *few, size_t *room, size_t size) {
  size_t doubled = 0;
  if (!tarn_size_mul(*room, 2, &doubled)) return NULL;
  void *grown = NULL;
  if (items == few) {
    grown = tarn__host_array(doubled, size);
    if (grown != NULL) __builtin_memcpy(grown, items, *room * size);
  } else {
    grown = tarn__host_resize(items, *room, doubled, size);
  }
  if (grown != NULL) *room = doubled;
  return grown;
}

static tarn_status add_run(tarn__synced_transfer *transfer,
                           tarn__synced_load run) {
  if (transfer->run_count == transfer->run_room) {
    tarn__synced_load *grown =
        grow(transfer->runs, transfer->few_runs, &transfer->run_room,
             sizeof *transfer->runs);
    if (grown == NULL) return TARN_E_NOMEM;
    transfer->runs = grown;
  }
  transfer->runs[transfer->run_count++] = run;
  return TARN_OK;
}

static tarn_status add_wait(tarn__synced_transfer *transfer,
                            const tarn__synced_use *use, uint32_t carrier) {
  for (size_t i = 0; i < transfer->wait_count; i++) {
    tarn__synced_wait *known = &transfer->waits[i];
    if (known->timeline != use->timeline) continue;
    if (known->number < use->number) known->number = use->number;
    known->carriers |= 1u << carrier;
    return TARN_OK;
  }
  if (transfer->wait_count == transfer->wait_room) {
    tarn__synced_wait *grown =
        grow(transfer->waits, transfer->few_waits, &transfer->wait_room,
             sizeof *transfer->waits);
    if (grown == NULL) return TARN_E_NOMEM;
    transfer->waits = grown;
  }
  transfer->waits[transfer->wait_count++] =
      (tarn__synced_wait){.timeline = use->timeline,
                          .number = use->number,
                          .carriers = 1u << carrier,
                          .side = use->side,
                          .status = TARN_PENDING};
  return TARN_OK;
}

// --- sources and carriers ----------------------------------------------------

static const tarn__synced_end *end_of(tarn__synced_transfer *transfer,
                                      uint32_t side) {
  if ((transfer->ends_known & tarn__side_bit(side)) == 0) {
    transfer->ends[side] = transfer->core->sides[side].end;
    transfer->ends_known |= tarn__side_bit(side);
  }
  return &transfer->ends[side];
}

static uint32_t cheapest(const tarn__synced_core *core, uint64_t valid,
                         uint32_t to) {
  uint32_t best = (uint32_t)__builtin_ctzll(valid);
  uint64_t left = valid & (valid - 1);
  if (left == 0) return best;
  tarn_place target = core->sides[to].end.place;
  unsigned least = tarn__route_price(core->sides[best].end.place, target);
  for (; left != 0; left &= left - 1) {
    uint32_t side = (uint32_t)__builtin_ctzll(left);
    unsigned price = tarn__route_price(core->sides[side].end.place, target);
    if (price < least) {
      best = side;
      least = price;
    }
  }
  return best;
}

// Neighbours usually have the same sides.
uint32_t tarn__transfer_source(tarn__synced_transfer *transfer,
                               uint64_t valid) {
  if (valid != transfer->last_valid) {
    transfer->last_from = cheapest(transfer->core, valid, transfer->side);
    transfer->last_valid = valid;
  }
  return transfer->last_from;
}

static uint32_t copy_stream_of(tarn__synced_transfer *transfer,
                               tarn_device *device,
                               tarn__synced_copy_stream way) {
  for (size_t i = TARN__FIRST_COPY_STREAM; i < transfer->carrier_count; i++) {
    const tarn__synced_carrier *known = &transfer->carriers[i];
    if (known->device == device && known->way == way) return (uint32_t)i;
  }
  if (transfer->carrier_count == TARN__MOST_CARRIERS) return TARN__BY_HOST;
  transfer->carriers[transfer->carrier_count] =
      (tarn__synced_carrier){.device = device, .way = way};
  return (uint32_t)transfer->carrier_count++;
}

static uint32_t carrier_for(tarn__synced_transfer *transfer, uint32_t from) {
  tarn_stream *stream = transfer->request.stream;
  tarn_place source = end_of(transfer, from)->place;
  if (stream == NULL) return TARN__BY_HOST;
  tarn_place target = end_of(transfer, transfer->side)->place;
  tarn_device *device = tarn__route_device(source, target);
  if (device == NULL) return TARN__BY_HOST;
  if (device == tarn_stream_device(stream)) return TARN__BY_STREAM;
  bool inwards = source.device != device;
  return copy_stream_of(transfer, device,
                        inwards ? TARN__COPY_STREAM_IN : TARN__COPY_STREAM_OUT);
}

// --- spans -------------------------------------------------------------------

// Adds the copies of one span.
typedef struct missing {
  bool some;
  uint32_t from;  // as in a run
  uint32_t carrier;
} missing;

static missing missing_in(tarn__synced_transfer *transfer,
                          const tarn__synced_span *span) {
  missing none = {.some = false, .from = TARN__NO_SIDE};
  none.carrier =
      transfer->request.stream != NULL ? TARN__BY_STREAM : TARN__BY_HOST;
  bool there = (span->valid & tarn__side_bit(transfer->side)) != 0;
  if (!transfer->reads || there) return none;
  if (!span->written) {
    return (missing){
        .some = true, .from = TARN__NO_SIDE, .carrier = TARN__BY_HOST};
  }
  uint32_t from = tarn__transfer_source(transfer, span->valid);
  return (missing){
      .some = true, .from = from, .carrier = carrier_for(transfer, from)};
}

// Whether the access must wait for a use: for writers of bytes that it reads,
// and for all uses of bytes that it writes.
static bool is_hazard(const tarn__synced_transfer *transfer,
                      const missing *lack, const tarn__synced_use *use) {
  if (use->side == transfer->side) {
    return use->writes || transfer->writes || lack->some;
  }
  return lack->some && use->side == lack->from && use->writes;
}

static bool is_of_stream(const tarn__synced_transfer *transfer,
                         const missing *lack, const tarn__synced_use *use) {
  return lack->carrier == TARN__BY_STREAM &&
         use->timeline->serial == tarn_stream_serial(transfer->request.stream);
}

static tarn_status look_at_uses(tarn__synced_transfer *transfer,
                                const tarn__synced_span *span,
                                const missing *lack) {
  size_t writers = 0;
  for (const tarn__synced_use *use = span->uses; use != NULL; use = use->next) {
    if (!is_hazard(transfer, lack, use)) continue;
    if (use->timeline == NULL) return TARN_PENDING;
    if (tarn__timeline_is_over(use->timeline, use->number)) continue;
    if (lack->some && use->side == lack->from) writers++;
    if (is_of_stream(transfer, lack, use)) continue;
    TARN__TRY(add_wait(transfer, use, lack->carrier));
  }
  if (transfer->most_writers < writers) transfer->most_writers = writers;
  return TARN_OK;
}

static bool continues(const tarn__synced_transfer *transfer,
                      const missing *lack, size_t start) {
  if (transfer->run_count == 0) return false;
  const tarn__synced_load *last = &transfer->runs[transfer->run_count - 1];
  return last->end == start && last->from == lack->from;
}

static tarn_status add_missing(tarn__synced_transfer *transfer,
                               const missing *lack, size_t start, size_t end) {
  if (lack->from != TARN__NO_SIDE) transfer->moved_bytes += end - start;
  if (continues(transfer, lack, start)) {
    transfer->runs[transfer->run_count - 1].end = end;
    return TARN_OK;
  }
  return add_run(transfer, (tarn__synced_load){.start = start,
                                               .end = end,
                                               .from = lack->from,
                                               .carrier = lack->carrier});
}

// --- conflicts -------------------------------------------------------------

static tarn_status refuse(const tarn__synced_transfer *transfer,
                          const tarn_access *other) {
  char what[128];
  char place[TARN__SIDE_TEXT];
  const tarn__synced_request *request = &transfer->request;
  snprintf(what, sizeof what,
           "an access for %s at %s (bytes %zu to %zu) has to wait",
           transfer->writes ? "writing" : "reading",
           tarn__side_text(transfer->core, transfer->side, place),
           request->start, request->end);
  return tarn__access_is_in_the_way(transfer->core, other, what);
}

// Readers without an access are a prefetch, which ends soon.
static tarn_status conflict_in(const tarn__synced_transfer *transfer,
                               const tarn__synced_span *span) {
  const tarn_access *other = span->writer;
  if (other == NULL) {
    other = tarn__access_in(transfer->core, TARN__NO_SIDE, span->node.start,
                            span->end);
  }
  bool patient = (transfer->request.mode & TARN_ACCESS_WAIT) != 0;
  return other == NULL || patient ? TARN_PENDING : refuse(transfer, other);
}

static tarn_status look_at(tarn__synced_transfer *transfer,
                           const tarn__synced_span *span) {
  const tarn__synced_request *request = &transfer->request;
  size_t start =
      span->node.start > request->start ? span->node.start : request->start;
  size_t end = span->end < request->end ? span->end : request->end;
  bool conflict =
      span->writer != NULL || (transfer->writes && span->readers > 0);
  if (conflict) return conflict_in(transfer, span);
  if (transfer->reads && tarn__span_is_lost(span)) {
    return tarn__core_tell_loss(transfer->core, span);
  }
  missing lack = missing_in(transfer, span);
  TARN__TRY(look_at_uses(transfer, span, &lack));
  if (lack.some) return add_missing(transfer, &lack, start, end);
  transfer->valid_bytes += end - start;
  return TARN_OK;
}

// --- all of a plan -----------------------------------------------------------

static void begin_anew(tarn__synced_transfer *transfer) {
  transfer->valid_bytes = 0;
  transfer->moved_bytes = 0;
  transfer->most_writers = 0;
  transfer->run_count = 0;
  transfer->wait_count = 0;
  transfer->carrier_count = TARN__FIRST_COPY_STREAM;
  transfer->carriers[TARN__BY_HOST] = (tarn__synced_carrier){.stream = NULL};
  transfer->carriers[TARN__BY_STREAM] =
      (tarn__synced_carrier){.stream = transfer->request.stream};
  transfer->ends_known = 0;
  transfer->last_valid = 0;
}

static void hold_points(tarn__synced_transfer *transfer) {
  for (size_t i = 0; i < transfer->wait_count; i++) {
    tarn__synced_wait *wait = &transfer->waits[i];
    wait->point = tarn__timeline_hold_point(wait->timeline, wait->number);
    assert(wait->point != NULL);
  }
  transfer->marked = true;
}

void tarn__transfer_forget(tarn__synced_transfer *transfer) {
  if (!transfer->marked) return;
  transfer->marked = false;
  for (size_t i = 0; i < transfer->wait_count; i++)
    tarn__work_settle(transfer->core, transfer->waits[i].point,
                      transfer->waits[i].status);
}

tarn_status tarn__transfer_plan(tarn__synced_transfer *transfer) {
  const tarn__synced_request *request = &transfer->request;
  assert(!transfer->marked && request->start < request->end);
  begin_anew(transfer);
  tarn__spans_each (span, &transfer->core->spans, request->start,
                    request->end) {
    TARN__TRY(look_at(transfer, span));
  }
  (void)end_of(transfer, transfer->side);
  hold_points(transfer);
  return TARN_OK;
}
