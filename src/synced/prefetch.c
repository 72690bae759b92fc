// To be written.
#include "base/status.h"
#include "synced/core.h"

tarn_status tarn_synced_prefetch(tarn_synced *buffer, size_t offset,
                                 size_t size, tarn_place place,
                                 tarn_stream *stream, tarn_event *event) {
  (void)buffer;
  (void)offset;
  (void)size;
  (void)place;
  (void)stream;
  (void)event;
  return tarn__fail(TARN_E_UNSUPPORTED, "not written yet");
}

tarn_status tarn_synced_push(tarn_synced *buffer, size_t offset, size_t size,
                             tarn_stream *stream, tarn_event *event) {
  (void)buffer;
  (void)offset;
  (void)size;
  (void)stream;
  (void)event;
  return tarn__fail(TARN_E_UNSUPPORTED, "not written yet");
}

tarn_status tarn_synced_pull(tarn_synced *buffer, size_t offset, size_t size,
                             tarn_stream *stream, tarn_event *event) {
  (void)buffer;
  (void)offset;
  (void)size;
  (void)stream;
  (void)event;
  return tarn__fail(TARN_E_UNSUPPORTED, "not written yet");
}
