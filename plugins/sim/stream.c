// Streams and events: those of plugins/common, with the device and the plan of
// faults looked at first. The host's own check of its arguments is theirs.
#include "extension.h"

C_Status tarn__sim_create_stream(const C_Device device, C_Stream *stream) {
  tarn__sim_device *sim = NULL;
  if (stream != NULL) *stream = NULL;
  C_Status status = tarn__sim_enter(TARN__SIM_create_stream, device, &sim);
  if (status != C_SUCCESS) return status;
  return tarn__queue_create_stream(&sim->home, stream);
}

C_Status tarn__sim_create_event(const C_Device device, C_Event *event) {
  tarn__sim_device *sim = NULL;
  if (event != NULL) *event = NULL;
  C_Status status = tarn__sim_enter(TARN__SIM_create_event, device, &sim);
  if (status != C_SUCCESS) return status;
  return tarn__queue_create_event(&sim->home, event);
}

C_Status tarn__sim_synchronize_device(const C_Device device) {
  tarn__sim_device *sim = NULL;
  C_Status status = tarn__sim_enter(TARN__SIM_synchronize_device, device, &sim);
  if (status != C_SUCCESS) return status;
  return tarn__queue_synchronize_device(&sim->home, &tarn__sim_text);
}

// For those that need the device only to be there.
static C_Status pass(tarn__sim_call call, const struct C_Device_st *device) {
  tarn__sim_device *sim = NULL;
  return tarn__sim_enter(call, device, &sim);
}

C_Status tarn__sim_destroy_stream(const C_Device device, C_Stream stream) {
  C_Status status = pass(TARN__SIM_destroy_stream, device);
  if (status != C_SUCCESS) return status;
  return tarn__queue_destroy_stream(device, stream);
}

C_Status tarn__sim_query_stream(const C_Device device, C_Stream stream) {
  C_Status status = pass(TARN__SIM_query_stream, device);
  if (status != C_SUCCESS) return status;
  return tarn__queue_query_stream(device, stream);
}

C_Status tarn__sim_add_callback(const C_Device device, C_Stream stream,
                                C_Callback callback, void *user_data) {
  C_Status status = pass(TARN__SIM_stream_add_callback, device);
  if (status != C_SUCCESS) return status;
  return tarn__queue_add_callback(device, stream, callback, user_data);
}

C_Status tarn__sim_synchronize_stream(const C_Device device, C_Stream stream) {
  C_Status status = pass(TARN__SIM_synchronize_stream, device);
  if (status != C_SUCCESS) return status;
  return tarn__queue_synchronize_stream(device, stream);
}

C_Status tarn__sim_stream_wait_event(const C_Device device, C_Stream stream,
                                     C_Event event) {
  C_Status status = pass(TARN__SIM_stream_wait_event, device);
  if (status != C_SUCCESS) return status;
  return tarn__queue_stream_wait_event(device, stream, event);
}

C_Status tarn__sim_record_event(const C_Device device, C_Stream stream,
                                C_Event event) {
  C_Status status = pass(TARN__SIM_record_event, device);
  if (status != C_SUCCESS) return status;
  return tarn__queue_record_event(device, stream, event);
}

C_Status tarn__sim_destroy_event(const C_Device device, C_Event event) {
  C_Status status = pass(TARN__SIM_destroy_event, device);
  if (status != C_SUCCESS) return status;
  return tarn__queue_destroy_event(device, event);
}

C_Status tarn__sim_query_event(const C_Device device, C_Event event) {
  C_Status status = pass(TARN__SIM_query_event, device);
  if (status != C_SUCCESS) return status;
  return tarn__queue_query_event(device, event);
}

C_Status tarn__sim_synchronize_event(const C_Device device, C_Event event) {
  C_Status status = pass(TARN__SIM_synchronize_event, device);
  if (status != C_SUCCESS) return status;
  return tarn__queue_synchronize_event(device, event);
}

// Made by the first who asks, and the device's until it ends.
tarn_status tarn__sim_default_stream(int id, void **out_stream) {
  tarn__sim_device *device = NULL;
  *out_stream = NULL;
  tarn_status status = tarn__sim_admit(TARN__SIM_default_stream, id, &device);
  if (status != TARN_OK) return status;
  C_Status made = C_SUCCESS;
  pthread_mutex_lock(&device->lock);
  if (device->default_stream == NULL) {
    made = tarn__queue_create_stream(&device->home, &device->default_stream);
  }
  *out_stream = device->default_stream;
  pthread_mutex_unlock(&device->lock);
  return made == C_SUCCESS ? TARN_OK : tarn__sim_no_resources(device, "stream");
}
