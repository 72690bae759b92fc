// streams.h - all streams of the process, by serial.
//
// Other parts of the library refer to a stream only by its serial, which is
// never reused, and look it up here. The time of a look-up does not depend on
// the number of streams.
//
//   enter ──► living ──leave──► gone
//                 └──depart──► departed ──its last event is reached──► gone
//
// A stream that Tarn created leaves when its work is done. An adopted stream
// departs: Tarn no longer uses its native stream, and only the event recorded
// last tells when its work is done.
#ifndef TARN_DEVICE_STREAMS_H_
#define TARN_DEVICE_STREAMS_H_

#include "tarn/device.h"

// Gives |stream| its serial and enters it. Cannot fail.
void tarn__streams_enter(tarn_stream *stream);

// Begins the end of |stream|: before the wait for its work, or before |last| is
// recorded.
void tarn__streams_begin_end(tarn_stream *stream);

// Completes the end: returns when no thread has it pinned or held.
void tarn__streams_leave(tarn_stream *stream);

// Pins the living stream with |serial|, which lives until it is unpinned. NULL
// if nothing can be queued behind its work: it is gone, departed, a parent's,
// or synchronous.
tarn_stream *tarn__stream_pin(uint64_t serial);
void tarn__stream_unpin(tarn_stream *stream);

// Unpins a stream on which a wait was queued. False: it is ending, and its end
// may not include that wait.
TARN_MUST_CHECK bool tarn__stream_unpin_waiting(tarn_stream *stream);

// Turns a pin into a hold: |stream| may depart meanwhile, and nothing is queued
// on it.
void tarn__stream_pin_to_hold(tarn_stream *stream);

// Makes |stream|, whose event is recorded, depart. Returns, with a hold on it,
// when no thread has it pinned.
void tarn__streams_depart(tarn_stream *stream);

// The departed stream with |serial|, held; NULL if there is none.
tarn_stream *tarn__departed_hold(uint64_t serial);

// Holds the departed stream of |device| that was returned here longest ago.
tarn_stream *tarn__departed_next(const tarn_device *device);

// Holds the one with the lowest serial above |serial| and not above |newest|;
// NULL if there is none.
tarn_stream *tarn__departed_above(const tarn_device *device, uint64_t serial,
                                  uint64_t newest);

size_t tarn__departed_count(const tarn_device *device);

// Releases a hold. |over|: the event of the departed stream is reached. True if
// it is reached and this was the last hold: the caller frees the stream.
bool tarn__stream_drop(tarn_stream *stream, bool over);

// Walks the living streams of |device|: unpins |stream| and pins the next one
// (NULL: the first). NULL at the end.
tarn_stream *tarn__streams_next(const tarn_device *device, tarn_stream *stream);

// The newest serial. A walk up to it ends even if streams are created
// meanwhile.
uint64_t tarn__streams_newest(void);

// Walks the living and the departed streams of all devices: the lowest serial
// above |serial|; 0 at the end. Streams of a parent process are left out.
uint64_t tarn__streams_above(uint64_t serial);

// The lock of all this: taken around a fork.
void tarn__streams_lock(void);
void tarn__streams_unlock(void);

// The same in a child, where no thread waits for the condition.
void tarn__streams_unlock_in_child(void);

// The most steps of a look-up. A walk, for tests.
size_t tarn__streams_most_steps(void);

#endif  // TARN_DEVICE_STREAMS_H_
