// fill.h - a plan for a problem or a part of it, by whoever solves problems of
// its kind: those with one arena, and those with several.
#ifndef TARN_PLAN_FILL_H_
#define TARN_PLAN_FILL_H_

#include "plan/call.h"
#include "plan/result.h"

typedef struct tarn__plan_fill {
  const tarn_plan_problem *problem;
  const bool *left_out;  // by buffer; NULL: all are in
  uint64_t capacity;     // bytes, of the only arena, below its own; 0: its own
  bool minimise;         // go on below a capacity that is kept
  bool is_whole;         // it is what the caller asked for
  uint64_t node_limit;   // 0: all that the call has left
} tarn__plan_fill;

// Sets answer, height, lower bound and what is where. Of what is left out
// offset and arena mean nothing.
//
// TARN_E_INVALID  as in tarn__plan_instance_make.
// TARN_E_NOMEM    no host memory, and no plan.
TARN_MUST_CHECK tarn_status tarn__plan_fill_in(tarn__plan_call *call,
                                               const tarn__plan_fill *fill,
                                               tarn_plan *plan);

#endif  // TARN_PLAN_FILL_H_
