// The table of the sim plug-in, its streams and events, and its devices' sizes.
#include "common/plugin.h"
#include "sim.h"

#ifndef TARN_SIM_TYPE
#define TARN_SIM_TYPE "sim"
#endif

static const size_t MIN_CHUNK = 256;  // what memory.c aligns to
static const size_t POOL_GROWTH = (size_t)64 << 20;

// --- streams and events ----------------------------------------------------
// Those of plugins/common, after the checks of the device and the planned
// faults.

static C_Status create_stream(const C_Device device, C_Stream *stream) {
  tarn__sim_device *sim = NULL;
  if (stream != NULL) *stream = NULL;
  C_Status status = tarn__sim_enter(TARN__SIM_create_stream, device, &sim);
  if (status != C_SUCCESS) return status;
  return tarn__queue_create_stream(&sim->home, stream);
}

static C_Status create_event(const C_Device device, C_Event *event) {
  tarn__sim_device *sim = NULL;
  if (event != NULL) *event = NULL;
  C_Status status = tarn__sim_enter(TARN__SIM_create_event, device, &sim);
  if (status != C_SUCCESS) return status;
  return tarn__queue_create_event(&sim->home, event);
}

static C_Status synchronize_device(const C_Device device) {
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

static C_Status destroy_stream(const C_Device device, C_Stream stream) {
  C_Status status = pass(TARN__SIM_destroy_stream, device);
  return status != C_SUCCESS ? status
                             : tarn__queue_destroy_stream(device, stream);
}

static C_Status query_stream(const C_Device device, C_Stream stream) {
  C_Status status = pass(TARN__SIM_query_stream, device);
  return status != C_SUCCESS ? status
                             : tarn__queue_query_stream(device, stream);
}

static C_Status add_callback(const C_Device device, C_Stream stream,
                             C_Callback callback, void *user_data) {
  C_Status status = pass(TARN__SIM_stream_add_callback, device);
  return status != C_SUCCESS
             ? status
             : tarn__queue_add_callback(device, stream, callback, user_data);
}

static C_Status synchronize_stream(const C_Device device, C_Stream stream) {
  C_Status status = pass(TARN__SIM_synchronize_stream, device);
  return status != C_SUCCESS ? status
                             : tarn__queue_synchronize_stream(device, stream);
}

static C_Status stream_wait_event(const C_Device device, C_Stream stream,
                                  C_Event event) {
  C_Status status = pass(TARN__SIM_stream_wait_event, device);
  return status != C_SUCCESS
             ? status
             : tarn__queue_stream_wait_event(device, stream, event);
}

static C_Status record_event(const C_Device device, C_Stream stream,
                             C_Event event) {
  C_Status status = pass(TARN__SIM_record_event, device);
  return status != C_SUCCESS ? status
                             : tarn__queue_record_event(device, stream, event);
}

static C_Status destroy_event(const C_Device device, C_Event event) {
  C_Status status = pass(TARN__SIM_destroy_event, device);
  return status != C_SUCCESS ? status
                             : tarn__queue_destroy_event(device, event);
}

static C_Status query_event(const C_Device device, C_Event event) {
  C_Status status = pass(TARN__SIM_query_event, device);
  return status != C_SUCCESS ? status : tarn__queue_query_event(device, event);
}

static C_Status synchronize_event(const C_Device device, C_Event event) {
  C_Status status = pass(TARN__SIM_synchronize_event, device);
  return status != C_SUCCESS ? status
                             : tarn__queue_synchronize_event(device, event);
}

// --- sizes -----------------------------------------------------------------

// Enters and hands out the device's capacity; 0 where that fails.
static C_Status ask(tarn__sim_call call, const C_Device device, size_t *size) {
  tarn__sim_device *sim = NULL;
  if (size == NULL) return tarn__wordless(C_ERROR);
  *size = 0;
  C_Status status = tarn__sim_enter(call, device, &sim);
  if (status == C_SUCCESS) *size = sim->capacity;
  return status;
}

// The same, but no more than |most|.
static C_Status ask_capped(tarn__sim_call call, const C_Device device,
                           size_t most, size_t *size) {
  C_Status status = ask(call, device, size);
  if (status == C_SUCCESS && *size > most) *size = most;
  return status;
}

static C_Status min_chunk_size(const C_Device device, size_t *size) {
  return ask_capped(TARN__SIM_device_min_chunk_size, device, MIN_CHUNK, size);
}

static C_Status max_chunk_size(const C_Device device, size_t *size) {
  return ask(TARN__SIM_device_max_chunk_size, device, size);
}

static C_Status max_alloc_size(const C_Device device, size_t *size) {
  return ask(TARN__SIM_device_max_alloc_size, device, size);
}

static C_Status padding_size(const C_Device device, size_t *size) {
  return ask_capped(TARN__SIM_device_extra_padding_size, device, 0, size);
}

// Of a small device a part: a pool that takes what is named here should not
// have taken all of it.
static C_Status ask_growth(tarn__sim_call call, const C_Device device,
                           size_t *size) {
  C_Status status = ask(call, device, size);
  if (status != C_SUCCESS) return status;
  *size /= 8;
  if (*size > POOL_GROWTH) *size = POOL_GROWTH;
  return C_SUCCESS;
}

static C_Status init_size(const C_Device device, size_t *size) {
  return ask_growth(TARN__SIM_device_init_alloc_size, device, size);
}

static C_Status realloc_size(const C_Device device, size_t *size) {
  return ask_growth(TARN__SIM_device_realloc_size, device, size);
}

// --- the table -------------------------------------------------------------

static const C_DeviceInterface table = {
    .initialize = tarn__sim_initialize,
    .finalize = tarn__sim_finalize,
    .init_device = tarn__sim_init_device,
    .set_device = tarn__sim_set_device,
    .get_device = tarn__sim_get_device,
    .deinit_device = tarn__sim_deinit_device,
    .create_stream = create_stream,
    .destroy_stream = destroy_stream,
    .query_stream = query_stream,
    .stream_add_callback = add_callback,
    .create_event = create_event,
    .record_event = record_event,
    .destroy_event = destroy_event,
    .query_event = query_event,
    .synchronize_device = synchronize_device,
    .synchronize_stream = synchronize_stream,
    .synchronize_event = synchronize_event,
    .stream_wait_event = stream_wait_event,
    .device_memory_allocate = tarn__sim_allocate,
    .device_memory_deallocate = tarn__sim_deallocate,
    .device_memory_set = tarn__sim_memory_set,
    .host_memory_allocate = tarn__sim_host_allocate,
    .host_memory_deallocate = tarn__sim_host_deallocate,
    .unified_memory_allocate = tarn__sim_unified_allocate,
    .unified_memory_deallocate = tarn__sim_unified_deallocate,
    .memory_copy_h2d = tarn__sim_copy_h2d,
    .memory_copy_d2h = tarn__sim_copy_d2h,
    .memory_copy_d2d = tarn__sim_copy_d2d,
    .memory_copy_p2p = tarn__sim_copy_p2p,
    .async_memory_copy_h2d = tarn__sim_async_h2d,
    .async_memory_copy_d2h = tarn__sim_async_d2h,
    .async_memory_copy_d2d = tarn__sim_async_d2d,
    .async_memory_copy_p2p = tarn__sim_async_p2p,
    .get_device_count = tarn__sim_device_count,
    .get_device_list = tarn__sim_device_list,
    .device_memory_stats = tarn__sim_memory_stats,
    .device_min_chunk_size = min_chunk_size,
    .device_max_chunk_size = max_chunk_size,
    .device_max_alloc_size = max_alloc_size,
    .device_extra_padding_size = padding_size,
    .device_init_alloc_size = init_size,
    .device_realloc_size = realloc_size,
};

void InitPlugin(CustomRuntimeParams *params) {
  tarn__common_offer(params, &table, TARN_SIM_TYPE, "simulated");
}
