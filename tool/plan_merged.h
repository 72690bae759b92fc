// plan_merged.h - the boxes of a plan's picture where buffers have colours:
// neighbours that match are one box.
//
//   |  weight 2  |                          |            |
//   |------------|  one colour, one         |  weights   |
//   |  weight 1  |  lifetime, no gap  ──►   |  (2)       |
//
#ifndef TARN_TOOL_PLAN_MERGED_H_
#define TARN_TOOL_PLAN_MERGED_H_

#include "plan_report.h"

typedef struct plan_merged {
  tarn_plan_buffer *buffers;
  uint64_t *offsets;
  uint32_t *arenas;
  size_t *first;    // of each box, its buffer at the lowest offset
  size_t *parts;    // how many buffers it is
  uint8_t *colour;  // as of plan_input_kind
  size_t count;
} plan_merged;

// Of an answer with offsets whose input has colours. Free it with
// plan_merged_deinit.
//
// Cost: O(n log n).
plan_merged plan_merged_make(const plan_answer *answer);
void plan_merged_deinit(plan_merged *m);

#endif  // TARN_TOOL_PLAN_MERGED_H_
