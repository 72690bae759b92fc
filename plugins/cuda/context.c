// The context of a device as the calling thread's current one, for the time of
// a call.
//
// A thread that has it already, as the threads of a framework have, keeps it:
// to push costs more than to look. What a driver refuses when things are put
// back cannot be undone, and is not told.
#include "gpu.h"

// Where the driver knows no modes, or refuses, the call is made as it is.
static void relax(tarn__cuda_scope *scope) {
  const tarn__cuda_driver *cu = tarn__cuda_driver_get();
  if (cu->ThreadExchangeStreamCaptureMode == NULL) return;
  scope->mode = TARN__CU_STREAM_CAPTURE_MODE_RELAXED;
  tarn__cuda_result error = cu->ThreadExchangeStreamCaptureMode(&scope->mode);
  scope->is_relaxed = error == TARN__CU_SUCCESS &&
                      scope->mode != TARN__CU_STREAM_CAPTURE_MODE_RELAXED;
}

static tarn__cuda_result push(const tarn__cuda_device *device,
                              tarn__cuda_scope *scope) {
  const tarn__cuda_driver *cu = tarn__cuda_driver_get();
  CUcontext current = NULL;
  tarn__cuda_result error = cu->CtxGetCurrent(&current);
  if (error != TARN__CU_SUCCESS || current == device->context) return error;
  error = cu->CtxPushCurrent(device->context);
  scope->is_pushed = error == TARN__CU_SUCCESS;
  return error;
}

// A driver that calls the context an invalid value means what else it calls it
// when that was destroyed.
static C_Status refuse(tarn__cuda_result error, const char *what) {
  (void)tarn__cuda_say(error, what);
  return C_INTERNAL_ERROR;
}

C_Status tarn__cuda_enter(const tarn__cuda_device *device, bool relaxed,
                          tarn__cuda_scope *out) {
  *out = (tarn__cuda_scope){.is_pushed = false};
  tarn__cuda_result error = push(device, out);
  if (error != TARN__CU_SUCCESS) return refuse(error, "cuCtxPushCurrent");
  if (relaxed) relax(out);
  return C_SUCCESS;
}

void tarn__cuda_leave(const tarn__cuda_scope *scope) {
  const tarn__cuda_driver *cu = tarn__cuda_driver_get();
  unsigned mode = scope->mode;
  CUcontext popped = NULL;
  if (scope->is_relaxed) (void)cu->ThreadExchangeStreamCaptureMode(&mode);
  if (scope->is_pushed) (void)cu->CtxPopCurrent(&popped);
}
