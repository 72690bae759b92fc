// memory.h - a device's memory and streams, as pools use them.
#ifndef TARN_DEVICE_MEMORY_H_
#define TARN_DEVICE_MEMORY_H_

#include "base/status.h"
#include "tarn/device.h"

// The device of |place|, cpu:0 for TARN_HOST.
TARN_MUST_CHECK tarn_status tarn__place_device(tarn_place place,
                                               tarn_device **out_device);

// The attachment of that device at |slot|, or NULL, and the kind of |place|,
// which is TARN_PLACE_HOST for all places of cpu:0.
TARN_MUST_CHECK tarn_status tarn__place_attached(tarn_place place,
                                                 tarn_device_slot slot,
                                                 tarn_place_kind *out_kind,
                                                 void **out_pointer);

// As tarn_device_memory, but |*out_free| is SIZE_MAX, unknown, if the plug-in
// reports more free memory than memory.
TARN_MUST_CHECK tarn_status tarn__device_room(tarn_device *device,
                                              size_t *out_total,
                                              size_t *out_free);

// The max_alloc of tarn_device_query, without its other queries.
TARN_MUST_CHECK tarn_status tarn__device_most(tarn_device *device,
                                              size_t *out_most);

// The functions below are those of the public interface, without the count of
// allocations: a pool frees all of its memory when the device closes.
// tarn__device_give frees memory of either of the first two.
TARN_MUST_CHECK tarn_status tarn__device_take(tarn_place place, size_t size,
                                              tarn_addr *out_addr);
TARN_MUST_CHECK tarn_status tarn__device_take_aligned(tarn_place place,
                                                      size_t size, size_t align,
                                                      tarn_addr *out_addr);
tarn_status tarn__device_give(tarn_place place, tarn_addr addr, size_t size);

// tarn__device_take and tarn__device_give in the order of the stream with
// |serial|, if it is a stream of the place's device and the driver has
// stream-ordered allocation. Otherwise memory is taken at once, and freed after
// a wait for the stream.
TARN_MUST_CHECK tarn_status tarn__device_take_on(tarn_place place,
                                                 uint64_t serial, size_t size,
                                                 tarn_addr *out_addr);
tarn_status tarn__device_give_on(tarn_place place, uint64_t serial,
                                 tarn_addr addr, size_t size);

// Ranges and memory of range.h. Mapping, rights and export are never counted:
// pools use the public functions.
TARN_MUST_CHECK tarn_status tarn__range_reserve(tarn_device *device,
                                                size_t size, size_t align,
                                                tarn_addr *out_addr);
tarn_status tarn__range_release(tarn_device *device, tarn_addr addr,
                                size_t size);
TARN_MUST_CHECK tarn_status tarn__memory_create(tarn_device *device,
                                                size_t size, unsigned flags,
                                                uint64_t *out_memory);
TARN_MUST_CHECK tarn_status tarn__memory_import(tarn_device *device, int fd,
                                                size_t size,
                                                uint64_t *out_memory);
tarn_status tarn__memory_destroy(tarn_device *device, uint64_t memory);

// The serial of |stream|, not NULL, for work in memory of |kind| of |device|.
// Only streams of the device may use its own memory. The caller has checked
// that the thread is not in a callback.
//
// TARN_E_INVALID  the device's own memory with a stream of another device.
// TARN_E_STATE    a parent's stream.
TARN_MUST_CHECK tarn_status tarn__stream_serial_for(const tarn_stream *stream,
                                                    const tarn_device *device,
                                                    tarn_place_kind kind,
                                                    uint64_t *out_serial);

// Whether the stream with |serial| was destroyed and its work is done.
bool tarn__stream_is_gone(uint64_t serial);

// Whether the stream was adopted and destroyed but may have work left. Others
// can wait for that work; no more can be queued.
bool tarn__stream_is_departed(uint64_t serial);

// Whether all work of the stream with |serial| is known to be done: the driver
// says so, or the stream is gone or synchronous. Never waits: without
// query_stream, or query_event for a departed stream, the answer is false.
bool tarn__stream_is_idle(uint64_t serial);

// Whether the stream with |serial| records a graph at the moment. False where
// the plug-in has no answer, and for a stream that is gone or departed.
bool tarn__stream_is_capturing(uint64_t serial);

// tarn_stream_join without any wait of the host.
//
// TARN_PENDING  the host would have to wait; nothing was queued.
TARN_MUST_CHECK tarn_status tarn__stream_join_at_once(tarn_stream *stream,
                                                      uint64_t serial);

// Waits for all work queued by now on streams that may use memory of |place|:
// those of its device for the device's own memory, else those of all devices.
TARN_MUST_CHECK tarn_status tarn__place_synchronize(tarn_place place);

// Makes the stream with |serial| wait for the work that the stream with |first|
// has queued by now. If that is impossible, the calling thread waits.
TARN_MUST_CHECK tarn_status tarn__stream_follow(uint64_t serial,
                                                uint64_t first);

#endif  // TARN_DEVICE_MEMORY_H_
