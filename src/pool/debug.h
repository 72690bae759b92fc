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
// debug.c has the options, misuse.c the blocks, poison.c their bytes.
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

enum {
  TARN__GUARD = 64,  // bytes behind each block at least
  TARN__FINDING_TEXT = 256,
};

// Guarded by the pool's lock, and never freed before the pool.
typedef struct tarn__pool_debug {
  uint32_t flags;   // of blocks that are taken from now on; 0: switched off
  size_t capacity;  // bytes that the quarantine may hold
  tarn_pool_debug_fn *found;
  void *context;

  tarn__pool_piece *first;  // in quarantine, linked by |next|
  tarn__pool_piece *last;
  tarn_pool_debug_stats stats;

  bool walking;                   // a thread walks all blocks
  uint64_t untold;                // findings that no status has reported
  char text[TARN__FINDING_TEXT];  // of the first of them
} tarn__pool_debug;

// As the environment says, for a pool that is being made.
TARN_MUST_CHECK tarn_status tarn__debug_begin(tarn_pool *pool);

// Bytes that a block with these flags needs behind what it gets.
static inline size_t tarn__debug_guard(uint32_t flags) {
  return (flags & TARN_POOL_DEBUG_GUARDS) != 0 ? TARN__GUARD : 0;
}

// Bytes that the piece's block can use.
static inline size_t tarn__debug_usable(const tarn__pool_piece *piece) {
  return (piece->marks & TARN_POOL_DEBUG_GUARDS) != 0 ? piece->requested
                                                      : piece->size;
}

// Returns the flags to dress a block with, and adds a guard to |request| if
// they want one. The pool debugs. The lock is not held here and in the next
// call, which waits for |stream| and fills a piece that is not yet counted as a
// block.
uint32_t tarn__debug_admit(tarn_pool *pool, tarn__pool_request *request);
TARN_MUST_CHECK tarn_status tarn__debug_dress(tarn_place place,
                                              const tarn__pool_piece *piece,
                                              uint32_t flags,
                                              tarn_stream *stream);

// Gives a dressed piece its marks when it is counted as a block. If |dressed|
// is a failure, it gets none, and counts as unverified. The lock is held.
void tarn__debug_mark(tarn_pool *pool, tarn__pool_piece *piece, uint32_t flags,
                      tarn_status dressed);

// tarn__front_give of a piece with marks. The lock is held here and below, and
// let go meanwhile. TARN_E_CORRUPT: freed, but something was written behind it.
tarn_status tarn__debug_give(tarn_pool *pool, tarn__pool_piece *piece,
                             uint64_t serial);

// Around the resizing of a piece with marks, which no other thread may free
// meanwhile: takes the guard away, puts one behind the new size.
void tarn__debug_before_resize(tarn_pool *pool, tarn__pool_piece *piece);
void tarn__debug_after_resize(tarn_pool *pool, tarn__pool_piece *piece,
                              size_t usable_before, uint64_t serial);

// Empties the quarantine. True if there was something in it. Also of a pool
// that does not debug.
bool tarn__debug_flush(tarn_pool *pool);

// The first of what leaves goes home until the quarantine holds at most |most|
// bytes; the device's first refusal is returned.
tarn_status tarn__quarantine_shrink(tarn_pool *pool, size_t most);

// Verifies all that is in quarantine, and the guards of all live blocks.
// Findings are noted and made good; the first failure to look is returned.
tarn_status tarn__debug_walk(tarn_pool *pool);

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

// What AddressSanitizer and valgrind, if one of them watches the program, are
// to think of bytes.
typedef enum tarn__pool_bytes {
  TARN__BYTES_HIDDEN,  // the program may not touch them
  TARN__BYTES_FRESH,   // it may; they count as uninitialised
  TARN__BYTES_KNOWN,   // it may; they have the value that they have
} tarn__pool_bytes;

// Bytes that the host cannot touch anyway are left alone.
void tarn__poison_mark(tarn_place place, tarn_addr address, size_t size,
                       tarn__pool_bytes as);

// Called when a dressed piece belongs to no block again. The lock may be held.
static inline void tarn__debug_strip(tarn_place place,
                                     const tarn__pool_piece *piece) {
  tarn__poison_mark(place, piece->address, piece->size, TARN__BYTES_FRESH);
}

#endif  // TARN_POOL_DEBUG_H_
