// Blocks that show how they are misused: live ones are filled when they are
// taken, with a guard behind them; freed ones are filled and kept aside.
//
//   address                 requested           size of the piece
//   [ the block: fresh ...   | guard ............ ]
//
//   free ─► guard ─► [ freed ] ─► last .......... first ─► [ freed? ] ─► owner
//                                └─── quarantine ──┘
//
// A piece in quarantine is no block, and its memory is unused. Its strategy
// still counts it as out, so that a strategy that is replaced outlives it.
//
// Invariants, for bytes that the program has not written since; they are hidden
// from it where that is possible:
//   * of a piece marked TARN_POOL_DEBUG_GUARDS that is live and not being
//     resized, all from |requested| on are TARN_POOL_GUARD_BYTE
//   * of a piece in quarantine, which is marked TARN__MARK_ASIDE, all are
//     TARN_POOL_FREED_BYTE, and nothing that is queued uses them any more
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "pool/debug.h"
#include "pool/front.h"

// --- findings --------------------------------------------------------------

static void say(const tarn_pool *pool, const tarn_pool_finding *finding,
                char out[TARN__FINDING_TEXT]) {
  char place[64];
  bool overrun = finding->kind == TARN_POOL_OVERRUN;
  snprintf(out, TARN__FINDING_TEXT,
           "pool of %s: the block of %zu bytes at 0x%llx, %s, was written %s: "
           "first the byte at offset %zu, 0x%02x",
           tarn_place_text(pool->place, place, sizeof place), finding->size,
           (unsigned long long)finding->address,
           tarn_pool_tag_name(finding->tag),
           overrun ? "beyond its end" : "after it was freed", finding->offset,
           finding->byte);
}

// Counts the result of a look and reports a finding. |told|: the caller's
// status will.
static void note(tarn_pool *pool, tarn_status looked,
                 const tarn_pool_finding *finding, bool told) {
  tarn__pool_debug *debug = tarn__debug_of(pool);
  char text[TARN__FINDING_TEXT];
  if (looked != TARN_OK) {
    debug->stats.unverified++;
    return;
  }
  debug->stats.verified++;
  if (finding->kind == TARN_POOL_FINDING_NONE) return;
  say(pool, finding, text);
  if (finding->kind == TARN_POOL_OVERRUN) {
    debug->stats.overruns++;
  } else {
    debug->stats.stale_writes++;
  }
  if (!told && debug->untold++ == 0) memcpy(debug->text, text, sizeof text);
  tarn__log(TARN_LOG_ERROR, "%s", text);
  if (debug->found != NULL) debug->found(debug->context, pool, finding);
}

// The bytes in which a finding can be: the guard of a block that is live, or
// was until now, or all of a piece in quarantine.
typedef struct watched {
  tarn_addr address;
  size_t from;  // the first one's offset in the piece
  size_t size;
  unsigned char byte;  // what they are filled with
} watched;

static watched watched_of(const tarn__pool_piece *piece,
                          tarn_pool_finding_kind kind) {
  bool guard = kind == TARN_POOL_OVERRUN;
  size_t from = guard ? piece->requested : 0;
  return (watched){.address = piece->address + from,
                   .from = from,
                   .size = piece->size - from,
                   .byte = guard ? TARN_POOL_GUARD_BYTE : TARN_POOL_FREED_BYTE};
}

// Compares the watched bytes. The lock is not held, nor for the next two.
static tarn_status verify(tarn_place place, const tarn__pool_piece *piece,
                          tarn_pool_finding_kind kind, tarn_pool_finding *out) {
  watched w = watched_of(piece, kind);
  size_t offset = 0;
  unsigned char byte = 0;
  *out = (tarn_pool_finding){.kind = TARN_POOL_FINDING_NONE};
  tarn__poison_mark(place, w.address, w.size, TARN__BYTES_KNOWN);
  tarn_status status =
      tarn__poison_compare(place, w.address, w.size, w.byte, &offset, &byte);
  if (status != TARN_OK || offset == w.size) return status;
  *out = (tarn_pool_finding){
      .struct_size = sizeof *out,
      .kind = kind,
      .address = piece->address,
      .size = piece->requested,
      .tag = piece->tag,
      .offset = w.from + offset,
      .byte = byte,
  };
  return TARN_OK;
}

static tarn_status lay_guard(tarn_place place, const tarn__pool_piece *piece) {
  watched w = watched_of(piece, TARN_POOL_OVERRUN);
  TARN__TRY(tarn__poison_fill(place, w.address, w.size, w.byte));
  tarn__poison_mark(place, w.address, w.size, TARN__BYTES_HIDDEN);
  return TARN_OK;
}

