// sums.h - how much is live in each step while buffers come and go.
#ifndef TARN_PLAN_SUMS_H_
#define TARN_PLAN_SUMS_H_

#include "plan/problem.h"

// A tree over the runs of steps between which something begins or ends.
typedef struct tarn__plan_sums {
  uint64_t *steps;  // where runs begin, ascending
  size_t count;
  size_t room;
  uint64_t *most;   // by node: of its runs, without what is added above it
  uint64_t *added;  // by node: to all of its runs
  size_t nodes;
} tarn__plan_sums;

// Nothing is live. Only steps in which something of |problem| begins or ends,
// and those after the first and before the last of a pair, can be told apart.
//
// Lifetime:     tarn__plan_sums_free, whatever the status.
// Cost:         O(n log n).
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status tarn__plan_sums_make(
    const tarn_plan_problem *problem, tarn__plan_sums *out_sums);

void tarn__plan_sums_free(tarn__plan_sums *sums);

// Nothing is live any more.
void tarn__plan_sums_clear(tarn__plan_sums *sums);

// Adds |size| in the steps [first, last); less than 0 modulo 2^64 takes away.
//
// Cost: O(log n).
void tarn__plan_sums_add(tarn__plan_sums *sums, uint64_t first, uint64_t last,
                         uint64_t size);

// The most that is live in a step of [first, last); 0 for an empty run.
//
// Cost: O(log n).
uint64_t tarn__plan_sums_most(const tarn__plan_sums *sums, uint64_t first,
                              uint64_t last);

#endif  // TARN_PLAN_SUMS_H_
