// An errand's waits and copies, without the gate.
//
//   ask every mark ──► host waits ──► carriers wait ──► zeros ──► copies
//                                     ──► marks ──► the stream waits
//
// A stream that is found failed before anything was copied sends the errand
// back to its plan: what it was to write is not there, and may have to come
// from another place.
#include <assert.h>

#include "base/status.h"
#include "synced/errand.h"
#include "synced/trace.h"

static bool is_for(const tarn__synced_wait *wait, size_t carrier) {
  return (wait->carriers & (1u << carrier)) != 0;
}

// --- waits -------------------------------------------------------------------

static tarn_status outcome(const tarn__synced_wait *wait) {
  switch (wait->status) {
    case TARN_OK:
    case TARN_PENDING:
      return TARN_OK;
    case TARN_E_DEVICE:
      return TARN_PENDING;  // its lane is swept, plan anew
    default:
      return wait->status;
  }
}

static tarn_status ask(tarn__synced_transfer *errand) {
  tarn_status status = TARN_OK;
  for (size_t i = 0; i < errand->wait_count && status == TARN_OK; i++) {
    tarn__synced_wait *wait = &errand->waits[i];
    wait->status = tarn__mark_query(wait->mark);
    status = outcome(wait);
  }
  return status;
}

void tarn__errand_tell_stall(const tarn__synced_transfer *errand, uint64_t ns) {
  if (!tarn__synced_is_traced()) return;
  tarn__synced_tell(
      errand->core,
      (tarn_synced_event){.struct_size = sizeof(tarn_synced_event),
                          .what = TARN_SYNCED_STALLED,
                          .to = tarn__route_place(errand->wish.place),
                          .offset = errand->wish.start,
                          .size = errand->wish.end - errand->wish.start,
                          .ns = ns});
}

static void stall(tarn__synced_transfer *errand, tarn__synced_wait *wait) {
  uint64_t began = tarn__os_now_ns();
  wait->status = tarn__mark_wait(wait->mark);
  wait->stalled_ns = tarn__os_now_ns() - began;
  tarn__errand_tell_stall(errand, wait->stalled_ns);
}

static tarn_status wait_on_host(tarn__synced_transfer *errand) {
  tarn_status status = TARN_OK;
  for (size_t i = 0; i < errand->wait_count && status == TARN_OK; i++) {
    tarn__synced_wait *wait = &errand->waits[i];
    if (wait->status != TARN_PENDING || !is_for(wait, TARN__BY_HOST)) continue;
    stall(errand, wait);
    status = outcome(wait);
  }
  return status;
}

// If it is the mark's stream that failed, the wait knows now.
static tarn_status join(tarn__synced_wait *wait, tarn_stream *stream) {
  tarn_status status = tarn__mark_join(wait->mark, stream);
  if (status == TARN_OK) return TARN_OK;
  tarn_status own = tarn__mark_query(wait->mark);
  if (own == TARN_E_DEVICE) wait->status = own;
  return own == TARN_E_DEVICE ? TARN_PENDING : status;
}

static tarn_status join_all(tarn__synced_transfer *errand, size_t carrier) {
  tarn_status status = TARN_OK;
  tarn_stream *stream = errand->carriers[carrier].stream;
  for (size_t i = 0; i < errand->wait_count && status == TARN_OK; i++) {
    tarn__synced_wait *wait = &errand->waits[i];
    bool needed = wait->status == TARN_PENDING && is_for(wait, carrier);
    if (needed) status = join(wait, stream);
  }
  return status;
}

static tarn_status find_courier(tarn__synced_carrier *carrier) {
  return tarn__station_courier(carrier->device, carrier->way, &carrier->stream);
}

static tarn_status wait_for_others(tarn__synced_transfer *errand) {
  tarn_status status = ask(errand);
  if (status == TARN_OK) status = wait_on_host(errand);
  for (size_t i = TARN__BY_STREAM;
       i < errand->carrier_count && status == TARN_OK; i++) {
    tarn__synced_carrier *carrier = &errand->carriers[i];
    if (i >= TARN__FIRST_COURIER) status = find_courier(carrier);
    if (status == TARN_OK && carrier->stream != NULL) {
      status = join_all(errand, i);
    }
  }
  return status;
}

// --- copies ------------------------------------------------------------------

