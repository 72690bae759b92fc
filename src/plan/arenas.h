// arenas.h - several arenas, the best first.
//
// Buffers go by priority, then by size times lifetime, each to the earliest
// arena in which what is live with it leaves room; then each arena is solved
// as a set of its own, and what it has no place for goes on to the next.
#ifndef TARN_PLAN_ARENAS_H_
#define TARN_PLAN_ARENAS_H_

#include "plan/fill.h"

// As tarn__plan_fill_in, for a problem of several arenas. INFEASIBLE is said
// where a buffer is larger than each arena that it may lie in, where what must
// lie in one arena does not fit there, or where more is live than all arenas
// have together. OPTIMAL is said only if all lie in the first.
//
// TARN_E_INVALID  as in tarn__plan_instance_make.
// TARN_E_NOMEM    no host memory, and no plan.
TARN_MUST_CHECK tarn_status tarn__plan_arenas_fill(tarn__plan_call *call,
                                                   const tarn__plan_fill *fill,
                                                   tarn_plan *plan);

#endif  // TARN_PLAN_ARENAS_H_
