// capture.h - what a pool does for captured graphs, for the files of the front.
#ifndef TARN_POOL_CAPTURE_H_
#define TARN_POOL_CAPTURE_H_

#include "pool/front.h"
#include "tarn/capture.h"

// The caller holds the lock. The calls on the path of every request and free
// check inline whether there is a capture, or may be one.
//
// Looks whether a capture has begun, or is over, of which nobody told the pool:
// asks the device about the stream with |serial|, 0 for none, and about the one
// that captured before. Where |waits|, the end of a capture takes effect, for
// which the host may have to wait as in tarn_pool_end_capture. Releases the
// lock, except in pools that do not watch. Returns whether that stream
// captures.
bool tarn__capture_ask(tarn_pool *pool, uint64_t serial, bool waits);

static inline bool tarn__capture_look(tarn_pool *pool, uint64_t serial,
                                      bool waits) {
  return pool->watches && tarn__capture_ask(pool, serial, waits);
}

// Whether the request may be made now. In a capture it is only to get memory
// that its stream need not wait for. TARN_E_STATE.
TARN_MUST_CHECK tarn_status
tarn__capture_admit_request(tarn_pool *pool, tarn__pool_request *request);

TARN_MUST_CHECK static inline tarn_status tarn__capture_admit(
    tarn_pool *pool, tarn__pool_request *request) {
  return tarn__front_keeps(pool) || pool->watches
             ? tarn__capture_admit_request(pool, request)
             : TARN_OK;
}

// In a capture that was noticed: a block that the request's stream got in one,
// and has freed, serves it again: it is the graph's in any case. The piece is
// as a strategy gives it. False: there is none, and nothing has changed.
TARN_MUST_CHECK bool tarn__capture_find_again(tarn_pool *pool,
                                              tarn__pool_request *request,
                                              tarn__pool_piece **out_piece);

TARN_MUST_CHECK static inline bool tarn__capture_again(
    tarn_pool *pool, tarn__pool_request *request,
    tarn__pool_piece **out_piece) {
  return pool->watches && pool->deferred != NULL &&
         tarn__capture_find_again(pool, request, out_piece);
}

// Whether |piece| may be resized now by the stream with |serial|, and whether
// memory may be given back. TARN_E_STATE.
TARN_MUST_CHECK tarn_status tarn__capture_admit_resize(
    const tarn_pool *pool, const tarn__pool_piece *piece, uint64_t serial);
TARN_MUST_CHECK tarn_status tarn__capture_admit_trim(tarn_pool *pool);

// Whether the free of |piece| by the stream with |serial| is not to take effect
// now: then it is noted for later.
TARN_MUST_CHECK bool tarn__capture_defer_free(tarn_pool *pool,
                                              tarn__pool_piece *piece,
                                              uint64_t serial);

TARN_MUST_CHECK static inline bool tarn__capture_defer(tarn_pool *pool,
                                                       tarn__pool_piece *piece,
                                                       uint64_t serial) {
  return (tarn__front_keeps(pool) || piece->noticed) &&
         tarn__capture_defer_free(pool, piece, serial);
}

#endif  // TARN_POOL_CAPTURE_H_
