// The tables of the opencl plug-in, and its devices' sizes.
#include "common/plugin.h"

#include "devices.h"

typedef tarn__opencl_device opencl;

static const size_t POOL_GROWTH = (size_t)64 << 20;

// --- devices ---------------------------------------------------------------

// Only the loader is asked: a process may fork behind this.
static C_Status initialize(void) {
  return tarn__opencl_find_platforms();
}

static C_Status get_device_count(size_t *count) {
  if (count == NULL) return tarn__wordless(C_ERROR);
  *count = 0;
  C_Status status = tarn__opencl_find_devices();
  if (status == C_SUCCESS) *count = tarn__opencl_devices.count;
  return status;
}

static C_Status get_device_list(size_t *ids) {
  if (ids == NULL) return tarn__wordless(C_ERROR);
  C_Status status = tarn__opencl_find_devices();
  if (status != C_SUCCESS) return status;
  for (size_t i = 0; i < tarn__opencl_devices.count; i++)
    ids[i] = i;
  return C_SUCCESS;
}

// A thread's current device, which no call depends on: each names its own.
static _Thread_local int current;

C_Status tarn__opencl_set_device(const C_Device device) {
  if (tarn__opencl_listed(device) == NULL) return C_ERROR;
  current = device->id;
  return C_SUCCESS;
}

C_Status tarn__opencl_get_device(const C_Device device) {
  if (device == NULL) return tarn__wordless(C_ERROR);
  device->id = current;
  return C_SUCCESS;
}

// --- memory ----------------------------------------------------------------

static C_Status allocate(const C_Device device, tarn__opencl_kind kind,
                         void **ptr, size_t size) {
  if (ptr == NULL) return tarn__wordless(C_ERROR);
  *ptr = NULL;
  opencl *d = tarn__opencl_device_of(device);
  if (d == NULL) return C_ERROR;
  uint64_t address = 0;
  C_Status status = tarn__opencl_take(d, kind, size, 1, &address);
  *ptr = (void *)(uintptr_t)address;
  return status;
}

static C_Status deallocate(const C_Device device, tarn__opencl_kind kind,
                           void *ptr) {
  opencl *d = tarn__opencl_device_of(device);
  return d != NULL ? tarn__opencl_give(d, kind, (uintptr_t)ptr) : C_ERROR;
}

#define DEFINE_MEMORY(name, kind)                                            \
  C_Status tarn__opencl_##name##_memory_allocate(const C_Device device,      \
                                                 void **ptr, size_t size) {  \
    return allocate(device, kind, ptr, size);                                \
  }                                                                          \
  C_Status tarn__opencl_##name##_memory_deallocate(const C_Device device,    \
                                                   void *ptr, size_t size) { \
    (void)size;                                                              \
    return deallocate(device, kind, ptr);                                    \
  }

DEFINE_MEMORY(device, TARN__OPENCL_DEVICE)
DEFINE_MEMORY(host, TARN__OPENCL_HOST)
DEFINE_MEMORY(unified, TARN__OPENCL_UNIFIED)

// --- sizes -----------------------------------------------------------------

C_Status tarn__opencl_device_memory_stats(const C_Device device, size_t *total,
                                          size_t *free) {
  if (total == NULL || free == NULL) return tarn__wordless(C_ERROR);
  *total = *free = 0;
  opencl *d = tarn__opencl_listed(device);
  if (d == NULL) return C_ERROR;
  pthread_mutex_lock(&d->lock);
  *total = d->capacity;
  *free = d->capacity - d->used;
  pthread_mutex_unlock(&d->lock);
  return C_SUCCESS;
}

static size_t min_chunk(const opencl *d) {
  return d->align;
}

static size_t max_alloc(const opencl *d) {
  return d->max_alloc;
}

static size_t no_padding(const opencl *d) {
  (void)d;
  return 0;
}

// Of a small device a part: a pool that takes what is named here should not
// have taken all of it.
static size_t growth(const opencl *d) {
  return tarn__lesser(d->capacity / 8, POOL_GROWTH);
}

#define DEFINE_SIZE(name, value)                                      \
  C_Status tarn__opencl_##name(const C_Device device, size_t *size) { \
    if (size == NULL) return tarn__wordless(C_ERROR);                 \
    const opencl *d = tarn__opencl_listed(device);                    \
    *size = d != NULL ? value(d) : 0;                                 \
    return d != NULL ? C_SUCCESS : C_ERROR;                           \
  }

DEFINE_SIZE(device_min_chunk_size, min_chunk)
DEFINE_SIZE(device_max_chunk_size, max_alloc)
DEFINE_SIZE(device_max_alloc_size, max_alloc)
DEFINE_SIZE(device_extra_padding_size, no_padding)
DEFINE_SIZE(device_init_alloc_size, growth)
DEFINE_SIZE(device_realloc_size, growth)

// --- the tables ------------------------------------------------------------

#define ENTRY(name) .name = tarn__opencl_##name,

static const C_DeviceInterface table = {.initialize = initialize,
                                        .finalize = tarn__opencl_finalize,
                                        .get_device_count = get_device_count,
                                        .get_device_list = get_device_list,
                                        TARN__COMMON_ABI_SLOTS(ENTRY)};

void InitPlugin(CustomRuntimeParams *params) {
  tarn__common_offer(params, &table, "opencl", "opencl");
}

// No TARN_EXT_RETAINS: whether freed memory is kept is a driver's choice, and
// the table is taken before a driver is loaded.
static const tarn_device_ext ext = {.struct_size = sizeof ext,
                                    .version = TARN_DEVICE_EXT_VERSION,
                                    .error_text = tarn__opencl_error_text,
                                    .describe = tarn__opencl_describe,
                                    TARN__OPENCL_EXT_SLOTS(ENTRY)};

const tarn_device_ext *TarnDeviceExt(void) {
  return &ext;
}
