// Places, and memory straight from the driver.
#include <assert.h>
#include <stdio.h>

#include "device/device.h"

// --- places ----------------------------------------------------------------

static bool is_plain_host(tarn_place place) {
  if (place.device == NULL) return place.kind == TARN_PLACE_HOST;
  return place.device->plugin->is_host;
}

bool tarn_place_equal(tarn_place a, tarn_place b) {
  if (is_plain_host(a) || is_plain_host(b)) {
    return is_plain_host(a) && is_plain_host(b);
  }
  return a.device == b.device && a.kind == b.kind;
}

char *tarn_place_text(tarn_place place, char *out, size_t out_size) {
  static const char *const suffixes[] = {
      [TARN_PLACE_HOST] = "/host",
      [TARN_PLACE_DEVICE] = "",
      [TARN_PLACE_UNIFIED] = "/unified",
  };
  if (is_plain_host(place)) {
    snprintf(out, out_size, "host");
  } else {
    bool known =
        place.device != NULL && (unsigned)place.kind <= TARN_PLACE_UNIFIED;
    snprintf(out, out_size, "%s%s", known ? place.device->name : "nowhere",
             known ? suffixes[place.kind] : "");
  }
  return out;
}

tarn_status tarn__place_device(tarn_place place, tarn_device **out_device) {
  *out_device = NULL;
  if ((unsigned)place.kind > TARN_PLACE_UNIFIED) {
    return tarn__fail(TARN_E_INVALID, "place: %d is no kind", (int)place.kind);
  }
  if (place.device == NULL && place.kind == TARN_PLACE_HOST) {
    TARN__TRY(tarn__not_in_callback());
    return tarn__device_host(out_device);
  }
  TARN__TRY(tarn__device_check(place.device));
  *out_device = place.device;
  return TARN_OK;
}

tarn_status tarn__place_attached(tarn_place place, tarn_device_slot slot,
                                 tarn_place_kind *out_kind,
                                 void **out_pointer) {
  tarn_device *device = NULL;
  *out_pointer = NULL;
  TARN__TRY(tarn__place_device(place, &device));
  *out_kind = is_plain_host(place) ? TARN_PLACE_HOST : place.kind;
  *out_pointer = tarn__device_attachment(device, slot);
  return TARN_OK;
}

// --- taking and giving -----------------------------------------------------

typedef C_Status allocate_call(const C_Device device, void **ptr, size_t size);
typedef C_Status deallocate_call(const C_Device device, void *ptr, size_t size);

static const struct {
  tarn__device_table_entry allocate;
  tarn__device_table_entry deallocate;
} calls[] = {
    [TARN_PLACE_HOST] = {TARN__ABI_ENTRY(host_memory_allocate),
                         TARN__ABI_ENTRY(host_memory_deallocate)},
    [TARN_PLACE_DEVICE] = {TARN__ABI_ENTRY(device_memory_allocate),
                           TARN__ABI_ENTRY(device_memory_deallocate)},
    [TARN_PLACE_UNIFIED] = {TARN__ABI_ENTRY(unified_memory_allocate),
                            TARN__ABI_ENTRY(unified_memory_deallocate)},
};

static tarn_status has_none(const tarn_device *device, const char *call) {
  return tarn__fail(TARN_E_UNSUPPORTED, "%s: has no %s", device->name, call);
}

static tarn_status out_of_memory(tarn_device *device, tarn_place place,
                                 size_t size, C_Status result) {
  char where[TARN__ERROR_TEXT];
  return tarn__device_full(device, tarn_place_text(place, where, sizeof where),
                           size, result);
}

tarn_status tarn__device_accept(tarn_device *device, const char *call,
                                size_t size, size_t align, tarn_addr addr) {
  if (addr == 0) {
    return out_of_memory(device, tarn_place_on(device), size, C_SUCCESS);
  }
  if ((addr & (align - 1)) == 0) return TARN_OK;
  (void)device->abi->device_memory_deallocate(&device->handle,
                                              tarn__pointer(addr), size);
  return tarn__fail(TARN_E_DEVICE,
                    "%s: %s of %zu bytes gave address 0x%llx, which is no "
                    "multiple of %zu",
                    device->name, call, size, (unsigned long long)addr, align);
}

