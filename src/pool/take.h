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
  uint32_t generation = tarn__piece_advance(piece);
  tarn__piece_begin(piece, 0);
  cursor->at = e + 1;
  *out_block = (tarn_block){.pool = pool,
                            .address = piece->address,
                            .size = piece->size,
                            .id = piece->id,
                            .generation = generation};
}

// --- plain requests ---------------------------------------------------------
//
// Most requests that no step expects are for the host, of a pool that neither
// captures nor debugs nor writes events, and are served by memory that is
// there. They take a short way: the same steps, without those that can have no
// effect. Whatever is not that plain changes nothing there, and goes the long
// way.

// Each of these is hardly ever so, and all of them cost one branch.
static inline bool tarn__take_is_plain(const tarn_pool *pool) {
  uintptr_t layout = (uintptr_t)pool->steps.cursor.layout;
  uintptr_t debug = (uintptr_t)tarn__debug_of(pool);
  uint32_t events = pool->stats.counters & TARN_COUNT_EVENTS;
  return (layout | debug | events | pool->flags | pool->threads.apart) == 0;
}

// Not if the piece is larger than was asked for, or goes back to the device.
static inline bool tarn__take_may_have_home(const tarn__pool_piece *piece) {
  return piece->size <= TARN__LANE_LARGEST && piece->base_size == 0;
}

// The lock is held. |home| NULL: none. False: it is not plain.
static inline bool tarn__take_plain(tarn_pool *pool, size_t size, size_t align,
                                    tarn_tag tag, const tarn__pool_lane *home,
                                    tarn_block *out_block) {
  tarn__pool_strategy *strategy = pool->current;
  bool fits = align <= pool->natural_align && (align & (align - 1)) == 0 &&
              size != 0 && tag < pool->tag_count;
  if (!fits || !tarn__take_is_plain(pool) || strategy->type->take_now == NULL) {
    return false;
  }
  tarn__pool_piece *piece = strategy->type->take_now(strategy, size);
  if (piece == NULL) return false;
  pool->stats.hits++;
  pool->stats.allocs++;
  tarn__piece_advance(piece);
  tarn__piece_set_tag(piece, tag);
  piece->requested = size;
  piece->counted = tarn__front_counts(pool, TARN_COUNT_TAGS);
  tarn__front_count_live(pool, piece, false);
  tarn__front_describe(pool, piece, out_block);
  if (strategy->steps != 0) piece->notes = 0;
  if (tarn__steps_may_learn(pool)) {
    tarn__pool_note what = {.size = size, .align = align, .tag = tag};
    tarn__steps_note(pool, &what, piece);
  }
  bool may = tarn__take_may_have_home(piece);
  tarn__piece_begin(piece, may ? tarn__lane_number(home) : 0);
  return true;
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
