// To be written.
#include "base/status.h"
#include "synced/core.h"

tarn_synced_state tarn_synced_head(tarn_synced *buffer) {
  (void)buffer;
  return TARN_UNINITIALIZED;
}

const char *tarn_synced_state_name(tarn_synced_state state) {
  (void)state;
  return NULL;
}

tarn_status tarn_synced_cpu_data(tarn_synced *buffer, const void **out_data) {
  (void)buffer;
  (void)out_data;
  return tarn__fail(TARN_E_UNSUPPORTED, "not written yet");
}

tarn_status tarn_synced_mutable_cpu_data(tarn_synced *buffer, void **out_data) {
  (void)buffer;
  (void)out_data;
  return tarn__fail(TARN_E_UNSUPPORTED, "not written yet");
}

tarn_status tarn_synced_gpu_data(tarn_synced *buffer, tarn_addr *out_data) {
  (void)buffer;
  (void)out_data;
  return tarn__fail(TARN_E_UNSUPPORTED, "not written yet");
}

tarn_status tarn_synced_mutable_gpu_data(tarn_synced *buffer,
                                         tarn_addr *out_data) {
  (void)buffer;
  (void)out_data;
  return tarn__fail(TARN_E_UNSUPPORTED, "not written yet");
}

tarn_status tarn_synced_set_cpu_data(tarn_synced *buffer, void *data) {
  (void)buffer;
  (void)data;
  return tarn__fail(TARN_E_UNSUPPORTED, "not written yet");
}

tarn_status tarn_synced_set_gpu_data(tarn_synced *buffer, tarn_addr data) {
  (void)buffer;
  (void)data;
  return tarn__fail(TARN_E_UNSUPPORTED, "not written yet");
}

tarn_status tarn_synced_async_gpu_push(tarn_synced *buffer,
                                       tarn_stream *stream) {
  (void)buffer;
  (void)stream;
  return tarn__fail(TARN_E_UNSUPPORTED, "not written yet");
}
