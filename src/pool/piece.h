// piece.h - what a pool knows of its memory: out of band, by id and address.
//
// A piece is a part of device memory that a strategy hands out as one
// block. It stays while its memory does, through many blocks; its id is then
// used again, and the generation goes on counting, so that an old block is
// never taken for a new one.
//
//   slabs  [ ptr ][ ptr ] ...          id = slab * SLAB + place in it
//            │
//            └► piece piece piece ...  never move, so lists may link them
//   index  address ─► id               open addressing, for free by address
//   order  by address                  for addresses inside: ordered.h
#ifndef TARN_POOL_PIECE_H_
#define TARN_POOL_PIECE_H_

#include "pool/ordered.h"
#include "pool/uses.h"
#include "tarn/pool.h"

typedef struct tarn__pool_strategy tarn__pool_strategy;

// What a hit reads and writes stands in the first half of two lines of the
// cache.
struct tarn__pool_piece {
  tarn_addr address;  // what a block gets
  size_t size;        // bytes from there on, as the strategy asked for
  uint32_t id;
  uint32_t generation;
  tarn_tag tag;  // of the block that is out, as are the next four
  bool live;
  bool resizing : 1;  // a thread is at it, be it to free it, and may have let
                      // go of the lock
  bool counted : 1;   // under its tag
  bool captured : 1;  // it was taken in a capture
  bool deferred : 1;  // and freed; live until that takes effect
  bool ordered : 1;   // the order of addresses has it where it is
  uint8_t zone;       // the owner's own, beside |home|
  uint8_t marks;      // debug.h: what the block was taken with; 0: nothing
  size_t requested;
  uint64_t waits_on;  // serial of the stream in whose order its last use
                      // is over, or the memory came; 0: none
  uint64_t freed_on;  // while it is idle: serial of the stream of its
                      // last use; 0: none
  tarn__pool_strategy *owner;

  tarn_addr base;    // what the device gave, at or below |address|; 0:
                     // unused
  size_t base_size;  // 0: memory of its owner's, who accounts for it
  void *home;        // the owner's own: where the piece belongs
  struct tarn__pool_piece
      *next;  // in a list of the owner's, or of unused pieces
  union {
    uint64_t noted;     // by which the recorder knows its request; 0: it does
                        // not
    uint64_t taken_on;  // in a pool for captures: serial of the stream that it
                        // is for
  };
  tarn__pool_uses uses;                // while it is out: by other streams
  struct tarn__pool_sleeper *sleeper;  // the owner's own while the block that
                                       // is out sleeps; else NULL
};

// Whether it is a block's, to be freed.
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

// By id; NULL if there is none.
static inline tarn__pool_piece *tarn__pieces_at(const tarn__pool_pieces *pieces,
                                                uint32_t id) {
  if (id >= tarn__pieces_count(pieces)) return NULL;
  return &pieces->slabs[id / TARN__SLAB][id % TARN__SLAB];
}

// By the address of its start; NULL if there is none.
tarn__pool_piece *tarn__pieces_find(const tarn__pool_pieces *pieces,
                                    tarn_addr address);

#endif  // TARN_POOL_PIECE_H_
