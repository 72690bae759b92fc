// plan_changes.h - what is needed at once, from step to step.
#ifndef TARN_TOOL_PLAN_CHANGES_H_
#define TARN_TOOL_PLAN_CHANGES_H_

#include "kit/tool.h"

// From |step| on |size| more bytes are needed, or so much less.
typedef struct plan_change {
  uint64_t step;
  uint64_t size;
  bool begins;
} plan_change;

typedef struct plan_changes {
  plan_change *items;  // by step; in one step what ends stands first
  size_t count;
} plan_changes;

// Of |count| buffers, those that |chosen| names; NULL: the first ones.
// |offsets| NULL: all are separate; else buffers at one offset share bytes,
// which count once.
plan_changes plan_changes_make(const tarn_plan_problem *problem,
                               const size_t *chosen, size_t count,
                               const uint64_t *offsets);
void plan_changes_deinit(plan_changes *changes);

#endif  // TARN_TOOL_PLAN_CHANGES_H_
