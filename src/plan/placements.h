// placements.h - the items that are placed, and where the next one fits.
//
// In a tree over sections a node stands for a run of them, its children for the
// halves. Each placed piece is written at the few nodes that make up its run,
// and at those above them. So where a piece fits can be read off a few lists of
// occupied ranges, in which ranges that touch are one: well packed memory makes
// short lists.
//
// In a list sorted by offset the place is found by going through the list from
// below. That is quicker than the tree for few items, or where most of them are
// live at once: then the lists of ranges are as long as the list.
#ifndef TARN_PLAN_PLACEMENTS_H_
#define TARN_PLAN_PLACEMENTS_H_

#include "plan/sort_keys.h"
#include "plan/stop.h"

typedef struct tarn__plan_ranges {
  tarn__plan_range *list;  // ascending, apart
  uint32_t count;
  uint32_t room;
} tarn__plan_ranges;

typedef struct tarn__plan_node {
  tarn__plan_ranges whole;  // of pieces in all of its sections
  tarn__plan_ranges any;    // of pieces in one of its sections or more
} tarn__plan_node;

typedef struct tarn__plan_lying {
  tarn__plan_range range;
  uint32_t first;  // the item's first section
  uint32_t last;
  uint32_t item;
} tarn__plan_lying;

typedef struct tarn__plan_placed {
  const tarn__plan_instance *in;
  tarn__plan_memory *memory;
  uint64_t *at;  // by item: where it lies; TARN__PLAN_NOWHERE: not placed
  // The tree; |nodes| is NULL if the items are in a list.
  uint64_t grain;          // tarn__plan_grain
  size_t leaves;           // a power of two
  tarn__plan_node *nodes;  // [1] is the root; [leaves + s] is section s
  uint64_t looked;         // ranges looked at so far, to find where items fit
  // The list, by offset; of equals the one that came first is first.
  tarn__plan_lying *list;
  size_t count;
} tarn__plan_placed;

// The greatest divisor of all alignments, and so of all offsets: no other item
// can use the rest of a grain in which an item ends.
uint64_t tarn__plan_grain(const tarn__plan_instance *in);

// Nothing is placed yet. |in| and |memory| must live as long.
//
// Cost:          8 bytes for each item; of a tree 128 bytes for each section,
//                and up to twice that; of a list 32 bytes for each item.
// TARN_E_NOMEM   no host memory.
TARN_MUST_CHECK tarn_status tarn__plan_placed_make(
    const tarn__plan_instance *in, bool in_list, tarn__plan_memory *memory,
    tarn__plan_placed *out_placed);

// Takes everything out.
void tarn__plan_placed_clear(tarn__plan_placed *placed);

// The lowest offset where the item fits among those that are placed, aligned.
// In a list all pieces of an item count as large as the largest.
//
// Cost: of a tree O(log n) lists, a binary search in each, as often as one of
//       them lifts the item; of a list O(n).
uint64_t tarn__plan_placed_lowest(tarn__plan_placed *placed, uint32_t item);

// Puts the item down at |offset|, also over others. In a list each item may be
// placed once.
//
// TARN_E_NOMEM  no host memory: the item is placed in part, and the tree is of
//               no more use. Never of a list.
TARN_MUST_CHECK tarn_status tarn__plan_placed_add(tarn__plan_placed *placed,
                                                  uint32_t item,
                                                  uint64_t offset);

// Takes an item out of a tree, in which it lies over no other.
//
// Cost:         as of tarn__plan_placed_add, and the ranges of the lists
//               between the item's ends.
// TARN_E_NOMEM  as there.
TARN_MUST_CHECK tarn_status tarn__plan_placed_remove(tarn__plan_placed *placed,
                                                     uint32_t item);

// --- a whole plan ------------------------------------------------------------

// A plan that is made in an order, and the best one so far.
typedef struct tarn__plan_placing {
  tarn__plan_placed placed;
  tarn__plan_sort_keys keys;  // the order
  uint64_t nodes;             // counts what is placed, but is not fixed
  uint64_t made;              // height of the latest plan; UINT64_MAX: given up
  uint64_t *best;             // offsets by item
  uint64_t *height;           // of the best
  tarn__plan_stop *stop;      // NULL: nothing stops it
  bool (*is_over)(void *user);
  void *user;
} tarn__plan_placing;

// Makes |placed| and |keys|.
//
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status
tarn__plan_placing_make(const tarn__plan_instance *in, bool in_list,
                        tarn__plan_memory *memory, tarn__plan_placing *placing);

// Places the fixed items, and then the others in order, each as low as it fits,
// while they end below |limit| and it is not over. A plan of all items is kept
// if it is the best.
//
// TARN_E_NOMEM  as of tarn__plan_placed_add.
TARN_MUST_CHECK tarn_status tarn__plan_place_all(tarn__plan_placing *placing,
                                                 uint64_t limit);

// The items, which are all placed, become the best plan if they are lower. The
// watcher gets it at the next look.
void tarn__plan_keep_lower(tarn__plan_placing *placing);

#endif  // TARN_PLAN_PLACEMENTS_H_
