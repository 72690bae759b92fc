// Bytes brought to a place ahead of the access that wants them.
#include "base/status.h"
#include "synced/access.h"
#include "synced/errand.h"
#include "synced/settle.h"

static tarn_status fetch_some(tarn__synced_core *core,
                              const tarn__synced_request *wish,
                              tarn__synced_end *out_end) {
  tarn__synced_transfer errand;
  tarn__core_enter(core);
  tarn__errand_init(&errand, core, wish, NULL);
  tarn_status status = tarn__errand_run(&errand);
  if (status == TARN_OK) *out_end = core->sides[errand.side].end;
  tarn__core_leave(core);
  tarn__errand_deinit(&errand);
  return status;
}

// Of no bytes: as much of the checks as needs no memory.
static tarn_status fetch_none(tarn__synced_core *core,
                              const tarn__synced_request *wish) {
  tarn__core_enter(core);
  tarn_status status = tarn__core_admit(core);
  tarn__core_leave(core);
  return status == TARN_OK ? tarn__place_check(wish->place) : status;
}

tarn_status tarn__fetch(tarn__synced_core *core,
                        const tarn__synced_request *wish, tarn_event *event,
                        tarn__synced_end *out_end) {
  tarn__synced_end end = {.address = 0};
  tarn_status status = wish->start < wish->end ? fetch_some(core, wish, &end)
                                               : fetch_none(core, wish);
  if (status == TARN_OK && event != NULL) {
    status = tarn_event_record(event, wish->stream);
  }
  if (status == TARN_OK && out_end != NULL) *out_end = end;
  return status;
}

static tarn_status check_event(const tarn_stream *stream,
                               const tarn_event *event) {
  if (event == NULL || stream != NULL) return TARN_OK;
  return tarn__fail(TARN_E_INVALID,
                    "synced: an event is recorded on a stream, which is NULL");
}

tarn_status tarn_synced_prefetch(tarn_synced *buffer, size_t offset,
                                 size_t size, tarn_place place,
                                 tarn_stream *stream, tarn_event *event) {
  tarn__synced_request wish = {
      .place = place, .mode = TARN_READ, .stream = stream};
  tarn_status status =
      tarn__synced_range(buffer, offset, size, &wish.start, &wish.end);
  if (status == TARN_OK) status = check_event(stream, event);
  return status == TARN_OK ? tarn__fetch(buffer->core, &wish, event, NULL)
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
