// sides.h - the places of a buffer, and its memory there.
//
// Side 0 is the host, from the start. Others are entered when a place is first
// named by an access, and stay: a side's number is its place's for ever. Memory
// comes with the first access that needs it.
//
//   no memory ──take──► memory of a pool ──┐
//       ▲                                  ├──detach──► given back, without
//       └────── outside memory (wrap) ─────┘            the lock
//
// A thread that gets, moves or gives memory must leave the lock for it. It sets
// |busy| then, and others that need the side sleep until it is not.
//
// Invariants: a bit of a span's |valid| is set only where the side has memory;
// a side with open accesses has memory, or they are of 0 bytes.
#ifndef TARN_SYNCED_SIDES_H_
#define TARN_SYNCED_SIDES_H_

#include "synced/core.h"

// Room for the first sides, and the host.
TARN_MUST_CHECK tarn_status tarn__sides_init(tarn__synced_core *core);
void tarn__sides_deinit(tarn__synced_core *core);

// The side of |place|; TARN__NO_SIDE if it was never named. With the lock.
uint32_t tarn__side_find(const tarn__synced_core *core, tarn_place place);

// The same, entered if it is new. With the lock, which is left for a new one:
// all else may have changed then.
//
// TARN_E_INVALID, TARN_E_UNSUPPORTED, TARN_E_NOMEM, TARN_E_DEVICE.
TARN_MUST_CHECK tarn_status tarn__side_of(tarn__synced_core *core,
                                          tarn_place place, uint32_t *out_side);

static inline bool tarn__side_has_memory(const tarn__synced_side *side) {
  return side->end.address != 0;
}

// Whether copies may be made into it, be it memory of its own or outside's.
static inline bool tarn__side_is_open(const tarn__synced_side *side) {
  if (!side->outside) return true;
  if ((side->wrap & TARN_WRAP_READ_ONLY) != 0) return false;
  return side->deleter != NULL || (side->wrap & TARN_WRAP_FILL) != 0;
}

// Whether an access may write there.
static inline bool tarn__side_is_writable(const tarn__synced_side *side) {
  return !side->outside || (side->wrap & TARN_WRAP_READ_ONLY) == 0;
}

// Gets memory for a side that has none and is not busy. With the lock, which is
// left meanwhile; when it is back the side may have none again, if somebody
// else was quick to evict it.
//
// TARN_FULL  also where no address space can hold the size.
TARN_MUST_CHECK tarn_status tarn__side_take(tarn__synced_core *core,
                                            uint32_t side);

// Takes from the pool of |place|, as of |core|'s options, without the lock:
// |*out_memory| is a side with nothing else in it.
TARN_MUST_CHECK tarn_status tarn__side_allocate(tarn__synced_core *core,
                                                tarn_place place,
                                                tarn__synced_side *out_memory);

// Puts |memory| into the side, which has none. With the lock.
void tarn__side_attach(tarn__synced_core *core, uint32_t side,
                       const tarn__synced_side *memory);

// Takes the memory out of the side, and its bit out of all spans; nobody is at
// work there (tarn__side_rest), no access is open there. With the lock.
tarn__synced_side tarn__side_detach(tarn__synced_core *core, uint32_t side);

// Gives memory that was detached back to its pool, or calls the deleter.
// Without the lock. In a child of fork it does nothing.
//
// TARN_E_DEVICE  the device refused it; it counts as gone.
tarn_status tarn__side_release(const tarn__synced_core *core,
                               const tarn__synced_side *memory);

// Releases memory that was taken out of a side, if there is any. Nothing of the
// buffer can be lost by it, so that a device that refuses it is only logged.
// Without the lock.
void tarn__side_let_go(const tarn__synced_core *core,
                       const tarn__synced_side *memory);

// The same of memory that never was a side's: the trace is not told.
tarn_status tarn__side_discard(const tarn__synced_core *core,
                               const tarn__synced_side *memory);

#endif  // TARN_SYNCED_SIDES_H_
