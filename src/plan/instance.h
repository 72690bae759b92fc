// instance.h - a problem in the form that the solvers work on.
//
// Time is cut into sections: the maximal sets of buffers that are live
// together, in order. Two items share a section if and only if they are needed
// in one time step. Sizes and offsets are counted in units; the unit is the
// largest that divides them all.
//
// An item has one offset: it is a buffer, or several buffers merged in place.
// It consists of pieces, each with a run of sections and a size; all begin at
// the item's offset:
//
//     a buffer     one with a gap      b in the place of a
//                                          +---+
//     +-------+    +--+    +---+       +---+   |
//     |       |    |  |    |   |       | a | b |
//     +-------+    +--+    +---+       +---+---+
//
// So of two items that share sections one lies above the other in all of them:
// i below j means that offset(j) >= offset(i) + the largest size of i in a
// section of j.
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

// As an item's offset: it lies nowhere.
#define TARN__PLAN_NOWHERE UINT64_MAX

// Makes an instance of the buffers that are not |left_out| (by buffer; NULL:
// all are in). The two of each |merged| pair (by pair; NULL: none) are one
// item.
//
// |problem| has been checked. Both buffers of merged pairs are in; a buffer is
// the giver of one merged pair at most, and the taker of one; fixed offsets of
// merged buffers are equal.
//
// Lifetime:       tarn__plan_instance_free.
// Cost:           O(n log n).
// TARN_E_INVALID  more than 2^31 pieces; merged alignments whose common
//                 multiple is too large: tarn__plan_both_aligned.
// TARN_E_NOMEM    no host memory.
TARN_MUST_CHECK tarn_status
tarn__plan_instance_make(const tarn_plan_problem *problem, const bool *left_out,
                         const bool *merged, tarn__plan_instance *out_instance);

// Frees and zero-fills |instance|. A zero-filled one is allowed.
void tarn__plan_instance_free(tarn__plan_instance *instance);

// The highest end, in units, of items at |offsets|.
uint64_t tarn__plan_instance_height(const tarn__plan_instance *instance,
                                    const uint64_t *offsets);

// Whether two items, whose runs from first to last section overlap, share a
// section.
bool tarn__plan_items_meet(const tarn__plan_instance *instance, uint32_t a,
                           uint32_t b);

// Sorts the numbers below |count| by their keys, which are below |buckets| and
// |stride| bytes apart: number i with key k is in |*out_sorted| from
// |(*out_begin)[k]| to before |(*out_begin)[k + 1]|; equal keys keep their
// order. Both arrays are of |memory|.
//
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status tarn__plan_bucket(
    tarn__plan_memory *memory, const uint32_t *keys, size_t stride,
    size_t count, size_t buckets, uint32_t **out_begin, uint32_t **out_sorted);

static inline const tarn__plan_piece *tarn__plan_pieces(
    const tarn__plan_instance *instance, const tarn__plan_item *item) {
  return instance->pieces + item->piece;
}

// Whether item |index| at |offset| ends within |capacity|.
static inline bool tarn__plan_ends_within(const tarn__plan_instance *instance,
                                          uint32_t index, uint64_t offset,
                                          uint64_t capacity) {
  return offset <= capacity && instance->items[index].size <= capacity - offset;
}

// Each section |t| of each |piece| of item number |index|. Names that are
// declared cannot be in parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define TARN__PLAN_EACH_SECTION(in, index, piece, t)               \
  for (const tarn__plan_piece *                                    \
           piece = (in)->pieces + (in)->items[index].piece,        \
          *end_of_pieces = piece + (in)->items[index].piece_count; \
       piece < end_of_pieces; piece++)                             \
    for (uint32_t t = piece->first; t < piece->last; t++)
// NOLINTEND(bugprone-macro-parentheses)

#endif  // TARN_PLAN_INSTANCE_H_