// Bytes that the program has not written yet.
static tarn_status freshen(tarn_place place, const tarn__pool_piece *piece,
                           size_t from, size_t to) {
  tarn_addr address = piece->address + from;
  tarn_status status =
      tarn__poison_fill(place, address, to - from, TARN_POOL_FRESH_BYTE);
  tarn__poison_mark(place, address, to - from, TARN__BYTES_FRESH);
  return status;
}

// --- without the lock ------------------------------------------------------

// A thread that ends the state of a piece first waits for the end of a look at
// its bytes.
static void await_look(tarn_pool *pool, const tarn__pool_piece *piece) {
  while ((piece->marks & TARN__MARK_LOOKED) != 0)
    tarn__front_wait(pool);
}

// Around work on the bytes of a piece without a block; a request that finds no
// room waits for it.
static void begin_work(tarn_pool *pool) {
  pool->returning++;
  tarn__front_leave(pool);
}

static void end_work(tarn_pool *pool) {
  tarn__front_reenter(pool);
  pool->returning--;
  tarn__news_tell(&pool->returned);
}

// Verifies a piece that is out or in quarantine, and stays there. What is
// damaged is filled anew, so that nothing is found twice.
static tarn_status look_at(tarn_pool *pool, tarn__pool_piece *piece,
                           tarn_pool_finding_kind kind) {
  tarn_pool_finding finding;
  watched w = watched_of(piece, kind);
  piece->marks |= TARN__MARK_LOOKED;
  tarn__front_leave(pool);
  tarn_status status = verify(pool->place, piece, kind, &finding);
  if (finding.kind != TARN_POOL_FINDING_NONE) {  // if not, it is found again
    (void)!tarn__poison_fill(pool->place, w.address, w.size, w.byte);
  }
  tarn__poison_mark(pool->place, w.address, w.size, TARN__BYTES_HIDDEN);
  tarn__front_reenter(pool);
  piece->marks &= (uint8_t)~TARN__MARK_LOOKED;
  tarn__news_tell(&pool->returned);
  note(pool, status, &finding, false);
  return status;
}

// The last look at bytes that are not watched any longer.
static void end_watch(tarn_pool *pool, const tarn__pool_piece *piece,
                      tarn_pool_finding_kind kind) {
  tarn_pool_finding finding;
  watched w = watched_of(piece, kind);
  begin_work(pool);
  tarn_status status = verify(pool->place, piece, kind, &finding);
  tarn__poison_mark(pool->place, w.address, w.size, TARN__BYTES_FRESH);
  end_work(pool);
  note(pool, status, &finding, false);
}

// --- taking ----------------------------------------------------------------

// What others have queued on the memory is behind |stream| by now.
tarn_status tarn__debug_dress(tarn_place place, const tarn__pool_piece *piece,
                              uint32_t flags, tarn_stream *stream) {
  bool has_guard = (flags & TARN_POOL_DEBUG_GUARDS) != 0;
  size_t usable = has_guard ? piece->requested : piece->size;
  TARN__TRY(stream != NULL ? tarn_stream_synchronize(stream) : TARN_OK);
  if ((flags & TARN_POOL_DEBUG_POISON) != 0) {
    TARN__TRY(freshen(place, piece, 0, usable));
  }
  return has_guard ? lay_guard(place, piece) : TARN_OK;
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
  tarn__front_reenter(pool);
  uint32_t flags = tarn__debug_of(pool)->flags;
  tarn__front_leave(pool);
  request->guard = tarn__debug_guard(flags);
  if (!tarn_size_add(request->size, request->guard, &request->size)) {
    request->size = SIZE_MAX;  // which every strategy refuses, and counts
  }
  return flags;
}

// --- resizing --------------------------------------------------------------

void tarn__debug_before_resize(tarn_pool *pool, tarn__pool_piece *piece) {
  await_look(pool, piece);
  if ((piece->marks & TARN_POOL_DEBUG_GUARDS) != 0) {
    end_watch(pool, piece, TARN_POOL_OVERRUN);
  }
}

// Added bytes may be behind the stream's work, as bytes that are cut off are.
void tarn__debug_after_resize(tarn_pool *pool, tarn__pool_piece *piece,
                              size_t usable_before, uint64_t serial) {
  uint8_t marks = piece->marks;
  size_t usable = tarn__debug_usable(piece);
  bool adds = (marks & TARN_POOL_DEBUG_POISON) != 0 && usable > usable_before;
  begin_work(pool);
  tarn_status status = serial != 0 ? tarn_stream_join(NULL, serial) : TARN_OK;
  if (status == TARN_OK && adds) {
    status = freshen(pool->place, piece, usable_before, usable);
  }
  if (status == TARN_OK && (marks & TARN_POOL_DEBUG_GUARDS) != 0) {
    status = lay_guard(pool->place, piece);
  }
  end_work(pool);
  if (status == TARN_OK) return;
  piece->marks = 0;  // from now on a block like any other
  tarn__debug_of(pool)->stats.unverified++;
}

