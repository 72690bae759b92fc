// take.h - the steps of a request (take.c), for one block (alloc.c) and for
// requests with options or of several blocks (with.c).
//
//   expected ─► its place                                           (steps.h)
//   else find a piece ─► order behind its last stream ─► count it
#ifndef TARN_POOL_TAKE_H_
#define TARN_POOL_TAKE_H_

#include "base/status.h"
#include "pool/front.h"
#include "tarn/alloc.h"

// Checks a request independently of the pool's state. TARN_E_INVALID.
TARN_MUST_CHECK static inline tarn_status tarn__take_check(size_t size,
                                                           size_t align,
                                                           tarn_tag tag) {
  if (size == 0) return tarn__fail(TARN_E_INVALID, "pool: size is 0");
  if (align != 0 && !tarn_is_power_of_two(align)) {
    return tarn__fail(TARN_E_INVALID,
                      "pool: alignment %zu is not a power of two", align);
  }
  if (tag != 0 && !tarn__tag_is_known(tag)) {
    return tarn__fail(TARN_E_INVALID, "pool: there is no tag %u", tag);
  }
  return TARN_OK;
}

// All below but the last is called with the lock held, which is let go where
// the device is asked.
//
// A piece of the present strategy, idle and uncounted, for |request|, whose
// |counted| is set. The first asks once; the second makes room as far as
// |request| allows.
TARN_MUST_CHECK tarn_status tarn__take_try(tarn_pool *pool,
                                           tarn__pool_request *request,
                                           tarn__pool_piece **out_piece);
TARN_MUST_CHECK tarn_status tarn__take_find(tarn_pool *pool,
                                            tarn__pool_request *request,
                                            tarn__pool_piece **out_piece);

// Counts that piece as a live block. Cannot fail.
void tarn__take_enter(tarn_pool *pool, const tarn__pool_request *request,
                      tarn__pool_piece *piece);

// The block that was just put there is the stream's, and may be part of a step.
void tarn__take_note(tarn_pool *pool, const tarn__pool_note *what,
                     tarn__pool_piece *piece);

// Lets go of the lock after |request| came to |why|, which is returned. If that
// is TARN_FULL a snapshot is written where one is wanted. |noted|: where events
// are on, one tells of it.
tarn_status tarn__take_end(tarn_pool *pool, const tarn__pool_request *request,
                           bool noted, tarn_status why);

// Serves the event that |steps| expect now.
static inline void tarn__take_expected(tarn_pool *pool, tarn__pool_steps *steps,
                                       tarn_block *out_block) {
  tarn__pool_step_cursor *cursor = &steps->cursor;
  const tarn__pool_step_event *e = cursor->at;
  tarn__pool_piece *piece = e->piece;
  uint32_t generation = piece->generation + 1;
  if (generation == 0) generation = 1;  // 0: no block
  piece->generation = generation;
  piece->live = true;
  cursor->at = e + 1;
  *out_block = (tarn_block){.pool = pool,
                            .address = piece->address,
                            .size = piece->size,
                            .id = piece->id,
                            .generation = generation};
}

// Serves a request that no step expects. Called with the lock, which is
// released.
TARN_MUST_CHECK tarn_status tarn__take_found(tarn_pool *pool,
                                             tarn__pool_request *request,
                                             const tarn__pool_note *what,
                                             tarn_stream *stream,
                                             tarn_block *out_block);

// A request with options, or of a pool that debugs. No lock is held.
TARN_MUST_CHECK tarn_status tarn__take_with(tarn_pool *pool,
                                            const tarn_alloc_options *options,
                                            tarn_block *out_block);

#endif  // TARN_POOL_TAKE_H_
