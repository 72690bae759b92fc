// plan_shortage.h - how much is missing where buffers do not fit, and what
// would help.
#ifndef TARN_TOOL_PLAN_SHORTAGE_H_
#define TARN_TOOL_PLAN_SHORTAGE_H_

#include "plan_fit.h"

typedef struct plan_shortage {
  uint64_t needed;  // at once, by all buffers, at least
  uint64_t excess;  // of that over the capacity; 0: no moment needs too much
  uint64_t step;    // in which so much is needed
  bool has_step;    // false where not one step alone is the reason
  plan_moves moves;
  // A plan that knows no capacity, as low as was found; NULL: none was.
  uint64_t *offsets;
  uint64_t height;
} plan_shortage;

enum { PLAN_SHORTAGE_QUESTIONS = 2 };

// Of |problem|, which has capacities and was not found to fit. |seconds| is
// about how long each of the questions may take.
plan_shortage plan_shortage_find(const tarn_plan_problem *problem,
                                 double seconds);

// A zero-filled one is allowed.
void plan_shortage_deinit(plan_shortage *shortage);

#endif  // TARN_TOOL_PLAN_SHORTAGE_H_
