// set.h - a set of buffers for one arena: what of them is merged in place, and
// where they lie.
#ifndef TARN_PLAN_SET_H_
#define TARN_PLAN_SET_H_

#include "plan/call.h"

typedef struct tarn__plan_set {
  const tarn_plan_problem *problem;  // its arenas do not matter
  const bool *left_out;              // by buffer; NULL: all are in
  uint64_t capacity;                 // bytes; 0: no limit
  bool minimise;                     // go on below a capacity that is kept
  bool is_whole;                     // it is what the caller asked for
  uint64_t node_limit;               // 0: all that the call has left
} tarn__plan_set;

typedef struct tarn__plan_laid {
  tarn_plan_answer answer;
  uint64_t height;  // bytes; UINT64_MAX: no plan
  uint64_t bound;   // bytes, proved
} tarn__plan_laid;

// |offsets|, by buffer, in bytes, holds the plan where there is one; of what is
// left out they are as they were. OPTIMAL and INFEASIBLE are proved over all
// choices of what merges, and INFEASIBLE without a capacity means fixed offsets
// that collide. Answers are as in tarn__plan_solve.
//
// TARN_E_INVALID  as in tarn__plan_instance_make.
// TARN_E_NOMEM    no host memory, and no plan.
TARN_MUST_CHECK tarn_status tarn__plan_set_solve(tarn__plan_call *call,
                                                 const tarn__plan_set *set,
                                                 uint64_t *offsets,
                                                 tarn__plan_laid *out);

#endif  // TARN_PLAN_SET_H_
