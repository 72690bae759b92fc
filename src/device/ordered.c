// Allocation in the order of a stream.
//
// A driver that has it is asked; for the others the calls do at once what would
// be queued, and wait before memory goes back. A driver may also say of one
// device that it cannot (TARN_E_UNSUPPORTED): then it is as for the others.
#include <assert.h>

#include "device/device.h"

// TARN_E_UNSUPPORTED: the driver cannot. A slot given the stream NULL does it
// at once, so streams without a handle need no case of their own.
static tarn_status take_natively(tarn_stream *stream, size_t size,
                                 tarn_addr *out_addr) {
  tarn_device *device = stream->device;
  tarn_addr addr = 0;
  if (device->ext->allocate_async == NULL) return TARN_E_UNSUPPORTED;
  TARN__TRY(
      TARN__EXTENSION_CALL(device, allocate_async, size,
                           (device->handle.id, stream->native, size, &addr)));
  TARN__TRY(tarn__device_accept(device, "allocate_async", size,
                                device->info.alignment, addr));
  *out_addr = addr;
  return TARN_OK;
}

tarn_status tarn_device_allocate_on(tarn_stream *stream, size_t size,
                                    tarn_addr *out_addr) {
  *out_addr = 0;
  TARN__TRY(tarn__stream_check(stream, NULL));
  if (size == 0) return tarn__fail(TARN_E_INVALID, "allocate: size is 0");
  tarn_device *device = stream->device;
  TARN__TRY(tarn__device_enter(device));
  tarn_status status = take_natively(stream, size, out_addr);
  if (status == TARN_E_UNSUPPORTED) {
    status = tarn__device_take(tarn_place_on(device), size, out_addr);
  }
  if (status != TARN_OK) return tarn__stream_settle(stream, status);
  tarn__device_count(device, &device->allocations, 1);
  return TARN_OK;
}

static tarn_status give_natively(tarn_stream *stream, tarn_addr addr,
                                 size_t size) {
  tarn_device *device = stream->device;
  // Even if the device cannot be made current: not to try is a sure leak.
  tarn_status entered = tarn__device_enter(device);
  tarn_status status =
      TARN__EXTENSION_CALL(device, deallocate_async, size,
                           (device->handle.id, stream->native, addr, size));
  return tarn__stream_settle(stream, status != TARN_OK ? status : entered);
}

// Queued work must not find its memory gone. The memory goes back even if the
// wait failed; then the caller gets the failure.
static tarn_status give_after_waiting(tarn_stream *stream, tarn_addr addr,
                                      size_t size) {
  tarn_status waited = tarn_stream_synchronize(stream);
  TARN__TRY(tarn__device_give(tarn_place_on(stream->device), addr, size));
  return waited;
}

// On a stream that has failed nothing is queued any more, and what the driver
// does not know at this address it cannot queue either.
static bool can_queue(tarn_stream *stream, tarn_addr addr) {
  tarn_device *device = stream->device;
  return device->ext->deallocate_async != NULL &&
         atomic_load_explicit(&stream->failure, memory_order_acquire) ==
             TARN_OK &&
         !tarn__aligned_is_noted(device, addr);
}

tarn_status tarn_device_deallocate_on(tarn_stream *stream, tarn_addr addr,
                                      size_t size) {
  tarn_status status = TARN_E_UNSUPPORTED;
  TARN__TRY(tarn__stream_belongs(stream, NULL));
  if (addr == 0) return tarn__fail(TARN_E_INVALID, "deallocate: address 0");
  tarn_device *device = stream->device;
  if (can_queue(stream, addr)) status = give_natively(stream, addr, size);
  if (status == TARN_E_UNSUPPORTED) {
    status = give_after_waiting(stream, addr, size);
  }
  if (tarn__is_gone(status)) {
    tarn__device_count(device, &device->allocations, -1);
  }
  return status;
}

// --- by serial, for pools --------------------------------------------------

// The stream with |serial|, pinned, if the memory of |place| can be had in its
// order; NULL if not.
static tarn_stream *pin_for(tarn_place place, uint64_t serial) {
  tarn_device *device = NULL;
  if (serial == 0 || tarn__place_device(place, &device) != TARN_OK) return NULL;
  assert(device != NULL);
  bool own = place.kind == TARN_PLACE_DEVICE || device->plugin->is_host;
  if (!own || device->ext->allocate_async == NULL) return NULL;
  tarn_stream *stream = tarn__stream_pin(serial);
  if (stream == NULL) return NULL;
  bool fits =
      stream->device == device &&
      atomic_load_explicit(&stream->failure, memory_order_acquire) == TARN_OK;
  if (fits) return stream;
  tarn__stream_unpin(stream);
  return NULL;
}

tarn_status tarn__device_take_on(tarn_place place, uint64_t serial, size_t size,
                                 tarn_addr *out_addr) {
  tarn_status status = TARN_E_UNSUPPORTED;
  *out_addr = 0;
  if (size == 0) return tarn__fail(TARN_E_INVALID, "allocate: size is 0");
  tarn_stream *stream = pin_for(place, serial);
  if (stream != NULL) {
    status = tarn__device_enter(stream->device);
    if (status == TARN_OK) status = take_natively(stream, size, out_addr);
    status = tarn__stream_settle(stream, status);
    tarn__stream_unpin(stream);
  }
  if (status != TARN_E_UNSUPPORTED) return status;
  return tarn__device_take(place, size, out_addr);
}

// What could not be queued goes back all the same: a pool keeps nothing of it.
tarn_status tarn__device_give_on(tarn_place place, uint64_t serial,
                                 tarn_addr addr, size_t size) {
  tarn_status status = TARN_E_UNSUPPORTED;
  tarn_stream *stream = addr != 0 ? pin_for(place, serial) : NULL;
  if (stream != NULL) {
    if (can_queue(stream, addr)) status = give_natively(stream, addr, size);
    tarn__stream_unpin(stream);
  }
  if (tarn__is_gone(status)) return status;
  tarn_status waited = serial != 0 ? tarn_stream_join(NULL, serial) : TARN_OK;
  TARN__TRY(tarn__device_give(place, addr, size));
  return waited;
}
