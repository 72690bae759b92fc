// Stub.
#include "base/status.h"
#include "trace/write.h"

tarn_status tarn__perfetto_write(const tarn_trace *trace, tarn__sink *sink) {
  (void)trace;
  (void)sink;
  return tarn__fail(TARN_E_UNSUPPORTED, "perfetto: not written yet");
}
