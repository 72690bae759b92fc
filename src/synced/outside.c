// To be written.
#include "base/status.h"
#include "synced/outside.h"

tarn_status tarn_synced_wrap(tarn_synced *buffer, tarn_place place,
                             tarn_addr address,
                             const tarn_wrap_options *options) {
  (void)buffer;
  (void)place;
  (void)address;
  (void)options;
  return tarn__fail(TARN_E_UNSUPPORTED, "not written yet");
}

tarn_status tarn__side_move_to_own(tarn__core *core, uint32_t side) {
  (void)core;
  (void)side;
  return tarn__fail(TARN_E_UNSUPPORTED, "not written yet");
}

tarn_status tarn__outside_sync_back(tarn__core *core) {
  (void)core;
  return TARN_OK;
}
