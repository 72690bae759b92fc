// capture.h - what a pool does for captured graphs, for the files of the front.
#ifndef TARN_POOL_CAPTURE_H_
#define TARN_POOL_CAPTURE_H_

#include "pool/front.h"
#include "tarn/capture.h"

// The caller holds the lock. The calls on the path of every request and free
// check inline whether there is a capture.
//
// Whether the request may be made now. In a capture it is only to get memory
// that its stream need not wait for. TARN_E_STATE.
TARN_MUST_CHECK tarn_status
tarn__capture_admit_request(const tarn_pool *pool, tarn__pool_request *request);

TARN_MUST_CHECK static inline tarn_status tarn__capture_admit(
    const tarn_pool *pool, tarn__pool_request *request) {
  return tarn__front_keeps(pool) ? tarn__capture_admit_request(pool, request)
                                 : TARN_OK;
}

// Whether |piece| may be resized now by the stream with |serial|, and whether
// memory may be given back. TARN_E_STATE.
TARN_MUST_CHECK tarn_status tarn__capture_admit_resize(
    const tarn_pool *pool, const tarn__pool_piece *piece, uint64_t serial);
TARN_MUST_CHECK tarn_status tarn__capture_admit_trim(const tarn_pool *pool);

// Whether the free of |piece| by the stream with |serial| is not to take effect
// now: then it is noted for later.
TARN_MUST_CHECK bool tarn__capture_defer_free(tarn_pool *pool,
                                              tarn__pool_piece *piece,
                                              uint64_t serial);

TARN_MUST_CHECK static inline bool tarn__capture_defer(tarn_pool *pool,
                                                       tarn__pool_piece *piece,
                                                       uint64_t serial) {
  return tarn__front_keeps(pool) &&
         tarn__capture_defer_free(pool, piece, serial);
}

#endif  // TARN_POOL_CAPTURE_H_
