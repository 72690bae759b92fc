// To be written.
#include "base/status.h"
#include "synced/core.h"

tarn_status tarn_synced_evict(tarn_synced *buffer, tarn_place place) {
  (void)buffer;
  (void)place;
  return tarn__fail(TARN_E_UNSUPPORTED, "not written yet");
}

tarn_status tarn_synced_invalidate(tarn_synced *buffer, size_t offset,
                                   size_t size) {
  (void)buffer;
  (void)offset;
  (void)size;
  return tarn__fail(TARN_E_UNSUPPORTED, "not written yet");
}
