// chunk.h - memory of the device that a strategy holds to cut it up, or to
// hand it on.
#ifndef TARN_POOL_CHUNK_H_
#define TARN_POOL_CHUNK_H_

#include "pool/strategy.h"

typedef struct tarn__pool_chunk {
  tarn_addr base;  // what the device gave
  size_t base_size;
  tarn_addr address;  // what can be used of it
  size_t size;
} tarn__pool_chunk;

// How much is asked for.
typedef struct tarn__pool_growth {
  size_t first;  // by a strategy that has asked for nothing yet, and after; 0:
  size_t later;  // |own|, or as much as the device can give now
  size_t own;
  size_t least;  // with which the request can be served
  size_t unit;   // the address is a multiple of it; sizes above |least| are too
  bool halves;   // what is refused is asked for by half, and so on; else the
                 // least is asked for
} tarn__pool_growth;

// What suits a strategy that holds |held| bytes: an eighth of that, so that
// there are few calls and little is held in vain. From 1 MiB up to |most|, a
// power of two.
size_t tarn__chunk_growth(size_t held, size_t most);

// A piece to be cut up: as much as is wanted, or less, if the device or the
// limit refuses that. The lock is let go meanwhile.
//
// TARN_FULL  the limit or the device is used up.
TARN_MUST_CHECK tarn_status tarn__chunk_grow(tarn__pool_strategy *strategy,
                                             tarn__pool_request *request,
                                             const tarn__pool_growth *growth,
                                             tarn__pool_piece **out_piece);

// Makes a piece that the device gave a chunk: it is held from then on.
tarn__pool_chunk tarn__chunk_adopt(tarn__pool_strategy *strategy,
                                   tarn__pool_piece *piece);

// Gives it back in two steps. From the first on the lock is let go, for waiting
// until no stream uses it; the second takes the lock again. The chunk is gone
// in any case; the first failure is returned, |waited| before the device's.
void tarn__chunk_begin_give(tarn__pool_strategy *strategy,
                            const tarn__pool_chunk *chunk);
tarn_status tarn__chunk_end_give(tarn__pool_strategy *strategy,
                                 const tarn__pool_chunk *chunk,
                                 tarn_status waited);

#endif  // TARN_POOL_CHUNK_H_
