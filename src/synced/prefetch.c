// Copies ahead of an access.
#include "base/status.h"
#include "synced/access.h"
#include "synced/transfer.h"
#include "synced/work.h"

static tarn_status fetch_some(tarn__synced_core *core,
                              const tarn__synced_request *request,
                              tarn__synced_end *out_end) {
  tarn__synced_transfer transfer;
  tarn__core_enter(core);
  tarn__transfer_init(&transfer, core, request, NULL);
  tarn_status status = tarn__transfer_run(&transfer);
  if (status == TARN_OK) *out_end = core->sides[transfer.side].end;
  tarn__core_leave(core);
  tarn__transfer_deinit(&transfer);
  return status;
}

// For 0 bytes: the checks that need no memory.
static tarn_status fetch_none(tarn__synced_core *core,
                              const tarn__synced_request *request) {
  tarn__core_enter(core);
  tarn_status status = tarn__core_admit(core);
  tarn__core_leave(core);
  return status == TARN_OK ? tarn__place_check(request->place) : status;
}

tarn_status tarn__fetch(tarn__synced_core *core,
                        const tarn__synced_request *request, tarn_event *event,
                        tarn__synced_end *out_end) {
  tarn__synced_end end = {.address = 0};
  tarn_status status = request->start < request->end
                           ? fetch_some(core, request, &end)
                           : fetch_none(core, request);
  if (status == TARN_OK && event != NULL) {
    status = tarn_event_record(event, request->stream);
  }
  if (status == TARN_OK && out_end != NULL) *out_end = end;
  return status;
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
  tarn_status status =
      tarn__synced_range(buffer, offset, size, &request.start, &request.end);
  if (status == TARN_OK) status = check_event(stream, event);
  return status == TARN_OK ? tarn__fetch(buffer->core, &request, event, NULL)
                           : status;
}

tarn_status tarn_synced_push(tarn_synced *buffer, size_t offset, size_t size,
                             tarn_stream *stream, tarn_event *event) {
  tarn_status status = tarn__synced_check(buffer);
  if (status != TARN_OK) return status;
  tarn_device *device = buffer->core->device;
  if (device == NULL) return tarn__core_no_device(buffer->core);
  return tarn_synced_prefetch(buffer, offset, size, tarn_place_on(device),
                              stream, event);
}

tarn_status tarn_synced_pull(tarn_synced *buffer, size_t offset, size_t size,
                             tarn_stream *stream, tarn_event *event) {
  return tarn_synced_prefetch(buffer, offset, size, TARN_HOST, stream, event);
}
