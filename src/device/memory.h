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

// The serial of |stream|, which is not NULL.
//
// TARN_E_STATE  a parent's stream, or called from a stream's callback.
TARN_MUST_CHECK tarn_status tarn__stream_serial_of(const tarn_stream *stream,
                                                   uint64_t *out_serial);

// How deep the thread is in callbacks; read through tarn__not_in_callback.
extern _Thread_local int tarn__callbacks_running
    __attribute__((tls_model("initial-exec")));

// Says that a callback must not wait. TARN_E_STATE.
__attribute__((cold)) tarn_status tarn__refuse_in_callback(void);

// TARN_E_STATE on a thread that is in a stream's callback: what is called there
// must not wait, or the stream would wait for itself.
TARN_MUST_CHECK static inline tarn_status tarn__not_in_callback(void) {
  return tarn__callbacks_running == 0 ? TARN_OK : tarn__refuse_in_callback();
}

// Whether no stream with |serial| lives any more: then its work is done.
bool tarn__stream_is_gone(uint64_t serial);

#endif  // TARN_DEVICE_MEMORY_H_
