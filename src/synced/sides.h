// sides.h - the places of a buffer, and its memory there.
//
// Side 0 is the host. The first access at another place adds a side, whose
// number does not change. The first access that needs memory allocates it.
//
//   no memory ──take──► memory of a pool ──┐
//       ▲                                  ├──detach──► released, without the
//       └────── outside memory (wrap) ─────┘            lock
//
// A thread leaves the lock to allocate, move or free memory. It sets |busy|,
// and other threads that need the side sleep meanwhile.
//
// Invariants: a bit of a span's |valid| is set only if the side has memory; a
// side with open accesses of at least one byte has memory.
#ifndef TARN_SYNCED_SIDES_H_
#define TARN_SYNCED_SIDES_H_

#include "synced/core.h"

// Makes the table with the host in it.
TARN_MUST_CHECK tarn_status tarn__sides_init(tarn__synced_core *core);
void tarn__sides_deinit(tarn__synced_core *core);

// The side of |place|; TARN__NO_SIDE: it was never used. With the lock.
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

// Whether copies may be made into the memory of |side|.
static inline bool tarn__side_is_open(const tarn__synced_side *side) {
  if (!side->outside) return true;
  if ((side->wrap & TARN_WRAP_READ_ONLY) != 0) return false;
  return side->deleter != NULL || (side->wrap & TARN_WRAP_FILL) != 0;
}

// Whether an access may write the memory of |side|.
static inline bool tarn__side_is_writable(const tarn__synced_side *side) {
  return !side->outside || (side->wrap & TARN_WRAP_READ_ONLY) == 0;
}

// Allocates memory for a side that has none and is not busy. With the lock,
// which is left meanwhile: another thread may evict the memory before the call
// returns.
//
// TARN_FULL  also if the size exceeds any address space.
TARN_MUST_CHECK tarn_status tarn__side_take(tarn__synced_core *core,
                                            uint32_t side);

// Allocates from the pool of |place| with |core|'s options. |*out_memory| is a
// side with only that memory. Without the lock.
TARN_MUST_CHECK tarn_status tarn__side_allocate(tarn__synced_core *core,
                                                tarn_place place,
                                                tarn__synced_side *out_memory);

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

// The same for memory that was never attached: the trace is not told.
tarn_status tarn__side_discard(const tarn__synced_core *core,
                               const tarn__synced_side *memory);

#endif  // TARN_SYNCED_SIDES_H_
