// A plug-in as short as the ABI allows: the required functions and nothing
// else, over the C library's memory. Its one device, "small:0", has 64 MiB,
// and the host must not touch its memory.
//
// Compiled with WIDE it is "wide:0", which has a little beyond the ABI; with
// NOISY it has 1 GiB and writes to stdout at each allocation; with DRIVERLESS
// it is of the type "driverless", and does not initialise for want of a driver.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tarn/device_abi.h"
#include "tarn/device_ext.h"

#ifdef NOISY
#include "noise.h"
static const size_t capacity = (size_t)1 << 30;
#else
#define noise(what) (void)(what)
static const size_t capacity = (size_t)64 << 20;
#endif

static size_t used;

static C_Status fine(const C_Device device) {
  (void)device;
  return C_SUCCESS;
}

static C_Status get_device(const C_Device device) {
  device->id = 0;
  return C_SUCCESS;
}

static C_Status allocate(const C_Device device, void **ptr, size_t size) {
  (void)device;
  noise("allocate");
  if (size > capacity - used) return C_FAILED;
  *ptr = aligned_alloc(256, (size + 255) / 256 * 256);
  if (*ptr == NULL) return C_FAILED;
  used += size;
  return C_SUCCESS;
}

static C_Status deallocate(const C_Device device, void *ptr, size_t size) {
  (void)device;
  free(ptr);
  used -= size;
  return C_SUCCESS;
}

static C_Status copy(const C_Device device, void *dst, const void *src,
                     size_t size) {
  (void)device;
  memcpy(dst, src, size);
  return C_SUCCESS;
}

static C_Status device_count(size_t *count) {
  *count = 1;
  return C_SUCCESS;
}

static C_Status device_list(size_t *ids) {
  ids[0] = 0;
  return C_SUCCESS;
}

static C_Status stats(const C_Device device, size_t *total, size_t *free_) {
  (void)device;
  *total = capacity;
  *free_ = capacity - used;
  return C_SUCCESS;
}

static C_Status min_chunk(const C_Device device, size_t *size) {
  (void)device;
  *size = 256;
  return C_SUCCESS;
}

#ifdef DRIVERLESS
static C_Status initialize(void) {
  return C_INTERNAL_ERROR;
}

static void error_text(int id, void *stream, char *out, size_t out_size) {
  const char *text = id == 0 && stream == NULL ? "no driver is here" : "?";
  snprintf(out, out_size, "%s", text);
}

const tarn_device_ext *TarnDeviceExt(void) {
  static const tarn_device_ext ext = {
      .struct_size = sizeof ext,
      .version = TARN_DEVICE_EXT_VERSION,
      .error_text = error_text,
  };
  return &ext;
}
#endif

void InitPlugin(CustomRuntimeParams *params) {
#if defined(WIDE)
  static char type[] = "wide";
#elif defined(DRIVERLESS)
  static char type[] = "driverless";
#else
  static char type[] = "small";
#endif
  C_DeviceInterface *table = params->interface;
  params->device_type = type;
  params->version = (C_RuntimeVersion){0, 1, 1};
  memset((char *)table + sizeof(size_t), 0, table->size - sizeof(size_t));
#ifdef DRIVERLESS
  table->initialize = initialize;
#endif
  table->init_device = fine;
  table->set_device = fine;
  table->get_device = get_device;
  table->deinit_device = fine;
  table->synchronize_device = fine;
  table->device_memory_allocate = allocate;
  table->device_memory_deallocate = deallocate;
  table->memory_copy_h2d = copy;
  table->memory_copy_d2h = copy;
  table->memory_copy_d2d = copy;
  table->get_device_count = device_count;
  table->get_device_list = device_list;
  table->device_memory_stats = stats;
  table->device_min_chunk_size = min_chunk;
}

#ifdef WIDE
static tarn_status alignment(int id, size_t *out_align) {
  (void)id;
  *out_align = 256;
  return TARN_OK;
}

const tarn_device_ext *TarnDeviceExt(void) {
  static const tarn_device_ext ext = {
      .struct_size = sizeof ext,
      .version = TARN_DEVICE_EXT_VERSION,
      .flags = TARN_EXT_RETAINS,
      .alignment = alignment,
  };
  return &ext;
}
#endif
