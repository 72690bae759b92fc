// Pieces in the order of their addresses.
//
// Invariants:
//   * leaves stand in the order of their addresses, and these within a leaf; no
//     address is there twice
//   * a slot has the first address of its leaf
//   * a piece with |ordered| has an entry at its address, unless the device is
//     getting its memory back
#include "pool/ordered.h"

#include <string.h>

#include "base/hostmem.h"
#include "pool/piece.h"

// A leaf takes 8 lines of the cache, and a few more.
enum { LEAF = 32, LINE = 64, FIRST_FRESH = 64, FIRST_SLOTS = 8 };

// An address stands beside its piece: who finds the one has the other at hand.
typedef struct entry {
  tarn_addr address;
  tarn__piece *piece;
} entry;

struct tarn__ordered_leaf {
  size_t count;  // never 0
  entry entries[LEAF];
};

// --- searching -------------------------------------------------------------

// How many of the slots, or of the addresses, are not above |address|. Which
// half it is in cannot be guessed, so there is no branch.
static size_t count_slots(const tarn__ordered *ordered, tarn_addr address) {
  size_t low = 0;
  for (size_t left = ordered->slot_count, half = 0; left > 0; left -= half) {
    half = (left + 1) / 2;
    low += ordered->slots[low + half - 1].first <= address ? half : 0;
  }
  return low;
}

static size_t count_addresses(const tarn__ordered_leaf *leaf,
                              tarn_addr address) {
  size_t low = 0;
  for (size_t left = leaf->count, half = 0; left > 0; left -= half) {
    half = (left + 1) / 2;
    low += leaf->entries[low + half - 1].address <= address ? half : 0;
  }
  return low;
}

static bool is_stale(const tarn__ordered_leaf *leaf, size_t index) {
  const entry *e = &leaf->entries[index];
  return !e->piece->ordered || e->piece->address != e->address;
}

// --- leaves ----------------------------------------------------------------

static bool reserve_slot(tarn__ordered *ordered) {
  if (ordered->slot_count < ordered->slot_room) return true;
  size_t room = ordered->slot_room != 0 ? ordered->slot_room * 2 : FIRST_SLOTS;
  tarn__ordered_slot *slots = tarn__host_resize(
      ordered->slots, ordered->slot_room, room, sizeof *slots);
  if (slots == NULL) return false;
  ordered->slots = slots;
  ordered->slot_room = room;
  return true;
}

// An empty leaf in slot |at|.
static tarn__ordered_leaf *add_leaf(tarn__ordered *ordered, size_t at) {
  if (!reserve_slot(ordered)) return NULL;
  tarn__ordered_leaf *leaf = tarn__host_alloc(sizeof *leaf);
  if (leaf == NULL) return NULL;
  memmove(&ordered->slots[at + 1], &ordered->slots[at],
          (ordered->slot_count - at) * sizeof ordered->slots[0]);
  ordered->slots[at] = (tarn__ordered_slot){.leaf = leaf};
  ordered->slot_count++;
  return leaf;
}

static void remove_leaf(tarn__ordered *ordered, size_t at) {
  tarn__host_free(ordered->slots[at].leaf, sizeof *ordered->slots[at].leaf);
  ordered->slot_count--;
  memmove(&ordered->slots[at], &ordered->slots[at + 1],
          (ordered->slot_count - at) * sizeof ordered->slots[0]);
}

static void move(tarn__ordered_leaf *to, size_t at,
                 const tarn__ordered_leaf *from, size_t first, size_t count) {
  memmove(&to->entries[at], &from->entries[first],
          count * sizeof to->entries[0]);
}

// Gives the upper half of a full leaf to a new one behind it.
static bool split(tarn__ordered *ordered, size_t at) {
  tarn__ordered_leaf *upper = add_leaf(ordered, at + 1);
  if (upper == NULL) return false;
  tarn__ordered_leaf *lower = ordered->slots[at].leaf;
  lower->count = LEAF / 2;
  upper->count = LEAF - LEAF / 2;
  move(upper, 0, lower, lower->count, upper->count);
  ordered->slots[at + 1].first = upper->entries[0].address;
  return true;
}

static void drop(tarn__ordered *ordered, size_t at, size_t index) {
  tarn__ordered_leaf *leaf = ordered->slots[at].leaf;
  leaf->count--;
  move(leaf, index, leaf, index + 1, leaf->count - index);
  ordered->entries--;
  if (leaf->count == 0) {
    remove_leaf(ordered, at);
  } else {
    ordered->slots[at].first = leaf->entries[0].address;
  }
}

// --- putting in order ------------------------------------------------------

// The slot of the leaf in which |address| belongs.
static size_t slot_of(const tarn__ordered *ordered, tarn_addr address) {
  size_t below = count_slots(ordered, address);
  return below > 0 ? below - 1 : 0;
}

static void put(tarn__ordered *ordered, size_t at, size_t index,
                tarn__piece *piece) {
  tarn__ordered_leaf *leaf = ordered->slots[at].leaf;
  move(leaf, index + 1, leaf, index, leaf->count - index);
  leaf->entries[index] = (entry){piece->address, piece};
  leaf->count++;
  ordered->slots[at].first = leaf->entries[0].address;
  ordered->entries++;
}

