// closing.h - what buffers have to do with a device that is about to close.
//
// Called by the device's copy streams, with the lock of the device room's
// registry, which comes before a gate.
#ifndef TARN_SYNCED_CLOSING_H_
#define TARN_SYNCED_CLOSING_H_

#include "synced/core.h"

// Buffers let go of points in its streams that are reached.
//
// TARN_E_STATE  a buffer has memory there, or is using it without its gate; the
//               text names it.
TARN_MUST_CHECK tarn_status tarn__closing_ask(tarn_device *device);

// It closes: buffers that were there forget it. Places of it that they have
// counts for are nowhere from now on.
void tarn__closing_commit(tarn_device *device);

// Keeps the device of |core| open until tarn__closing_let_go; NULL: there is
// none, or it has closed. Where a close of it is under way, waits until that is
// over, so not with the gate. A thread that cannot wait for it, as in a
// stream's callback, gets NULL.
tarn_device *tarn__closing_hold(tarn__synced_core *core);
void tarn__closing_let_go(tarn__synced_core *core);

// Whether |place| was one of a device that has closed since.
static inline bool tarn__closing_is_nowhere(tarn_place place) {
  return place.device == NULL && place.kind != TARN_PLACE_HOST;
}

#endif  // TARN_SYNCED_CLOSING_H_
