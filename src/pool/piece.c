// Pieces, in slabs that never move, and the index of their addresses.
#include "pool/piece.h"

#include "base/hostmem.h"

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

static const tarn__pool_piece *piece_in(const tarn__pool_pieces *pieces,
                                        size_t at) {
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
  if (!index_at(pieces, address, &at)) return NULL;
  return tarn__pieces_at(pieces, pieces->index[at] - 1);
}

// Closes the gap at |hole|: whoever stands behind it and could have stood in
// it moves up, so that no search ends too early.
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
    put_in(&grown, tarn__pieces_at(pieces, pieces->index[at] - 1));
  }
  tarn__host_free_array(pieces->index, pieces->index_size,
                        sizeof *pieces->index);
  *pieces = grown;
  return true;
}

// --- taking and leaving ----------------------------------------------------

static bool grow_directory(tarn__pool_pieces *pieces) {
  size_t capacity = pieces->slab_capacity ? pieces->slab_capacity * 2 : 8;
  tarn__pool_piece **slabs = tarn__host_resize(
      pieces->slabs, pieces->slab_capacity, capacity, sizeof *slabs);
  if (slabs == NULL) return false;
  pieces->slabs = slabs;
  pieces->slab_capacity = capacity;
  return true;
}

static bool add_slab(tarn__pool_pieces *pieces) {
  if (pieces->slab_count == pieces->slab_capacity && !grow_directory(pieces)) {
    return false;
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

static inline void put_aside(tarn__pool_pieces *pieces,
                             tarn__pool_piece *piece) {
  *piece = (tarn__pool_piece){
      .id = piece->id,
      .generation = piece->generation,
      .tag = piece->tag,
      .next = pieces->unused,
  };
  pieces->unused = piece;
  pieces->used--;
}

void tarn__pieces_leave(tarn__pool_pieces *pieces, tarn__pool_piece *piece) {
  put_aside(pieces, piece);
}

void tarn__pieces_end(tarn__pool_pieces *pieces, tarn__pool_piece *piece) {
  take_out(pieces, piece);
  put_aside(pieces, piece);
}
