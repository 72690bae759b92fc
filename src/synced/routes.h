// routes.h - copies from one place to another, and their cost. No state, no
// lock. The only file of this room that copies.
#ifndef TARN_SYNCED_ROUTES_H_
#define TARN_SYNCED_ROUTES_H_

#include "tarn/device.h"

// Memory of a buffer at a place.
typedef struct tarn__synced_end {
  tarn_place place;   // the host as TARN_HOST, and cpu:0 is the host
  tarn_addr address;  // of the buffer's first byte
  void *pointer;      // the same for the host; NULL where it cannot touch it
} tarn__synced_end;

// TARN_E_INVALID  |place| is no place of a buffer.
TARN_MUST_CHECK tarn_status tarn__place_check(tarn_place place);

// The place that stands for |place| in buffers: TARN_HOST for all names of the
// host, pinned or not.
tarn_place tarn__route_place(tarn_place place);

static inline bool tarn__route_is_same(tarn_place a, tarn_place b) {
  return a.device == b.device && a.kind == b.kind;
}

// The cost of a copy, to compare: within a device, between devices that reach
// each other, from or to the host, through the host.
unsigned tarn__route_price(tarn_place from, tarn_place to);

// The device whose stream makes the copy: the source's, or the target's if the
// source is the host; NULL if the host can access both.
tarn_device *tarn__route_device(tarn_place from, tarn_place to);

// Copies |size| bytes at |offset| of |from| to |offset| of |to|: on |stream|,
// of tarn__route_device, or, if NULL, at once.
TARN_MUST_CHECK tarn_status tarn__route_copy(const tarn__synced_end *from,
                                             const tarn__synced_end *to,
                                             size_t offset, size_t size,
                                             tarn_stream *stream);

// Sets the bytes to zero, at once.
TARN_MUST_CHECK tarn_status tarn__route_zero(const tarn__synced_end *to,
                                             size_t offset, size_t size);

#endif  // TARN_SYNCED_ROUTES_H_
