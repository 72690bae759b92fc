// The tables of the cpu plug-in, its one device, and the device's sizes.
#include "common/plugin.h"
#include "cpu.h"

#ifndef TARN_CPU_TYPE
#define TARN_CPU_TYPE "cpu"
#endif

static const size_t MIN_CHUNK = 256;  // what memory.c aligns to, or a multiple
static const size_t POOL_GROWTH = (size_t)64 << 20;

static const tarn__common_queue_home home = {.id = 0};

// --- the device ------------------------------------------------------------

static C_Status initialize(void) {
  return C_SUCCESS;
}

// Frees everything that the host has not; streams finish their work first.
static C_Status finalize(void) {
  tarn__queue_destroy_all(&home);
  tarn__cpu_range_forget();
  tarn__cpu_pointer_forget();
  return C_SUCCESS;
}

static C_Status check_device(const C_Device device) {
  return tarn__cpu_is_device(device) ? C_SUCCESS : tarn__wordless(C_ERROR);
}

static C_Status get_device(const C_Device device) {
  if (device == NULL) return tarn__wordless(C_ERROR);
  device->id = 0;
  return C_SUCCESS;
}

static C_Status deinit_device(const C_Device device) {
  return tarn__cpu_is_device(device) ? finalize() : tarn__wordless(C_ERROR);
}

static C_Status get_device_count(size_t *count) {
  if (count == NULL) return tarn__wordless(C_ERROR);
  *count = 1;
  return C_SUCCESS;
}

static C_Status get_device_list(size_t *ids) {
  if (ids == NULL) return tarn__wordless(C_ERROR);
  ids[0] = 0;
  return C_SUCCESS;
}

static const tarn__common_queue_home *home_of(
    const struct C_Device_st *device) {
  return tarn__cpu_is_device(device) ? &home : NULL;
}

static C_Status create_stream(const C_Device device, C_Stream *stream) {
  return tarn__queue_create_stream(home_of(device), stream);
}

static C_Status create_event(const C_Device device, C_Event *event) {
  return tarn__queue_create_event(home_of(device), event);
}

static C_Status synchronize_device(const C_Device device) {
  return tarn__queue_synchronize_device(home_of(device));
}

// --- its sizes -------------------------------------------------------------

static C_Status memory_stats(const C_Device device, size_t *total,
                             size_t *free) {
  if (total == NULL || free == NULL) return tarn__wordless(C_ERROR);
  *total = *free = 0;
  if (!tarn__cpu_is_device(device)) return tarn__wordless(C_ERROR);
  tarn__os_memory(total, free);
  return *total != 0 ? C_SUCCESS : tarn__wordless(C_FAILED);
}

static C_Status answer(const C_Device device, size_t value, size_t *size) {
  if (size == NULL) return tarn__wordless(C_ERROR);
  *size = 0;
  if (!tarn__cpu_is_device(device)) return tarn__wordless(C_ERROR);
  *size = value;
  return C_SUCCESS;
}

static C_Status min_chunk_size(const C_Device device, size_t *size) {
  return answer(device, MIN_CHUNK, size);
}

// max_chunk and max_alloc: all there is.
static C_Status total_memory(const C_Device device, size_t *size) {
  size_t available = 0;
  return memory_stats(device, size, &available);
}

static C_Status no_padding(const C_Device device, size_t *size) {
  return answer(device, 0, size);
}

static C_Status pool_growth(const C_Device device, size_t *size) {
  return answer(device, POOL_GROWTH, size);
}

// --- the table -------------------------------------------------------------

static const C_DeviceInterface table = {
    .initialize = initialize,
    .finalize = finalize,
    .init_device = check_device,
    .set_device = check_device,
    .get_device = get_device,
    .deinit_device = deinit_device,
    .create_stream = create_stream,
    .destroy_stream = tarn__queue_destroy_stream,
    .query_stream = tarn__queue_query_stream,
    .stream_add_callback = tarn__queue_stream_add_callback,
    .create_event = create_event,
    .record_event = tarn__queue_record_event,
    .destroy_event = tarn__queue_destroy_event,
    .query_event = tarn__queue_query_event,
    .synchronize_device = synchronize_device,
    .synchronize_stream = tarn__queue_synchronize_stream,
    .synchronize_event = tarn__queue_synchronize_event,
    .stream_wait_event = tarn__queue_stream_wait_event,
    .device_memory_allocate = tarn__cpu_allocate,
    .device_memory_deallocate = tarn__cpu_deallocate,
    .device_memory_set = tarn__cpu_memory_set,
    .host_memory_allocate = tarn__cpu_allocate,
    .host_memory_deallocate = tarn__cpu_deallocate,
    .unified_memory_allocate = tarn__cpu_allocate,
    .unified_memory_deallocate = tarn__cpu_deallocate,
    .memory_copy_h2d = tarn__cpu_copy,
    .memory_copy_d2h = tarn__cpu_copy,
    .memory_copy_d2d = tarn__cpu_copy,
    .memory_copy_p2p = tarn__cpu_copy_p2p,
    .async_memory_copy_h2d = tarn__cpu_async_copy,
    .async_memory_copy_d2h = tarn__cpu_async_copy,
    .async_memory_copy_d2d = tarn__cpu_async_copy,
    .async_memory_copy_p2p = tarn__cpu_async_copy_p2p,
    .get_device_count = get_device_count,
    .get_device_list = get_device_list,
    .device_memory_stats = memory_stats,
    .device_min_chunk_size = min_chunk_size,
    .device_max_chunk_size = total_memory,
    .device_max_alloc_size = total_memory,
    .device_extra_padding_size = no_padding,
    .device_init_alloc_size = pool_growth,
    .device_realloc_size = pool_growth,
};

void InitPlugin(CustomRuntimeParams *params) {
  tarn__common_offer(params, &table, TARN_CPU_TYPE, "host");
}

#define ENTRY(name) .name = tarn__cpu_##name,

// No TARN_EXT_RETAINS: memory that is given back goes back to the system.
static const tarn_device_ext ext = {.struct_size = sizeof ext,
                                    .version = TARN_DEVICE_EXT_VERSION,
                                    .error_text = tarn__queue_error_text,
                                    TARN__COMMON_EXT_SLOTS(ENTRY)
                                        TARN__COMMON_MOVE_SLOT(ENTRY)};

const tarn_device_ext *TarnDeviceExt(void) {
  return &ext;
}
