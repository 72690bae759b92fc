// What the cpu plug-in has beyond the ABI: all there is but TARN_EXT_RETAINS,
// for memory that is given back goes back to the system.
#include <errno.h>
#include <string.h>

#include "cpu.h"

_Thread_local tarn__common_text tarn__cpu_text;

tarn_status tarn__cpu_check_id(int id) {
  if (id == 0) return TARN_OK;
  return tarn__cpu_fail(TARN_E_INVALID, "there is no device %d", id);
}

tarn_status tarn__cpu_check_stream(int id, C_Stream stream) {
  tarn_status status = tarn__cpu_check_id(id);
  if (status != TARN_OK || stream == NULL) return status;
  struct C_Device_st device = {.id = id};
  if (tarn__queue_is_stream(&device, stream)) return TARN_OK;
  return tarn__cpu_fail(TARN_E_INVALID, "not a stream of this device");
}

tarn_status tarn__cpu_refused(const char *what, size_t size) {
  int reason = errno;
  bool full = reason == ENOMEM || reason == ENOSPC || reason == EAGAIN ||
              reason == EMFILE || reason == ENFILE || reason == EFBIG;
  return tarn__cpu_fail(full ? TARN_FULL : TARN_E_DEVICE, "%s of %zu bytes: %s",
                        what, size, strerror(reason));
}

static void error_text(int id, void *stream, char *out, size_t out_size) {
  tarn__queue_error_text(&tarn__cpu_text, id, stream, out, out_size);
}

static const tarn_device_ext ext = {
    .struct_size = sizeof ext,
    .version = TARN_DEVICE_EXT_VERSION,
    .alignment = tarn__cpu_alignment,
    .allocate_aligned = tarn__cpu_allocate_aligned,
    .range_granularity = tarn__cpu_range_granularity,
    .range_reserve = tarn__cpu_range_reserve,
    .range_release = tarn__cpu_range_release,
    .memory_create = tarn__cpu_memory_create,
    .memory_destroy = tarn__cpu_memory_destroy,
    .range_map = tarn__cpu_range_map,
    .range_unmap = tarn__cpu_range_unmap,
    .range_set_access = tarn__cpu_range_set_access,
    .memory_export = tarn__cpu_memory_export,
    .memory_import = tarn__cpu_memory_import,
    .allocate_async = tarn__cpu_allocate_async,
    .deallocate_async = tarn__cpu_deallocate_async,
    .host_register = tarn__cpu_host_register,
    .host_unregister = tarn__cpu_host_unregister,
    .pointer_query = tarn__cpu_pointer_query,
    .error_text = error_text,
    .gather = tarn__cpu_gather,
    .scatter = tarn__cpu_scatter,
    .scatter_add = tarn__cpu_scatter_add,
};

const tarn_device_ext *TarnDeviceExt(void) {
  return &ext;
}
