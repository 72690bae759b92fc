// Registered host memory, and queries of addresses. Neither has a stand-in.
#include <string.h>

#include "device/device.h"

// --- host memory of the program --------------------------------------------

tarn_status tarn_device_host_register(tarn_device *device, void *ptr,
                                      size_t size) {
  tarn_status status = tarn__device_check(device);
  if (status != TARN_OK) return status;
  if (device->ext->host_register == NULL) {
    return tarn__extension_lacks(device, "host_register");
  }
  if (ptr == NULL || size == 0 || size > UINT64_MAX - tarn__address(ptr)) {
    return tarn__fail(TARN_E_INVALID, "%s: host_register of %zu bytes at %p",
                      device->name, size, ptr);
  }
  status = tarn__device_enter(device);
  if (status != TARN_OK) return status;
  status = device->ext->host_register(device->handle.id, ptr, size);
  status = tarn__extension_result(device, "host_register", size, status);
  if (status == TARN_OK) tarn__device_count(device, &device->registrations, 1);
  return status;
}

tarn_status tarn_device_host_unregister(tarn_device *device, void *ptr) {
  tarn_status status = tarn__device_check(device);
  if (status != TARN_OK) return status;
  if (device->ext->host_unregister == NULL) {
    return tarn__extension_lacks(device, "host_unregister");
  }
  if (ptr == NULL) {
    return tarn__fail(TARN_E_INVALID, "%s: host_unregister of NULL",
                      device->name);
  }
  // Even if the device cannot be made current: not to try is a sure leak.
  tarn_status entered = tarn__device_enter(device);
  status = device->ext->host_unregister(device->handle.id, ptr);
  status = tarn__extension_result(device, "host_unregister", 0, status);
  if (tarn__is_gone(status)) {
    tarn__device_count(device, &device->registrations, -1);
  }
  return status != TARN_OK ? status : entered;
}

// --- what an address belongs to --------------------------------------------

static bool translate_kind(tarn_ext_kind kind, tarn_place_kind *out) {
  switch (kind) {
    case TARN_EXT_KIND_HOST:
      *out = TARN_PLACE_HOST;
      return true;
    case TARN_EXT_KIND_DEVICE:
      *out = TARN_PLACE_DEVICE;
      return true;
    case TARN_EXT_KIND_UNIFIED:
      *out = TARN_PLACE_UNIFIED;
      return true;
  }
  return false;
}

// The registry is asked about other devices only: its lock is held for long.
static tarn_device *device_called(tarn_device *device, int id) {
  if (device->handle.id == id) return device;
  return tarn__device_find(device->plugin, id);
}

static tarn_status translate(tarn_device *device, tarn_addr addr,
                             const tarn_ext_pointer *found,
                             tarn_pointer_info *out) {
  tarn_place_kind kind = TARN_PLACE_HOST;
  bool holds = found->base <= addr &&
               (found->size == 0 || addr - found->base < found->size);
  if (!translate_kind(found->kind, &kind) || !holds) {
    return tarn__fail(TARN_E_DEVICE,
                      "%s: pointer_query of 0x%llx answered kind %d, %zu bytes "
                      "at 0x%llx",
                      device->name, (unsigned long long)addr, (int)found->kind,
                      found->size, (unsigned long long)found->base);
  }
  *out = (tarn_pointer_info){
      .place = {device_called(device, found->id), kind},
      .base = found->base,
      .size = found->size,
  };
  return TARN_OK;
}

tarn_status tarn_device_pointer_query(tarn_device *device, tarn_addr addr,
                                      tarn_pointer_info *out_info) {
  *out_info = (tarn_pointer_info){0};
  tarn_status status = tarn__device_check(device);
  if (status != TARN_OK) return status;
  if (device->ext->pointer_query == NULL) {
    return tarn__extension_lacks(device, "pointer_query");
  }
  if (addr == 0) {
    return tarn__fail(TARN_E_INVALID, "%s: pointer_query of address 0",
                      device->name);
  }
  status = tarn__device_enter(device);
  if (status != TARN_OK) return status;
  tarn_ext_pointer found;
  memset(&found, 0, sizeof found);
  status = device->ext->pointer_query(device->handle.id, addr, &found);
  status = tarn__extension_result(device, "pointer_query", 0, status);
  return status == TARN_OK ? translate(device, addr, &found, out_info) : status;
}
