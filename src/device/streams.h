// streams.h - which streams there are in the process, by serial.
//
// A serial is all that others keep of a stream: it is given once and never
// again. What it stands for is looked up here and nowhere else, in a time that
// does not depend on how many streams there are.
//
//   enter ──► living ──leave──► gone
//                 └──depart──► departed ──its last event is reached──► gone
//
// A stream that Tarn made leaves when its work is done. One that was adopted
// departs: its native stream is its owner's again, and only the event that was
// recorded last tells of its work.
#ifndef TARN_DEVICE_STREAMS_H_
#define TARN_DEVICE_STREAMS_H_

#include "tarn/device.h"

// Gives |stream| its serial, and makes it known by it. Cannot fail.
void tarn__streams_enter(tarn_stream *stream);

// Before the work of |stream| is waited for, or |last| recorded, for its end.
void tarn__streams_begin_end(tarn_stream *stream);

// The end of that: returns when nobody has it pinned or held any more.
void tarn__streams_leave(tarn_stream *stream);

// The living stream with |serial|, which stays so until it is unpinned; NULL if
// nothing can be queued behind its work: it is gone or departed, a parent's, or
// nothing is ever queued on it.
tarn_stream *tarn__stream_pin(uint64_t serial);
void tarn__stream_unpin(tarn_stream *stream);

// The same, of a stream that was made to wait. False: it ends, and those who
// wait for it may not wait for that.
TARN_MUST_CHECK bool tarn__stream_unpin_waiting(tarn_stream *stream);

// Turns a pin into a hold: |stream| may depart meanwhile, and nothing is queued
// on it.
void tarn__stream_pin_to_hold(tarn_stream *stream);

// Makes |stream| depart: its event is recorded. Returns, with a hold on it,
// when nobody has it pinned any more.
void tarn__streams_depart(tarn_stream *stream);

// The departed stream with |serial|, held; NULL if there is none.
tarn_stream *tarn__departed_hold(uint64_t serial);

// Any departed stream of |device|, held; the one that was returned longest ago.
tarn_stream *tarn__departed_next(const tarn_device *device);

// The one with the lowest serial above |serial|, which is |newest| at most,
// held; NULL if there is none.
tarn_stream *tarn__departed_above(const tarn_device *device, uint64_t serial,
                                  uint64_t newest);

size_t tarn__departed_count(const tarn_device *device);

// Drops a hold. |over|: the event of the departed stream is reached. True if
// that is so and this was the last hold: it is gone, and the caller frees it.
bool tarn__stream_drop(tarn_stream *stream, bool over);

// Walks the living streams of |device|: pins the one behind |stream| (NULL: the
// first), and unpins that. NULL: there are no more.
tarn_stream *tarn__streams_next(const tarn_device *device, tarn_stream *stream);

// The serial that was given last. A walk up to it ends, however many streams
// come meanwhile.
uint64_t tarn__streams_newest(void);

// Walks the living and the departed streams of all devices: the lowest serial
// above |serial|; 0: there are no more. A parent's are left out.
uint64_t tarn__streams_above(uint64_t serial);

// The lock of all this: taken around a fork.
void tarn__streams_lock(void);
void tarn__streams_unlock(void);

// The same in a child: nobody waits for the condition there any more.
void tarn__streams_unlock_in_child(void);

// The most streams that are looked at to find one. A walk, for tests.
size_t tarn__streams_most_steps(void);

#endif  // TARN_DEVICE_STREAMS_H_
