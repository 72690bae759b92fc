// take.h - the steps of a request, for one block (alloc.c) and for requests
// with options or of several blocks (with.c).
//
//   expected ─► its place                                     (step_layout.h)
//   else find a piece ─► order behind its last stream ─► count it
#ifndef TARN_POOL_TAKE_H_
#define TARN_POOL_TAKE_H_

#include "base/status.h"
#include "pool/front.h"
#include "tarn/alloc.h"

// What is wrong with a request, whatever the pool has. TARN_E_INVALID.
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
// A piece of the present strategy, idle and uncounted, for a block of |tag|
// that is |counted| under it. The first asks once; the second makes room as far
// as |request| allows.
TARN_MUST_CHECK tarn_status tarn__take_try(tarn_pool *pool,
                                           tarn__pool_request *request,
                                           tarn_tag tag, bool counted,
                                           tarn__pool_piece **out_piece);
TARN_MUST_CHECK tarn_status tarn__take_find(tarn_pool *pool,
                                            tarn__pool_request *request,
                                            tarn_tag tag, bool counted,
                                            tarn__pool_piece **out_piece);

// Counts that piece as a live block. Cannot fail.
void tarn__take_enter(tarn_pool *pool, const tarn__pool_request *request,
                      tarn_tag tag, bool counted, tarn__pool_piece *piece);

// The block that was just put there is the stream's, and may be part of a step.
void tarn__take_note(tarn_pool *pool, const tarn__pool_note *what,
                     tarn__pool_piece *piece);

// Lets go of the lock after a request that came to |why|, which is returned. If
// that is TARN_FULL a snapshot is written where one is wanted.
tarn_status tarn__take_end(tarn_pool *pool, const tarn__pool_refusal *refusal,
                           tarn_status why);

// Whether the step expects at |e| what is asked for. A request that cannot be
// right is never expected. That most are plain saves three comparisons.
static inline bool tarn__take_is_expected(const tarn__pool_step_event *e,
                                          const tarn__pool_note *what) {
  if (e->size != what->size) return false;
  bool plain = what->serial == 0 && what->align == 0 && what->tag == 0;
  return plain ? e->is_plain
               : e->serial == what->serial && e->align == what->align &&
                     e->tag == what->tag;
}

// Serves what the step expects now.
static inline void tarn__take_expected(tarn_pool *pool, tarn_block *out_block) {
  const tarn__pool_step_event *e = pool->cursor.at;
  tarn__pool_piece *piece = e->piece;
  uint32_t generation = piece->generation + 1;
  if (generation == 0) generation = 1;  // 0: no block
  piece->generation = generation;
  piece->live = true;
  pool->cursor.at = e + 1;
  *out_block = (tarn_block){.pool = pool,
                            .address = piece->address,
                            .size = piece->size,
                            .id = piece->id,
                            .generation = generation};
}

// Whether this is what the learned step expects next: then it is served.
static inline bool tarn__take_if_expected(tarn_pool *pool,
                                          const tarn__pool_note *what,
                                          tarn_block *out_block) {
  if (!tarn__take_is_expected(pool->cursor.at, what)) return false;
  tarn__take_expected(pool, out_block);
  return true;
}

// What the host takes, the step expects, and the owner of the lock asks for
// costs nothing but this.
static inline bool tarn__take_at_once(tarn_pool *pool, size_t size,
                                      size_t align, const tarn_stream *stream,
                                      tarn_tag tag, tarn_block *out_block) {
  tarn__owner_slot *slot = stream == NULL ? tarn__front_try(pool) : NULL;
  if (slot == NULL) return false;
  tarn__pool_note what = {.size = size, .align = align, .tag = tag};
  bool taken = tarn__take_if_expected(pool, &what, out_block);
  tarn__biased_lock_leave_owned(slot);
  return taken;
}

// tarn_pool_alloc where the request is not served at once. No lock is held.
TARN_MUST_CHECK tarn_status tarn__take_any(tarn_pool *pool, size_t size,
                                           size_t align, tarn_stream *stream,
                                           tarn_tag tag, tarn_block *out_block);

#endif  // TARN_POOL_TAKE_H_
