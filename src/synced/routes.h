// routes.h - how bytes come from one place to another, and at what price.
//
// Keeps no state and takes no lock: the only file of this room that copies.
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

// The place that stands for |place| in buffers: TARN_HOST for the host, however
// it is named or pinned.
tarn_place tarn__route_place(tarn_place place);

// The cheaper of two ways has the smaller price: within a device; between
// devices that reach each other; from or to the host; by way of the host.
unsigned tarn__route_price(tarn_place from, tarn_place to);

// Whose stream carries it: the source's, or where that is the host the
// target's; NULL where both are the host's (or the host can touch both).
tarn_device *tarn__route_device(tarn_place from, tarn_place to);

// Copies |size| bytes at |offset| of the one to |offset| of the other: behind
// what is on |stream|, of tarn__route_device, or, with NULL, at once.
TARN_MUST_CHECK tarn_status tarn__route_copy(const tarn__synced_end *from,
                                             const tarn__synced_end *to,
                                             size_t offset, size_t size,
                                             tarn_stream *stream);

// Sets them to zero, at once.
TARN_MUST_CHECK tarn_status tarn__route_zero(const tarn__synced_end *to,
                                             size_t offset, size_t size);

#endif  // TARN_SYNCED_ROUTES_H_
