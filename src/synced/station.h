// station.h - what all synced buffers share of a device: streams of the
// library's own for copies that the caller's stream cannot carry, and events.
//
// One for each device, in its slot TARN_SLOT_SYNCED, made at first use. When
// the device is about to close, its idle streams and events end; those that are
// in use keep it open, and buffers that have memory there do through their
// pools.
//
// Threads: any; a lock for the streams, and one for the spare events.
#ifndef TARN_SYNCED_STATION_H_
#define TARN_SYNCED_STATION_H_

#include "tarn/device.h"

typedef struct tarn__station tarn__station;

typedef enum tarn__courier {
  TARN__COURIER_IN,   // towards the device
  TARN__COURIER_OUT,  // away from it
  TARN__COURIER_COUNT,
} tarn__courier;

// The station of |device|.
TARN_MUST_CHECK tarn_status tarn__station_of(tarn_device *device,
                                             tarn__station **out_station);

// A stream of the library's, made at first use, for one errand: until it is
// released it stays, though others may use it too. A failed one is replaced.
TARN_MUST_CHECK tarn_status tarn__station_courier(tarn_device *device,
                                                  tarn__courier way,
                                                  tarn_stream **out_stream);

// Lets go of it; NULL is allowed. Not with a gate: the last one who lets go of
// a failed one waits for what is queued there.
void tarn__station_release_courier(tarn_stream *courier);

// An event of |device|, a spare one if there is one.
TARN_MUST_CHECK tarn_status tarn__station_take_event(tarn_device *device,
                                                     tarn_event **out_event);

// Gives it back; NULL is allowed. Never fails: at worst it is destroyed. In a
// child of fork it only frees.
void tarn__station_give_event(tarn_device *device, tarn_event *event);

#endif  // TARN_SYNCED_STATION_H_
