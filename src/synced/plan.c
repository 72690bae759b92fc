// What an access has to wait for, and what has to be copied.
//
// A plan looks at spans and changes nothing, so that it may be thrown away at
// any point; what it finds stays true as long as the gate is held.
#include <assert.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "synced/errand.h"

// What each plan finds out, tarn__errand_plan sets.
void tarn__errand_init(tarn__synced_transfer *errand, tarn__synced_core *core,
                       const tarn__synced_request *wish, tarn_access *access) {
  uint32_t mode = wish->mode & ~TARN_ACCESS_WAIT;
  errand->core = core;
  errand->wish = *wish;
  errand->access = access;
  errand->reads = mode != TARN_WRITE_DISCARD;
  errand->writes = mode != TARN_READ;
  errand->side = TARN__NO_SIDE;
  errand->number = 0;
  errand->marked = false;
  errand->worthless = false;
  errand->again = false;
  errand->slept_ns = 0;
  errand->runs = errand->few_runs;
  errand->run_room = TARN__FEW;
  errand->waits = errand->few_waits;
  errand->wait_room = TARN__FEW;
}

void tarn__errand_deinit(tarn__synced_transfer *errand) {
  assert(!errand->marked);
  if (errand->slept_ns > 0) tarn__errand_tell_stall(errand, errand->slept_ns);
  if (errand->runs != errand->few_runs) {
    tarn__host_free_array(errand->runs, errand->run_room, sizeof *errand->runs);
  }
  if (errand->waits != errand->few_waits) {
    tarn__host_free_array(errand->waits, errand->wait_room,
                          sizeof *errand->waits);
  }
}

// --- arrays that begin on the stack ------------------------------------------

// |items| of |room| are full; |few| is where they began.
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

static tarn_status add_run(tarn__synced_transfer *errand,
                           tarn__synced_load run) {
  if (errand->run_count == errand->run_room) {
    tarn__synced_load *grown = grow(errand->runs, errand->few_runs,
                                    &errand->run_room, sizeof *errand->runs);
    if (grown == NULL) return TARN_E_NOMEM;
    errand->runs = grown;
  }
  errand->runs[errand->run_count++] = run;
  return TARN_OK;
}

static tarn_status add_wait(tarn__synced_transfer *errand,
                            const tarn__synced_use *use, uint32_t carrier) {
  for (size_t i = 0; i < errand->wait_count; i++) {
    tarn__synced_wait *known = &errand->waits[i];
    if (known->lane != use->lane) continue;
    if (known->number < use->number) known->number = use->number;
    known->carriers |= 1u << carrier;
    return TARN_OK;
  }
  if (errand->wait_count == errand->wait_room) {
    tarn__synced_wait *grown = grow(errand->waits, errand->few_waits,
                                    &errand->wait_room, sizeof *errand->waits);
    if (grown == NULL) return TARN_E_NOMEM;
    errand->waits = grown;
  }
  errand->waits[errand->wait_count++] =
      (tarn__synced_wait){.lane = use->lane,
                          .number = use->number,
                          .carriers = 1u << carrier,
                          .side = use->side,
                          .status = TARN_PENDING};
  return TARN_OK;
}

// --- sources and carriers ----------------------------------------------------

