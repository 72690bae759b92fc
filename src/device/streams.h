// streams.h - all streams of the process, by serial.
//
// Other parts of the library refer to a stream only by its serial, which is
// never reused, and look it up here: mostly in one step, in O(log n) at worst.
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

// Calls |visit| for each stream of |device| (NULL: of any), living or departed,
// but for those that are created during the call and those of a parent process.
// Returns the first failure.
tarn_status tarn__streams_each(const tarn_device *device,
                               tarn_status (*visit)(uint64_t serial));

// Waits for every stream of |device|; the first failure among them.
TARN_MUST_CHECK tarn_status
tarn__streams_synchronize(const tarn_device *device);

// --- departed streams ------------------------------------------------------

// Ends the last use of an adopted stream. The status is that of its work, if
// the call had to wait for it.
tarn_status tarn__stream_depart(tarn_stream *stream);

// The departed stream with |serial|, held; NULL if there is none.
tarn_stream *tarn__departed_hold(uint64_t serial);

// Holds the departed stream of |device| that was returned here longest ago.
tarn_stream *tarn__departed_next(const tarn_device *device);

// Releases a hold. |over|: the event of the departed stream is reached. If it
// is and this was the last hold, the stream is freed.
void tarn__stream_release(tarn_stream *stream, bool over);

size_t tarn__departed_count(const tarn_device *device);

// Ends those departed streams of |device| whose work is done; the second looks
// at a few only.
void tarn__departed_end(const tarn_device *device);
void tarn__departed_end_some(const tarn_device *device);

// Waits for all of them, and ends them.
tarn_status tarn__departed_synchronize(const tarn_device *device);

#endif  // TARN_DEVICE_STREAMS_H_
