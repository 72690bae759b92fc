// neighbours.h - which items share sections, and the offsets that each item may
// have.
//
// Two items that share a section lie one above the other there, by the size
// that the lower one has. An item lies at a multiple of its alignment, clear of
// the fixed items in its sections.
#ifndef TARN_PLAN_NEIGHBOURS_H_
#define TARN_PLAN_NEIGHBOURS_H_

#include "plan/instance.h"
#include "plan/memory.h"

// --- all of them, listed -----------------------------------------------------

typedef struct tarn__plan_neighbours {
  const tarn__plan_instance *in;
  uint32_t *first;  // by item, and one more: where its neighbours begin
  uint32_t *item;   // the neighbours
  // By neighbour: how far it lies above the item, if it does, and the item
  // above it. NULL, the answer being the item's size, unless some item has
  // pieces of several sizes.
  uint64_t *above;
  uint64_t *below;
  uint32_t *begin;    // by section, and one more: where its items begin
  uint32_t *present;  // items, by section
  bool any_offset;    // no item is aligned or fixed
  bool any_fixed;
  bool fixed_collide;  // two fixed items share a byte in a section
  // Offsets that an item cannot have: by item, in order, beginning where its
  // neighbours do; NULL: nothing is fixed.
  tarn__plan_range *blocked;
  uint32_t *blocked_count;
} tarn__plan_neighbours;

// |instance| and |memory| must live as long. Nothing is written to the lists
// afterwards, so that searches on several threads may share them.
//
// Cost:         O(n + the size of the lists).
// TARN_FULL     the lists would have more than |most| bytes.
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status tarn__plan_neighbours_make(
    const tarn__plan_instance *instance, size_t most, tarn__plan_memory *memory,
    tarn__plan_neighbours *out_neighbours);

// How far above |item| its neighbour at |edge| must lie, and how far above that
// neighbour |item| must.
static inline uint64_t tarn__plan_above(const tarn__plan_neighbours *n,
                                        uint32_t item, uint32_t edge) {
  return n->above == NULL ? n->in->items[item].size : n->above[edge];
}

static inline uint64_t tarn__plan_below(const tarn__plan_neighbours *n,
                                        uint32_t edge) {
  return n->below == NULL ? n->in->items[n->item[edge]].size : n->below[edge];
}

// The least offset, not below |from|, that |item| may have.
uint64_t tarn__plan_settle_among(const tarn__plan_neighbours *n, uint32_t item,
                                 uint64_t from);

static inline uint64_t tarn__plan_settle(const tarn__plan_neighbours *n,
                                         uint32_t item, uint64_t from) {
  return n->any_offset ? from : tarn__plan_settle_among(n, item, from);
}

// As a least offset: the item is down.
#define TARN__PLAN_DOWN UINT64_MAX

// Fills |at|, by item, with the offsets that items have with nothing but the
// fixed ones down; and |least| with the same, or TARN__PLAN_DOWN for the fixed.
// False: some end is beyond |capacity|.
bool tarn__plan_lay_out(const tarn__plan_neighbours *n, uint64_t capacity,
                        uint64_t *at, uint64_t *least);

// Sizes of the fixed items in |section|, as far as they lie above |floor|.
uint64_t tarn__plan_fixed_above(const tarn__plan_neighbours *n,
                                uint32_t section, uint64_t floor);

// Fills |next|, by item, so that identical items, which have the same pieces
// and the same alignment, follow each other in rings. An item without any like
// it is its own ring.
//
// Cost:         O(n log n).
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status
tarn__plan_identical(const tarn__plan_instance *instance, uint32_t *next);

// --- looked up ---------------------------------------------------------------

// Items by the section that they begin in. Every few sections a mark lists the
// items that begin before it and end after it:
//
//   mark 0            mark 1            mark 2
//     |                 |  ---a----       |
//     |    -------------+--b--------------+----
//     +-----------------+-----------------+----> sections
//
// So an item that meets a run of sections is on the list of the mark before the
// run, or begins between that mark and the end of the run.
typedef struct tarn__plan_spans {
  const tarn__plan_instance *in;
  uint32_t *begin;  // by section, and one more: where it begins in |items|
  uint32_t *items;  // by their first sections
  uint32_t stride;  // sections from mark to mark
  uint32_t marks;
  uint32_t *mark;    // by mark, and one more: where it begins in |across|
  uint32_t *across;  // items that cross the marks
} tarn__plan_spans;

// |in| and |memory| must live as long.
//
// Cost:          O(n log n) at most; at most 20 bytes for each item and 12 for
//                each section.
// TARN_E_NOMEM   no host memory.
TARN_MUST_CHECK tarn_status tarn__plan_spans_make(const tarn__plan_instance *in,
                                                  tarn__plan_memory *memory,
                                                  tarn__plan_spans *out_spans);

// Fills |out|, which has room for all items, with those whose first to last
// sections overlap [first, last), gaps included. Returns their number.
//
// Cost: O(their number), on the average over all items.
size_t tarn__plan_spans_meet(const tarn__plan_spans *spans, uint32_t first,
                             uint32_t last, uint32_t *out);

// About how many items meet |item|; at least 1. Cost: O(1).
uint32_t tarn__plan_spans_count(const tarn__plan_spans *spans,
                                const tarn__plan_item *item);

#endif  // TARN_PLAN_NEIGHBOURS_H_
