// Callbacks of streams, as all rooms that may be called from them see them.
#include "base/callbacks.h"

#include "base/status.h"

_Thread_local int tarn__callbacks_running
    __attribute__((tls_model("initial-exec")));

tarn_status tarn__refuse_in_callback(void) {
  return tarn__fail(TARN_E_STATE,
                    "called from a stream's callback, which must not wait");
}
