// outside.h - memory that is not of a pool, as accesses see it.
#ifndef TARN_SYNCED_OUTSIDE_H_
#define TARN_SYNCED_OUTSIDE_H_

#include "synced/sides.h"

// Gives |side|, which has outside memory that must not be written, memory of
// its own instead: what is valid there and nowhere else is copied over, the
// rest is not valid there any more, and the outside memory is let go. With the
// lock, which is left meanwhile: all else may have changed then.
//
// TARN_E_STATE  an access is open there: nothing has changed, nor after others.
// TARN_FULL, TARN_E_DEVICE, TARN_E_NOMEM.
TARN_MUST_CHECK tarn_status tarn__side_move_to_own(tarn__synced_core *core,
                                                   uint32_t side);

// Copies the newest bytes into outside memory that wants them back
// (TARN_WRAP_SYNC_BACK), before the buffer ends: nobody else uses it, and no
// use is left. Without the lock.
//
// TARN_E_DEVICE, TARN_E_STATE  some bytes could not be; the text says which.
tarn_status tarn__outside_sync_back(tarn__synced_core *core);

// Whether the side's memory is to have newer bytes before it is let go. With
// the lock.
bool tarn__outside_wants_back(const tarn__synced_core *core, uint32_t side);

// Copies them there. With the lock, which is left meanwhile. Errors as of
// tarn_synced_begin.
TARN_MUST_CHECK tarn_status tarn__outside_give_back(tarn__synced_core *core,
                                                    uint32_t side);

#endif  // TARN_SYNCED_OUTSIDE_H_
