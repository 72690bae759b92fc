// Allocations of other processes, by handles. What was imported is not memory
// of this process: it is counted apart, and only closing gives it back.
#include <string.h>

#include "device/device.h"

_Static_assert(sizeof(tarn_device_handle) == TARN_EXT_HANDLE_SIZE,
               "a handle is what slots take");

static tarn_status check(const tarn_device *device) {
  tarn_status status = tarn__device_check(device);
  if (status != TARN_OK || device->ext->allocation_export != NULL) {
    return status;
  }
  return tarn__extension_lacks(device, "handles for other processes");
}

static tarn_status check_extent(const tarn_device *device, const char *call,
                                tarn_addr addr, size_t size) {
  if (addr != 0 && size != 0 && size <= UINT64_MAX - addr) return TARN_OK;
  return tarn__fail(TARN_E_INVALID, "%s: %s of %zu bytes at 0x%llx",
                    device->name, call, size, (unsigned long long)addr);
}

tarn_status tarn_device_export(tarn_device *device, tarn_addr addr, size_t size,
                               tarn_device_handle *out_handle) {
  static const char call[] = "allocation_export";
  memset(out_handle, 0, sizeof *out_handle);
  tarn_status status = check(device);
  if (status == TARN_OK) status = check_extent(device, call, addr, size);
  if (status == TARN_OK) status = tarn__device_enter(device);
  if (status != TARN_OK) return status;
  tarn_device_handle handle = {{0}};
  status = device->ext->allocation_export(device->handle.id, addr, size,
                                          handle.bytes);
  status = tarn__extension_result(device, call, size, status);
  if (status == TARN_OK) *out_handle = handle;
  return status;
}

tarn_status tarn_device_import(tarn_device *device,
                               const tarn_device_handle *handle, size_t size,
                               tarn_addr *out_addr) {
  static const char call[] = "allocation_import";
  *out_addr = 0;
  tarn_status status = check(device);
  if (status == TARN_OK) status = check_extent(device, call, 1, size);
  if (status == TARN_OK) status = tarn__device_enter(device);
  if (status != TARN_OK) return status;
  tarn_addr addr = 0;
  status = device->ext->allocation_import(device->handle.id, handle->bytes,
                                          size, &addr);
  status = tarn__extension_result(device, call, size, status);
  if (status != TARN_OK) return status;
  if (addr == 0) {
    return tarn__fail(TARN_E_DEVICE, "%s: %s gave address 0", device->name,
                      call);
  }
  *out_addr = addr;
  tarn__device_count(device, &device->imports, 1);
  return TARN_OK;
}

tarn_status tarn_device_import_close(tarn_device *device, tarn_addr addr,
                                     size_t size) {
  static const char call[] = "allocation_close";
  tarn_status status = check(device);
  if (status == TARN_OK) status = check_extent(device, call, addr, size);
  if (status != TARN_OK) return status;
  // Even if the device cannot be made current: not to try is a sure leak.
  tarn_status entered = tarn__device_enter(device);
  status = device->ext->allocation_close(device->handle.id, addr, size);
  status = tarn__extension_result(device, call, size, status);
  if (tarn__is_gone(status)) tarn__device_count(device, &device->imports, -1);
  return status != TARN_OK ? status : entered;
}
