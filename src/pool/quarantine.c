// Blocks that were freed: verified, filled, kept aside, verified again.
//
//   free ─► guard ─► [ freed ] ─► last .......... first ─► [ freed? ] ─► owner
//                                └─── quarantine ──┘
//
// Meanwhile their memory is unused: the block is not counted, and its
// strategy still counts it as out. So it outlives a strategy that is replaced.
//
// Invariant: what is in quarantine is marked TARN__MARK_ASIDE, all of its bytes
// are TARN_POOL_FREED_BYTE unless the program has written there, and nothing
// that is queued uses them any more.
#include "base/status.h"
#include "pool/debug.h"
#include "pool/front.h"

// --- in and out ------------------------------------------------------------

static void push(tarn__pool_debug *debug, tarn__pool_piece *piece) {
  piece->next = NULL;
  if (debug->last != NULL) {
    debug->last->next = piece;
  } else {
    debug->first = piece;
  }
  debug->last = piece;
  debug->stats.quarantine_bytes += piece->size;
  debug->stats.quarantine_blocks++;
}

static tarn__pool_piece *pop(tarn__pool_debug *debug) {
  tarn__pool_piece *piece = debug->first;
  debug->first = piece->next;
  if (debug->first == NULL) debug->last = NULL;
  piece->next = NULL;
  debug->stats.quarantine_bytes -= piece->size;
  debug->stats.quarantine_blocks--;
  return piece;
}

static tarn_status send_home(tarn_pool *pool, tarn__pool_piece *piece) {
  tarn__poison_show_fresh(pool->place, piece->address, piece->size);
  piece->marks = 0;
  return tarn__front_send_home(pool, piece);
}

static tarn_status release(tarn_pool *pool, tarn__pool_piece *piece) {
  tarn_pool_finding finding;
  tarn__debug_begin_work(pool);
  tarn_status looked =
      tarn__debug_verify(pool->place, piece, TARN_POOL_STALE_WRITE, &finding);
  tarn__debug_end_work(pool);
  tarn__debug_note(pool, looked, &finding, false);
  return send_home(pool, piece);
}

// Other threads may shrink it at the same time.
tarn_status tarn__quarantine_shrink(tarn_pool *pool, size_t most) {
  tarn__pool_debug *debug = tarn__debug_of(pool);
  tarn_status first = TARN_OK;
  while (debug->stats.quarantine_bytes > most) {
    if ((debug->first->marks & TARN__MARK_LOOKED) != 0) {
      tarn__debug_await_look(pool, debug->first);
      continue;
    }
    tarn__keep_first(&first, release(pool, pop(debug)));
  }
  return first;
}

bool tarn__debug_flush(tarn_pool *pool) {
  const tarn__pool_debug *debug = tarn__debug_of(pool);
  if (debug == NULL || debug->first == NULL) return false;
  (void)tarn__quarantine_shrink(pool, 0);
  return true;
}

// --- freeing ---------------------------------------------------------------

// The lock is not held. A stream that has failed leaves nothing to be trusted.
static tarn_status undress(tarn_place place, const tarn__pool_piece *piece,
                           uint8_t marks, uint64_t serial,
                           tarn_pool_finding *out) {
  const uint8_t fills = TARN_POOL_DEBUG_POISON | TARN_POOL_DEBUG_QUARANTINE;
  *out = (tarn_pool_finding){.kind = TARN_POOL_FINDING_NONE};
  tarn_status status = serial != 0 ? tarn_stream_join(NULL, serial) : TARN_OK;
  if (status == TARN_OK && (marks & TARN_POOL_DEBUG_GUARDS) != 0) {
    status = tarn__debug_verify(place, piece, TARN_POOL_OVERRUN, out);
  }
  if (status == TARN_OK && (marks & fills) != 0) {
    status = tarn__poison_fill(place, piece->address, piece->size,
                               TARN_POOL_FREED_BYTE);
  }
  return status;
}

// What belongs to a strategy that was replaced must not wait.
static bool can_keep(const tarn_pool *pool, const tarn__pool_piece *piece) {
  return (piece->marks & TARN_POOL_DEBUG_QUARANTINE) != 0 &&
         piece->owner == pool->current &&
         piece->size <= tarn__debug_of(pool)->capacity;
}

static tarn_status put_aside(tarn_pool *pool, tarn__pool_piece *piece) {
  tarn__pool_debug *debug = tarn__debug_of(pool);
  tarn__poison_hide(pool->place, piece->address, piece->size);
  push(debug, piece);
  return tarn__quarantine_shrink(pool, debug->capacity);
}

tarn_status tarn__debug_give(tarn_pool *pool, tarn__pool_piece *piece,
                             uint64_t serial) {
  tarn_pool_finding finding;
  uint8_t marks = piece->marks;
  tarn__front_set_aside(pool, piece, serial);
  piece->marks |= TARN__MARK_ASIDE;
  tarn__debug_await_look(pool, piece);
  tarn__debug_begin_work(pool);
  tarn_status looked = undress(pool->place, piece, marks, serial, &finding);
  tarn__debug_end_work(pool);
  bool has_looked = (marks & TARN_POOL_DEBUG_GUARDS) != 0 || looked != TARN_OK;
  if (has_looked) tarn__debug_note(pool, looked, &finding, true);
  tarn_status status = looked == TARN_OK && can_keep(pool, piece)
                           ? put_aside(pool, piece)
                           : send_home(pool, piece);
  return finding.kind == TARN_POOL_FINDING_NONE
             ? status
             : tarn__debug_fail(pool, &finding);
}

// --- walking ---------------------------------------------------------------

static tarn_status look_at(tarn_pool *pool, tarn__pool_piece *piece) {
  tarn_pool_finding finding;
  tarn_place place = pool->place;
  tarn__debug_begin_look(pool, piece);
  tarn_status status =
      tarn__debug_verify(place, piece, TARN_POOL_STALE_WRITE, &finding);
  if (finding.kind != TARN_POOL_FINDING_NONE) {  // if not, it is found again
    (void)!tarn__poison_fill(place, piece->address, piece->size,
                             TARN_POOL_FREED_BYTE);
  }
  tarn__poison_hide(place, piece->address, piece->size);
  tarn__debug_end_look(pool, piece);
  tarn__debug_note(pool, status, &finding, false);
  return status;
}

// While one is looked at it stays in quarantine, and so what follows it is
// known afterwards.
tarn_status tarn__quarantine_walk(tarn_pool *pool) {
  tarn_status first = TARN_OK;
  tarn__pool_piece *piece = tarn__debug_of(pool)->first;
  for (; piece != NULL; piece = piece->next) {
    tarn__keep_first(&first, look_at(pool, piece));
  }
  return first;
}
