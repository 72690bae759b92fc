// piece.h - what a pool knows of its memory: out of band, by id and address.
//
// A piece is a part of device memory that a strategy hands out as one block. It
// lives as long as its memory, through many blocks. Then its id is used again,
// with the next generation, so that an old block is never taken for a new one.
//
//   slabs  [ ptr ][ ptr ] ...          each twice as large as the one before
//            │
//            └► piece piece piece ...  never move, so lists may link them
//   index  address ─► id               open addressing, for free by address;
//                                      the hash stands there, too, so that
//                                      pieces that a search passes are not
//                                      touched
//   order  by address                  for addresses inside: ordered.h
//
// The pool's lock guards all of it. Without it, a thread may look for the piece
// of a block that is its own, by id or address: tarn__pieces_at and _find.
#ifndef TARN_POOL_PIECE_H_
#define TARN_POOL_PIECE_H_

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

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

// A piece takes two cache lines. What a hit needs stands first.
struct tarn__pool_piece {
  tarn_addr address;  // the usable bytes of a block
  size_t size;        // bytes from there on, as the strategy asked for
  uint32_t id;
  uint32_t generation;
  uint16_t tag;  // of the live block, as are the flags below and marks
  union {
    struct {
      bool live;
      uint8_t lane;  // its home, by number: lanes.h; 0: none
    };
    uint16_t out;  // both, for whoever ends or moves the block: see below
  };
  // Bits are read and written with the pool's lock alone: what the owner of a
  // lane writes shares no byte with them.
  bool ordered : 1;   // the order of addresses has it where it is
  bool deferred : 1;  // it is freed, and live until that takes effect
  bool resizing : 1;  // a thread resizes or frees it, perhaps without the lock
  bool captured : 1;  // it was taken in a capture
  bool noticed : 1;   // of which nobody told the pool: a graph's until the end
                      // of all graphs
  bool planned : 1;   // |home| is the layout of a step (step_layout.h)
  bool stranger : 1;  // likewise, and the present layout does not have it
  bool counted;       // under its tag
  uint8_t zone;       // the owner's own, beside |home|
  uint8_t marks;      // debug.h: what the block was taken with; 0: nothing
  size_t requested;
  tarn__pool_strategy *owner;

  uint64_t waits_on;  // serial of the stream in whose order its last use
                      // has ended, or the memory was allocated; 0: none
  uint64_t freed_on;  // while it is idle: serial of the stream of its
                      // last use; 0: no stream
  tarn_addr base;     // the allocation, at or below |address|; 0:
                      // unused
  size_t base_size;   // 0: memory of its owner, which accounts for it
  void *home;         // the owner's own: where the piece belongs
  struct tarn__pool_piece
      *next;  // in a list of the owner's, or of unused pieces
  union {
    struct {
      uint32_t noted;           // by which the pool's recorder knows its
                                // request, the lower bits; 0: it does not
      uint32_t noted_own : 28;  // likewise that of the thread which took it
      uint32_t by : 4;          // the number of that thread; 0: it has none
    };
    uint64_t notes;     // all three; 0: no recorder knows its request
    uint64_t taken_on;  // in a pool for captures: serial of the stream that it
                        // is for
  };
  tarn__pool_uses uses;                // while it is out: by other streams
  struct tarn__pool_sleeper *sleeper;  // the owner's own while the block that
                                       // is out sleeps; else NULL
};

// Other threads read and write these without the lock: the owner of a lane, and
// one that frees, by mistake, a block which it does not have.
static inline tarn_addr tarn__piece_address(const tarn__pool_piece *piece) {
  return __atomic_load_n(&piece->address, __ATOMIC_RELAXED);
}

static inline void tarn__piece_set_address(tarn__pool_piece *piece,
                                           tarn_addr address) {
  __atomic_store_n(&piece->address, address, __ATOMIC_RELAXED);
}

static inline uint32_t tarn__piece_generation(const tarn__pool_piece *piece) {
  return __atomic_load_n(&piece->generation, __ATOMIC_RELAXED);
}

// The next generation, which is returned.
static inline uint32_t tarn__piece_advance(tarn__pool_piece *piece) {
  uint32_t next = piece->generation + 1;
  if (next == 0) next = 1;  // 0: no block
  __atomic_store_n(&piece->generation, next, __ATOMIC_RELAXED);
  return next;
}

static inline tarn_tag tarn__piece_tag(const tarn__pool_piece *piece) {
  return __atomic_load_n(&piece->tag, __ATOMIC_RELAXED);
}

static inline void tarn__piece_set_tag(tarn__pool_piece *piece, tarn_tag tag) {
  __atomic_store_n(&piece->tag, (uint16_t)tag, __ATOMIC_RELAXED);
}

static inline uint8_t tarn__piece_home(const tarn__pool_piece *piece) {
  return __atomic_load_n(&piece->lane, __ATOMIC_RELAXED);
}