static void tell_run(const tarn__synced_transfer *errand,
                     const tarn__synced_load *run, bool queued) {
  if (!tarn__synced_is_traced()) return;
  bool zeros = run->from == TARN__NO_SIDE;
  tarn__synced_tell(
      errand->core,
      (tarn_synced_event){
          .struct_size = sizeof(tarn_synced_event),
          .what = zeros ? TARN_SYNCED_ZEROED : TARN_SYNCED_COPIED,
          .from = zeros ? TARN_HOST : errand->ends[run->from].place,
          .to = errand->ends[errand->side].place,
          .offset = run->start,
          .size = run->end - run->start,
          .queued = queued});
}

static tarn_status make(tarn__synced_transfer *errand, tarn__synced_load *run) {
  const tarn__synced_end *to = &errand->ends[errand->side];
  tarn__synced_carrier *carrier = &errand->carriers[run->carrier];
  size_t size = run->end - run->start;
  tarn_status status =
      run->from == TARN__NO_SIDE
          ? tarn__route_zero(to, run->start, size)
          : tarn__route_copy(&errand->ends[run->from], to, run->start, size,
                             carrier->stream);
  run->made = status == TARN_OK;
  if (carrier->stream != NULL) carrier->used = true;
  if (run->made) tell_run(errand, run, carrier->stream != NULL);
  return status;
}

static tarn_status make_all(tarn__synced_transfer *errand) {
  tarn_status status = TARN_OK;
  for (size_t i = 0; i < errand->run_count && status == TARN_OK; i++)
    status = make(errand, &errand->runs[i]);
  return status;
}

// --- marks behind them -------------------------------------------------------

// The caller's stream goes on when the courier is there; if it cannot be made
// to wait, the host does.
static tarn_status follow(tarn__synced_transfer *errand,
                          tarn__synced_position behind) {
  tarn__synced_core *core = errand->core;
  tarn__core_enter(core);
  tarn__synced_point *mark = tarn__lane_hold_mark(behind.lane, behind.number);
  tarn__core_leave(core);
  if (mark == NULL) return TARN_OK;
  tarn_status found = TARN_PENDING;
  tarn_status status = tarn__mark_join(mark, errand->wish.stream);
  if (status != TARN_OK) {
    found = tarn__mark_wait(mark);
    status = found;
  }
  tarn__core_enter(core);
  tarn__work_settle(core, mark, found);
  tarn__core_leave(core);
  return status;
}

static tarn_status mark(tarn__synced_transfer *errand, size_t number) {
  tarn__synced_carrier *carrier = &errand->carriers[number];
  tarn__synced_core *core = errand->core;
  if (!carrier->used) return TARN_OK;
  tarn__core_enter(core);
  tarn_status status =
      tarn__work_mark(core, carrier->stream, &carrier->position);
  tarn__core_leave(core);
  carrier->failed = status != TARN_OK;
  bool follows =
      number >= TARN__FIRST_COURIER && carrier->position.lane != NULL;
  return follows ? follow(errand, carrier->position) : status;
}

// Also after a failure: what was queued is under way.
static tarn_status mark_all(tarn__synced_transfer *errand) {
  tarn_status first = TARN_OK;
  for (size_t i = TARN__BY_STREAM; i < errand->carrier_count; i++) {
    tarn_status status = mark(errand, i);
    if (first == TARN_OK) first = status;
  }
  return first;
}

static void release_couriers(tarn__synced_transfer *errand) {
  for (size_t i = TARN__FIRST_COURIER; i < errand->carrier_count; i++)
    tarn__station_release_courier(errand->carriers[i].stream);
}

// A courier is shared: its failure may be of a copy of another buffer's. While
// nothing was copied another one is worth a try.
static bool may_try_again(tarn__synced_transfer *errand, tarn_status status) {
  bool shared = errand->carrier_count > TARN__FIRST_COURIER;
  bool made = errand->run_count > 0 && errand->runs[0].made;
  bool may = status == TARN_E_DEVICE && shared && !made && !errand->again;
  if (may) errand->again = true;
  return may;
}

static tarn_status end_failed(tarn__synced_transfer *errand,
                              tarn_status status) {
  tarn__failure failure = tarn__failure_of(status);
  (void)mark_all(errand);
  release_couriers(errand);
  return tarn__failure_tell(&failure);
}

tarn_status tarn__errand_carry(tarn__synced_transfer *errand) {
  assert(errand->marked);
  tarn_status status = wait_for_others(errand);
  if (status == TARN_OK) status = make_all(errand);
  if (may_try_again(errand, status)) status = TARN_PENDING;
  if (status != TARN_OK) return end_failed(errand, status);
  status = mark_all(errand);
  release_couriers(errand);
  return status;
}
