// spans.h - which items are there at the same time.
//
// Items are listed by the section that they begin in. Every few sections a mark
// lists the items that were begun before it and end after it:
//
//   mark 0            mark 1            mark 2
//     |                 |  ---a----       |
//     |    -------------+--b--------------+----
//     +-----------------+-----------------+----> sections
//
// So what meets a run of sections is on the list of the mark before it, or
// begins between that mark and the end of the run.
#ifndef TARN_PLAN_SPANS_H_
#define TARN_PLAN_SPANS_H_

#include "plan/instance.h"

typedef struct tarn__plan_spans {
  const tarn__plan_instance *in;
  uint32_t
      *begin;  // by section, and one more: where its part of |items| starts
  uint32_t *items;  // by their first sections
  uint32_t stride;  // sections from mark to mark
  uint32_t marks;
  uint32_t *mark;    // by mark, and one more: where its part of |across| starts
  uint32_t *across;  // items that cross the marks
} tarn__plan_spans;

// |in| must live as long.
//
// Lifetime:      tarn__plan_spans_free, whatever the status.
// Cost:          O(n log n) at most; 20 bytes for each item, 12 for each
// section
//                at most.
// TARN_E_NOMEM   no host memory.
TARN_MUST_CHECK tarn_status tarn__plan_spans_make(const tarn__plan_instance *in,
                                                  tarn__plan_spans *out_spans);

// Leaves it zero-filled; one that is so is allowed.
void tarn__plan_spans_free(tarn__plan_spans *spans);

// Fills |out|, which has room for all items, with those whose first to last
// sections overlap [first, last), gaps included. Returns how many.
//
// Cost: O(their number), on the average over all items.
size_t tarn__plan_spans_meet(const tarn__plan_spans *spans, uint32_t first,
                             uint32_t last, uint32_t *out);

// About how many meet |item|; at least 1. Cost: O(1).
uint32_t tarn__plan_spans_count(const tarn__plan_spans *spans,
                                const tarn__plan_item *item);

#endif  // TARN_PLAN_SPANS_H_
