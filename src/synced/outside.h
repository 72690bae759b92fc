// outside.h - outside memory: memory of the program instead of a pool.
#ifndef TARN_SYNCED_OUTSIDE_H_
#define TARN_SYNCED_OUTSIDE_H_

#include "synced/sides.h"

// Replaces outside memory of |side| that must not be written by memory of its
// own. Bytes that are valid only there are copied, the others become invalid
// there, and the outside memory is released. With the lock, which is left
// meanwhile: everything else may have changed then. After an error nothing has
// changed.
//
// TARN_E_STATE  an access is open there.
// TARN_FULL, TARN_E_DEVICE, TARN_E_NOMEM.
TARN_MUST_CHECK tarn_status tarn__side_move_to_own(tarn__synced_core *core,
                                                   uint32_t side);

// Copies the newest bytes into outside memory with TARN_WRAP_SYNC_BACK, before
// the end of the buffer, which has no other users and no uses. Without the
// lock.
//
// TARN_E_DEVICE, TARN_E_STATE  some bytes were not copied; the text says which.
tarn_status tarn__outside_sync_back(tarn__synced_core *core);

// Whether the side's memory must get newer bytes before its release. With the
// lock.
bool tarn__outside_wants_back(const tarn__synced_core *core, uint32_t side);

// Copies them. With the lock, which is left meanwhile. Errors as for
// tarn_synced_begin.
TARN_MUST_CHECK tarn_status tarn__outside_give_back(tarn__synced_core *core,
                                                    uint32_t side);

#endif  // TARN_SYNCED_OUTSIDE_H_
