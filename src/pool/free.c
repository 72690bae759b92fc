// The front: every free passes here.
//
//   expected ─► its place is free again                             (steps.h)
//   else check ─► order behind its first stream, and behind others that use it
//   ─► count ─► back to the strategy that owns the piece
#include <assert.h>

#include "base/status.h"
#include "device/memory.h"
#include "pool/capture.h"
#include "pool/take.h"

// --- giving back -----------------------------------------------------------

// The block to free: a block itself, or the block that starts at an address.
typedef struct freed {
  const tarn_block *block;  // NULL: by address
  tarn_addr address;
} freed;

// The piece that may be the block's, found without the lock or with it; NULL:
// there is none. It is for the caller to compare more of it.
static inline tarn__pool_piece *piece_of(const tarn_pool *pool, freed what) {
  return what.block != NULL ? tarn__pieces_at(&pool->pieces, what.block->id)
                            : tarn__pieces_find(&pool->pieces, what.address);
}

static tarn_status look_for(tarn_pool *pool, freed what,
                            tarn__pool_piece **out_piece) {
  if (what.block != NULL) {
    return tarn__front_find_block(pool, "free", what.block, out_piece);
  }
  TARN__TRY(tarn__front_find_address(pool, what.address, out_piece));
  return tarn__front_check_rest("free", *out_piece);
}

// No lane takes the block from then on. If one just has, there is none, or the
// next at that address.
static tarn_status find_target(tarn_pool *pool, freed what,
                               tarn__pool_piece **out_piece) {
  do {
    TARN__TRY(look_for(pool, what, out_piece));
  } while (!tarn__piece_leave_home(*out_piece));
  return TARN_OK;
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

// For the next blocks like this one that the thread frees.
static inline void open_lane(tarn_pool *pool, const tarn__pool_piece *piece) {
  if (piece->size <= TARN__LANE_LARGEST && tarn__lanes_turn(pool) &&
      tarn__seats_are_watched()) {
    (void)tarn__lanes_open(pool, piece->tag);
  }
}

static tarn_status free_locked(tarn_pool *pool, freed what, tarn_stream *stream,
                               uint64_t serial) {
  tarn__pool_piece *piece = NULL;
  tarn_status ordered = TARN_OK;
  (void)tarn__capture_look(pool, serial, false);
  TARN__TRY(find_target(pool, what, &piece));
  assert(piece != NULL);
  if (serial == 0) open_lane(pool, piece);
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
  tarn__piece_end(piece);
  cursor->at = e + 1;
  return true;
}

// What a plain free looks at; another thing than a live block of the present
// strategy that only the host has used goes the long way, wrong calls among it.
static inline tarn__pool_piece *find_plain(const tarn_pool *pool, freed what) {
  const tarn_block *block = what.block;
  tarn__pool_piece *piece = piece_of(pool, what);
  if (piece == NULL || !tarn__piece_is_out(piece)) return NULL;
  if (block != NULL && (tarn__piece_generation(piece) != block->generation ||
                        piece->address != block->address)) {
    return NULL;
  }
  // Each of these is hardly ever so, and all of them cost two branches.
  int marked = piece->resizing | piece->captured | piece->noticed |
               piece->planned | piece->marks;
  uint64_t others =
      piece->waits_on | piece->uses.first | (uint64_t)(uintptr_t)piece->sleeper;
  bool is_plain = marked == 0 && others == 0 && piece->owner == pool->current;
  return is_plain && tarn__piece_leave_home(piece) ? piece : NULL;
}

// By itself, so that its caller need not have all of |was| in memory.
static __attribute__((noinline)) void note_free(tarn_pool *pool, uint64_t noted,
                                                size_t requested) {
  tarn__pool_piece was = {.notes = noted, .requested = requested};
  tarn__steps_note_free(pool, &was, 0);
}

// The free of a plain request (take.h), likewise. False: it is not plain.
static inline bool give_plain(tarn_pool *pool, freed what) {
  tarn__pool_strategy *strategy = pool->current;
  if (!tarn__take_is_plain(pool) || strategy->type->give_now == NULL) {
    return false;
  }
  tarn__pool_piece *piece = find_plain(pool, what);
  if (piece == NULL) return false;
  tarn__pool_piece was = {.requested = piece->requested,
                          .tag = piece->tag,
                          .counted = piece->counted,
                          .notes = piece->notes};
  open_lane(pool, piece);
  if (!strategy->type->give_now(strategy, piece)) return false;
  pool->stats.frees++;
  strategy->live--;
  tarn__piece_end(piece);
  tarn__front_count_dead(pool, &was);
  if (was.notes != 0) note_free(pool, was.notes, was.requested);
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
  bool given = give_expected(steps, what, serial) ||
               (serial == 0 && give_plain(pool, what));
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

// Without the lock, into the lane of this thread.
static inline bool give_in_lane(tarn_pool *pool, freed what,
                                const tarn_stream *stream) {
  if (stream != NULL || !tarn__lane_is_here(pool)) return false;
  const tarn_block *block = what.block;
  tarn__pool_piece *piece = piece_of(pool, what);
  bool fits = piece != NULL &&
              (block == NULL || tarn__piece_address(piece) == block->address);
  if (!fits) return false;
  tarn__pool_gift gift = tarn__lane_give(
      pool, piece,
      block != NULL ? block->generation : tarn__piece_generation(piece));
  if (gift == TARN__LANE_FULL) tarn__lanes_relieve(pool);
  return gift != TARN__LANE_REFUSED;
}

// Of the owner of the lock, who is inside. Not part of its caller, which an
// expected free would have to pass.
static __attribute__((noinline)) tarn_status give_owned(
    tarn_pool *pool, freed what, tarn__owner_slot *slot) {
  bool given = give_plain(pool, what);
  tarn__biased_lock_leave_owned(slot);
  return given ? TARN_OK : give_any(pool, what, NULL);
}

// Of a thread that does not own the lock.
static __attribute__((noinline)) tarn_status give_shared(tarn_pool *pool,
                                                         freed what,
                                                         tarn_stream *stream) {
  return give_in_lane(pool, what, stream) ? TARN_OK
                                          : give_any(pool, what, stream);
}

static inline tarn_status give(tarn_pool *pool, freed what,
                               tarn_stream *stream) {
  tarn__owner_slot *slot = stream == NULL ? tarn__front_try(pool) : NULL;
  if (slot == NULL) return give_shared(pool, what, stream);
  if (!give_expected(&pool->steps, what, 0))
    return give_owned(pool, what, slot);
  tarn__biased_lock_leave_owned(slot);
  return TARN_OK;
}

tarn_status tarn_pool_free(const tarn_block *block, tarn_stream *stream) {
  if (block == NULL) return tarn__fail(TARN_E_INVALID, "free: NULL");
  return give(block->pool, (freed){.block = block}, stream);
}

void tarn_pool_free_counted(void *block) {
  if (tarn_pool_free(block, NULL) == TARN_OK) return;
  tarn__log(TARN_LOG_WARN, "a block whose last view is gone: %s",
            tarn_last_error());
}

tarn_status tarn_pool_free_address(tarn_pool *pool, tarn_addr address,
                                   tarn_stream *stream) {
  return give(pool, (freed){.address = address}, stream);
}
