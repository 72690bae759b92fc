// Registered host memory, and queries of addresses. Neither has a stand-in.
#include <string.h>

#include "device/device.h"

// --- host memory of the program --------------------------------------------

tarn_status tarn_device_host_register(tarn_device *device, void *ptr,
                                      size_t size) {
  TARN__TRY(
      tarn__extension_check(device, TARN_EXTENSION_REGISTER, "host_register"));
  if (ptr == NULL || size == 0 || size > UINT64_MAX - tarn__address(ptr)) {
    return tarn__fail(TARN_E_INVALID, "%s: host_register of %zu bytes at %p",
                      device->name, size, ptr);
  }
  TARN__TRY(tarn__device_enter(device));
  TARN__TRY(TARN__EXTENSION_CALL(device, host_register, size,
                                 (device->handle.id, ptr, size)));
  tarn__device_count(device, &device->registrations, 1);
  return TARN_OK;
}

tarn_status tarn_device_host_unregister(tarn_device *device, void *ptr) {
  TARN__TRY(tarn__extension_check(device, TARN_EXTENSION_REGISTER,
                                  "host_unregister"));
  if (ptr == NULL) {
    return tarn__fail(TARN_E_INVALID, "%s: host_unregister of NULL",
                      device->name);
  }
  // Even if the device cannot be made current: not to try is a sure leak.
  tarn_status entered = tarn__device_enter(device);
  tarn_status status = TARN__EXTENSION_CALL(device, host_unregister, 0,
                                            (device->handle.id, ptr));
  if (tarn__is_gone(status)) {
    tarn__device_count(device, &device->registrations, -1);
  }
  return status != TARN_OK ? status : entered;
}

// --- what an address belongs to --------------------------------------------

_Static_assert((int)TARN_EXT_KIND_HOST == (int)TARN_PLACE_HOST &&
                   (int)TARN_EXT_KIND_DEVICE == (int)TARN_PLACE_DEVICE &&
                   (int)TARN_EXT_KIND_UNIFIED == (int)TARN_PLACE_UNIFIED,
               "kinds are what slots answer");

// The registry is asked about other devices only: its lock is held for long.
static tarn_device *device_called(tarn_device *device, int id) {
  if (device->handle.id == id) return device;
  return tarn__device_find(device->plugin, id);
}

static tarn_status translate(tarn_device *device, tarn_addr addr,
                             const tarn_ext_pointer *found,
                             tarn_pointer_info *out) {
  bool holds = found->base <= addr &&
               (found->size == 0 || addr - found->base < found->size);
  if ((unsigned)found->kind > TARN_EXT_KIND_UNIFIED || !holds) {
    return tarn__fail(TARN_E_DEVICE,
                      "%s: pointer_query of 0x%llx answered kind %d, %zu bytes "
                      "at 0x%llx",
                      device->name, (unsigned long long)addr, (int)found->kind,
                      found->size, (unsigned long long)found->base);
  }
  *out = (tarn_pointer_info){
      .place = {device_called(device, found->id), (tarn_place_kind)found->kind},
      .base = found->base,
      .size = found->size,
  };
  return TARN_OK;
}

tarn_status tarn_device_pointer_query(tarn_device *device, tarn_addr addr,
                                      tarn_pointer_info *out_info) {
  *out_info = (tarn_pointer_info){0};
  TARN__TRY(
      tarn__extension_check(device, TARN_EXTENSION_POINTERS, "pointer_query"));
  if (addr == 0) {
    return tarn__fail(TARN_E_INVALID, "%s: pointer_query of address 0",
                      device->name);
  }
  TARN__TRY(tarn__device_enter(device));
  tarn_ext_pointer found;
  memset(&found, 0, sizeof found);
  TARN__TRY(TARN__EXTENSION_CALL(device, pointer_query, 0,
                                 (device->handle.id, addr, &found)));
  return translate(device, addr, &found, out_info);
}
