// To be written.
#include "base/status.h"
#include "synced/core.h"

tarn_status tarn_synced_begin(tarn_synced *buffer, size_t offset, size_t size,
                              tarn_place place, uint32_t mode,
                              tarn_stream *stream, tarn_access *out_access) {
  (void)buffer;
  (void)offset;
  (void)size;
  (void)place;
  (void)mode;
  (void)stream;
  (void)out_access;
  return tarn__fail(TARN_E_UNSUPPORTED, "not written yet");
}

tarn_status tarn_synced_end(tarn_access *access) {
  (void)access;
  return tarn__fail(TARN_E_UNSUPPORTED, "not written yet");
}

tarn_status tarn_synced_cancel(tarn_access *access, size_t *out_lost) {
  (void)access;
  (void)out_lost;
  return tarn__fail(TARN_E_UNSUPPORTED, "not written yet");
}
