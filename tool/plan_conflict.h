// plan_conflict.h - why some buffers cannot lie together.
#ifndef TARN_TOOL_PLAN_CONFLICT_H_
#define TARN_TOOL_PLAN_CONFLICT_H_

#include "plan_report.h"

// What buffers need at least, and when.
typedef struct plan_pressure {
  uint64_t bytes;
  uint64_t step;  // in which they need so much
  bool has_step;  // false where not one step alone is the reason
} plan_pressure;

// Of the answer's conflict. Zero if it names none.
plan_pressure plan_conflict_pressure(const plan_answer *answer);

// What could lie elsewhere for the others to fit, and how much is missing; then
// "These 3 buffers ...", a table of them, and why.
void plan_conflict_write(const plan_answer *answer, FILE *out);

#endif  // TARN_TOOL_PLAN_CONFLICT_H_
