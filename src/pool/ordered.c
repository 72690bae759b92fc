// Pieces in the order of their addresses.
//
// Invariants:
//   * leaves stand in the order of their addresses, and these within a leaf; no
//     address is there twice
//   * a leaf is never empty, but while it is being filled; behind its last
//     address stands UINT64_MAX
//   * |firsts| has the first address of each leaf
//   * a piece with |ordered| has an entry at its address, unless the device is
//     getting its memory back
#include "pool/ordered.h"

#include <string.h>

#include "base/hostmem.h"
#include "pool/piece.h"

enum { ROW = 8, LEAF = ROW * ROW, FIRST_FRESH = 64, FIRST_LEAVES = 8 };

// No piece starts there.
static const tarn_addr NONE = UINT64_MAX;

struct tarn__pool_ordered_leaf {
  size_t count;
  tarn_addr addresses[LEAF];
  tarn__pool_piece *pieces[LEAF];
};

// --- searching -------------------------------------------------------------

// The leaf with the last first address that is not above |address|, or the
// first one. There is one. Which half it is in cannot be guessed, so there is
// no branch.
static inline size_t leaf_for(const tarn__pool_ordered *ordered,
                              tarn_addr address) {
  size_t at = 0;
  for (size_t step = ordered->leaf_room / 2; step > 0; step /= 2)
    at += ordered->firsts[at + step] <= address ? step : 0;
  return at;
}

// How many of eight addresses, so far |apart|, are not above |address|.
static inline size_t count_eight(const tarn_addr *a, size_t apart,
                                 tarn_addr address) {
  return (size_t)(a[0] <= address) + (size_t)(a[apart] <= address) +
         (size_t)(a[2 * apart] <= address) + (size_t)(a[3 * apart] <= address) +
         (size_t)(a[4 * apart] <= address) + (size_t)(a[5 * apart] <= address) +
         (size_t)(a[6 * apart] <= address) + (size_t)(a[7 * apart] <= address);
}

// Asks for the lines of eight of them, so far |apart|.
static inline void fetch_eight(tarn__pool_piece *const *pieces, size_t apart) {
  __builtin_prefetch(pieces);
  __builtin_prefetch(pieces + apart);
  __builtin_prefetch(pieces + 2 * apart);
  __builtin_prefetch(pieces + 3 * apart);
  __builtin_prefetch(pieces + 4 * apart);
  __builtin_prefetch(pieces + 5 * apart);
  __builtin_prefetch(pieces + 6 * apart);
  __builtin_prefetch(pieces + 7 * apart);
}

// How many of the leaf's are not above |address|, which is not NONE. Each
// eighth is compared first: none of these waits for another, so that the lines
// of the cache come together, and those with the pieces meanwhile. Few
// instructions count: a processor that gets far enough ahead asks for the
// memory of the next search before it has that of this one.
static inline size_t count_up_to(const tarn__pool_ordered_leaf *leaf,
                                 tarn_addr address) {
  fetch_eight(leaf->pieces, ROW);
  size_t rows = count_eight(leaf->addresses, ROW, address);
  size_t full = rows > 0 ? (rows - 1) * ROW : 0;
  return full + count_eight(&leaf->addresses[full], 1, address);
}

static inline bool is_stale(const tarn__pool_ordered_leaf *leaf, size_t index) {
  const tarn__pool_piece *piece = leaf->pieces[index];
  return !piece->ordered || piece->address != leaf->addresses[index];
}

// --- leaves ----------------------------------------------------------------

static bool reserve_leaf(tarn__pool_ordered *ordered) {
  size_t count = ordered->leaf_count;
  if (count < ordered->leaf_room) return true;
  size_t room = count != 0 ? count * 2 : FIRST_LEAVES;
  tarn_addr *firsts = tarn__host_array(room, sizeof *firsts);
  if (firsts == NULL) return false;
  tarn__pool_ordered_leaf **leaves =
      tarn__host_resize(ordered->leaves, count, room, sizeof *leaves);
  if (leaves == NULL) {
    tarn__host_free_array(firsts, room, sizeof *firsts);
    return false;
  }
  memset(firsts, 0xff, room * sizeof *firsts);
  if (count != 0) memcpy(firsts, ordered->firsts, count * sizeof *firsts);
  tarn__host_free_array(ordered->firsts, count, sizeof *firsts);
  ordered->firsts = firsts;
  ordered->leaves = leaves;
  ordered->leaf_room = room;
  return true;
}

// Moves the leaves from |from| on to |to|.
static void move_leaves(tarn__pool_ordered *ordered, size_t to, size_t from) {
  size_t count = ordered->leaf_count - from;
  memmove(&ordered->leaves[to], &ordered->leaves[from],
          count * sizeof *ordered->leaves);
  memmove(&ordered->firsts[to], &ordered->firsts[from],
          count * sizeof *ordered->firsts);
}

