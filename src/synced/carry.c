// A transfer's waits and copies, without the lock.
//
//   ask every point ──► host waits ──► carriers wait ──► zeros ──► copies
//                                     ──► points ──► the stream waits
//
// If a stream is found failed before any copy, the transfer is planned again:
// the bytes that it was to write may have to come from another place.
#include <assert.h>

#include "base/status.h"
#include "synced/transfer.h"

// Whether the carrier must wait.
static bool is_due(const tarn__synced_wait *wait, size_t carrier) {
  return wait->status == TARN_PENDING &&
         (wait->carriers & (1u << carrier)) != 0;
}

// --- waits -------------------------------------------------------------------

static tarn_status outcome(const tarn__synced_wait *wait) {
  switch (wait->status) {
    case TARN_OK:
    case TARN_PENDING:
      return TARN_OK;
    case TARN_E_DEVICE:
      return TARN_PENDING;  // its timeline is swept, plan anew
    default:
      return wait->status;
  }
}

static tarn_status ask(tarn__synced_transfer *transfer) {
  for (size_t i = 0; i < transfer->wait_count; i++) {
    tarn__synced_wait *wait = &transfer->waits[i];
    wait->status = tarn__point_query(wait->point);
    TARN__TRY(outcome(wait));
  }
  return TARN_OK;
}

void tarn__transfer_tell_stall(const tarn__synced_transfer *transfer,
                               uint64_t ns) {
  tarn__synced_tell(transfer->core,
                    (tarn_synced_event){
                        .what = TARN_SYNCED_STALLED,
                        .to = tarn__route_place(transfer->request.place),
                        .offset = transfer->request.start,
                        .size = transfer->request.end - transfer->request.start,
                        .ns = ns});
}

static void stall(tarn__synced_transfer *transfer, tarn__synced_wait *wait) {
  uint64_t began = tarn__os_now_ns();
  wait->status = tarn__point_wait(wait->point);
  wait->stalled_ns = tarn__os_now_ns() - began;
  tarn__transfer_tell_stall(transfer, wait->stalled_ns);
}

static tarn_status wait_on_host(tarn__synced_transfer *transfer) {
  for (size_t i = 0; i < transfer->wait_count; i++) {
    tarn__synced_wait *wait = &transfer->waits[i];
    if (!is_due(wait, TARN__BY_HOST)) continue;
    stall(transfer, wait);
    TARN__TRY(outcome(wait));
  }
  return TARN_OK;
}

// Notes in the wait if the point's stream is the one that failed.
static tarn_status join(tarn__synced_wait *wait, tarn_stream *stream) {
  tarn_status status = tarn__point_join(wait->point, stream);
  if (status == TARN_OK) return TARN_OK;
  tarn_status own = tarn__point_query(wait->point);
  if (own == TARN_E_DEVICE) wait->status = own;
  return own == TARN_E_DEVICE ? TARN_PENDING : status;
}

// The stream of the carrier waits; a copy stream is found first.
static tarn_status wait_on_stream(tarn__synced_transfer *transfer,
                                  size_t number) {
  tarn__synced_carrier *carrier = &transfer->carriers[number];
  if (number >= TARN__FIRST_COPY_STREAM) {
    TARN__TRY(tarn__copy_streams_copy_stream(carrier->device, carrier->way,
                                             &carrier->stream));
  }
  for (size_t i = 0; i < transfer->wait_count && carrier->stream != NULL; i++) {
    tarn__synced_wait *wait = &transfer->waits[i];
    if (is_due(wait, number)) TARN__TRY(join(wait, carrier->stream));
  }
  return TARN_OK;
}

static tarn_status wait_for_others(tarn__synced_transfer *transfer) {
  TARN__TRY(ask(transfer));
  TARN__TRY(wait_on_host(transfer));
  for (size_t i = TARN__BY_STREAM; i < transfer->carrier_count; i++)
    TARN__TRY(wait_on_stream(transfer, i));
  return TARN_OK;
}

// --- copies ------------------------------------------------------------------

static void tell_run(const tarn__synced_transfer *transfer,
                     const tarn__synced_load *run, bool queued) {
  bool zeros = run->from == TARN__NO_SIDE;
  tarn__synced_tell(
      transfer->core,
      (tarn_synced_event){
          .what = zeros ? TARN_SYNCED_ZEROED : TARN_SYNCED_COPIED,
          .from = zeros ? TARN_HOST : transfer->ends[run->from].place,
          .to = transfer->ends[transfer->side].place,
          .offset = run->start,
          .size = run->end - run->start,
          .queued = queued});
}

