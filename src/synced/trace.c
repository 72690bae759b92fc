// To be written.
#include "base/status.h"
#include "synced/core.h"

tarn_status tarn_synced_trace(tarn_synced_trace_fn *function, void *context) {
  (void)function;
  (void)context;
  return tarn__fail(TARN_E_UNSUPPORTED, "not written yet");
}

const char *tarn_synced_happening_name(tarn_synced_happening what) {
  (void)what;
  return NULL;
}
