// piece.h - what a pool knows of its memory: out of band, by id and address.
//
// A piece is a part of device memory that a strategy hands out as one block. It
// lives as long as its memory, through many blocks. Then its id is used again,
// with the next generation, so that an old block is never taken for a new one.
//
//   slabs  [ ptr ][ ptr ] ...          id = slab * SLAB + place in it
//            │
//            └► piece piece piece ...  never move, so lists may link them
//   index  address ─► id               open addressing, for free by address
//   order  by address                  for addresses inside: ordered.h
#ifndef TARN_POOL_PIECE_H_
#define TARN_POOL_PIECE_H_

#include "pool/ordered.h"
#include "tarn/base.h"
#include "tarn/pool.h"

// --- uses -------------------------------------------------------------------
//
// The streams that use a block besides the one that frees it.

typedef struct tarn__pool_piece tarn__pool_piece;

// Part of every piece, and nearly always empty: one stream is remembered in
// place, more of them on the host's heap.
typedef struct tarn__pool_uses {
  uint64_t first;                     // serial; 0: no stream
  struct tarn__pool_more_uses *more;  // NULL: there are no more
} tarn__pool_uses;

static inline bool tarn__uses_any(const tarn__pool_uses *uses) {
  return uses->first != 0;
}

// Adds the stream with |serial|, once. False: no host memory.
TARN_MUST_CHECK bool tarn__uses_add(tarn__pool_uses *uses, uint64_t serial);

size_t tarn__uses_count(const tarn__pool_uses *uses);
uint64_t tarn__uses_at(const tarn__pool_uses *uses, size_t index);

void tarn__uses_clear(tarn__pool_uses *uses);

// Orders |stream|, whose serial is |*serial|, behind the work that the streams
// of |piece| have queued until now. For the host, 0, one of these streams waits
// for the others, and |*serial| is set to its serial; 0 still: all of that work
// has finished. Releases the lock; the caller has marked |piece|, so that it
// stays.
TARN_MUST_CHECK tarn_status tarn__uses_settle(tarn_pool *pool,
                                              tarn__pool_piece *piece,
                                              tarn_stream *stream,
                                              uint64_t *serial);

typedef struct tarn__pool_strategy tarn__pool_strategy;

// A piece takes two cache lines; a hit reads and writes only the first.
struct tarn__pool_piece {
  tarn_addr address;  // the usable bytes of a block
  size_t size;        // bytes from there on, as the strategy asked for
  uint32_t id;
  uint32_t generation;
  tarn_tag tag;  // of the live block, as are the next four
  bool live;
  bool resizing : 1;  // a thread resizes or frees it, perhaps without the lock
  bool counted : 1;   // under its tag
  bool captured : 1;  // it was taken in a capture
  bool noticed : 1;   // of which nobody told the pool: a graph's until the end
                      // of all graphs
  bool deferred : 1;  // and freed; live until that takes effect
  bool ordered : 1;   // the order of addresses has it where it is
  bool planned : 1;   // |home| is the layout of a step (step_layout.h)
  bool stranger : 1;  // likewise, and the present layout does not have it
  uint8_t zone;       // the owner's own, beside |home|
  uint8_t marks;      // debug.h: what the block was taken with; 0: nothing
  size_t requested;
  uint64_t waits_on;  // serial of the stream in whose order its last use
                      // has ended, or the memory was allocated; 0: none
  uint64_t freed_on;  // while it is idle: serial of the stream of its
                      // last use; 0: no stream
  tarn__pool_strategy *owner;

  tarn_addr base;    // the allocation, at or below |address|; 0:
                     // unused
  size_t base_size;  // 0: memory of its owner, which accounts for it
  void *home;        // the owner's own: where the piece belongs
  struct tarn__pool_piece
      *next;  // in a list of the owner's, or of unused pieces
  union {
    struct {
      uint32_t noted;           // by which the pool's recorder knows its
                                // request, the lower bits; 0: it does not
      uint32_t noted_own : 28;  // likewise that of the thread which took it
      uint32_t by : 4;          // the number of that thread; 0: it has none
    };
    uint64_t taken_on;  // in a pool for captures: serial of the stream that it
                        // is for
  };
  tarn__pool_uses uses;                // while it is out: by other streams
  struct tarn__pool_sleeper *sleeper;  // the owner's own while the block that
                                       // is out sleeps; else NULL
};

// Whether it belongs to a live block whose free is not deferred.
static inline bool tarn__piece_is_out(const tarn__pool_piece *piece) {
  return piece->live && !piece->deferred;
}

