// To be written.
#include "base/status.h"
#include "synced/core.h"

tarn_status tarn_synced_suspend(tarn_synced *buffer, const char *why) {
  (void)buffer;
  (void)why;
  return tarn__fail(TARN_E_UNSUPPORTED, "not written yet");
}

tarn_status tarn_synced_resume(tarn_synced *buffer) {
  (void)buffer;
  return tarn__fail(TARN_E_UNSUPPORTED, "not written yet");
}

tarn_status tarn_synced_follow(tarn_synced *buffer, tarn_synced *former) {
  (void)buffer;
  (void)former;
  return tarn__fail(TARN_E_UNSUPPORTED, "not written yet");
}
