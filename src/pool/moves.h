// moves.h - what it costs to move pages of memory, and how much of that a pool
// affords.
//
// On some devices a page moves in a few microseconds; on a card it takes
// hundreds, and may have to wait for the device. There a pool rather holds more
// memory, up to a bound, and moves pages as far as their price has been earned:
//
//   debt   ^    /|                       moves add their price
//          |   / |\        /|\           time pays it off: a hundredth of it
//          |  /  | \______/ | \___
//     most |.....|..........|........    the price of moving the live peak once
//
// So a pool whose program repeats becomes as tight as on any device in its
// first steps, and one whose program does not stops moving.
//
// Not synchronized: the pool's lock guards it.
#ifndef TARN_POOL_MOVES_H_
#define TARN_POOL_MOVES_H_

#include "pool/strategy.h"
#include "pool/supply.h"

#define TARN__MOVES_UNKNOWN SIZE_MAX

typedef struct tarn__pool_moves {
  size_t price_ns;   // of a page; TARN__MOVES_UNKNOWN: not measured yet
  uint64_t debt_ns;  // the price of moves, less what time has paid off
  uint64_t paid_ns;  // the time until which it has
} tarn__pool_moves;

// |told_ns|: the price, or TARN__MOVES_UNKNOWN. Memory that the host can access
// is the system's, where moves are cheap, and in a dry run they are free: there
// the price is known to be 0.
void tarn__moves_init(tarn__pool_moves *moves, size_t told_ns,
                      const tarn__pool_supply *supply);

// Whether a pool should rather hold more memory than move a page. False while
// the price is unknown.
bool tarn__moves_are_dear(const tarn__pool_moves *moves);

// Measures the price, if it is unknown, with a page of its own: the least time
// that a few moves take. Stays unknown where the device has no page more, or
// fails. Releases the lock.
void tarn__moves_measure(tarn__pool_moves *moves, tarn__pool_strategy *strategy,
                         const tarn__pool_supply *supply, size_t page);

// Whether |count| pages may be moved at the time |now_ns|, by a pool whose live
// peak has |peak| pages.
bool tarn__moves_afford(tarn__pool_moves *moves, size_t count, size_t peak,
                        uint64_t now_ns);

// |count| pages were moved from |begin_ns| to |now_ns|: adds their price, or
// that time if it is more.
void tarn__moves_charge(tarn__pool_moves *moves, size_t count,
                        uint64_t begin_ns, uint64_t now_ns);

#endif  // TARN_POOL_MOVES_H_
