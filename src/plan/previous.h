// previous.h - plans that leave as much as they can where it was.
#ifndef TARN_PLAN_PREVIOUS_H_
#define TARN_PLAN_PREVIOUS_H_

#include "plan/fill.h"

// Makes a plan for |problem| from |call->options.previous|, which may be wrong
// in every way. If all of it is still a plan, it is the answer. Else the most
// that does not collide is held, and the rest found a place for, no higher than
// a plan made afresh; if that cannot be, that plan is the answer.
//
// TARN_E_INVALID  as in tarn__plan_instance_make.
// TARN_E_NOMEM    no host memory, and no plan.
TARN_MUST_CHECK tarn_status tarn__plan_from_previous(
    tarn__plan_call *call, const tarn_plan_problem *problem, tarn_plan *plan);

#endif  // TARN_PLAN_PREVIOUS_H_
