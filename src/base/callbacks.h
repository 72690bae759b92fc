// callbacks.h - whether a thread is in a stream's callback, where nothing may
// wait.
#ifndef TARN_BASE_CALLBACKS_H_
#define TARN_BASE_CALLBACKS_H_

#include "tarn/base.h"

// How deep the thread is in callbacks; read through tarn__not_in_callback.
// Read on every call, hence the model.
extern _Thread_local int tarn__callbacks_running
    __attribute__((tls_model("initial-exec")));

// Says that a callback must not wait. TARN_E_STATE.
__attribute__((cold)) tarn_status tarn__refuse_in_callback(void);

// TARN_E_STATE on a thread that is in a stream's callback: what is called there
// must not wait, or the stream would wait for itself.
TARN_MUST_CHECK static inline tarn_status tarn__not_in_callback(void) {
  return tarn__callbacks_running == 0 ? TARN_OK : tarn__refuse_in_callback();
}

#endif  // TARN_BASE_CALLBACKS_H_