// What stood at its address before is gone.
static bool insert(tarn__ordered *ordered, tarn__piece *piece) {
  if (ordered->slot_count == 0 && add_leaf(ordered, 0) == NULL) return false;
  size_t at = slot_of(ordered, piece->address);
  if (ordered->slots[at].leaf->count == LEAF) {
    if (!split(ordered, at)) return false;
    at = slot_of(ordered, piece->address);
  }
  tarn__ordered_leaf *leaf = ordered->slots[at].leaf;
  size_t index = count_addresses(leaf, piece->address);
  if (index > 0 && leaf->entries[index - 1].address == piece->address) {
    leaf->entries[index - 1].piece = piece;
  } else {
    put(ordered, at, index, piece);
  }
  piece->ordered = true;
  return true;
}

// Pieces of a stage are not in the index, and overlap.
static bool learn(tarn__pieces *pieces, tarn__piece *piece) {
  bool is_new = piece->address != 0 && !piece->ordered &&
                tarn__pieces_find(pieces, piece->address) == piece;
  return !is_new || insert(&pieces->order, piece);
}

static bool learn_all(tarn__pieces *pieces) {
  for (size_t id = 0; id < tarn__pieces_count(pieces); id++) {
    if (!learn(pieces, tarn__pieces_at(pieces, (uint32_t)id))) return false;
  }
  return true;
}

static bool learn_fresh(tarn__pieces *pieces) {
  const tarn__ordered *ordered = &pieces->order;
  for (size_t i = 0; i < ordered->fresh_count; i++) {
    if (!learn(pieces, tarn__pieces_at(pieces, ordered->fresh[i]))) {
      return false;
    }
  }
  return true;
}

static void forget_leaf(const tarn__ordered_leaf *leaf) {
  for (size_t i = 0; i < leaf->count; i++) {
    if (!is_stale(leaf, i)) leaf->entries[i].piece->ordered = false;
  }
}

static void forget_all(tarn__ordered *ordered) {
  for (size_t at = ordered->slot_count; at-- > 0;) {
    forget_leaf(ordered->slots[at].leaf);
    remove_leaf(ordered, at);
  }
  ordered->entries = 0;
  ordered->complete = false;
}

// As many as there are may come before it is too small. Without host memory all
// are walked through again.
static void make_room(tarn__ordered *ordered, size_t wanted) {
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

bool tarn__ordered_catch_up(tarn__pieces *pieces) {
  tarn__ordered *ordered = &pieces->order;
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

// All lines at once: a search would wait for one after the other.
static void fetch(const tarn__ordered_leaf *leaf) {
  for (size_t i = 0; i < sizeof *leaf; i += LINE)
    __builtin_prefetch((const char *)leaf + i);
}

tarn__piece *tarn__ordered_find(tarn__ordered *ordered, tarn_addr address) {
  for (;;) {
    size_t below = count_slots(ordered, address);
    if (below == 0) return NULL;
    const tarn__ordered_leaf *leaf = ordered->slots[below - 1].leaf;
    fetch(leaf);
    size_t index = count_addresses(leaf, address) - 1;
    if (!is_stale(leaf, index)) return leaf->entries[index].piece;
    drop(ordered, below - 1, index);
  }
}

// --- the invariants --------------------------------------------------------

// Adds what it has to the sums.
static bool check_leaf(const tarn__ordered_slot *slot, tarn_addr *last,
                       size_t *entries, size_t *good) {
  const tarn__ordered_leaf *leaf = slot->leaf;
  if (leaf->count == 0 || leaf->count > LEAF) return false;
  if (slot->first != leaf->entries[0].address) return false;
  for (size_t i = 0; i < leaf->count; i++) {
    if (leaf->entries[i].address <= *last) return false;
    *last = leaf->entries[i].address;
    *good += is_stale(leaf, i) ? 0 : 1;
  }
  *entries += leaf->count;
  return true;
}

bool tarn__ordered_check(const tarn__pieces *pieces) {
  const tarn__ordered *ordered = &pieces->order;
  size_t entries = 0;
  size_t good = 0;
  size_t said = 0;
  tarn_addr last = 0;
  for (size_t i = 0; i < ordered->slot_count; i++) {
    if (!check_leaf(&ordered->slots[i], &last, &entries, &good)) return false;
  }
  for (size_t id = 0; id < tarn__pieces_count(pieces); id++) {
    const tarn__piece *piece = tarn__pieces_at(pieces, (uint32_t)id);
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

void tarn__ordered_deinit(tarn__ordered *ordered) {
  while (ordered->slot_count > 0)
    remove_leaf(ordered, ordered->slot_count - 1);
  tarn__host_free_array(ordered->slots, ordered->slot_room,
                        sizeof *ordered->slots);
  tarn__host_free_array(ordered->fresh, ordered->fresh_room,
                        sizeof *ordered->fresh);
  *ordered = (tarn__ordered){.slots = NULL};
}
