// Stub.
#include "base/status.h"
#include "trace/write.h"

tarn_status tarn__snapshot_write(const tarn_trace *trace, tarn__sink *sink) {
  (void)trace;
  (void)sink;
  return tarn__fail(TARN_E_UNSUPPORTED, "snapshot: not written yet");
}
