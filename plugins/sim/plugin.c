// The tables of the sim plug-in, its streams and events, and its devices'
// sizes.
#include "common/plugin.h"
#include "base/status.h"
#include "extension.h"

#ifndef TARN_SIM_TYPE
#define TARN_SIM_TYPE "sim"
#endif

static const size_t MIN_CHUNK = 256;  // what memory.c aligns to
static const size_t POOL_GROWTH = (size_t)64 << 20;

// --- streams and events ----------------------------------------------------
// Those of plugins/common, after the checks of the device and the planned
// faults.

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
  return tarn__queue_synchronize_device(&sim->home);
}

// Defines a function that checks the device, then calls that of plugins/common.
#define DEFINE_CHECKED(name, parameters, arguments)                     \
  C_Status tarn__sim_##name parameters {                                \
    tarn__sim_device *sim = NULL;                                       \
    C_Status status = tarn__sim_enter(TARN__SIM_##name, device, &sim);  \
    return status == C_SUCCESS ? tarn__queue_##name arguments : status; \
  }

DEFINE_CHECKED(destroy_stream, (const C_Device device, C_Stream stream),
               (device, stream))
DEFINE_CHECKED(query_stream, (const C_Device device, C_Stream stream),
               (device, stream))
DEFINE_CHECKED(synchronize_stream, (const C_Device device, C_Stream stream),
               (device, stream))
DEFINE_CHECKED(stream_add_callback,
               (const C_Device device, C_Stream stream, C_Callback callback,
                void *user_data),
               (device, stream, callback, user_data))
DEFINE_CHECKED(stream_wait_event,
               (const C_Device device, C_Stream stream, C_Event event),
               (device, stream, event))
DEFINE_CHECKED(record_event,
               (const C_Device device, C_Stream stream, C_Event event),
               (device, stream, event))
DEFINE_CHECKED(destroy_event, (const C_Device device, C_Event event),
               (device, event))
DEFINE_CHECKED(query_event, (const C_Device device, C_Event event),
               (device, event))
DEFINE_CHECKED(synchronize_event, (const C_Device device, C_Event event),
               (device, event))

// --- sizes -----------------------------------------------------------------

// The capacity divided by |parts|, but no more than |most|; 0 after a failure.
static C_Status ask(tarn__sim_call call, const C_Device device, size_t parts,
                    size_t most, size_t *size) {
  tarn__sim_device *sim = NULL;
  if (size == NULL) return tarn__wordless(C_ERROR);
  *size = 0;
  C_Status status = tarn__sim_enter(call, device, &sim);
  if (status == C_SUCCESS) *size = tarn__lesser(sim->capacity / parts, most);
  return status;
}

#define DEFINE_SIZE(name, parts, most)                             \
  C_Status tarn__sim_##name(const C_Device device, size_t *size) { \
    return ask(TARN__SIM_##name, device, parts, most, size);       \
  }

DEFINE_SIZE(device_min_chunk_size, 1, MIN_CHUNK)
DEFINE_SIZE(device_max_chunk_size, 1, SIZE_MAX)
DEFINE_SIZE(device_max_alloc_size, 1, SIZE_MAX)
DEFINE_SIZE(device_extra_padding_size, 1, 0)

// Of a small device a part: a pool that takes what is named here should not
// have taken all of it.
DEFINE_SIZE(device_init_alloc_size, 8, POOL_GROWTH)
DEFINE_SIZE(device_realloc_size, 8, POOL_GROWTH)

// --- the table -------------------------------------------------------------

#define ENTRY(name) .name = tarn__sim_##name,

static const C_DeviceInterface table = {
    .initialize = tarn__sim_initialize,
    .finalize = tarn__sim_finalize,
    .get_device_count = tarn__sim_device_count,
    .get_device_list = tarn__sim_device_list,
    TARN__COMMON_ABI_SLOTS(ENTRY)};

void InitPlugin(CustomRuntimeParams *params) {
  tarn__common_offer(params, &table, TARN_SIM_TYPE, "simulated");
}

static const tarn_device_ext ext = {.struct_size = sizeof ext,
                                    .version = TARN_DEVICE_EXT_VERSION,
                                    .error_text = tarn__queue_error_text,
                                    TARN__COMMON_EXT_SLOTS(ENTRY)
                                        TARN__COMMON_EXT_MORE_SLOTS(ENTRY)};

const tarn_device_ext *TarnDeviceExt(void) {
  return &ext;
}
