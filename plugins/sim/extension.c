// The table of what the sim plug-in has beyond the ABI, who may call it, and
// why a call failed.
#include "extension.h"

// --- for all of them -------------------------------------------------------

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
  return tarn__text_fail(&tarn__sim_text, TARN_FULL, "sim:%d: no %zu %s left",
                         device->home.id, size, what);
}

tarn_status tarn__sim_no_resources(const tarn__sim_device *device,
                                   const char *what) {
  return tarn__text_fail(&tarn__sim_text, TARN_E_NOMEM,
                         "sim:%d: the system gives no %s", device->home.id,
                         what);
}

static void error_text(int id, void *stream, char *out, size_t out_size) {
  tarn__queue_error_text(&tarn__sim_text, id, stream, out, out_size);
}

// Created at the first call; it lives until the device ends.
static tarn_status default_stream(int id, void **out_stream) {
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

// --- the table -------------------------------------------------------------

static const tarn_device_ext ext = {
    .struct_size = sizeof ext,
    .version = TARN_DEVICE_EXT_VERSION,
    .alignment = tarn__sim_alignment,
    .allocate_aligned = tarn__sim_allocate_aligned,
    .range_granularity = tarn__sim_range_granularity,
    .range_reserve = tarn__sim_range_reserve,
    .range_release = tarn__sim_range_release,
    .memory_create = tarn__sim_memory_create,
    .memory_destroy = tarn__sim_memory_destroy,
    .range_map = tarn__sim_range_map,
    .range_unmap = tarn__sim_range_unmap,
    .range_set_access = tarn__sim_range_set_access,
    .memory_export = tarn__sim_memory_export,
    .memory_import = tarn__sim_memory_import,
    .allocate_async = tarn__sim_allocate_async,
    .deallocate_async = tarn__sim_deallocate_async,
    .host_register = tarn__sim_host_register,
    .host_unregister = tarn__sim_host_unregister,
    .pointer_query = tarn__sim_pointer_query,
    .error_text = error_text,
    .gather = tarn__sim_gather,
    .scatter = tarn__sim_scatter,
    .scatter_add = tarn__sim_scatter_add,
    .allocation_export = tarn__sim_allocation_export,
    .allocation_import = tarn__sim_allocation_import,
    .allocation_close = tarn__sim_allocation_close,
    .default_stream = default_stream,
};

const tarn_device_ext *TarnDeviceExt(void) {
  return &ext;
}
