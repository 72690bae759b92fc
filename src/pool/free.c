// The front: every free passes here.
//
//   expected ─► its place is free again                             (steps.h)
//   else check ─► order behind its first stream, and behind others that use it
//   ─► count ─► back to the strategy that owns the piece
#include <assert.h>

#include "base/status.h"
#include "device/memory.h"
#include "pool/capture.h"
#include "pool/front.h"

// --- giving back -----------------------------------------------------------

// The block to free: a block itself, or the block that starts at an address.
typedef struct freed {
  const tarn_block *block;  // NULL: by address
  tarn_addr address;
} freed;

static tarn_status find_target(tarn_pool *pool, freed what,
                               tarn__pool_piece **out_piece) {
  if (what.block != NULL) {
    return tarn__front_find_block(pool, "free", what.block, out_piece);
  }
  TARN__TRY(tarn__front_find_address(pool, what.address, out_piece));
  return tarn__front_check_rest("free", *out_piece);
}

// Marked, so that another thread that frees it too, by mistake, is refused
// while the lock is released.
static tarn_status end_uses(tarn_pool *pool, tarn__pool_piece *piece,
                            tarn_stream *stream, uint64_t *serial) {
  piece->resizing = true;
  tarn_status status = tarn__uses_settle(pool, piece, stream, serial);
  piece->resizing = false;
  tarn__uses_clear(&piece->uses);
  return status;
}

static tarn_status free_locked(tarn_pool *pool, freed what, tarn_stream *stream,
                               uint64_t serial) {
  tarn__pool_piece *piece = NULL;
  tarn_status ordered = TARN_OK;
  (void)tarn__capture_look(pool, serial, false);
  TARN__TRY(find_target(pool, what, &piece));
  assert(piece != NULL);
  if (tarn__capture_defer(pool, piece, serial)) return TARN_OK;
  uint64_t first = piece->waits_on;
  if (first != 0 && serial != 0 && serial != first) {
    ordered = tarn__front_follow(pool, stream, first);
    TARN__TRY(find_target(pool, what, &piece));
    if (tarn__capture_defer(pool, piece, serial)) return TARN_OK;
  }
  // A place on the layout is its stream's.
  if (piece->planned && serial != 0 && serial != first) {
    tarn__steps_break(pool, piece);
  }
  // The host has seen the end of its own uses, not of earlier ones, nor of
  // those of other streams.
  uint64_t last = serial != 0 ? serial : first;
  if (tarn__uses_any(&piece->uses)) {
    last = serial;
    tarn__keep_first(&ordered, end_uses(pool, piece, stream, &last));
  }
  pool->stats.frees++;
  tarn__steps_note_free(pool, piece, serial);
  TARN__TRY(piece->marks == 0 ? tarn__front_give(pool, piece, last)
                              : tarn__debug_give(pool, piece, last));
  return ordered;
}

// Whether this is what the learned step expects next.
static inline bool give_expected(tarn__pool_steps *steps, freed what,
                                 uint64_t serial) {
  tarn__pool_step_cursor *cursor = &steps->cursor;
  const tarn__pool_step_event *e = cursor->at;
  if (e->serial != (serial | TARN__STEP_FREE)) return false;
  tarn__pool_piece *piece = e->piece;
  const tarn_block *block = what.block;
  bool same = block == NULL ? piece->address == what.address
                            : piece->id == block->id &&
                                  piece->generation == block->generation &&
                                  piece->address == block->address;
  if (!same || !piece->live) return false;
  piece->live = false;
  cursor->at = e + 1;
  return true;
}

static __attribute__((noinline)) tarn_status give_any(tarn_pool *pool,
                                                      freed what,
                                                      tarn_stream *stream) {
  uint64_t serial = 0;
  tarn_status status = tarn__front_check_call(pool, stream, &serial);
  if (status != TARN_OK) return status;
  tarn__biased_lock_enter(&pool->lock);
  tarn__pool_steps *steps = tarn__steps_mine(pool);
  bool given = give_expected(steps, what, serial);
  if (!given) {
    tarn__steps_skip(pool, steps);
    given = give_expected(steps, what, serial);
  }
  if (!given) {
    status = free_locked(pool, what, stream, serial);
  } else if (pool->threads.apart) {
    tarn__steps_settle(pool, steps);
  }
  tarn__front_leave(pool);
  if (status != TARN_E_INVALID) return status;
  return tarn__pools_explain(
      pool, what.block != NULL ? what.block->address : what.address);
}

static inline bool give_at_once(tarn_pool *pool, freed what,
                                const tarn_stream *stream) {
  tarn__owner_slot *slot = stream == NULL ? tarn__front_try(pool) : NULL;
  if (slot == NULL) return false;
  bool given = give_expected(&pool->steps, what, 0);
  tarn__biased_lock_leave_owned(slot);
  return given;
}

tarn_status tarn_pool_free(const tarn_block *block, tarn_stream *stream) {
  if (block == NULL) return tarn__fail(TARN_E_INVALID, "free: NULL");
  freed what = {.block = block};
  return give_at_once(block->pool, what, stream)
             ? TARN_OK
             : give_any(block->pool, what, stream);
}

tarn_status tarn_pool_free_address(tarn_pool *pool, tarn_addr address,
                                   tarn_stream *stream) {
  freed what = {.address = address};
  return give_at_once(pool, what, stream) ? TARN_OK
                                          : give_any(pool, what, stream);
}
