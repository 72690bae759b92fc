// memory.h - the door through which pools reach a device's memory.
#ifndef TARN_DEVICE_MEMORY_H_
#define TARN_DEVICE_MEMORY_H_

#include "tarn/device.h"

// The device of |place|, cpu:0 for TARN_HOST.
TARN_MUST_CHECK tarn_status tarn__place_device(tarn_place place,
                                               tarn_device **out_device);

// tarn_device_allocate and tarn_device_deallocate, but not counted: a pool
// gives its memory back when the device closes.
TARN_MUST_CHECK tarn_status tarn__device_take(tarn_place place, size_t size,
                                              tarn_addr *out_addr);
tarn_status tarn__device_give(tarn_place place, tarn_addr addr, size_t size);

// The serial of |stream|, 0 for NULL, the host.
//
// TARN_E_STATE  a parent's stream.
TARN_MUST_CHECK tarn_status tarn__stream_serial_of(const tarn_stream *stream,
                                                   uint64_t *out_serial);

// TARN_E_STATE on a thread that is in a stream's callback: what is called there
// must not wait, or the stream would wait for itself.
TARN_MUST_CHECK tarn_status tarn__not_in_callback(void);

// Whether no stream with |serial| lives any more: then its work is done.
bool tarn__stream_is_gone(uint64_t serial);

#endif  // TARN_DEVICE_MEMORY_H_