static const tarn__synced_end *end_of(tarn__synced_transfer *errand,
                                      uint32_t side) {
  if ((errand->ends_known & tarn__side_bit(side)) == 0) {
    errand->ends[side] = errand->core->sides[side].end;
    errand->ends_known |= tarn__side_bit(side);
  }
  return &errand->ends[side];
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

// Neighbours mostly have the same sides.
uint32_t tarn__errand_source(tarn__synced_transfer *errand, uint64_t valid) {
  if (valid != errand->last_valid) {
    errand->last_from = cheapest(errand->core, valid, errand->side);
    errand->last_valid = valid;
  }
  return errand->last_from;
}

static uint32_t courier_of(tarn__synced_transfer *errand, tarn_device *device,
                           tarn__synced_copy_stream way) {
  for (size_t i = TARN__FIRST_COURIER; i < errand->carrier_count; i++) {
    const tarn__synced_carrier *known = &errand->carriers[i];
    if (known->device == device && known->way == way) return (uint32_t)i;
  }
  if (errand->carrier_count == TARN__MOST_CARRIERS) return TARN__BY_HOST;
  errand->carriers[errand->carrier_count] =
      (tarn__synced_carrier){.device = device, .way = way};
  return (uint32_t)errand->carrier_count++;
}

static uint32_t carrier_for(tarn__synced_transfer *errand, uint32_t from) {
  tarn_stream *stream = errand->wish.stream;
  tarn_place source = end_of(errand, from)->place;
  if (stream == NULL) return TARN__BY_HOST;
  tarn_place target = end_of(errand, errand->side)->place;
  tarn_device *device = tarn__route_device(source, target);
  if (device == NULL) return TARN__BY_HOST;
  if (device == tarn_stream_device(stream)) return TARN__BY_STREAM;
  bool inwards = source.device != device;
  return courier_of(errand, device,
                    inwards ? TARN__COURIER_IN : TARN__COURIER_OUT);
}

// --- spans -------------------------------------------------------------------

// What has to be made in one span.
typedef struct missing {
  bool some;
  uint32_t from;  // as in a run
  uint32_t carrier;
} missing;

static missing missing_in(tarn__synced_transfer *errand,
                          const tarn__synced_span *span) {
  missing none = {.some = false, .from = TARN__NO_SIDE};
  none.carrier = errand->wish.stream != NULL ? TARN__BY_STREAM : TARN__BY_HOST;
  bool there = (span->valid & tarn__side_bit(errand->side)) != 0;
  if (!errand->reads || there) return none;
  if (!span->written) {
    return (missing){
        .some = true, .from = TARN__NO_SIDE, .carrier = TARN__BY_HOST};
  }
  uint32_t from = tarn__errand_source(errand, span->valid);
  return (missing){
      .some = true, .from = from, .carrier = carrier_for(errand, from)};
}

// Whether work that is under way has to be over first: what writes the bytes
// that are read, and all that touches those that are written.
static bool is_hazard(const tarn__synced_transfer *errand, const missing *lack,
                      const tarn__synced_use *use) {
  if (use->side == errand->side) {
    return use->writes || errand->writes || lack->some;
  }
  return lack->some && use->side == lack->from && use->writes;
}

static bool is_of_stream(const tarn__synced_transfer *errand,
                         const missing *lack, const tarn__synced_use *use) {
  return lack->carrier == TARN__BY_STREAM &&
         use->lane->serial == tarn_stream_serial(errand->wish.stream);
}

static tarn_status look_at_uses(tarn__synced_transfer *errand,
                                const tarn__synced_span *span,
                                const missing *lack) {
  size_t writers = 0;
  for (const tarn__synced_use *use = span->uses; use != NULL; use = use->next) {
    if (!is_hazard(errand, lack, use)) continue;
    if (use->lane == NULL) return TARN_PENDING;
    if (tarn__lane_is_over(use->lane, use->number)) continue;
    if (lack->some && use->side == lack->from) writers++;
    if (is_of_stream(errand, lack, use)) continue;
    tarn_status status = add_wait(errand, use, lack->carrier);
    if (status != TARN_OK) return status;
  }
  if (errand->most_writers < writers) errand->most_writers = writers;
  return TARN_OK;
}

static bool continues(const tarn__synced_transfer *errand, const missing *lack,
                      size_t start) {
  if (errand->run_count == 0) return false;
  const tarn__synced_load *last = &errand->runs[errand->run_count - 1];
  return last->end == start && last->from == lack->from;
}

static tarn_status add_missing(tarn__synced_transfer *errand,
                               const missing *lack, size_t start, size_t end) {
  if (lack->from != TARN__NO_SIDE) errand->moved_bytes += end - start;
  if (continues(errand, lack, start)) {
    errand->runs[errand->run_count - 1].end = end;
    return TARN_OK;
  }
  return add_run(errand, (tarn__synced_load){.start = start,
                                             .end = end,
                                             .from = lack->from,
                                             .carrier = lack->carrier});
}

static tarn_status look_at(tarn__synced_transfer *errand,
                           const tarn__synced_span *span) {
  const tarn__synced_request *wish = &errand->wish;
  size_t start = span->start > wish->start ? span->start : wish->start;
  size_t end = span->end < wish->end ? span->end : wish->end;
  bool conflict = span->writer != NULL || (errand->writes && span->readers > 0);
  if (conflict) return tarn__errand_conflict(errand, span);
  if (errand->reads && tarn__span_is_lost(span)) {
    return tarn__core_tell_loss(errand->core, span);
  }
  missing lack = missing_in(errand, span);
  tarn_status status = look_at_uses(errand, span, &lack);
  if (status != TARN_OK) return status;
  if (lack.some) return add_missing(errand, &lack, start, end);
  errand->valid_bytes += end - start;
  return TARN_OK;
}

// --- the whole ---------------------------------------------------------------

static void begin_anew(tarn__synced_transfer *errand) {
  errand->valid_bytes = 0;
  errand->moved_bytes = 0;
  errand->most_writers = 0;
  errand->run_count = 0;
  errand->wait_count = 0;
  errand->carrier_count = TARN__FIRST_COURIER;
  errand->carriers[TARN__BY_HOST] = (tarn__synced_carrier){.stream = NULL};
  errand->carriers[TARN__BY_STREAM] =
      (tarn__synced_carrier){.stream = errand->wish.stream};
  errand->ends_known = 0;
  errand->last_valid = 0;
}

static void hold_marks(tarn__synced_transfer *errand) {
  for (size_t i = 0; i < errand->wait_count; i++) {
    tarn__synced_wait *wait = &errand->waits[i];
    wait->mark = tarn__lane_hold_mark(wait->lane, wait->number);
    assert(wait->mark != NULL);
  }
  errand->marked = true;
}

void tarn__errand_forget(tarn__synced_transfer *errand) {
  if (!errand->marked) return;
  errand->marked = false;
  for (size_t i = 0; i < errand->wait_count; i++)
    tarn__work_settle(errand->core, errand->waits[i].mark,
                      errand->waits[i].status);
}

tarn_status tarn__errand_plan(tarn__synced_transfer *errand) {
  const tarn__synced_request *wish = &errand->wish;
  assert(!errand->marked && wish->start < wish->end);
  begin_anew(errand);
  const tarn__synced_span *span =
      tarn__spans_find(&errand->core->spans, wish->start);
  while (span != NULL && span->start < wish->end) {
    tarn_status status = look_at(errand, span);
    if (status != TARN_OK) return status;
    span = span->next;
  }
  (void)end_of(errand, errand->side);
  hold_marks(errand);
  return TARN_OK;
}
