// One call of tarn_plan_solve: its problem and options are checked, the solver
// for problems of its kind is called, and its plan is kept.
#include "plan/call.h"

#include <math.h>
#include <string.h>

#include "base/status.h"

// --- options -----------------------------------------------------------------

enum { MOST_THREADS = 1024 };

static const double default_seconds = 1;

static tarn_status take_options(const tarn_plan_problem *problem,
                                const tarn_plan_options *given,
                                tarn_plan_options *out) {
  size_t known;
  *out = (tarn_plan_options){.time_limit_s = default_seconds, .threads = 1};
  if (given == NULL) return TARN_OK;
  if (!tarn__struct_size(given->struct_size,
                         TARN__SIZE_UP_TO(tarn_plan_options, user), sizeof *out,
                         &known)) {
    return tarn__fail(TARN_E_INVALID, "plan options: unknown struct_size %zu",
                      given->struct_size);
  }
  memcpy(out, given, known);
  if (isnan(out->time_limit_s) || out->time_limit_s < 0) {
    return tarn__fail(TARN_E_INVALID, "plan options: time_limit_s is %g",
                      out->time_limit_s);
  }
  if (out->threads > MOST_THREADS) {
    return tarn__fail(TARN_E_INVALID,
                      "plan options: %u threads; the most is 1024",
                      out->threads);
  }
  if (out->previous != NULL && out->previous_arenas == NULL &&
      tarn__plan_arena_count(problem) > 1) {
    return tarn__fail(
        TARN_E_INVALID,
        "plan options: several arenas, but previous_arenas is NULL");
  }
  if (out->time_limit_s == 0) out->time_limit_s = default_seconds;
  if (out->threads == 0) out->threads = 1;
  return TARN_OK;
}

// --- solving -----------------------------------------------------------------

static tarn_status solve(tarn__plan_call *call,
                         const tarn_plan_problem *problem, tarn_plan *plan) {
  tarn__plan_fill whole = {
      .problem = problem, .minimise = call->options.minimise, .is_whole = true};
  TARN__TRY(call->options.previous != NULL
                ? tarn__plan_from_previous(call, problem, plan)
                : tarn__plan_fill_in(call, &whole, plan));
  return plan->info.answer == TARN_PLAN_INFEASIBLE
             ? tarn__plan_find_conflict(call, problem, plan)
             : TARN_OK;
}

tarn_status tarn_plan_solve(const tarn_plan_problem *problem,
                            const tarn_plan_options *options,
                            tarn_plan **out_plan) {
  if (out_plan == NULL) return tarn__fail(TARN_E_INVALID, "plan: NULL");
  *out_plan = NULL;
  tarn_plan *plan = NULL;
  tarn_plan_options taken;
  tarn__plan_call call;
  TARN__TRY(tarn__plan_problem_check(problem));
  TARN__TRY(take_options(problem, options, &taken));
  tarn__plan_call_begin(&call, &taken);
  tarn_status status = tarn__plan_make(problem, &plan);
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

// --- what it says ------------------------------------------------------------

const char *tarn_plan_answer_name(tarn_plan_answer answer) {
  static const char *const names[] = {"optimal", "feasible", "infeasible",
                                      "out_of_time"};
  size_t index = (size_t)answer;
  return index < sizeof names / sizeof *names ? names[index] : "?";
}

tarn_status tarn_plan_query(const tarn_plan *plan, tarn_plan_info *out_info) {
  size_t size;
  TARN__TRY(
      tarn__clear_struct("plan info", plan == NULL ? NULL : out_info,
                         TARN__SIZE_UP_TO(tarn_plan_info, conflict_minimal),
                         sizeof *out_info, &size));
  memcpy(out_info, &plan->info, size);
  out_info->struct_size = size;
  return TARN_OK;
}

const uint64_t *tarn_plan_offsets(const tarn_plan *plan) {
  return plan != NULL && plan->has_offsets ? plan->offsets : NULL;
}

const uint32_t *tarn_plan_arenas(const tarn_plan *plan) {
  return plan != NULL && plan->has_offsets ? plan->arenas : NULL;
}

uint64_t tarn_plan_height(const tarn_plan *plan, size_t arena) {
  bool there = plan != NULL && plan->has_offsets && arena < plan->arena_count;
  return there ? plan->heights[arena] : 0;
}

const size_t *tarn_plan_conflict(const tarn_plan *plan) {
  return plan != NULL && plan->info.conflict_count > 0 ? plan->conflict : NULL;
}