static tarn_status make(tarn__synced_transfer *transfer,
                        tarn__synced_load *run) {
  const tarn__synced_end *to = &transfer->ends[transfer->side];
  tarn__synced_carrier *carrier = &transfer->carriers[run->carrier];
  size_t size = run->end - run->start;
  tarn_status status =
      run->from == TARN__NO_SIDE
          ? tarn__route_zero(to, run->start, size)
          : tarn__route_copy(&transfer->ends[run->from], to, run->start, size,
                             carrier->stream);
  run->made = status == TARN_OK;
  if (carrier->stream != NULL) carrier->used = true;
  if (run->made) tell_run(transfer, run, carrier->stream != NULL);
  return status;
}

static tarn_status make_all(tarn__synced_transfer *transfer) {
  for (size_t i = 0; i < transfer->run_count; i++)
    TARN__TRY(make(transfer, &transfer->runs[i]));
  return TARN_OK;
}

// --- points behind the copies ------------------------------------------------

// The caller's stream waits for the copy stream; if that fails, the host waits.
static tarn_status follow(tarn__synced_transfer *transfer,
                          tarn__synced_position behind) {
  tarn__synced_core *core = transfer->core;
  tarn__core_enter(core);
  tarn__synced_point *point =
      tarn__timeline_hold_point(behind.timeline, behind.number);
  tarn__core_leave(core);
  if (point == NULL) return TARN_OK;
  tarn_status found = TARN_PENDING;
  tarn_status status = tarn__point_join(point, transfer->request.stream);
  if (status != TARN_OK) {
    found = tarn__point_wait(point);
    status = found;
  }
  tarn__core_enter(core);
  tarn__work_settle(core, point, found);
  tarn__core_leave(core);
  return status;
}

static tarn_status point(tarn__synced_transfer *transfer, size_t number) {
  tarn__synced_carrier *carrier = &transfer->carriers[number];
  tarn__synced_core *core = transfer->core;
  if (!carrier->used) return TARN_OK;
  tarn__core_enter(core);
  tarn_status status =
      tarn__work_point(core, carrier->stream, &carrier->position);
  tarn__core_leave(core);
  carrier->failed = status != TARN_OK;
  bool follows =
      number >= TARN__FIRST_COPY_STREAM && carrier->position.timeline != NULL;
  return follows ? follow(transfer, carrier->position) : status;
}

// Also after a failure: queued copies are under way.
static tarn_status point_all(tarn__synced_transfer *transfer) {
  tarn_status first = TARN_OK;
  for (size_t i = TARN__BY_STREAM; i < transfer->carrier_count; i++)
    tarn__keep_first(&first, point(transfer, i));
  return first;
}

static void release_copy_streams(const tarn__synced_transfer *transfer) {
  for (size_t i = TARN__FIRST_COPY_STREAM; i < transfer->carrier_count; i++)
    tarn__copy_streams_release_copy_stream(transfer->carriers[i].stream);
}

// A copy stream is shared and may fail by a copy of another buffer. Before the
// first copy, a new stream is tried once.
static bool may_try_again(tarn__synced_transfer *transfer, tarn_status status) {
  bool shared = transfer->carrier_count > TARN__FIRST_COPY_STREAM;
  bool made = transfer->run_count > 0 && transfer->runs[0].made;
  bool may = status == TARN_E_DEVICE && shared && !made && !transfer->again;
  if (may) transfer->again = true;
  return may;
}

static tarn_status end_failed(tarn__synced_transfer *transfer,
                              tarn_status status) {
  tarn__failure failure = tarn__failure_of(status);
  (void)point_all(transfer);
  release_copy_streams(transfer);
  return tarn__failure_tell(&failure);
}

tarn_status tarn__transfer_carry(tarn__synced_transfer *transfer) {
  assert(transfer->marked);
  tarn_status status = wait_for_others(transfer);
  if (status == TARN_OK) status = make_all(transfer);
  if (may_try_again(transfer, status)) status = TARN_PENDING;
  if (status != TARN_OK) return end_failed(transfer, status);
  status = point_all(transfer);
  release_copy_streams(transfer);
  return status;
}
