// To be written.
#include "base/status.h"
#include "synced/core.h"

tarn_status tarn_synced_traffic(tarn_synced *buffer, tarn_traffic_visit *visit,
                                void *context) {
  (void)buffer;
  (void)visit;
  (void)context;
  return tarn__fail(TARN_E_UNSUPPORTED, "not written yet");
}

tarn_status tarn_synced_traffic_reset(tarn_synced *buffer) {
  (void)buffer;
  return tarn__fail(TARN_E_UNSUPPORTED, "not written yet");
}
