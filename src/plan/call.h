// call.h - one call of tarn_plan_solve: what it may still spend, what it has
// found so far, and who is told.
//
// A call solves many instances: choices of what merges, one for each arena,
// relaxed ones that prove something, parts of what does not fit. They all
// spend from the same limits, and the caller sees one course of all of them.
//
// Shares are counted in nodes, never in seconds, so that what comes out does
// not depend on the machine; only the end of all time does.
#ifndef TARN_PLAN_CALL_H_
#define TARN_PLAN_CALL_H_

#include "plan/instance.h"
#include "plan/solve.h"

typedef struct tarn__plan_call {
  tarn_plan_options options;
  uint64_t began_ns;
  uint64_t deadline_ns;
  atomic_bool asked;     // as in tarn__plan_stop
  uint64_t nodes;        // of instances that are done
  uint64_t height;       // bytes: of the best whole plan; UINT64_MAX: none
  uint64_t bound;        // bytes: no whole plan is lower
  uint64_t told_height;  // that the caller has heard of, and when it was asked
  uint64_t told_ns;
  bool cancelled;
} tarn__plan_call;

// One instance's share of the call.
typedef struct tarn__plan_try {
  uint64_t capacity;    // units; UINT64_MAX: no limit
  bool minimise;        // go on below a capacity that is kept
  uint64_t node_limit;  // 0: all that the call has left
  bool is_plan;         // a plan of it is one of the whole problem
  bool is_bound;        // its bound is one of the whole problem
} tarn__plan_try;

// The clock begins to run. |options| have been taken.
void tarn__plan_call_begin(tarn__plan_call *call,
                           const tarn_plan_options *options);

double tarn__plan_call_seconds(const tarn__plan_call *call);

// Whether the time is over, or the caller has had enough: nothing more is to
// be done, however little.
bool tarn__plan_call_late(tarn__plan_call *call);

// Whether to return with what there is: late, or all nodes are spent.
bool tarn__plan_call_over(tarn__plan_call *call);

// As tarn__plan_solve, with what |share| allows. Fixed items that collide are
// INFEASIBLE, of which the solvers know nothing.
//
// TARN_E_NOMEM  no host memory, and no plan.
TARN_MUST_CHECK tarn_status tarn__plan_call_solve(
    tarn__plan_call *call, const tarn__plan_instance *instance,
    const tarn__plan_try *share, uint64_t *offsets, tarn__plan_found *found);

#endif  // TARN_PLAN_CALL_H_
