// Allocations of other processes, by handles. Imported memory is not this
// process's: it is counted apart, and only closing gives it back.
#include <string.h>

#include "device/device.h"

_Static_assert(sizeof(tarn_device_handle) == TARN_EXT_HANDLE_SIZE,
               "a handle is what slots take");

static tarn_status check_extent(const tarn_device *device, const char *call,
                                tarn_addr addr, size_t size) {
  TARN__TRY(tarn__extension_check(device, TARN_EXTENSION_HANDLES,
                                  "handles for other processes"));
  if (addr != 0 && size != 0 && size <= UINT64_MAX - addr) return TARN_OK;
  return tarn__fail(TARN_E_INVALID, "%s: %s of %zu bytes at 0x%llx",
                    device->name, call, size, (unsigned long long)addr);
}

tarn_status tarn_device_export(tarn_device *device, tarn_addr addr, size_t size,
                               tarn_device_handle *out_handle) {
  memset(out_handle, 0, sizeof *out_handle);
  TARN__TRY(check_extent(device, "allocation_export", addr, size));
  TARN__TRY(tarn__device_enter(device));
  tarn_device_handle handle = {{0}};
  TARN__TRY(
      TARN__EXTENSION_CALL(device, allocation_export, size,
                           (device->handle.id, addr, size, handle.bytes)));
  *out_handle = handle;
  return TARN_OK;
}

tarn_status tarn_device_import(tarn_device *device,
                               const tarn_device_handle *handle, size_t size,
                               tarn_addr *out_addr) {
  *out_addr = 0;
  TARN__TRY(check_extent(device, "allocation_import", 1, size));
  TARN__TRY(tarn__device_enter(device));
  tarn_addr addr = 0;
  TARN__TRY(
      TARN__EXTENSION_CALL(device, allocation_import, size,
                           (device->handle.id, handle->bytes, size, &addr)));
  if (addr == 0) {
    return tarn__fail(TARN_E_DEVICE, "%s: allocation_import gave address 0",
                      device->name);
  }
  *out_addr = addr;
  tarn__device_count(device, &device->imports, 1);
  return TARN_OK;
}

tarn_status tarn_device_import_close(tarn_device *device, tarn_addr addr,
                                     size_t size) {
  TARN__TRY(check_extent(device, "allocation_close", addr, size));
  // Even if the device cannot be made current: not to try is a sure leak.
  tarn_status entered = tarn__device_enter(device);
  tarn_status status = TARN__EXTENSION_CALL(device, allocation_close, size,
                                            (device->handle.id, addr, size));
  if (tarn__is_gone(status)) tarn__device_count(device, &device->imports, -1);
  return status != TARN_OK ? status : entered;
}
