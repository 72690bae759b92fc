// To be written.
#include "base/status.h"
#include "synced/core.h"

tarn_status tarn_synced_wrap(tarn_synced *buffer, tarn_place place,
                             tarn_addr address,
                             const tarn_wrap_options *options) {
  (void)buffer;
  (void)place;
  (void)address;
  (void)options;
  return tarn__fail(TARN_E_UNSUPPORTED, "not written yet");
}
