// copy_streams.h - the library's own streams of a device, for copies that the
// caller's stream cannot make, and spare events.
//
// One object for each device, in its slot TARN_SLOT_SYNCED, made at first use.
// Before the device closes, idle streams and events are destroyed; streams and
// events in use keep it open.
//
// Threads: any. One lock for the streams, one for the spare events.
#ifndef TARN_SYNCED_COPY_STREAMS_H_
#define TARN_SYNCED_COPY_STREAMS_H_

#include <stdatomic.h>

#include "tarn/device.h"

typedef struct tarn__synced_copy_streams tarn__synced_copy_streams;

// An event, shared by points of several buffers.
typedef struct tarn__synced_event {
  tarn_event *event;
  tarn_device *device;
  uint64_t serial;      // of the stream
  atomic_size_t count;  // references
} tarn__synced_event;

typedef enum tarn__synced_copy_stream {
  TARN__COPY_STREAM_IN,   // towards the device
  TARN__COPY_STREAM_OUT,  // away from it
} tarn__synced_copy_stream;

// The copy streams of |device|.
TARN_MUST_CHECK tarn_status tarn__copy_streams_of(
    tarn_device *device, tarn__synced_copy_streams **out_copy_streams);

// A copy stream for one transfer, created at first use; lives until its
// release. Other transfers may use it too. A failed stream is replaced.
TARN_MUST_CHECK tarn_status tarn__copy_streams_copy_stream(
    tarn_device *device, tarn__synced_copy_stream way,
    tarn_stream **out_stream);

// Releases the stream; NULL is allowed. Without the lock of a buffer: the last
// release of a failed stream waits for its queued work.
void tarn__copy_streams_release_copy_stream(tarn_stream *copy_stream);

// Takes an event of |device|, a spare one if there is one, with one reference.
TARN_MUST_CHECK tarn_status tarn__copy_streams_take_event(
    tarn_device *device, tarn__synced_event **out_event);

// Releases a reference of an event, which becomes spare with the last one; NULL
// is allowed. Cannot fail. In a child of fork it only frees.
void tarn__copy_streams_give_event(tarn__synced_event *event);

#endif  // TARN_SYNCED_COPY_STREAMS_H_
