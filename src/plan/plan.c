// What a caller sees: a problem and options are checked, the whole is handed
// to whoever solves problems of its kind, and what was found is kept.
#include "base/status.h"
#include "plan/call.h"
#include "plan/conflict.h"
#include "plan/fill.h"
#include "plan/options.h"
#include "plan/pairs.h"
#include "plan/previous.h"
#include "plan/result.h"

static tarn_status solve(tarn__plan_call *call,
                         const tarn_plan_problem *problem, tarn_plan *plan) {
  tarn__plan_fill whole = {
      .problem = problem, .minimise = call->options.minimise, .is_whole = true};
  tarn_status status = TARN_OK;
  if (call->options.previous != NULL) {
    status = tarn__plan_from_previous(call, problem, plan);
  } else {
    status = tarn__plan_fill_in(call, &whole, plan);
  }
  if (status == TARN_OK && plan->info.answer == TARN_PLAN_INFEASIBLE) {
    status = tarn__plan_find_conflict(call, problem, plan);
  }
  return status;
}

tarn_status tarn_plan_solve(const tarn_plan_problem *problem,
                            const tarn_plan_options *options,
                            tarn_plan **out_plan) {
  if (out_plan == NULL) return tarn__fail(TARN_E_INVALID, "plan: NULL");
  *out_plan = NULL;
  tarn_plan *plan = NULL;
  tarn_plan_options taken;
  tarn__plan_call call;
  tarn_status status = tarn__plan_problem_check(problem);
  if (status == TARN_OK) {
    status = tarn__plan_options_take(problem, options, &taken);
  }
  if (status != TARN_OK) return status;
  tarn__plan_call_begin(&call, &taken);
  status = tarn__plan_make(problem, &plan);
  if (status == TARN_OK) status = solve(&call, problem, plan);
  if (status != TARN_OK) {
    tarn_plan_destroy(plan);
    return status;
  }
  plan->info.nodes = call.nodes;
  plan->info.cancelled = call.cancelled;
  plan->info.seconds = tarn__plan_call_seconds(&call);
  *out_plan = plan;
  return TARN_OK;
}

tarn_status tarn_plan_lower_bound(const tarn_plan_problem *problem,
                                  uint64_t *out_bound) {
  if (out_bound == NULL) return tarn__fail(TARN_E_INVALID, "plan: NULL");
  *out_bound = 0;
  tarn_status status = tarn__plan_problem_check(problem);
  if (status != TARN_OK) return status;
  tarn__plan_pairs pairs;
  status = tarn__plan_pairs_make(problem, NULL, &pairs);
  if (status == TARN_OK) *out_bound = tarn__plan_pairs_bound(&pairs);
  tarn__plan_pairs_free(&pairs);
  return status;
}
