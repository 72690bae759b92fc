// Copies from one place to another, and their cost.
//
//             to   host      unified   device
//   from host      memcpy    memcpy    h2d
//        unified   memcpy    memcpy    h2d
//        device    d2h       d2h       d2d, or p2p to another device
//
// Invariant: an end that the host can access is a pointer here. So threads of
// the host make copies that need no device, and the end of a device is always
// the device's own memory.
#include "synced/routes.h"

#include <string.h>

#include "base/status.h"

// --- places ----------------------------------------------------------------

tarn_status tarn__place_check(tarn_place place) {
  bool own =
      place.kind == TARN_PLACE_DEVICE || place.kind == TARN_PLACE_UNIFIED;
  if (place.kind == TARN_PLACE_HOST || (own && place.device != NULL)) {
    return TARN_OK;
  }
  return tarn__fail(TARN_E_INVALID, "synced: invalid place: kind %d of %s",
                    (int)place.kind, own ? "no device" : "a device");
}

tarn_place tarn__route_place(tarn_place place) {
  bool host =
      place.kind == TARN_PLACE_HOST || tarn_place_equal(place, TARN_HOST);
  return host ? TARN_HOST : place;
}

static bool is_touchable(tarn_place place) {
  return place.kind != TARN_PLACE_DEVICE;
}

tarn_device *tarn__route_device(tarn_place from, tarn_place to) {
  if (!is_touchable(from)) return from.device;
  return is_touchable(to) ? NULL : to.device;
}

// --- costs ----------------------------------------------------------------

enum { WITHIN, DIRECT, HOST, STAGED };

// The type identifies the plug-in. Calls no driver: the lock may be held.
static bool reach_each_other(const tarn_device *from, const tarn_device *to) {
  bool direct = (tarn_device_functions(from) & TARN_FN_COPY_P2P) != 0;
  return direct && strcmp(tarn_device_type(from), tarn_device_type(to)) == 0;
}

unsigned tarn__route_price(tarn_place from, tarn_place to) {
  if (from.device == to.device) return WITHIN;
  if (is_touchable(from) || is_touchable(to)) return HOST;
  return reach_each_other(from.device, to.device) ? DIRECT : STAGED;
}

// --- copies ----------------------------------------------------------------

static void *pointer_at(const tarn__synced_end *end, size_t offset) {
  return (char *)end->pointer + offset;
}

static tarn_status copy_from_device(const tarn__synced_end *from,
                                    const tarn__synced_end *to, size_t offset,
                                    size_t size, tarn_stream *stream) {
  tarn_addr source = from->address + offset;
  tarn_addr target = to->address + offset;
  tarn_device *device = from->place.device;
  if (to->pointer != NULL) {
    return tarn_copy_d2h(device, pointer_at(to, offset), source, size, stream);
  }
  if (to->place.device == device) {
    return tarn_copy_d2d(device, target, source, size, stream);
  }
  return tarn_copy_p2p(to->place.device, target, device, source, size, stream);
}

tarn_status tarn__route_copy(const tarn__synced_end *from,
                             const tarn__synced_end *to, size_t offset,
                             size_t size, tarn_stream *stream) {
  if (from->pointer == NULL) {
    return copy_from_device(from, to, offset, size, stream);
  }
  if (to->pointer == NULL) {
    return tarn_copy_h2d(to->place.device, to->address + offset,
                         pointer_at(from, offset), size, stream);
  }
  memcpy(pointer_at(to, offset), pointer_at(from, offset), size);
  return TARN_OK;
}

tarn_status tarn__route_zero(const tarn__synced_end *to, size_t offset,
                             size_t size) {
  if (to->pointer == NULL) {
    return tarn_device_set(to->place.device, to->address + offset, 0, size,
                           NULL);
  }
  memset(pointer_at(to, offset), 0, size);
  return TARN_OK;
}
