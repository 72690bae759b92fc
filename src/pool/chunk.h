// chunk.h - memory of the device that a strategy holds to cut it up, or to
// hand it on.
#ifndef TARN_POOL_CHUNK_H_
#define TARN_POOL_CHUNK_H_

#include "pool/strategy.h"

typedef struct tarn__chunk {
  tarn_addr base;  // what the device gave
  size_t base_size;
  tarn_addr address;  // what can be used of it
  size_t size;
} tarn__chunk;

// At least |size| bytes, aligned as |request| asks. The lock is let go
// meanwhile.
//
// TARN_FULL  the limit or the device is used up.
TARN_MUST_CHECK tarn_status tarn__chunk_take(tarn__strategy *strategy,
                                             tarn__request *request,
                                             size_t size,
                                             tarn__chunk *out_chunk);

// The same for a piece that is there: what the device gave is a piece for a
// moment, as of any strategy, and then held.
tarn__chunk tarn__chunk_adopt(tarn__strategy *strategy, tarn__piece *piece);

// Gives it back in two steps. From the first on the lock is let go, for waiting
// until no stream uses it; the second takes the lock again. The chunk is gone
// in any case; the first failure is returned, |waited| before the device's.
void tarn__chunk_begin_give(tarn__strategy *strategy, const tarn__chunk *chunk);
tarn_status tarn__chunk_end_give(tarn__strategy *strategy,
                                 const tarn__chunk *chunk, tarn_status waited);

#endif  // TARN_POOL_CHUNK_H_
