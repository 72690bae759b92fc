// memory.h - the door through which pools reach a device's memory.
#ifndef TARN_DEVICE_MEMORY_H_
#define TARN_DEVICE_MEMORY_H_

#include "base/callbacks.h"
#include "tarn/device.h"

// The device of |place|, cpu:0 for TARN_HOST.
TARN_MUST_CHECK tarn_status tarn__place_device(tarn_place place,
                                               tarn_device **out_device);

// What is attached to that device at |slot|, NULL if nothing is, and the kind
// of |place|, where all places of cpu:0 are TARN_PLACE_HOST.
TARN_MUST_CHECK tarn_status tarn__place_attached(tarn_place place,
                                                 tarn_device_slot slot,
                                                 tarn_place_kind *out_kind,
                                                 void **out_pointer);

// As tarn_device_memory, but |*out_free| is SIZE_MAX, for unknown, where the
// plug-in has more free than it has in all.
TARN_MUST_CHECK tarn_status tarn__device_room(tarn_device *device,
                                              size_t *out_total,
                                              size_t *out_free);

// The max_alloc of tarn_device_query, without what that asks for besides.
TARN_MUST_CHECK tarn_status tarn__device_most(tarn_device *device,
                                              size_t *out_most);

// What follows is not counted: a pool gives all of it back when the device
// closes. Otherwise it is as the public functions that it is named after, with
// tarn__device_give taking back what either of the first two gave.
TARN_MUST_CHECK tarn_status tarn__device_take(tarn_place place, size_t size,
                                              tarn_addr *out_addr);
TARN_MUST_CHECK tarn_status tarn__device_take_aligned(tarn_place place,
                                                      size_t size, size_t align,
                                                      tarn_addr *out_addr);
tarn_status tarn__device_give(tarn_place place, tarn_addr addr, size_t size);

// The first and the last of these in the order of the stream with |serial|,
// where it is one of the place's device and the driver has that. Otherwise
// they are done at once, the giving back when the stream has done its work.
TARN_MUST_CHECK tarn_status tarn__device_take_on(tarn_place place,
                                                 uint64_t serial, size_t size,
                                                 tarn_addr *out_addr);
tarn_status tarn__device_give_on(tarn_place place, uint64_t serial,
                                 tarn_addr addr, size_t size);

// Ranges and memory of range.h. Mapping, access and export are not counted by
// anybody: pools use the public functions.
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

// The serial of |stream|, which is not NULL, for work in memory of |kind| at
// |device|. The device's own is for its streams only. The caller has seen that
// the thread is in no callback.
//
// TARN_E_INVALID  the device's own memory, and a stream of another device.
// TARN_E_STATE    a parent's stream.
TARN_MUST_CHECK tarn_status tarn__stream_serial_for(const tarn_stream *stream,
                                                    const tarn_device *device,
                                                    tarn_place_kind kind,
                                                    uint64_t *out_serial);

// Whether nothing is left of the stream with |serial|: then its work is done.
bool tarn__stream_is_gone(uint64_t serial);

// Whether it was adopted and given back, and may still be at work: others can
// wait for that, but nothing can be queued behind it.
bool tarn__stream_is_departed(uint64_t serial);

// Whether all that the stream with |serial| has queued by now is known to be
// done: it says so, or is gone, or nothing is ever queued on it. The driver is
// asked, and nobody waits: where the plug-in has no query_stream, or no
// query_event for a departed stream, it is not known.
bool tarn__stream_is_idle(uint64_t serial);

// tarn_stream_join, but the host does not wait, not even in a stream's place.
//
// TARN_PENDING  it would have to; no stream waits for another.
TARN_MUST_CHECK tarn_status tarn__stream_join_at_once(tarn_stream *stream,
                                                      uint64_t serial);

// Waits for all that is queued by now on streams that may use memory of
// |place|: those of its device for the device's own, else those of all devices.
TARN_MUST_CHECK tarn_status tarn__place_synchronize(tarn_place place);

// Makes the stream with |serial| wait for what the one with |first| has queued
// by now; where that cannot be, the calling thread waits.
TARN_MUST_CHECK tarn_status tarn__stream_follow(uint64_t serial,
                                                uint64_t first);

#endif  // TARN_DEVICE_MEMORY_H_
