// Allocation in the order of a stream.
//
// A driver that has it is asked; for the others the calls do at once what would
// be queued, and wait before memory goes back. A driver may also say of one
// device that it cannot (TARN_E_UNSUPPORTED): then it is as for the others.
#include "device/device.h"

// A slot given the stream NULL does it at once, so streams without a handle
// need no case of their own.
static tarn_status take_natively(tarn_stream *stream, size_t size,
                                 tarn_addr *out_addr) {
  tarn_device *device = stream->device;
  tarn_addr addr = 0;
  tarn_status status = device->ext->allocate_async(device->handle.id,
                                                   stream->native, size, &addr);
  status = tarn__extension_result(device, "allocate_async", size, status);
  if (status != TARN_OK) return status;
  status = tarn__device_accept(device, "allocate_async", size,
                               device->info.alignment, addr);
  if (status == TARN_OK) *out_addr = addr;
  return status;
}

tarn_status tarn_device_allocate_on(tarn_stream *stream, size_t size,
                                    tarn_addr *out_addr) {
  *out_addr = 0;
  tarn_status status = tarn__stream_check(stream, NULL);
  if (status != TARN_OK) return status;
  if (size == 0) return tarn__fail(TARN_E_INVALID, "allocate: size is 0");
  tarn_device *device = stream->device;
  status = tarn__device_enter(device);
  if (status != TARN_OK) return status;
  bool native = device->ext->allocate_async != NULL;
  if (native) {
    status = take_natively(stream, size, out_addr);
    native = status != TARN_E_UNSUPPORTED;
  }
  if (!native)
    status = tarn__device_take(tarn_place_on(device), size, out_addr);
  if (status != TARN_OK) return tarn__stream_settle(stream, status);
  tarn__device_count(device, &device->allocations, 1);
  return TARN_OK;
}

static tarn_status give_natively(tarn_stream *stream, tarn_addr addr,
                                 size_t size) {
  tarn_device *device = stream->device;
  // Even if the device cannot be made current: not to try is a sure leak.
  tarn_status entered = tarn__device_enter(device);
  tarn_status status = device->ext->deallocate_async(
      device->handle.id, stream->native, addr, size);
  status = tarn__extension_result(device, "deallocate_async", size, status);
  return tarn__stream_settle(stream, status != TARN_OK ? status : entered);
}

// What is queued must not find its memory gone. The memory goes back even if
// that failed; then the caller learns of the failure.
static tarn_status give_after_waiting(tarn_stream *stream, tarn_addr addr,
                                      size_t size) {
  tarn_status waited = tarn_stream_synchronize(stream);
  tarn_status given =
      tarn__device_give(tarn_place_on(stream->device), addr, size);
  return given != TARN_OK ? given : waited;
}

// On a stream that has failed nothing is queued any more, and what the driver
// does not know at this address it cannot queue either.
static bool can_queue(tarn_stream *stream, tarn_addr addr) {
  tarn_device *device = stream->device;
  return device->ext->deallocate_async != NULL &&
         atomic_load_explicit(&stream->failure, memory_order_acquire) ==
             TARN_OK &&
         !tarn__aligned_is_noted(device, TARN_PLACE_DEVICE, addr);
}

tarn_status tarn_device_deallocate_on(tarn_stream *stream, tarn_addr addr,
                                      size_t size) {
  tarn_status status = tarn__stream_belongs(stream, NULL);
  if (status != TARN_OK) return status;
  if (addr == 0) return tarn__fail(TARN_E_INVALID, "deallocate: address 0");
  tarn_device *device = stream->device;
  bool queues = can_queue(stream, addr);
  if (queues) {
    status = give_natively(stream, addr, size);
    queues = status != TARN_E_UNSUPPORTED;
  }
  if (!queues) status = give_after_waiting(stream, addr, size);
  if (tarn__is_gone(status)) {
    tarn__device_count(device, &device->allocations, -1);
  }
  return status;
}