// One device of a type may have no unified memory. In this ABI it can only call
// every request wrong.
static tarn_status classify(tarn_place place, C_Status result,
                            tarn_status status) {
  bool lacks = place.kind == TARN_PLACE_UNIFIED && result == C_ERROR;
  return lacks ? TARN_E_UNSUPPORTED : status;
}

tarn_status tarn__device_take(tarn_place place, size_t size,
                              tarn_addr *out_addr) {
  *out_addr = 0;
  tarn_device *device = NULL;
  if (size == 0) return tarn__fail(TARN_E_INVALID, "allocate: size is 0");
  TARN__TRY(tarn__place_device(place, &device));
  assert(device != NULL);
  TARN__TRY(tarn__device_enter(device));

  tarn__device_table_entry call = calls[place.kind].allocate;
  allocate_call *allocate =
      (allocate_call *)tarn__table_at(device->abi, call.offset);
  void *ptr = NULL;
  if (allocate == NULL) return has_none(device, call.name);
  C_Status result = allocate(&device->handle, &ptr, size);
  // Both are ways in which plug-ins say that there is no memory.
  bool went_well = result == C_SUCCESS || result == C_WARNING;
  bool full = result == C_FAILED || (went_well && ptr == NULL);
  if (full) return out_of_memory(device, place, size, result);
  tarn_status status = tarn__device_result(device, call.name, size, result);
  if (status != TARN_OK) return classify(place, result, status);
  if (place.kind == TARN_PLACE_DEVICE) {
    TARN__TRY(tarn__device_accept(device, call.name, size,
                                  device->info.alignment, tarn__address(ptr)));
  }
  *out_addr = tarn__address(ptr);
  return TARN_OK;
}

tarn_status tarn__device_give(tarn_place place, tarn_addr addr, size_t size) {
  tarn_device *device = NULL;
  if (addr == 0) return tarn__fail(TARN_E_INVALID, "deallocate: address 0");
  TARN__TRY(tarn__place_device(place, &device));
  assert(device != NULL);
  (void)tarn__aligned_take_note(device, place.kind, addr, &addr, &size);
  // Even if the device cannot be made current: not to try is a sure leak.
  tarn_status entered = tarn__device_enter(device);
  tarn__device_table_entry call = calls[place.kind].deallocate;
  deallocate_call *deallocate =
      (deallocate_call *)tarn__table_at(device->abi, call.offset);
  if (deallocate == NULL) return has_none(device, call.name);
  C_Status result = deallocate(&device->handle, tarn__pointer(addr), size);
  TARN__TRY(tarn__device_result(device, call.name, size, result));
  return entered;
}

void tarn__place_count(tarn_place place, int change) {
  tarn_device *device = NULL;
  if (tarn__place_device(place, &device) != TARN_OK) return;
  assert(device != NULL);
  tarn__device_count(device, &device->allocations, change);
}

tarn_status tarn_device_allocate(tarn_place place, size_t size,
                                 tarn_addr *out_addr) {
  TARN__TRY(tarn__device_take(place, size, out_addr));
  tarn__place_count(place, 1);
  return TARN_OK;
}

tarn_status tarn_device_deallocate(tarn_place place, tarn_addr addr,
                                   size_t size) {
  tarn_status status = tarn__device_give(place, addr, size);
  if (tarn__is_gone(status)) tarn__place_count(place, -1);
  return status;
}

tarn_status tarn_device_host_view(tarn_place place, tarn_addr addr, size_t size,
                                  void **out_ptr) {
  *out_ptr = NULL;
  tarn_device *device = NULL;
  TARN__TRY(tarn__place_device(place, &device));
  if (addr == 0 || size > UINT64_MAX - addr) {
    return tarn__fail(TARN_E_INVALID, "host view: %zu bytes at address 0x%llx",
                      size, (unsigned long long)addr);
  }
  if (place.kind == TARN_PLACE_DEVICE && !device->info.host_accessible) {
    return tarn__fail(TARN_E_UNSUPPORTED,
                      "%s: the host cannot touch its memory: copy instead",
                      device->name);
  }
  *out_ptr = tarn__pointer(addr);
  return TARN_OK;
}
