// Checks of the functions beyond the ABI, and the reasons of failures.
#include "extension.h"

#include "base/status.h"

tarn_status tarn__sim_answer(C_Status status) {
  switch (status) {
    case C_SUCCESS:
      return TARN_OK;
    case C_FAILED:
      return TARN_FULL;
    case C_ERROR:
      return TARN_E_INVALID;
    default:
      return TARN_E_DEVICE;
  }
}

tarn_status tarn__sim_admit(tarn__sim_call call, int id,
                            tarn__sim_device **out) {
  struct C_Device_st device = {id};
  return tarn__sim_answer(tarn__sim_enter(call, &device, out));
}

tarn_status tarn__sim_admit_stream(tarn__sim_call call,
                                   const tarn__sim_device *device, void *stream,
                                   C_Stream *out) {
  struct C_Device_st named = {device->home.id};
  *out = stream;
  if (stream == NULL || tarn__queue_is_stream(&named, *out)) return TARN_OK;
  return tarn__sim_answer(
      tarn__sim_misuse("sim:%d: %s: no stream of this device", device->home.id,
                       tarn__sim_call_name(call)));
}

tarn_status tarn__sim_full(const tarn__sim_device *device, size_t size,
                           const char *what) {
  return tarn__text_fail(TARN_FULL, "sim:%d: no %zu %s left", device->home.id,
                         size, what);
}

tarn_status tarn__sim_no_resources(const tarn__sim_device *device,
                                   const char *what) {
  return tarn__text_fail(TARN_E_NOMEM, "sim:%d: the system gives no %s",
                         device->home.id, what);
}

tarn_status tarn__sim_stream_capturing(int id, void *stream,
                                       bool *out_capturing) {
  tarn__sim_device *device = NULL;
  C_Stream named = NULL;
  *out_capturing = false;
  TARN__TRY(tarn__sim_admit(TARN__SIM_stream_capturing, id, &device));
  TARN__TRY(tarn__sim_admit_stream(TARN__SIM_stream_capturing, device, stream,
                                   &named));
  *out_capturing = tarn__sim_captures(named);
  return TARN_OK;
}

// Created at the first call; it lives until the device ends.
tarn_status tarn__sim_default_stream(int id, void **out_stream) {
  tarn__sim_device *device = NULL;
  *out_stream = NULL;
  TARN__TRY(tarn__sim_admit(TARN__SIM_default_stream, id, &device));
  C_Status made = C_SUCCESS;
  pthread_mutex_lock(&device->lock);
  if (device->default_stream == NULL) {
    made = tarn__queue_create_stream(&device->home, &device->default_stream);
  }
  *out_stream = device->default_stream;
  pthread_mutex_unlock(&device->lock);
  return made == C_SUCCESS ? TARN_OK : tarn__sim_no_resources(device, "stream");
}