// An empty leaf at |at|, for |first|.
static tarn__pool_ordered_leaf *add_leaf(tarn__pool_ordered *ordered, size_t at,
                                         tarn_addr first) {
  if (!reserve_leaf(ordered)) return NULL;
  tarn__pool_ordered_leaf *leaf = tarn__host_alloc(sizeof *leaf);
  if (leaf == NULL) return NULL;
  memset(leaf->addresses, 0xff, sizeof leaf->addresses);
  move_leaves(ordered, at + 1, at);
  ordered->leaf_count++;
  ordered->leaves[at] = leaf;
  ordered->firsts[at] = first;
  return leaf;
}

static void remove_leaf(tarn__pool_ordered *ordered, size_t at) {
  tarn__host_free(ordered->leaves[at], sizeof **ordered->leaves);
  move_leaves(ordered, at, at + 1);
  ordered->firsts[--ordered->leaf_count] = NONE;
}

// Moves all from |from| on to |to|, within a leaf.
static void shift(tarn__pool_ordered_leaf *leaf, size_t to, size_t from) {
  size_t count = LEAF - (to > from ? to : from);
  memmove(&leaf->addresses[to], &leaf->addresses[from],
          count * sizeof *leaf->addresses);
  memmove(&leaf->pieces[to], &leaf->pieces[from], count * sizeof *leaf->pieces);
}

// Gives the upper half of a full leaf to a new one behind it.
static bool halve(tarn__pool_ordered *ordered, size_t at) {
  enum { HALF = LEAF / 2 };
  tarn__pool_ordered_leaf *lower = ordered->leaves[at];
  tarn__pool_ordered_leaf *upper =
      add_leaf(ordered, at + 1, lower->addresses[HALF]);
  if (upper == NULL) return false;
  memcpy(upper->addresses, &lower->addresses[HALF],
         HALF * sizeof *upper->addresses);
  memcpy(upper->pieces, &lower->pieces[HALF], HALF * sizeof *upper->pieces);
  memset(&lower->addresses[HALF], 0xff, HALF * sizeof *lower->addresses);
  lower->count = HALF;
  upper->count = HALF;
  return true;
}

// Makes room for |address| in the full leaf at |at|, or beside it. Pieces often
// come in the order of their addresses: then leaves stay full.
static bool split(tarn__pool_ordered *ordered, size_t at, tarn_addr address) {
  const tarn__pool_ordered_leaf *leaf = ordered->leaves[at];
  if (address > leaf->addresses[LEAF - 1]) {
    return add_leaf(ordered, at + 1, address) != NULL;
  }
  return halve(ordered, at);
}

static void drop(tarn__pool_ordered *ordered, size_t at, size_t index) {
  tarn__pool_ordered_leaf *leaf = ordered->leaves[at];
  shift(leaf, index, index + 1);
  leaf->addresses[LEAF - 1] = NONE;
  leaf->count--;
  ordered->entries--;
  if (leaf->count == 0) {
    remove_leaf(ordered, at);
  } else {
    ordered->firsts[at] = leaf->addresses[0];
  }
}

// --- putting in order ------------------------------------------------------

static void put(tarn__pool_ordered *ordered, size_t at, size_t index,
                tarn__pool_piece *piece) {
  tarn__pool_ordered_leaf *leaf = ordered->leaves[at];
  shift(leaf, index + 1, index);
  leaf->addresses[index] = piece->address;
  leaf->pieces[index] = piece;
  leaf->count++;
  ordered->entries++;
  ordered->firsts[at] = leaf->addresses[0];
}

// A leaf that has room for |address|. False: the host has no memory.
static bool make_leaf(tarn__pool_ordered *ordered, tarn_addr address,
                      size_t *out_at) {
  *out_at = 0;
  if (ordered->leaf_count == 0) return add_leaf(ordered, 0, address) != NULL;
  *out_at = leaf_for(ordered, address);
  if (ordered->leaves[*out_at]->count < LEAF) return true;
  if (!split(ordered, *out_at, address)) return false;
  *out_at = leaf_for(ordered, address);
  return true;
}

// What stood at its address before is gone.
static bool insert(tarn__pool_ordered *ordered, tarn__pool_piece *piece) {
  size_t at = 0;
  if (!make_leaf(ordered, piece->address, &at)) return false;
  tarn__pool_ordered_leaf *leaf = ordered->leaves[at];
  size_t index = count_up_to(leaf, piece->address);
  if (index > 0 && leaf->addresses[index - 1] == piece->address) {
    leaf->pieces[index - 1] = piece;
  } else {
    put(ordered, at, index, piece);
  }
  piece->ordered = true;
  return true;
}

// Pieces of a layout are not in the index, and overlap.
static bool learn(tarn__pool_pieces *pieces, tarn__pool_piece *piece) {
  bool is_new = piece->address != 0 && piece->address != NONE &&
                !piece->ordered &&
                tarn__pieces_find(pieces, piece->address) == piece;
  return !is_new || insert(&pieces->order, piece);
}

static bool learn_all(tarn__pool_pieces *pieces) {
  for (size_t id = 0; id < tarn__pieces_count(pieces); id++) {
    if (!learn(pieces, tarn__pieces_at(pieces, (uint32_t)id))) return false;
  }
  return true;
}

