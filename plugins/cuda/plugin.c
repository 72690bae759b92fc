// The tables of the plug-in, and its devices' sizes.
#include "common/plugin.h"

#include "devices.h"

typedef tarn__cuda_device cuda;

static const size_t POOL_GROWTH = (size_t)64 << 20;

// --- devices ---------------------------------------------------------------

// The library is only loaded: a process may fork behind this.
static C_Status initialize(void) {
  return tarn__cuda_find_driver();
}

static C_Status get_device_count(size_t *count) {
  if (count == NULL) return tarn__wordless(C_ERROR);
  *count = 0;
  C_Status status = tarn__cuda_find_devices();
  if (status == C_SUCCESS) *count = tarn__cuda_devices.count;
  return status;
}

static C_Status get_device_list(size_t *ids) {
  if (ids == NULL) return tarn__wordless(C_ERROR);
  C_Status status = tarn__cuda_find_devices();
  if (status != C_SUCCESS) return status;
  for (size_t i = 0; i < tarn__cuda_devices.count; i++)
    ids[i] = i;
  return C_SUCCESS;
}

// A thread's current device, which no call depends on: each names its own, and
// makes the context of it current for the time of the call.
static _Thread_local int current;

C_Status tarn__cuda_set_device(const C_Device device) {
  if (tarn__cuda_listed(device) == NULL) return C_ERROR;
  current = device->id;
  return C_SUCCESS;
}

C_Status tarn__cuda_get_device(const C_Device device) {
  if (device == NULL) return tarn__wordless(C_ERROR);
  device->id = current;
  return C_SUCCESS;
}

// --- sizes -----------------------------------------------------------------

// Drivers round to more, but align to no more by their documents.
static size_t min_chunk(const cuda *d) {
  (void)d;
  return TARN__CUDA_ALIGN;
}

static size_t max_alloc(const cuda *d) {
  return d->total;
}

static size_t no_padding(const cuda *d) {
  (void)d;
  return 0;
}

// Of a small device a part: a pool that takes what is named here should not
// have taken all of it.
static size_t growth(const cuda *d) {
  return tarn__lesser(d->total / 8, POOL_GROWTH);
}

#define DEFINE_SIZE(name, value)                                    \
  C_Status tarn__cuda_##name(const C_Device device, size_t *size) { \
    if (size == NULL) return tarn__wordless(C_ERROR);               \
    const cuda *d = tarn__cuda_listed(device);                      \
    *size = d != NULL ? value(d) : 0;                               \
    return d != NULL ? C_SUCCESS : C_ERROR;                         \
  }

DEFINE_SIZE(device_min_chunk_size, min_chunk)
DEFINE_SIZE(device_max_chunk_size, max_alloc)
DEFINE_SIZE(device_max_alloc_size, max_alloc)
DEFINE_SIZE(device_extra_padding_size, no_padding)
DEFINE_SIZE(device_init_alloc_size, growth)
DEFINE_SIZE(device_realloc_size, growth)

// --- the tables ------------------------------------------------------------

#define ENTRY(name) .name = tarn__cuda_##name,

static const C_DeviceInterface table = {.initialize = initialize,
                                        .finalize = tarn__cuda_finalize,
                                        .get_device_count = get_device_count,
                                        .get_device_list = get_device_list,
                                        TARN__COMMON_ABI_SLOTS(ENTRY)};

void InitPlugin(CustomRuntimeParams *params) {
  char *type = tarn__cuda_vendor_of.type;
  tarn__common_offer(params, &table, type, type);
}

// RETAINS, though the table is taken before the driver is loaded: the driver's
// pool keeps what is freed unless the program asks for a threshold, and on a
// driver without pools each call of the set says that it cannot, so that the
// flag changes nothing there.
static const tarn_device_ext ext = {.struct_size = sizeof ext,
                                    .version = TARN_DEVICE_EXT_VERSION,
                                    .flags = TARN_EXT_RETAINS,
                                    TARN__CUDA_EXT_SLOTS(ENTRY)};

const tarn_device_ext *TarnDeviceExt(void) {
  return &ext;
}