// --- the quarantine --------------------------------------------------------

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
  piece->marks = 0;
  return tarn__front_send_home(pool, piece);
}

// Other threads may shrink it at the same time.
tarn_status tarn__quarantine_shrink(tarn_pool *pool, size_t most) {
  tarn__pool_debug *debug = tarn__debug_of(pool);
  tarn_status first = TARN_OK;
  while (debug->stats.quarantine_bytes > most) {
    if ((debug->first->marks & TARN__MARK_LOOKED) != 0) {
      await_look(pool, debug->first);
      continue;
    }
    tarn__pool_piece *piece = pop(debug);
    end_watch(pool, piece, TARN_POOL_STALE_WRITE);
    tarn__keep_first(&first, send_home(pool, piece));
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

// The caller does not hold the lock. The bytes are not checked if the stream
// has failed.
static tarn_status undress(tarn_place place, const tarn__pool_piece *piece,
                           uint8_t marks, uint64_t serial,
                           tarn_pool_finding *out) {
  const uint8_t fills = TARN_POOL_DEBUG_POISON | TARN_POOL_DEBUG_QUARANTINE;
  *out = (tarn_pool_finding){.kind = TARN_POOL_FINDING_NONE};
  TARN__TRY(serial != 0 ? tarn_stream_join(NULL, serial) : TARN_OK);
  if ((marks & TARN_POOL_DEBUG_GUARDS) != 0) {
    TARN__TRY(verify(place, piece, TARN_POOL_OVERRUN, out));
  }
  if ((marks & fills) == 0) return TARN_OK;
  return tarn__poison_fill(place, piece->address, piece->size,
                           TARN_POOL_FREED_BYTE);
}

// Pieces of a replaced strategy must not wait.
static bool can_keep(const tarn_pool *pool, const tarn__pool_piece *piece) {
  return (piece->marks & TARN_POOL_DEBUG_QUARANTINE) != 0 &&
         piece->owner == pool->current &&
         piece->size <= tarn__debug_of(pool)->capacity;
}

static tarn_status put_aside(tarn_pool *pool, tarn__pool_piece *piece) {
  tarn__pool_debug *debug = tarn__debug_of(pool);
  tarn__poison_mark(pool->place, piece->address, piece->size,
                    TARN__BYTES_HIDDEN);
  push(debug, piece);
  return tarn__quarantine_shrink(pool, debug->capacity);
}

tarn_status tarn__debug_give(tarn_pool *pool, tarn__pool_piece *piece,
                             uint64_t serial) {
  tarn_status status = TARN_OK;
  tarn_pool_finding finding;
  uint8_t marks = piece->marks;
  tarn__front_set_aside(pool, piece, serial);
  piece->marks |= TARN__MARK_ASIDE;
  await_look(pool, piece);
  begin_work(pool);
  tarn_status looked = undress(pool->place, piece, marks, serial, &finding);
  end_work(pool);
  bool has_looked = (marks & TARN_POOL_DEBUG_GUARDS) != 0 || looked != TARN_OK;
  if (has_looked) note(pool, looked, &finding, true);
  if (looked == TARN_OK && can_keep(pool, piece)) {
    status = put_aside(pool, piece);
  } else {
    tarn__debug_strip(pool->place, piece);
    status = send_home(pool, piece);
  }
  if (finding.kind == TARN_POOL_FINDING_NONE) return status;
  char text[TARN__FINDING_TEXT];
  say(pool, &finding, text);
  return tarn__fail_text(TARN_E_CORRUPT, text);
}

// --- walking ---------------------------------------------------------------

static bool has_guard(const tarn__pool_piece *piece) {
  return piece->live && !piece->resizing &&
         (piece->marks & TARN_POOL_DEBUG_GUARDS) != 0;
}

// While a piece in quarantine is looked at it stays there, and so what follows
// it is known afterwards.
tarn_status tarn__debug_walk(tarn_pool *pool) {
  tarn_status first = TARN_OK;
  tarn__pool_piece *piece = tarn__debug_of(pool)->first;
  for (; piece != NULL; piece = piece->next)
    tarn__keep_first(&first, look_at(pool, piece, TARN_POOL_STALE_WRITE));
  for (size_t id = 0; id < tarn__pieces_count(&pool->pieces); id++) {
    piece = tarn__pieces_at(&pool->pieces, (uint32_t)id);
    if (!has_guard(piece)) continue;
    tarn__keep_first(&first, look_at(pool, piece, TARN_POOL_OVERRUN));
  }
  return first;
}