typedef struct tarn__pool_pieces {
  tarn__pool_piece **slabs;
  size_t slab_count;
  size_t slab_capacity;
  tarn__pool_piece *unused;
  uint32_t *index;    // id + 1, 0: empty
  size_t index_size;  // a power of two, or 0
  size_t used;        // pieces with memory, or about to get some
  tarn__pool_ordered order;
} tarn__pool_pieces;

void tarn__pieces_deinit(tarn__pool_pieces *pieces);

// An unused piece, with room for it in the index. NULL: no host memory.
tarn__pool_piece *tarn__pieces_take(tarn__pool_pieces *pieces);

// Makes it findable by address; it has its memory now. Cannot fail.
void tarn__pieces_enter(tarn__pool_pieces *pieces, tarn__pool_piece *piece);

// Takes it out of the index: the device may give its address to others now.
void tarn__pieces_hide(tarn__pool_pieces *pieces, tarn__pool_piece *piece);

// Makes it unused; it is not in the index.
void tarn__pieces_leave(tarn__pool_pieces *pieces, tarn__pool_piece *piece);

// Both at once.
void tarn__pieces_end(tarn__pool_pieces *pieces, tarn__pool_piece *piece);

enum { TARN__SLAB = 128 };

// How many ids there are: all below can be asked for.
static inline size_t tarn__pieces_count(const tarn__pool_pieces *pieces) {
  return pieces->slab_count * TARN__SLAB;
}

// By id, or NULL.
static inline tarn__pool_piece *tarn__pieces_at(const tarn__pool_pieces *pieces,
                                                uint32_t id) {
  if (id >= tarn__pieces_count(pieces)) return NULL;
  return &pieces->slabs[id / TARN__SLAB][id % TARN__SLAB];
}

// By the address of its start, or NULL.
tarn__pool_piece *tarn__pieces_find(const tarn__pool_pieces *pieces,
                                    tarn_addr address);

// --- users ------------------------------------------------------------------
//
// A pointer of the caller's for each live block.
//
// Beside the pieces and not in them: a piece is two lines of the cache, and
// most pools never have such a pointer. It is a block's by its generation, so
// that neither a free nor the next request has to clear it.
//
//   by_id  [ pointer, generation ][ ... ]      by the piece's id

// Zero-filled: there are none. Guarded by the pool's lock.
typedef struct tarn__pool_users {
  struct tarn__pool_user *by_id;
  size_t room;
} tarn__pool_users;

void tarn__users_deinit(tarn__pool_users *users);

// Room for the block of the piece with |id|. False: no host memory.
TARN_MUST_CHECK bool tarn__users_reserve(tarn__pool_users *users, uint32_t id);

// Sets the pointer of that block; there is room.
void tarn__users_set(tarn__pool_users *users, uint32_t id, uint32_t generation,
                     void *pointer);

// NULL: the block has none.
void *tarn__users_get(const tarn__pool_users *users, uint32_t id,
                      uint32_t generation);

// --- freed ------------------------------------------------------------------
//
// What stood at addresses that the index has forgotten.
//
// A block that was cut from a larger extent is joined with its neighbours when
// it is freed, and one that is an allocation may go back to the device: then
// nothing starts at its address any more. A second free by address still names
// the block.
//
//   | 0x7f..000 gradients | 0x7f..a00 cache | ... |   the oldest is overwritten
//                                            ▲ next
//
// A write costs two stores; reads happen only for unknown addresses. Addresses
// and tags are separate arrays because their sizes differ.
//
// Guarded by the pool's lock.

// A power of two; 40 KiB of them a pool.
enum { TARN__FREED = 4096 };

typedef struct tarn__pool_freed {
  uint32_t next;
  tarn_addr addresses[TARN__FREED];  // 0: none yet
  uint16_t tags[TARN__FREED];
} tarn__pool_freed;

// Notes that |piece| leaves the index, if it was a block.
static inline void tarn__freed_note(tarn__pool_freed *freed,
                                    const tarn__pool_piece *piece) {
  if (piece->requested == 0) return;
  uint32_t at = freed->next++ % TARN__FREED;
  freed->addresses[at] = piece->address;
  freed->tags[at] = (uint16_t)piece->tag;  // there are 65535 of them
}

// Whether a block that started at |address| is remembered, and the tag of the
// last one. A walk through all.
bool tarn__freed_find(const tarn__pool_freed *freed, tarn_addr address,
                      tarn_tag *out_tag);

#endif  // TARN_POOL_PIECE_H_
