// moves.h - what it costs to move pages of memory, and how much of that a pool
// affords.
//
// A page that moves is two calls of the system or the driver: microseconds on
// the host, hundreds of them on a card. A pool rather holds more memory, up to
// a bound, and moves pages as far as their price has been earned:
//
//   debt   ^    /|                       moves add their price
//          |   / |\        /|\           requests served pay it off, and time
//          |  /  | \______/ | \___
//     most |.....|..........|........    the price of moving the live peak once
//
// So a pool whose program repeats becomes tight in its first steps, and one
// whose program does not stops moving, or moves about as much as it serves.
// What is paid in advance is not saved up: a long quiet time affords no more
// moves than a short one.
//
// Not synchronized: the pool's lock guards it.
#ifndef TARN_POOL_MOVES_H_
#define TARN_POOL_MOVES_H_

#include "pool/strategy.h"
#include "pool/supply.h"

#define TARN__MOVES_UNKNOWN SIZE_MAX

// Where the price comes from, which says what a move is charged.
typedef enum tarn__pool_price {
  TARN__PRICE_TOLD,      // or of a dry run: the price
  TARN__PRICE_OF_HOST,   // known about: what the move took, as far as that can
                         // be the move's and not the scheduler's
  TARN__PRICE_MEASURED,  // what it took, but at least the price
} tarn__pool_price;

typedef struct tarn__pool_moves {
  size_t price_ns;  // of a page; TARN__MOVES_UNKNOWN: not measured yet
  tarn__pool_price source;
  bool dry;          // time pays nothing: there is none
  uint64_t debt_ns;  // the price of moves, less what has been paid off
  uint64_t paid_ns;  // the time until which time has
  uint64_t served;   // the requests until which serving has
} tarn__pool_moves;

// How far a pool has come: the requests that it has served, and the time.
typedef struct tarn__pool_moment {
  uint64_t served;
  uint64_t now_ns;
} tarn__pool_moment;

// |told_ns|: the price, or TARN__MOVES_UNKNOWN. Memory that the host can access
// is the system's, whose price is known, and is that of a dry run, too.
void tarn__moves_init(tarn__pool_moves *moves, size_t told_ns,
                      const tarn__pool_supply *supply);

// Measures the price, if it is unknown, with a page of its own: the least time
// that a few moves take. Stays unknown where the device has no page more, or
// fails. Releases the lock.
void tarn__moves_measure(tarn__pool_moves *moves, tarn__pool_strategy *strategy,
                         const tarn__pool_supply *supply, size_t page);

// Whether |count| pages may be moved at |moment|, by a pool whose live peak has
// |peak| pages. True while the price is unknown.
bool tarn__moves_afford(tarn__pool_moves *moves, size_t count, size_t peak,
                        tarn__pool_moment moment);

// |count| pages were moved, which took |took_ns| and ended at |moment|.
void tarn__moves_charge(tarn__pool_moves *moves, size_t count, uint64_t took_ns,
                        tarn__pool_moment moment);

#endif  // TARN_POOL_MOVES_H_
