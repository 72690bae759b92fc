// sides.h - the places of a buffer, and its memory there.
//
// Side 0 is the host. The first access at another place adds a side, whose
// number does not change. The first access that needs memory allocates it.
//
//   no memory ──take──► memory of a pool ──┐
//       ▲                                  ├──detach──► released, without the
//       └────── outside memory (wrap) ─────┘            lock
//
// A thread releases the lock to allocate, move or free memory. It sets |busy|,
// and other threads that need the side sleep until it returns.
//
// Invariants: a bit of a span's |valid| is set only if the side has memory; a
// side with open accesses of at least one byte has memory.
#ifndef TARN_SYNCED_SIDES_H_
#define TARN_SYNCED_SIDES_H_

#include "base/status.h"
#include "synced/core.h"

// Makes the table with the host in it.
TARN_MUST_CHECK tarn_status tarn__sides_init(tarn__synced_core *core);
void tarn__sides_deinit(tarn__synced_core *core);

// The side of |place|, which is as tarn__route_place names it; TARN__NO_SIDE:
// it was never used. With the lock.
uint32_t tarn__side_at(const tarn__synced_core *core, tarn_place place);

// The same for any name of the place.
uint32_t tarn__side_find(const tarn__synced_core *core, tarn_place place);

// The same, added if it is new. With the lock, which is left for a new side:
// everything else may have changed then.
//
// TARN_E_INVALID, TARN_E_UNSUPPORTED, TARN_E_NOMEM, TARN_E_DEVICE.
TARN_MUST_CHECK tarn_status tarn__side_of(tarn__synced_core *core,
                                          tarn_place place, uint32_t *out_side);

static inline bool tarn__side_has_memory(const tarn__synced_side *side) {
  return side->end.address != 0;
}

// Allocates memory for a side that has none and is not busy. The caller holds
// the lock, which is released: another thread may evict the memory before the
// call returns.
//
// TARN_FULL  also if the size exceeds any address space.
TARN_MUST_CHECK tarn_status tarn__side_take(tarn__synced_core *core,
                                            uint32_t side);

// Puts |memory| into the side, which has none. With the lock.
void tarn__side_attach(tarn__synced_core *core, uint32_t side,
                       const tarn__synced_side *memory);

// Removes the memory from the side, and the side's bit from all spans. The side
// has no uses (tarn__side_rest) and no open accesses. With the lock.
tarn__synced_side tarn__side_detach(tarn__synced_core *core, uint32_t side);

// Returns detached memory to its pool, or calls the deleter. Without the lock.
// Does nothing in a child of fork.
//
// TARN_E_DEVICE  the device refused to free it; it counts as freed.
tarn_status tarn__side_release(const tarn__synced_core *core,
                               const tarn__synced_side *memory);

// Releases detached memory, if there is any. No byte of the buffer depends on
// it, so a failure is logged only. Without the lock.
void tarn__side_let_go(const tarn__synced_core *core,
                       const tarn__synced_side *memory);

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
// lock. Notes in |*first|:
//
// TARN_E_DEVICE, TARN_E_STATE  some bytes were not copied; the text says which.
void tarn__outside_sync_back(tarn__synced_core *core, tarn__failure *first);

#endif  // TARN_SYNCED_SIDES_H_