static bool learn_fresh(tarn__pool_pieces *pieces) {
  const tarn__pool_ordered *ordered = &pieces->order;
  for (size_t i = 0; i < ordered->fresh_count; i++) {
    if (!learn(pieces, tarn__pieces_at(pieces, ordered->fresh[i]))) {
      return false;
    }
  }
  return true;
}

static void forget_leaf(const tarn__pool_ordered_leaf *leaf) {
  for (size_t i = 0; i < leaf->count; i++) {
    if (!is_stale(leaf, i)) leaf->pieces[i]->ordered = false;
  }
}

static void forget_all(tarn__pool_ordered *ordered) {
  for (size_t at = ordered->leaf_count; at-- > 0;) {
    forget_leaf(ordered->leaves[at]);
    remove_leaf(ordered, at);
  }
  ordered->entries = 0;
  ordered->complete = false;
}

// As many as there are may come before it is too small. Without host memory all
// are walked through again.
static void make_room(tarn__pool_ordered *ordered, size_t wanted) {
  size_t room = ordered->fresh_room != 0 ? ordered->fresh_room : FIRST_FRESH;
  while (room < wanted)
    room *= 2;
  if (room == ordered->fresh_room) return;
  uint32_t *fresh = tarn__host_array(room, sizeof *fresh);
  if (fresh == NULL) return;
  tarn__host_free_array(ordered->fresh, ordered->fresh_room, sizeof *fresh);
  ordered->fresh = fresh;
  ordered->fresh_room = room;
}

bool tarn__ordered_catch_up(tarn__pool_pieces *pieces) {
  tarn__pool_ordered *ordered = &pieces->order;
  if (ordered->entries / 2 > pieces->used + LEAF) forget_all(ordered);
  if (ordered->fresh_count == ordered->fresh_room) ordered->complete = false;
  bool learned = ordered->complete ? learn_fresh(pieces) : learn_all(pieces);
  if (!learned) return false;
  ordered->fresh_count = 0;
  make_room(ordered, pieces->used);
  ordered->complete = ordered->fresh_room != 0;
  return true;
}

// --- finding ---------------------------------------------------------------

tarn__pool_piece *tarn__ordered_find(tarn__pool_ordered *ordered,
                                     tarn_addr address) {
  if (address == NONE) address--;
  while (ordered->leaf_count > 0) {
    size_t at = leaf_for(ordered, address);
    const tarn__pool_ordered_leaf *leaf = ordered->leaves[at];
    size_t count = count_up_to(leaf, address);
    if (count == 0) return NULL;
    if (!is_stale(leaf, count - 1)) return leaf->pieces[count - 1];
    drop(ordered, at, count - 1);
  }
  return NULL;
}

// --- the invariants --------------------------------------------------------

// Adds what it has to the sums.
static bool check_leaf(const tarn__pool_ordered *ordered, size_t at,
                       tarn_addr *last, size_t *entries, size_t *good) {
  const tarn__pool_ordered_leaf *leaf = ordered->leaves[at];
  if (leaf->count == 0 || leaf->count > LEAF) return false;
  if (ordered->firsts[at] != leaf->addresses[0]) return false;
  for (size_t i = 0; i < LEAF; i++) {
    tarn_addr address = leaf->addresses[i];
    if (i >= leaf->count && address != NONE) return false;
    if (i >= leaf->count) continue;
    if (address <= *last || address == NONE) return false;
    *last = address;
    *good += is_stale(leaf, i) ? 0 : 1;
  }
  *entries += leaf->count;
  return true;
}

bool tarn__ordered_check(const tarn__pool_pieces *pieces) {
  const tarn__pool_ordered *ordered = &pieces->order;
  size_t entries = 0;
  size_t good = 0;
  size_t said = 0;
  tarn_addr last = 0;
  for (size_t at = ordered->leaf_count; at < ordered->leaf_room; at++) {
    if (ordered->firsts[at] != NONE) return false;
  }
  for (size_t at = 0; at < ordered->leaf_count; at++) {
    if (!check_leaf(ordered, at, &last, &entries, &good)) return false;
  }
  for (size_t id = 0; id < tarn__pieces_count(pieces); id++) {
    const tarn__pool_piece *piece = tarn__pieces_at(pieces, (uint32_t)id);
    bool in_index = piece->address != 0 &&
                    tarn__pieces_find(pieces, piece->address) == piece;
    if (piece->ordered && !in_index) return false;
    if (in_index && !piece->ordered && tarn__ordered_is_current(ordered)) {
      return false;
    }
    said += piece->ordered ? 1 : 0;
  }
  return entries == ordered->entries && good == said;
}

void tarn__ordered_deinit(tarn__pool_ordered *ordered) {
  while (ordered->leaf_count > 0)
    remove_leaf(ordered, ordered->leaf_count - 1);
  tarn__host_free_array(ordered->leaves, ordered->leaf_room,
                        sizeof *ordered->leaves);
  tarn__host_free_array(ordered->firsts, ordered->leaf_room,
                        sizeof *ordered->firsts);
  tarn__host_free_array(ordered->fresh, ordered->fresh_room,
                        sizeof *ordered->fresh);
  *ordered = (tarn__pool_ordered){.fresh = NULL};
}
