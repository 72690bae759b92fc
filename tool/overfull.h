// overfull.h - which buffers have to go, so that no moment needs too much.
#ifndef TARN_TOOL_OVERFULL_H_
#define TARN_TOOL_OVERFULL_H_

#include <tarn/tarn.h>

// Chooses a small set of buffers without which at most |target| units are
// needed at any moment, whether there is a plan or not: |moved|, by buffer, is
// true for those. Gaps count as needed. It is not proved to be the least.
//
// Cost: O(n log n), and O(n) for each of the first few hundred that it chooses.
void overfull_choose(const tarn_plan_problem *problem, uint64_t target,
                     bool *moved);

#endif  // TARN_TOOL_OVERFULL_H_
