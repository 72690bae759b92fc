// row.h - what lies already, in one row by offset.
//
// Where the next item fits is found by going through the row from below. That
// is quicker than a tree (placed.h) where there are few items, or where most of
// them are there at once: then lists of ranges are as long as the row.
#ifndef TARN_PLAN_ROW_H_
#define TARN_PLAN_ROW_H_

#include "plan/instance.h"

typedef struct tarn__plan_lying {
  uint64_t low;  // [low, high), units
  uint64_t high;
  uint32_t first;  // as of the item
  uint32_t last;
  uint32_t item;
} tarn__plan_lying;

typedef struct tarn__plan_row {
  const tarn__plan_instance *in;
  tarn__plan_lying *list;
  size_t count;
} tarn__plan_row;

// Nothing lies there yet. |in| must live as long.
//
// Lifetime:      tarn__plan_row_free.
// Cost:          32 bytes for each item.
// TARN_E_NOMEM   no host memory.
TARN_MUST_CHECK tarn_status tarn__plan_row_make(const tarn__plan_instance *in,
                                                tarn__plan_row *out_row);

// Leaves it zero-filled; one that is so is allowed.
void tarn__plan_row_free(tarn__plan_row *row);

// Puts the item at the lowest offset where it fits, aligned, and returns that.
// Pieces of one item count as large as the largest of them. Each item may lie
// there once.
//
// Cost: O(n).
uint64_t tarn__plan_row_put(tarn__plan_row *row, uint32_t item);

// Puts it at |offset|, also over what lies there.
void tarn__plan_row_put_at(tarn__plan_row *row, uint32_t item, uint64_t offset);

#endif  // TARN_PLAN_ROW_H_
