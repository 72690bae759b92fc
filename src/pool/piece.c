// Pieces in slabs that never move, the index of their addresses, and data
// beside them: streams that use a block, user pointers, freed addresses.
#include "pool/piece.h"

#include <assert.h>
#include <string.h>

#include "base/hostmem.h"
#include "device/memory.h"

enum { FIRST_INDEX = 256 };

// In a child of fork, blocks may still be out.
static void clear_uses(tarn__pool_pieces *pieces) {
  for (size_t id = 0; id < tarn__pieces_count(pieces); id++)
    tarn__uses_clear(&tarn__pieces_at(pieces, (uint32_t)id)->uses);
}

void tarn__pieces_deinit(tarn__pool_pieces *pieces) {
  clear_uses(pieces);
  for (size_t i = 0; i < pieces->slab_count; i++) {
    tarn__host_free_array(pieces->slabs[i], TARN__SLAB,
                          sizeof(tarn__pool_piece));
  }
  tarn__host_free_array(pieces->slabs, pieces->slab_capacity,
                        sizeof *pieces->slabs);
  tarn__host_free_array(pieces->index, pieces->index_size,
                        sizeof *pieces->index);
  *pieces = (tarn__pool_pieces){0};
}

// --- the index -------------------------------------------------------------

// Addresses are multiples of large powers of two: the high bits of the product
// depend on all of theirs.
static size_t home_of(const tarn__pool_pieces *pieces, tarn_addr address) {
  uint64_t product = (address >> 4) * 0x9e3779b97f4a7c15u;
  return (size_t)(product >> 32) & (pieces->index_size - 1);
}

static size_t next_of(const tarn__pool_pieces *pieces, size_t at) {
  return (at + 1) & (pieces->index_size - 1);
}

static tarn__pool_piece *piece_in(const tarn__pool_pieces *pieces, size_t at) {
  return tarn__pieces_at(pieces, pieces->index[at] - 1);
}

static inline void put_in(tarn__pool_pieces *pieces,
                          const tarn__pool_piece *piece) {
  size_t at = home_of(pieces, piece->address);
  while (pieces->index[at] != 0)
    at = next_of(pieces, at);
  pieces->index[at] = piece->id + 1;
}

void tarn__pieces_enter(tarn__pool_pieces *pieces, tarn__pool_piece *piece) {
  put_in(pieces, piece);
  tarn__ordered_note(&pieces->order, piece->id);
}

static bool index_at(const tarn__pool_pieces *pieces, tarn_addr address,
                     size_t *out_at) {
  if (pieces->index_size == 0) return false;
  size_t at = home_of(pieces, address);
  for (; pieces->index[at] != 0; at = next_of(pieces, at)) {
    *out_at = at;
    if (piece_in(pieces, at)->address == address) return true;
  }
  return false;
}

tarn__pool_piece *tarn__pieces_find(const tarn__pool_pieces *pieces,
                                    tarn_addr address) {
  size_t at = 0;
  return index_at(pieces, address, &at) ? piece_in(pieces, at) : NULL;
}

// Closes the gap at |hole|: an entry behind it that could have been there moves
// up, so that no search ends too early.
static void close_gap(tarn__pool_pieces *pieces, size_t hole) {
  size_t mask = pieces->index_size - 1;
  for (size_t at = next_of(pieces, hole); pieces->index[at] != 0;
       at = next_of(pieces, at)) {
    size_t home = home_of(pieces, piece_in(pieces, at)->address);
    if (((at - home) & mask) < ((at - hole) & mask)) continue;
    pieces->index[hole] = pieces->index[at];
    hole = at;
  }
  pieces->index[hole] = 0;
}

static bool grow_index(tarn__pool_pieces *pieces) {
  tarn__pool_pieces grown = *pieces;
  grown.index_size = pieces->index_size ? pieces->index_size * 2 : FIRST_INDEX;
  grown.index = tarn__host_array(grown.index_size, sizeof *grown.index);
  if (grown.index == NULL) return false;
  for (size_t at = 0; at < pieces->index_size; at++) {
    if (pieces->index[at] == 0) continue;
    put_in(&grown, piece_in(pieces, at));
  }
  tarn__host_free_array(pieces->index, pieces->index_size,
                        sizeof *pieces->index);
  *pieces = grown;
  return true;
}

// --- taking and leaving ----------------------------------------------------

static bool add_slab(tarn__pool_pieces *pieces) {
  if (pieces->slab_count == pieces->slab_capacity) {
    tarn__pool_piece **slabs =
        tarn__host_grow(pieces->slabs, &pieces->slab_capacity,
                        pieces->slab_count + 1, 8, sizeof *slabs);
    if (slabs == NULL) return false;
    pieces->slabs = slabs;
  }
  tarn__pool_piece *slab = tarn__host_array(TARN__SLAB, sizeof *slab);
  if (slab == NULL) return false;
  uint32_t first = (uint32_t)(pieces->slab_count * TARN__SLAB);
  pieces->slabs[pieces->slab_count++] = slab;
  for (uint32_t i = TARN__SLAB; i-- > 0;) {
    slab[i].id = first + i;
    slab[i].next = pieces->unused;
    pieces->unused = &slab[i];
  }
  return true;
}

tarn__pool_piece *tarn__pieces_take(tarn__pool_pieces *pieces) {
  // Half full at most, so that searches stay short.
  if ((pieces->used + 1) * 2 > pieces->index_size && !grow_index(pieces)) {
    return NULL;
  }
  if (pieces->unused == NULL && !add_slab(pieces)) return NULL;
  tarn__pool_piece *piece = pieces->unused;
  pieces->unused = piece->next;
  piece->next = NULL;
  pieces->used++;
  return piece;
}

