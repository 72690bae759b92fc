// live blocks: filled when they are taken, with a guard behind them.
//
//   address                 requested           size of the piece
//   [ the block: fresh ...   | guard ............ ]
//
// Invariant: of a piece marked TARN_POOL_DEBUG_GUARDS that is live and not
// being resized, all bytes from |requested| on are TARN_POOL_GUARD_BYTE unless
// the program has written there, and hidden from it where that is possible.
#include "base/status.h"
#include "pool/debug.h"
#include "pool/front.h"

// --- taking ----------------------------------------------------------------

static tarn_status lay_guard(tarn_place place, const tarn__pool_piece *piece,
                             size_t from) {
  tarn_addr address = piece->address + from;
  size_t size = piece->size - from;
  tarn_status status =
      tarn__poison_fill(place, address, size, TARN_POOL_GUARD_BYTE);
  if (status == TARN_OK) tarn__poison_hide(place, address, size);
  return status;
}

// Bytes that the program has not written yet.
static tarn_status freshen(tarn_place place, const tarn__pool_piece *piece,
                           size_t from, size_t to) {
  tarn_addr address = piece->address + from;
  tarn_status status =
      tarn__poison_fill(place, address, to - from, TARN_POOL_FRESH_BYTE);
  tarn__poison_show_fresh(place, address, to - from);
  return status;
}

// What others have queued on the memory is behind |stream| by now.
tarn_status tarn__debug_dress(tarn_place place, const tarn__pool_piece *piece,
                              uint32_t flags, tarn_stream *stream) {
  bool has_guard = (flags & TARN_POOL_DEBUG_GUARDS) != 0;
  size_t usable = has_guard ? piece->requested : piece->size;
  tarn_status status =
      stream != NULL ? tarn_stream_synchronize(stream) : TARN_OK;
  if (status == TARN_OK && (flags & TARN_POOL_DEBUG_POISON) != 0) {
    status = freshen(place, piece, 0, usable);
  }
  if (status == TARN_OK && has_guard) status = lay_guard(place, piece, usable);
  return status;
}

void tarn__debug_strip(tarn_place place, const tarn__pool_piece *piece) {
  tarn__poison_show_fresh(place, piece->address, piece->size);
}

void tarn__debug_mark(tarn_pool *pool, tarn__pool_piece *piece, uint32_t flags,
                      tarn_status dressed) {
  if (dressed == TARN_OK) {
    piece->marks = (uint8_t)flags;
  } else {
    tarn__debug_of(pool)->stats.unverified++;
  }
}

uint32_t tarn__debug_admit(tarn_pool *pool, tarn__pool_request *request) {
  tarn__front_enter(pool);
  uint32_t flags = tarn__debug_of(pool)->flags;
  tarn__front_leave(pool);
  request->guard = (flags & TARN_POOL_DEBUG_GUARDS) != 0 ? TARN__GUARD : 0;
  if (!tarn_size_add(request->size, request->guard, &request->size)) {
    request->size = SIZE_MAX;  // which every strategy refuses, and counts
  }
  return flags;
}

// --- verifying -------------------------------------------------------------

// A guard that is damaged is laid anew, so that nothing is found twice.
static tarn_status look_at(tarn_pool *pool, tarn__pool_piece *piece) {
  tarn_pool_finding finding;
  tarn_place place = pool->place;
  size_t from = piece->requested;
  tarn__debug_begin_look(pool, piece);
  tarn_status status =
      tarn__debug_verify(place, piece, TARN_POOL_OVERRUN, &finding);
  if (finding.kind != TARN_POOL_FINDING_NONE) {
    (void)lay_guard(place, piece, from);  // if not it is found again
  }
  tarn__poison_hide(place, piece->address + from, piece->size - from);
  tarn__debug_end_look(pool, piece);
  tarn__debug_note(pool, status, &finding, false);
  return status;
}

static bool has_guard(const tarn__pool_piece *piece) {
  return piece->live && !piece->resizing &&
         (piece->marks & TARN_POOL_DEBUG_GUARDS) != 0;
}

tarn_status tarn__guards_walk(tarn_pool *pool) {
  tarn_status first = TARN_OK;
  for (size_t id = 0; id < tarn__pieces_count(&pool->pieces); id++) {
    tarn__pool_piece *piece = tarn__pieces_at(&pool->pieces, (uint32_t)id);
    if (!has_guard(piece)) continue;
    tarn__keep_first(&first, look_at(pool, piece));
  }
  return first;
}

// --- resizing --------------------------------------------------------------

tarn__pool_debug_resizing tarn__debug_before_resize(tarn_pool *pool,
                                                    tarn__pool_piece *piece) {
  tarn_pool_finding finding;
  tarn__pool_debug_resizing before = {.usable = tarn__debug_usable(piece)};
  tarn__debug_await_look(pool, piece);
  if ((piece->marks & TARN_POOL_DEBUG_GUARDS) == 0) return before;
  before.guard = TARN__GUARD;
  tarn__debug_begin_work(pool);
  tarn_status status =
      tarn__debug_verify(pool->place, piece, TARN_POOL_OVERRUN, &finding);
  tarn__poison_show_fresh(pool->place, piece->address + before.usable,
                          piece->size - before.usable);
  tarn__debug_end_work(pool);
  tarn__debug_note(pool, status, &finding, false);
  return before;
}

// What is added may be behind the stream's work, and so is what is cut off.
void tarn__debug_after_resize(tarn_pool *pool, tarn__pool_piece *piece,
                              const tarn__pool_debug_resizing *before,
                              uint64_t serial) {
  uint8_t marks = piece->marks;
  size_t usable = tarn__debug_usable(piece);
  bool adds = (marks & TARN_POOL_DEBUG_POISON) != 0 && usable > before->usable;
  tarn__debug_begin_work(pool);
  tarn_status status = serial != 0 ? tarn_stream_join(NULL, serial) : TARN_OK;
  if (status == TARN_OK && adds) {
    status = freshen(pool->place, piece, before->usable, usable);
  }
  if (status == TARN_OK && before->guard != 0) {
    status = lay_guard(pool->place, piece, usable);
  }
  tarn__debug_end_work(pool);
  if (status == TARN_OK) return;
  piece->marks = 0;  // from now on a block like any other
  tarn__debug_of(pool)->stats.unverified++;
}
