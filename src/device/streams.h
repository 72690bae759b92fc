// streams.h - which streams there are in the process, by serial.
//
// A serial is all that others keep of a stream: it is given once and never
// again. What it stands for is looked up here and nowhere else, in a time that
// does not depend on how many streams there are.
#ifndef TARN_DEVICE_STREAMS_H_
#define TARN_DEVICE_STREAMS_H_

#include "tarn/device.h"

// Gives |stream| its serial, and makes it known by it. Cannot fail.
void tarn__streams_enter(tarn_stream *stream);

// The end of that: returns when nobody has it pinned any more.
void tarn__streams_leave(tarn_stream *stream);

// The stream with |serial|, which cannot leave until it is unpinned; NULL if
// there is nothing to wait for: it is gone, a parent's, or one on which nothing
// is ever queued.
tarn_stream *tarn__stream_pin(uint64_t serial);
void tarn__stream_unpin(tarn_stream *stream);

// Walks the streams of |device|: pins the one behind |stream| (NULL: the
// first), and unpins that. NULL: there are no more.
tarn_stream *tarn__streams_next(const tarn_device *device, tarn_stream *stream);

// The lock of all this: taken around a fork.
void tarn__streams_lock(void);
void tarn__streams_unlock(void);

// The same in a child: nobody waits for the condition there any more.
void tarn__streams_unlock_in_child(void);

// The most streams that are looked at to find one. A walk, for tests.
size_t tarn__streams_most_steps(void);

#endif  // TARN_DEVICE_STREAMS_H_