static inline void take_out(tarn__pool_pieces *pieces,
                            const tarn__pool_piece *piece) {
  size_t at = 0;
  if (index_at(pieces, piece->address, &at)) close_gap(pieces, at);
}

void tarn__pieces_hide(tarn__pool_pieces *pieces, tarn__pool_piece *piece) {
  take_out(pieces, piece);
  piece->ordered = false;
}

void tarn__pieces_leave(tarn__pool_pieces *pieces, tarn__pool_piece *piece) {
  *piece = (tarn__pool_piece){
      .id = piece->id,
      .generation = piece->generation,
      .tag = piece->tag,
      .next = pieces->unused,
  };
  pieces->unused = piece;
  pieces->used--;
}

void tarn__pieces_end(tarn__pool_pieces *pieces, tarn__pool_piece *piece) {
  take_out(pieces, piece);
  tarn__pieces_leave(pieces, piece);
}

// --- the streams that use a block -------------------------------------------

typedef struct tarn__pool_more_uses {
  size_t room;
  size_t count;
  uint64_t serials[];
} more_uses;

static size_t size_of(size_t room) {
  return sizeof(more_uses) + room * sizeof(uint64_t);
}

size_t tarn__uses_count(const tarn__pool_uses *uses) {
  if (uses->first == 0) return 0;
  return 1 + (uses->more != NULL ? uses->more->count : 0);
}

uint64_t tarn__uses_at(const tarn__pool_uses *uses, size_t index) {
  return index == 0 ? uses->first : uses->more->serials[index - 1];
}

void tarn__uses_clear(tarn__pool_uses *uses) {
  if (uses->more != NULL) {
    tarn__host_free(uses->more, size_of(uses->more->room));
  }
  *uses = (tarn__pool_uses){.first = 0};
}

static bool has(const tarn__pool_uses *uses, uint64_t serial) {
  size_t count = tarn__uses_count(uses);
  for (size_t i = 0; i < count; i++) {
    if (tarn__uses_at(uses, i) == serial) return true;
  }
  return false;
}

// The work of a stream that is gone is done.
static void drop_gone(more_uses *more) {
  size_t kept = 0;
  for (size_t i = 0; i < more->count; i++) {
    if (tarn__stream_is_gone(more->serials[i])) continue;
    more->serials[kept++] = more->serials[i];
  }
  more->count = kept;
}

// Streams are few: the table needs room for live ones only.
static bool grow(tarn__pool_uses *uses) {
  enum { FIRST_ROOM = 6 };
  size_t room = uses->more != NULL ? uses->more->room * 2 : FIRST_ROOM;
  more_uses *grown = tarn__host_alloc(size_of(room));
  if (grown == NULL) return false;
  grown->room = room;
  if (uses->more != NULL) {
    grown->count = uses->more->count;
    memcpy(grown->serials, uses->more->serials,
           grown->count * sizeof grown->serials[0]);
    tarn__host_free(uses->more, size_of(uses->more->room));
  }
  uses->more = grown;
  return true;
}

static bool is_full(const more_uses *more) {
  return more == NULL || more->count == more->room;
}

bool tarn__uses_add(tarn__pool_uses *uses, uint64_t serial) {
  assert(serial != 0);
  if (has(uses, serial)) return true;
  if (uses->first == 0 || tarn__stream_is_gone(uses->first)) {
    uses->first = serial;
    return true;
  }
  if (uses->more != NULL && is_full(uses->more)) drop_gone(uses->more);
  if (is_full(uses->more) && !grow(uses)) return false;
  uses->more->serials[uses->more->count++] = serial;
  return true;
}

// --- pointers of the caller's -----------------------------------------------

struct tarn__pool_user {
  void *pointer;
  uint32_t generation;  // of the block; 0: there was no block
};

void tarn__users_deinit(tarn__pool_users *users) {
  tarn__host_free_array(users->by_id, users->room, sizeof *users->by_id);
  *users = (tarn__pool_users){.room = 0};
}

bool tarn__users_reserve(tarn__pool_users *users, uint32_t id) {
  if (id < users->room) return true;
  struct tarn__pool_user *grown = tarn__host_grow(
      users->by_id, &users->room, (size_t)id + 1, 64, sizeof *users->by_id);
  if (grown == NULL) return false;
  users->by_id = grown;
  return true;
}

void tarn__users_set(tarn__pool_users *users, uint32_t id, uint32_t generation,
                     void *pointer) {
  assert(id < users->room);
  users->by_id[id] =
      (struct tarn__pool_user){.pointer = pointer, .generation = generation};
}

void *tarn__users_get(const tarn__pool_users *users, uint32_t id,
                      uint32_t generation) {
  bool its_own = id < users->room && users->by_id[id].generation == generation;
  return its_own ? users->by_id[id].pointer : NULL;
}

// --- freed blocks -----------------------------------------------------------

bool tarn__freed_find(const tarn__pool_freed *freed, tarn_addr address,
                      tarn_tag *out_tag) {
  *out_tag = 0;
  if (address == 0) return false;
  for (uint32_t back = 1; back <= TARN__FREED; back++) {
    uint32_t at = (freed->next - back) % TARN__FREED;
    if (freed->addresses[at] != address) continue;
    *out_tag = freed->tags[at];
    return true;
  }
  return false;
}