// A block begins: others may free it from now on, so all of the piece has been
// written before.
static inline void tarn__piece_begin(tarn__pool_piece *piece, uint8_t home) {
  tarn__pool_piece now = {.live = true, .lane = home};
  __atomic_store_n(&piece->out, now.out, __ATOMIC_RELEASE);
}

// The block has ended, and the piece has no home.
static inline void tarn__piece_end(tarn__pool_piece *piece) {
  __atomic_store_n(&piece->out, 0, __ATOMIC_RELAXED);
}

static inline bool tarn__piece_change(tarn__pool_piece *piece, uint8_t home,
                                      bool live, uint8_t lane) {
  tarn__pool_piece from = {.live = true, .lane = home};
  tarn__pool_piece to = {.live = live, .lane = lane};
  return __atomic_compare_exchange_n(&piece->out, &from.out, to.out, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

// A live block with a home is freed without the pool's lock, or is taken from
// its home by who holds the lock, and frees it or changes it then: of two
// threads that do so, by mistake at once, one is told false, as for a block
// that is not live.
static inline bool tarn__piece_free(tarn__pool_piece *piece, uint8_t home) {
  return tarn__piece_change(piece, home, false, home);
}

static inline bool tarn__piece_leave_home(tarn__pool_piece *piece) {
  uint8_t home = tarn__piece_home(piece);
  return home == 0 || tarn__piece_change(piece, home, true, 0);
}

// Whether it belongs to a live block; and to one whose free is not deferred,
// which the lock is needed for.
static inline bool tarn__piece_is_live(const tarn__pool_piece *piece) {
  return __atomic_load_n(&piece->live, __ATOMIC_RELAXED);
}

static inline bool tarn__piece_is_out(const tarn__pool_piece *piece) {
  return tarn__piece_is_live(piece) && !piece->deferred;
}

enum {
  TARN__SLAB = 128,  // pieces of the first slab; a power of two
  TARN__SLABS = 25,  // as many as ids have room for
};

// By address: its hash, and below that the id plus 1; 0: empty. A table that
// has become too small stays until the pool ends, since a thread may be reading
// it.
typedef struct tarn__pool_index {
  struct tarn__pool_index *former;
  size_t size;  // a power of two
  _Atomic uint64_t entries[];
} tarn__pool_index;

typedef struct tarn__pool_pieces {
  char apart[64];
  // Read by threads that need no lock.
  _Atomic(tarn__pool_piece *) slabs[TARN__SLABS];
  _Atomic(tarn__pool_index *) index;  // NULL: nothing was ever entered
  char apart_too[64];
  // Read and written with the lock.
  size_t slab_count;
  uint32_t fresh;  // ids from here on were never used
  tarn__pool_piece *unused;
  size_t used;  // pieces with memory, or about to get some
  tarn__pool_ordered order;
} tarn__pool_pieces;

void tarn__pieces_deinit(tarn__pool_pieces *pieces);

// An unused piece, with room for it in the index. NULL: no host memory.
tarn__pool_piece *tarn__pieces_take(tarn__pool_pieces *pieces);

// Makes it findable by address; it has its memory now. Cannot fail.
static inline void tarn__pieces_enter(tarn__pool_pieces *pieces,
                                      tarn__pool_piece *piece);

// Takes it out of the index: the device may give its address to others now.
void tarn__pieces_hide(tarn__pool_pieces *pieces, tarn__pool_piece *piece);

// Makes it unused; it is not in the index.
static inline void tarn__pieces_leave(tarn__pool_pieces *pieces,
                                      tarn__pool_piece *piece);

// Both at once.
static inline void tarn__pieces_end(tarn__pool_pieces *pieces,
                                    tarn__pool_piece *piece);

// How many ids there are: all below can be asked for.
static inline size_t tarn__pieces_count(const tarn__pool_pieces *pieces) {
  return pieces->fresh;
}

// By id; NULL, or a piece that was never used: no block has that id. Needs no
// lock.
static inline tarn__pool_piece *tarn__pieces_at(const tarn__pool_pieces *pieces,
                                                uint32_t id) {
  uint64_t place = (uint64_t)id + TARN__SLAB;
  unsigned slab = 63u - (unsigned)__builtin_clzll(place / TARN__SLAB);
  if (slab >= TARN__SLABS) return NULL;
  tarn__pool_piece *first =
      atomic_load_explicit(&pieces->slabs[slab], memory_order_acquire);
  return first != NULL ? first + (place - ((uint64_t)TARN__SLAB << slab))
                       : NULL;
}

// By the address of its start, or NULL. Needs no lock for the address of a live
// block that the caller may free: then NULL may also say that other threads
// have changed the index meanwhile, and for any other address the answer may be
// wrong.
tarn__pool_piece *tarn__pieces_find(const tarn__pool_pieces *pieces,
                                    tarn_addr address);

// --- the short ways ---------------------------------------------------------
//
// Parts of each hit, so that their callers have them inside. Readers without
// the lock see changes of the index in any order.

static inline tarn__pool_index *tarn__index_of(
    const tarn__pool_pieces *pieces) {
  return atomic_load_explicit(&pieces->index, memory_order_acquire);
}

static inline uint64_t tarn__index_entry(const tarn__pool_index *index,
                                         size_t at) {
  return atomic_load_explicit(&index->entries[at], memory_order_relaxed);
}

static inline void tarn__index_set(tarn__pool_index *index, size_t at,
                                   uint64_t entry) {
  atomic_store_explicit(&index->entries[at], entry, memory_order_relaxed);
}

// Whether a piece can be taken without host memory. The index is a quarter full
// at most, so that searches stay short.
static inline bool tarn__pieces_are_ready(const tarn__pool_pieces *pieces) {
  const tarn__pool_index *index = tarn__index_of(pieces);
  return index != NULL && (pieces->used + 1) * 4 <= index->size &&
         (pieces->unused != NULL ||
          tarn__pieces_at(pieces, pieces->fresh) != NULL);
}

// Takes one where that is so.
static inline tarn__pool_piece *tarn__pieces_take_ready(
    tarn__pool_pieces *pieces) {
  tarn__pool_piece *piece = pieces->unused;
  pieces->used++;
  if (piece == NULL) {
    piece = tarn__pieces_at(pieces, pieces->fresh);
    piece->id = pieces->fresh++;
    return piece;
  }
  pieces->unused = piece->next;
  piece->next = NULL;
  return piece;
}

// Addresses are multiples of large powers of two: the high bits of the product
// depend on all of theirs.
static inline uint32_t tarn__pieces_hash(tarn_addr address) {
  return (uint32_t)((address >> 4) * 0x9e3779b97f4a7c15u >> 32);
}

// What stands in the index.
static inline uint64_t tarn__entry_of(const tarn__pool_piece *piece) {
  return (uint64_t)tarn__pieces_hash(piece->address) << 32 | (piece->id + 1);
}

static inline uint32_t tarn__entry_hash(uint64_t entry) {
  return (uint32_t)(entry >> 32);
}

// Puts |entry| into the first free place from its home on.
static inline void tarn__index_put(tarn__pool_index *index, uint64_t entry) {
  size_t mask = index->size - 1;
  size_t at = tarn__entry_hash(entry) & mask;
  while (tarn__index_entry(index, at) != 0)
    at = (at + 1) & mask;
  tarn__index_set(index, at, entry);
}

static inline void tarn__pieces_enter(tarn__pool_pieces *pieces,
                                      tarn__pool_piece *piece) {
  tarn__index_put(tarn__index_of(pieces), tarn__entry_of(piece));
  tarn__ordered_note(&pieces->order, piece->id);
}

// Closes the gap at |hole|: an entry behind it that could have been there moves
// up, so that no search ends too early.
static inline void tarn__index_close(tarn__pool_index *index, size_t hole) {
  size_t mask = index->size - 1;
  size_t at = (hole + 1) & mask;
  for (uint64_t entry = 0; (entry = tarn__index_entry(index, at)) != 0;
       at = (at + 1) & mask) {
    size_t home = tarn__entry_hash(entry) & mask;
    if (((at - home) & mask) < ((at - hole) & mask)) continue;
    tarn__index_set(index, hole, entry);
    hole = at;
  }
  tarn__index_set(index, hole, 0);
}

static inline void tarn__pieces_take_out(tarn__pool_pieces *pieces,
                                         const tarn__pool_piece *piece) {
  tarn__pool_index *index = tarn__index_of(pieces);
  uint64_t wanted = tarn__entry_of(piece);
  size_t mask = index->size - 1;
  size_t at = tarn__entry_hash(wanted) & mask;
  uint64_t entry = 0;
  while ((entry = tarn__index_entry(index, at)) != wanted && entry != 0)
    at = (at + 1) & mask;
  if (entry != 0) tarn__index_close(index, at);
}

// Clears all but the id, the generation and the tag. Others may be reading the
// address, and whether there is a block.
static inline void tarn__pieces_leave(tarn__pool_pieces *pieces,
                                      tarn__pool_piece *piece) {
  const size_t kept = offsetof(tarn__pool_piece, out) + sizeof piece->out;
  tarn__piece_set_address(piece, 0);
  piece->size = 0;
  tarn__piece_end(piece);
  memset((char *)piece + kept, 0, sizeof *piece - kept);
  piece->next = pieces->unused;
  pieces->unused = piece;
  pieces->used--;
}

static inline void tarn__pieces_end(tarn__pool_pieces *pieces,
                                    tarn__pool_piece *piece) {
  tarn__pieces_take_out(pieces, piece);
  tarn__pieces_leave(pieces, piece);
}

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
