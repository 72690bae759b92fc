// conflict.h - why there is no plan: a few buffers that cannot fit together.
#ifndef TARN_PLAN_CONFLICT_H_
#define TARN_PLAN_CONFLICT_H_

#include "plan/fill.h"

// Fills |plan->conflict|, for |plan| that is INFEASIBLE: by sizes and offsets
// alone where they say it, else by leaving out what the proof does not need,
// as long as the call's limits allow. The set is the smaller the longer.
//
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status tarn__plan_find_conflict(
    tarn__plan_call *call, const tarn_plan_problem *problem, tarn_plan *plan);

#endif  // TARN_PLAN_CONFLICT_H_
