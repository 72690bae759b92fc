// Pieces in slabs that never move, the index of their addresses, and data
// beside them: streams that use a block, user pointers, freed addresses.
#include "pool/piece.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/hostmem.h"
#include "device/memory.h"

// For the pieces of the first slab.
enum { FIRST_INDEX = 4 * TARN__SLAB };

// --- slabs -----------------------------------------------------------------

static size_t slab_size(size_t slab) {
  return (size_t)TARN__SLAB << slab;
}

static bool add_slab(tarn__pool_pieces *pieces) {
  size_t count = pieces->slab_count;
  if (count == TARN__SLABS) return false;
  tarn__pool_piece *slab = tarn__host_array(slab_size(count), sizeof *slab);
  if (slab == NULL) return false;
  atomic_store_explicit(&pieces->slabs[count], slab, memory_order_release);
  pieces->slab_count++;
  return true;
}

// In a child of fork, blocks may still be out.
static void clear_uses(tarn__pool_pieces *pieces) {
  for (size_t id = 0; id < tarn__pieces_count(pieces); id++)
    tarn__uses_clear(&tarn__pieces_at(pieces, (uint32_t)id)->uses);
}

// --- the index -------------------------------------------------------------

tarn__pool_piece *tarn__pieces_find(const tarn__pool_pieces *pieces,
                                    tarn_addr address) {
  const tarn__pool_index *index = tarn__index_of(pieces);
  if (index == NULL) return NULL;
  uint32_t hash = tarn__pieces_hash(address);
  size_t mask = index->size - 1;
  size_t at = hash & mask;
  for (uint64_t entry = 0; (entry = tarn__index_entry(index, at)) != 0;
       at = (at + 1) & mask) {
    if (tarn__entry_hash(entry) != hash) continue;
    tarn__pool_piece *piece = tarn__pieces_at(pieces, (uint32_t)entry - 1);
    if (tarn__piece_address(piece) == address) return piece;
  }
  return NULL;
}

static size_t index_bytes(size_t size) {
  return sizeof(tarn__pool_index) + size * sizeof(uint64_t);
}

static bool grow_index(tarn__pool_pieces *pieces) {
  tarn__pool_index *former = tarn__index_of(pieces);
  size_t size = former != NULL ? former->size * 2 : FIRST_INDEX;
  tarn__pool_index *grown = tarn__host_alloc(index_bytes(size));
  if (grown == NULL) return false;
  grown->former = former;
  grown->size = size;
  for (size_t at = 0; former != NULL && at < former->size; at++) {
    uint64_t entry = tarn__index_entry(former, at);
    if (entry != 0) tarn__index_put(grown, entry);
  }
  atomic_store_explicit(&pieces->index, grown, memory_order_release);
  return true;
}

static void free_indices(tarn__pool_index *index) {
  while (index != NULL) {
    tarn__pool_index *former = index->former;
    tarn__host_free(index, index_bytes(index->size));
    index = former;
  }
}

void tarn__pieces_deinit(tarn__pool_pieces *pieces) {
  clear_uses(pieces);
  for (size_t i = 0; i < pieces->slab_count; i++) {
    tarn__host_free_array(pieces->slabs[i], slab_size(i),
                          sizeof(tarn__pool_piece));
  }
  free_indices(tarn__index_of(pieces));
  *pieces = (tarn__pool_pieces){.used = 0};
}

// --- taking and leaving ----------------------------------------------------

static bool lacks_slab(const tarn__pool_pieces *pieces) {
  return pieces->unused == NULL &&
         tarn__pieces_at(pieces, pieces->fresh) == NULL;
}

tarn__pool_piece *tarn__pieces_take(tarn__pool_pieces *pieces) {
  if (!tarn__pieces_are_ready(pieces)) {
    const tarn__pool_index *index = tarn__index_of(pieces);
    bool full = index == NULL || (pieces->used + 1) * 4 > index->size;
    if (full && !grow_index(pieces)) return NULL;
    if (lacks_slab(pieces) && !add_slab(pieces)) return NULL;
  }
  return tarn__pieces_take_ready(pieces);
}

void tarn__pieces_hide(tarn__pool_pieces *pieces, tarn__pool_piece *piece) {
  tarn__pieces_take_out(pieces, piece);
  piece->ordered = false;
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
