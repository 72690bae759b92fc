// uses.h - the streams that use a block besides the one that frees it.
#ifndef TARN_POOL_USES_H_
#define TARN_POOL_USES_H_

#include "tarn/pool.h"

typedef struct tarn__pool_piece tarn__pool_piece;

// Part of every piece, and nearly always empty: one stream is remembered in
// place, more of them on the host's heap.
typedef struct tarn__pool_uses {
  uint64_t first;                     // serial; 0: there are none
  struct tarn__pool_more_uses *more;  // NULL: there are no more
} tarn__pool_uses;

static inline bool tarn__uses_any(const tarn__pool_uses *uses) {
  return uses->first != 0;
}

// Adds the stream with |serial|, once. False: no host memory.
TARN_MUST_CHECK bool tarn__uses_add(tarn__pool_uses *uses, uint64_t serial);

size_t tarn__uses_count(const tarn__pool_uses *uses);
uint64_t tarn__uses_at(const tarn__pool_uses *uses, size_t index);

void tarn__uses_clear(tarn__pool_uses *uses);

// Puts |stream|, whose serial is |*serial|, behind what the streams of |piece|
// have queued by now. For the host, 0, that is the order of one of them, which
// then waits for the others: |*serial| says which; 0 still: nobody's, all of
// that is done. The lock is let go meanwhile; |piece| is marked by the caller,
// so that it stays.
TARN_MUST_CHECK tarn_status tarn__uses_settle(tarn_pool *pool,
                                              tarn__pool_piece *piece,
                                              tarn_stream *stream,
                                              uint64_t *serial);

#endif  // TARN_POOL_USES_H_
