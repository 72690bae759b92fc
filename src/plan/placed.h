// placed.h - what lies already, and where the next item fits.
//
// A tree over sections: a node stands for a run of them, its children for the
// halves. Each piece that is put down is written at the few nodes that make up
// its run, and at those above them. So where a piece fits can be read off a
// few lists of occupied ranges, in which ranges that touch are one: well packed
// memory makes short lists.
#ifndef TARN_PLAN_PLACED_H_
#define TARN_PLAN_PLACED_H_

#include "plan/instance.h"

typedef struct tarn__plan_range {
  uint64_t low;  // [low, high), units
  uint64_t high;
} tarn__plan_range;

typedef struct tarn__plan_ranges {
  tarn__plan_range *list;  // ascending, apart
  uint32_t count;
  uint32_t room;
} tarn__plan_ranges;

typedef struct tarn__plan_node {
  tarn__plan_ranges whole;  // of pieces in all of its sections
  tarn__plan_ranges any;    // of pieces in one of its sections or more
} tarn__plan_node;

typedef struct tarn__plan_placed {
  const tarn__plan_instance *in;
  uint64_t grain;          // tarn__plan_grain
  size_t leaves;           // a power of two
  tarn__plan_node *nodes;  // [1] is the root; [leaves + s] is section s
  uint64_t looked;         // ranges looked at so far, to find where items fit
} tarn__plan_placed;

// What divides all alignments, and so all offsets: what begins within a grain
// takes the rest of it from nobody.
uint64_t tarn__plan_grain(const tarn__plan_instance *in);

// Nothing lies there yet. |in| must live as long.
//
// Lifetime:      tarn__plan_placed_free.
// Cost:          128 bytes for each section, and up to twice that.
// TARN_E_NOMEM   no host memory.
TARN_MUST_CHECK tarn_status tarn__plan_placed_make(
    const tarn__plan_instance *in, tarn__plan_placed *out_placed);

// Leaves it zero-filled; one that is so is allowed.
void tarn__plan_placed_free(tarn__plan_placed *placed);

// Takes everything out.
void tarn__plan_placed_clear(tarn__plan_placed *placed);

// The lowest offset, not below |from|, where the item fits among what lies
// there, aligned.
//
// Cost: O(log n) lists, a binary search in each, as often as one of them lifts
//       the item.
uint64_t tarn__plan_placed_lowest(tarn__plan_placed *placed,
                                  const tarn__plan_item *item, uint64_t from);

// Puts the item down, also over what lies there.
//
// TARN_E_NOMEM  no host memory: it lies there in part, and all has to be
//               cleared.
TARN_MUST_CHECK tarn_status tarn__plan_placed_add(tarn__plan_placed *placed,
                                                  const tarn__plan_item *item,
                                                  uint64_t offset);

// Takes out an item that lies at |offset|, over nothing else.
//
// Cost:         as of tarn__plan_placed_add, and the ranges of the lists
// between
//               the item's ends.
// TARN_E_NOMEM  as there.
TARN_MUST_CHECK tarn_status tarn__plan_placed_remove(
    tarn__plan_placed *placed, const tarn__plan_item *item, uint64_t offset);

#endif  // TARN_PLAN_PLACED_H_
