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

// The leaf with the last first address that is not above |address|; 0, the
// first leaf, if there is none. Which half has it cannot be predicted, so the
// search has no branch.
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

// How many addresses of the leaf are not above |address|, which is not NONE.
// Each eighth is compared first: these loads do not depend on each other, so
// their cache lines arrive together, and the lines of the pieces at the same
// time. The number of instructions matters: a processor that gets far enough
// ahead loads the memory of the next search before that of this one.
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

// Both arrays are one allocation: |firsts|, and behind it |leaves|.
enum { BOTH = sizeof(tarn_addr) + sizeof(tarn__pool_ordered_leaf *) };

static bool reserve_leaf(tarn__pool_ordered *ordered) {
  size_t count = ordered->leaf_count;
  if (count < ordered->leaf_room) return true;
  size_t room = count != 0 ? count * 2 : FIRST_LEAVES;
  tarn_addr *firsts = tarn__host_array(room, BOTH);
  if (firsts == NULL) return false;
  memset(firsts, 0xff, room * sizeof *firsts);
  if (count != 0) {
    memcpy(firsts, ordered->firsts, count * sizeof *firsts);
    memcpy(firsts + room, ordered->leaves, count * sizeof *ordered->leaves);
  }
  tarn__host_free_array(ordered->firsts, count, BOTH);
  ordered->firsts = firsts;
  ordered->leaves = (tarn__pool_ordered_leaf **)(void *)(firsts + room);
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

// Moves the upper half of a full leaf to a new leaf behind it.
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

// Makes room for |address|, whose leaf is full or not there. Pieces often come
// in the order of their addresses: then leaves stay full.
static bool split(tarn__pool_ordered *ordered, size_t at, tarn_addr address) {
  if (ordered->leaf_count == 0) return add_leaf(ordered, 0, address) != NULL;
  bool is_last = address > ordered->leaves[at]->addresses[LEAF - 1];
  return is_last ? add_leaf(ordered, at + 1, address) != NULL
                 : halve(ordered, at);
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

// What stood at its address before is gone. False: the host has no memory.
static bool insert(tarn__pool_ordered *ordered, tarn__pool_piece *piece) {
  tarn_addr address = piece->address;
  size_t at = leaf_for(ordered, address);
  bool has_room = at < ordered->leaf_count && ordered->leaves[at]->count < LEAF;
  if (!has_room && !split(ordered, at, address)) return false;
  at = leaf_for(ordered, address);
  tarn__pool_ordered_leaf *leaf = ordered->leaves[at];
  size_t index = count_up_to(leaf, address);
  if (index > 0 && leaf->addresses[index - 1] == address) {
    leaf->pieces[index - 1] = piece;
  } else {
    put(ordered, at, index, piece);
  }
  piece->ordered = true;
  return true;
}

// Puts the pieces with these ids, or with all below |count|, in order. Pieces
// of a layout are not in the index, and overlap.
static bool learn(tarn__pool_pieces *pieces, const uint32_t *ids,
                  size_t count) {
  for (size_t i = 0; i < count; i++) {
    uint32_t id = ids != NULL ? ids[i] : (uint32_t)i;
    tarn__pool_piece *piece = tarn__pieces_at(pieces, id);
    bool is_new = piece->address != 0 && piece->address != NONE &&
                  !piece->ordered &&
                  tarn__pieces_find(pieces, piece->address) == piece;
    if (is_new && !insert(&pieces->order, piece)) return false;
  }
  return true;
}

static void forget_all(tarn__pool_ordered *ordered) {
  for (size_t at = ordered->leaf_count; at-- > 0;) {
    const tarn__pool_ordered_leaf *leaf = ordered->leaves[at];
    for (size_t i = 0; i < leaf->count; i++) {
      if (!is_stale(leaf, i)) leaf->pieces[i]->ordered = false;
    }
    remove_leaf(ordered, at);
  }
  ordered->entries = 0;
  ordered->complete = false;
}

// Makes room for |wanted| notes, one for each piece: too little when the number
// of pieces doubles before the next look-up. That one, and one after a lack of
// host memory, walks through all pieces.
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
  bool learned = ordered->complete
                     ? learn(pieces, ordered->fresh, ordered->fresh_count)
                     : learn(pieces, NULL, tarn__pieces_count(pieces));
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

bool tarn__ordered_check(const tarn__pool_pieces *pieces) {
  const tarn__pool_ordered *ordered = &pieces->order;
  size_t entries = 0;
  size_t good = 0;
  tarn_addr last = 0;
  for (size_t at = 0; at < ordered->leaf_room; at++) {
    bool used = at < ordered->leaf_count;
    const tarn__pool_ordered_leaf *leaf = used ? ordered->leaves[at] : NULL;
    if (ordered->firsts[at] != (used ? leaf->addresses[0] : NONE)) return false;
    for (size_t i = 0; used && i < LEAF; i++) {
      bool filled = i < leaf->count || i == 0;
      if (filled != (leaf->addresses[i] != NONE)) return false;
      if (!filled) continue;
      if (leaf->addresses[i] <= last) return false;
      last = leaf->addresses[i];
      good += is_stale(leaf, i) ? 0 : 1;
      entries++;
    }
  }
  for (size_t id = 0; id < tarn__pieces_count(pieces); id++) {
    const tarn__pool_piece *piece = tarn__pieces_at(pieces, (uint32_t)id);
    bool in_index = piece->address != 0 &&
                    tarn__pieces_find(pieces, piece->address) == piece;
    bool missing = in_index && tarn__ordered_is_current(ordered);
    if (piece->ordered ? !in_index : missing) return false;
    good -= piece->ordered ? 1 : 0;
  }
  return entries == ordered->entries && good == 0;
}

void tarn__ordered_deinit(tarn__pool_ordered *ordered) {
  while (ordered->leaf_count > 0)
    remove_leaf(ordered, ordered->leaf_count - 1);
  tarn__host_free_array(ordered->firsts, ordered->leaf_room, BOTH);
  tarn__host_free_array(ordered->fresh, ordered->fresh_room,
                        sizeof *ordered->fresh);
  *ordered = (tarn__pool_ordered){.fresh = NULL};
}
