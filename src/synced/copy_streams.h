// copy_streams.h - what all synced buffers share of a device: streams of the
// library's own for copies that the caller's stream cannot carry, and events.
//
// One for each device, in its slot TARN_SLOT_SYNCED, made at first use. When
// the device is about to close, its idle streams and events end; those that are
// in use keep it open, and buffers that have memory there do through their
// pools.
//
// Threads: any; a lock for the streams, and one for the spare flags.
#ifndef TARN_SYNCED_COPY_STREAMS_H_
#define TARN_SYNCED_COPY_STREAMS_H_

#include <stdatomic.h>

#include "tarn/device.h"

typedef struct tarn__synced_copy_streams tarn__synced_copy_streams;

// An event, which the points of several buffers may share.
typedef struct tarn__synced_event {
  tarn_event *event;
  tarn_device *device;
  uint64_t serial;      // of the stream
  atomic_size_t count;  // points and others that have it
} tarn__synced_event;

typedef enum tarn__synced_copy_stream {
  TARN__COPY_STREAM_IN,   // towards the device
  TARN__COPY_STREAM_OUT,  // away from it
  TARN__COPY_STREAM_COUNT,
} tarn__synced_copy_stream;

// The copy streams of |device|.
TARN_MUST_CHECK tarn_status tarn__copy_streams_of(
    tarn_device *device, tarn__synced_copy_streams **out_copy_streams);

// A stream of the library's, made at first use, for one transfer: until it is
// released it stays, though others may use it too. A failed one is replaced.
TARN_MUST_CHECK tarn_status tarn__copy_streams_copy_stream(
    tarn_device *device, tarn__synced_copy_stream way,
    tarn_stream **out_stream);

// Lets go of it; NULL is allowed. Not with a lock: the last one who lets go of
// a failed one waits for what is queued there.
void tarn__copy_streams_release_copy_stream(tarn_stream *copy_stream);

// An event of |device| with an event, a spare one if there is one, so that who
// raises and drops flags in turns takes no memory.
TARN_MUST_CHECK tarn_status tarn__copy_streams_take_event(
    tarn_device *device, tarn__synced_event **out_event);

// Gives it back; NULL is allowed. Never fails: at worst it is destroyed. In a
// child of fork it only frees.
void tarn__copy_streams_give_event(tarn__synced_event *event);

#endif  // TARN_SYNCED_COPY_STREAMS_H_
