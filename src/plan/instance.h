// instance.h - a problem in the form that the solvers work on.
//
// Time is cut into sections: the sets of what is live together that are in no
// larger one, in their order. Two items share a section if and only if they
// are needed in one step, so that sections are all of time that matters. Sizes
// and offsets are counted in units, the largest that divides them all.
//
// An item is what gets one offset: a buffer, or buffers that take each other's
// place. It is made of pieces, each in a run of sections with a size of its
// own, all with their lower end at the item's offset:
//
//     a buffer     one with a gap      b in the place of a
//                                          +---+
//     +-------+    +--+    +---+       +---+   |
//     |       |    |  |    |   |       | a | b |
//     +-------+    +--+    +---+       +---+---+
//
// So of two items that share sections one lies above the other in all of them:
// i below j means offset(j) >= offset(i) + the largest size of i where j is
// there too.
#ifndef TARN_PLAN_INSTANCE_H_
#define TARN_PLAN_INSTANCE_H_

#include "plan/memory.h"
#include "plan/problem.h"

typedef struct tarn__plan_piece {
  uint32_t first;  // in the sections [first, last)
  uint32_t last;
  uint64_t size;  // units, more than 0
} tarn__plan_piece;

typedef struct tarn__plan_item {
  uint32_t first;  // the sections from its first piece to its last
  uint32_t last;
  uint32_t piece;  // the first of its pieces, which follow each other in time
  uint32_t piece_count;
  uint64_t size;       // of the largest piece
  uint64_t alignment;  // units, at least 1
  uint64_t length;     // steps in which it is needed
  uint64_t offset;     // units, where it is fixed
  bool fixed;
} tarn__plan_item;

typedef struct tarn__plan_instance {
  uint64_t unit;  // bytes
  size_t buffer_count;
  size_t item_count;
  size_t piece_count;
  size_t section_count;
  tarn__plan_item *items;    // in the order of their first buffers
  tarn__plan_piece *pieces;  // of one item beside each other
  uint64_t *live;            // by section: units needed in it
  uint64_t bound;            // units: most of live, and the ends of the fixed
  uint32_t *item_of;         // by buffer; TARN__PLAN_NO_ITEM: not in it
  uint32_t *item_of_piece;
  tarn__plan_memory memory;
} tarn__plan_instance;

#define TARN__PLAN_NO_ITEM UINT32_MAX

// What of a problem an instance is made of.
typedef struct tarn__plan_choice {
  const bool *left_out;  // by buffer; NULL: all are in
  const bool *merged;    // by pair: its two become one item; NULL: none
} tarn__plan_choice;

// |problem| has been checked. Merged pairs join buffers that are in it, give
// and take at most once each, and fix no two offsets that differ.
//
// Lifetime:       tarn__plan_instance_free.
// Cost:           O(n log n).
// TARN_E_INVALID  more than 2^31 pieces; merged alignments that are too much
//                 together: tarn__plan_both_aligned.
// TARN_E_NOMEM    no host memory.
TARN_MUST_CHECK tarn_status tarn__plan_instance_make(
    const tarn_plan_problem *problem, const tarn__plan_choice *choice,
    tarn__plan_instance *out_instance);

// Frees and zero-fills |instance|. A zero-filled one is allowed.
void tarn__plan_instance_free(tarn__plan_instance *instance);

// The units that |capacity| bytes have room for; 0 stands for no limit, and
// becomes UINT64_MAX.
uint64_t tarn__plan_units(const tarn__plan_instance *instance,
                          uint64_t capacity);

// The highest end, in units, of items at |offsets|.
uint64_t tarn__plan_instance_height(const tarn__plan_instance *instance,
                                    const uint64_t *offsets);

// Whether two items, whose first to last sections overlap, share one.
bool tarn__plan_items_meet(const tarn__plan_instance *instance, uint32_t a,
                           uint32_t b);

// Sorts the numbers below |count| by their keys, which are below |buckets| and
// |stride| bytes apart: number i with key k is in |out| from |begin[k]| to
// before |begin[k + 1]|; equal keys keep their order. |begin| has
// |buckets| + 1 elements, all 0.
void tarn__plan_bucket(const uint32_t *keys, size_t stride, size_t count,
                       size_t buckets, uint32_t *begin, uint32_t *out);

static inline const tarn__plan_piece *tarn__plan_pieces(
    const tarn__plan_instance *instance, const tarn__plan_item *item) {
  return instance->pieces + item->piece;
}

#endif  // TARN_PLAN_INSTANCE_H_
