// debug.h - blocks that show how they are misused: guards, poison, quarantine.
//
// A pool that debugs has a tarn__pool_debug; the others have none, and pay a
// look at a pointer for each request and at a byte of the piece for each free.
//
//   alloc ─► dress ─► [ fresh ....... | guard ]   out, marked with what it has
//                                         │
//   free ──► verify the guard ◄───────────┘
//        ─► fill ──► [ freed .................. ]   aside, first in, first out
//        ─► verify, when it leaves ─► its strategy
//
// debug.c has the options and what was found, guards.c live blocks,
// quarantine.c those that were freed, poison.h the bytes.
#ifndef TARN_POOL_DEBUG_H_
#define TARN_POOL_DEBUG_H_

#include "pool/piece.h"
#include "pool/strategy.h"
#include "tarn/device.h"
#include "tarn/misuse.h"

// Bits of a piece's |marks|, beside TARN_POOL_DEBUG_..., with which its block
// was taken.
enum {
  TARN__MARK_ASIDE = 1 << 6,   // its block is gone, its owner does not have it
  TARN__MARK_LOOKED = 1 << 7,  // a walk reads its bytes, without the lock
};

enum { TARN__GUARD = 64 };  // bytes behind each block at least

// Guarded by the pool's lock, and never freed before the pool.
typedef struct tarn__pool_debug {
  uint32_t flags;   // of blocks that are taken from now on; 0: switched off
  size_t capacity;  // bytes that the quarantine may hold
  tarn_pool_debug_fn *found;
  void *context;

  tarn__pool_piece *first;  // in quarantine, linked by |next|
  tarn__pool_piece *last;
  tarn_pool_debug_stats stats;

  bool walking;     // a thread walks all blocks
  uint64_t untold;  // findings that no status has told
  char text[256];   // of the first of them
} tarn__pool_debug;

// What a block had before it was resized.
typedef struct tarn__pool_debug_resizing {
  size_t guard;   // bytes that it needs behind what it gets
  size_t usable;  // bytes that it could use
} tarn__pool_debug_resizing;

// As the environment says, for a pool that is being made.
TARN_MUST_CHECK tarn_status tarn__debug_begin(tarn_pool *pool);
void tarn__debug_destroy(tarn__pool_debug *debug);

static inline size_t tarn__debug_usable(const tarn__pool_piece *piece) {
  return (piece->marks & TARN_POOL_DEBUG_GUARDS) != 0 ? piece->requested
                                                      : piece->size;
}

// With what a block is to be dressed, |request| with a guard if there is to be
// one. The pool debugs; the lock is not held, nor for the next two. The second
// fills a piece that nobody has yet, |stream| done with it; the third is for
// one that is dressed and belongs to no block again.
uint32_t tarn__debug_admit(tarn_pool *pool, tarn__pool_request *request);
TARN_MUST_CHECK tarn_status tarn__debug_dress(tarn_place place,
                                              const tarn__pool_piece *piece,
                                              uint32_t flags,
                                              tarn_stream *stream);
void tarn__debug_strip(tarn_place place, const tarn__pool_piece *piece);

// A piece that is dressed gets its marks when it is counted; or it is
// told that it could not be dressed. The lock is held.
void tarn__debug_mark(tarn_pool *pool, tarn__pool_piece *piece, uint32_t flags,
                      tarn_status dressed);

// tarn__front_give of a piece with marks. The lock is held here and below, and
// let go meanwhile. TARN_E_CORRUPT: freed, but something was written behind it.
tarn_status tarn__debug_give(tarn_pool *pool, tarn__pool_piece *piece,
                             uint64_t serial);

// Around the resizing of a piece with marks, which no other thread may free
// meanwhile: takes the guard away, puts one behind the new size.
tarn__pool_debug_resizing tarn__debug_before_resize(tarn_pool *pool,
                                                    tarn__pool_piece *piece);
void tarn__debug_after_resize(tarn_pool *pool, tarn__pool_piece *piece,
                              const tarn__pool_debug_resizing *before,
                              uint64_t serial);

// Empties the quarantine. True if there was something in it. Also of a pool
// that does not debug.
bool tarn__debug_flush(tarn_pool *pool);

// --- between the files of debugging ----------------------------------------

// The first of what leaves goes home until the quarantine holds at most |most|
// bytes; the device's first refusal is returned.
tarn_status tarn__quarantine_shrink(tarn_pool *pool, size_t most);

// Verify all that is in quarantine, and the guards of all live blocks.
// Findings are noted and made good; the first failure to look is returned.
tarn_status tarn__quarantine_walk(tarn_pool *pool);
tarn_status tarn__guards_walk(tarn_pool *pool);

// Compares the bytes in which a finding of |kind| can be: the guard of a block
// that is live, or was until now, or all of a piece in quarantine. The lock is
// not held.
TARN_MUST_CHECK tarn_status tarn__debug_verify(tarn_place place,
                                               const tarn__pool_piece *piece,
                                               tarn_pool_finding_kind kind,
                                               tarn_pool_finding *out);

// Around a look at the bytes of a piece that is out or in quarantine, with the
// lock let go. Whoever ends the piece's state waits for the look's end.
void tarn__debug_begin_look(tarn_pool *pool, tarn__pool_piece *piece);
void tarn__debug_end_look(tarn_pool *pool, tarn__pool_piece *piece);
void tarn__debug_await_look(tarn_pool *pool, const tarn__pool_piece *piece);

// Around work on the bytes of a piece without a block, without the lock; a
// request that finds no room waits for it.
void tarn__debug_begin_work(tarn_pool *pool);
void tarn__debug_end_work(tarn_pool *pool);

// Counts the result of a look and reports a finding. |told|: the
// caller's status will.
void tarn__debug_note(tarn_pool *pool, tarn_status looked,
                      const tarn_pool_finding *finding, bool told);

// TARN_E_CORRUPT, with the finding as text.
tarn_status tarn__debug_fail(const tarn_pool *pool,
                             const tarn_pool_finding *finding);

// --- poison -----------------------------------------------------------------
//
// Bytes of a block: filled, compared, and hidden from the program.
//
// Through the host where it can touch them, else through the device. All are
// done when the call returns, and need the streams' work to be over.

TARN_MUST_CHECK tarn_status tarn__poison_fill(tarn_place place,
                                              tarn_addr address, size_t size,
                                              unsigned char value);

// The first of |size| bytes that is not |value|; |*out_offset| is |size| if all
// are.
TARN_MUST_CHECK tarn_status tarn__poison_compare(tarn_place place,
                                                 tarn_addr address, size_t size,
                                                 unsigned char value,
                                                 size_t *out_offset,
                                                 unsigned char *out_byte);

// Tells AddressSanitizer and valgrind, if one of them watches the program, that
// it may not touch these bytes, or may again: then they count as
// uninitialised, or as having the value that they have. Bytes that the host
// cannot touch anyway are left alone.
void tarn__poison_hide(tarn_place place, tarn_addr address, size_t size);
void tarn__poison_show_fresh(tarn_place place, tarn_addr address, size_t size);
void tarn__poison_show(tarn_place place, tarn_addr address, size_t size);

#endif  // TARN_POOL_DEBUG_H_
