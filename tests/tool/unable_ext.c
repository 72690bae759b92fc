// An extension with every slot, none of which this one device can: with
// faulty_plugin.c, a plug-in that has them for other devices.
#include "tarn/device_ext.h"

static tarn_status unable_size(int id, size_t *out) {
  (void)id;
  *out = 0;
  return TARN_E_UNSUPPORTED;
}

static tarn_status unable_aligned(int id, size_t size, size_t align,
                                  uint64_t *out) {
  (void)id, (void)size, (void)align;
  *out = 0;
  return TARN_E_UNSUPPORTED;
}

static tarn_status unable_run(int id, uint64_t address, size_t size) {
  (void)id, (void)address, (void)size;
  return TARN_E_UNSUPPORTED;
}

static tarn_status unable_create(int id, size_t size, uint32_t flags,
                                 uint64_t *out) {
  (void)id, (void)size, (void)flags;
  *out = 0;
  return TARN_E_UNSUPPORTED;
}

static tarn_status unable_destroy(int id, uint64_t memory) {
  (void)id, (void)memory;
  return TARN_E_UNSUPPORTED;
}

static tarn_status unable_map(int id, uint64_t address, size_t size,
                              uint64_t memory) {
  (void)id, (void)address, (void)size, (void)memory;
  return TARN_E_UNSUPPORTED;
}

static tarn_status unable_access(int id, uint64_t address, size_t size, int by,
                                 tarn_ext_access access) {
  (void)id, (void)address, (void)size, (void)by, (void)access;
  return TARN_E_UNSUPPORTED;
}

static tarn_status unable_export(int id, uint64_t memory, int *out) {
  (void)id, (void)memory;
  *out = -1;
  return TARN_E_UNSUPPORTED;
}

static tarn_status unable_import(int id, int fd, size_t size, uint64_t *out) {
  (void)id, (void)fd, (void)size;
  *out = 0;
  return TARN_E_UNSUPPORTED;
}

static tarn_status unable_take(int id, void *stream, size_t size,
                               uint64_t *out) {
  (void)id, (void)stream, (void)size;
  *out = 0;
  return TARN_E_UNSUPPORTED;
}

static tarn_status unable_give(int id, void *stream, uint64_t address,
                               size_t size) {
  (void)id, (void)stream, (void)address, (void)size;
  return TARN_E_UNSUPPORTED;
}

static tarn_status unable_register(int id, void *ptr, size_t size) {
  (void)id, (void)ptr, (void)size;
  return TARN_E_UNSUPPORTED;
}

static tarn_status unable_unregister(int id, void *ptr) {
  (void)id, (void)ptr;
  return TARN_E_UNSUPPORTED;
}

static tarn_status unable_query(int id, uint64_t address,
                                tarn_ext_pointer *out) {
  (void)id, (void)address;
  *out = (tarn_ext_pointer){.id = 0};
  return TARN_E_UNSUPPORTED;
}

static void no_text(int id, void *stream, char *out, size_t out_size) {
  (void)id, (void)stream;
  if (out_size > 0) *out = '\0';
}

static tarn_status unable_rows(int id, void *stream, const tarn_rows *rows) {
  (void)id, (void)stream, (void)rows;
  return TARN_E_UNSUPPORTED;
}

static tarn_status unable_allocation_export(int id, uint64_t address,
                                            size_t size, void *out) {
  (void)id, (void)address, (void)size, (void)out;
  return TARN_E_UNSUPPORTED;
}

static tarn_status unable_allocation_import(int id, const void *handle,
                                            size_t size, uint64_t *out) {
  (void)id, (void)handle, (void)size;
  *out = 0;
  return TARN_E_UNSUPPORTED;
}

static tarn_status unable_default_stream(int id, void **out) {
  (void)id;
  *out = NULL;
  return TARN_E_UNSUPPORTED;
}

static tarn_status unable_stream_capturing(int id, void *stream, bool *out) {
  (void)id, (void)stream;
  *out = false;
  return TARN_E_UNSUPPORTED;
}

const tarn_device_ext *TarnDeviceExt(void);
const tarn_device_ext *TarnDeviceExt(void) {
  static const tarn_device_ext ext = {
      .struct_size = sizeof ext,
      .version = TARN_DEVICE_EXT_VERSION,
      .alignment = unable_size,
      .allocate_aligned = unable_aligned,
      .range_granularity = unable_size,
      .range_reserve = unable_aligned,
      .range_release = unable_run,
      .memory_create = unable_create,
      .memory_destroy = unable_destroy,
      .range_map = unable_map,
      .range_unmap = unable_run,
      .range_set_access = unable_access,
      .memory_export = unable_export,
      .memory_import = unable_import,
      .allocate_async = unable_take,
      .deallocate_async = unable_give,
      .host_register = unable_register,
      .host_unregister = unable_unregister,
      .pointer_query = unable_query,
      .error_text = no_text,
      .gather = unable_rows,
      .scatter = unable_rows,
      .scatter_add = unable_rows,
      .allocation_export = unable_allocation_export,
      .allocation_import = unable_allocation_import,
      .allocation_close = unable_run,
      .default_stream = unable_default_stream,
      .stream_capturing = unable_stream_capturing,
  };
  return &ext;
}
