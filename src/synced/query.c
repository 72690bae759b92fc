// To be written.
#include "base/status.h"
#include "synced/core.h"

tarn_status tarn_synced_query(tarn_synced *buffer, size_t offset, size_t size,
                              tarn_place place, tarn_synced_info *out_info) {
  (void)buffer;
  (void)offset;
  (void)size;
  (void)place;
  (void)out_info;
  return tarn__fail(TARN_E_UNSUPPORTED, "not written yet");
}
