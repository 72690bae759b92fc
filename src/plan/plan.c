// One call of tarn_plan_solve: its problem and options are checked, the solver
// for problems of its kind is called, and its plan is kept.
//
// Heights and bounds of single instances reach the caller only where they hold
// for the whole problem.
#include "plan/call.h"

#include <math.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "plan/pairs.h"

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

// --- what a call spends and tells
// ---------------------------------------------

void tarn__plan_call_begin(tarn__plan_call *call,
                           const tarn_plan_options *options) {
  *call = (tarn__plan_call){.options = *options,
                            .began_ns = tarn__os_now_ns(),
                            .deadline_ns = UINT64_MAX,
                            .height = UINT64_MAX,
                            .told_height = UINT64_MAX};
  call->told_ns = call->began_ns;
  double ns = options->time_limit_s * 1e9;
  if (ns < 9e18) call->deadline_ns = call->began_ns + (uint64_t)ns;
}

double tarn__plan_call_seconds(const tarn__plan_call *call) {
  return (double)(tarn__os_now_ns() - call->began_ns) * 1e-9;
}

bool tarn__plan_call_late(tarn__plan_call *call) {
  return atomic_load_explicit(&call->asked, memory_order_relaxed) ||
         tarn__os_now_ns() >= call->deadline_ns;
}

bool tarn__plan_call_over(tarn__plan_call *call) {
  uint64_t limit = call->options.node_limit;
  return (limit != 0 && call->nodes >= limit) || tarn__plan_call_late(call);
}

// Whether the caller hears of it: a better plan at once, all else only so
// often, however many instances there are.
static bool is_due(tarn__plan_call *call) {
  uint64_t now = tarn__os_now_ns();
  bool better = call->height < call->told_height;
  if (!better && now - call->told_ns < TARN__PLAN_WATCH_EACH_NS) return false;
  call->told_height = call->height;
  call->told_ns = now;
  return true;
}

static void ask_caller(tarn__plan_call *call, uint64_t nodes) {
  tarn_plan_progress progress = {
      .struct_size = sizeof progress,
      .height = call->height == UINT64_MAX ? 0 : call->height,
      .lower_bound = call->bound,
      .nodes = call->nodes + nodes,
      .seconds = tarn__plan_call_seconds(call)};
  call->cancelled = !call->options.progress(&progress, call->options.user);
}

bool tarn__plan_call_tell(tarn__plan_call *call, const tarn__plan_share *share,
                          uint64_t unit, const tarn__plan_found *found,
                          uint64_t nodes) {
  if (call->options.progress == NULL) return true;
  if (share->is_plan && found->height != UINT64_MAX &&
      found->height * unit < call->height) {
    call->height = found->height * unit;
  }
  if (share->is_bound && found->bound * unit > call->bound) {
    call->bound = found->bound * unit;
  }
  if (!call->cancelled && is_due(call)) ask_caller(call, found->nodes + nodes);
  return !call->cancelled;
}

// --- one arena, or several ---------------------------------------------------

static tarn_status fill_one(tarn__plan_call *call, const tarn__plan_fill *fill,
                            tarn_plan *plan) {
  tarn__plan_fill set = *fill;
  tarn__plan_found placed;
  uint64_t own = tarn__plan_capacity(fill->problem, 0);
  if (set.capacity == 0 || (own != 0 && own < set.capacity)) set.capacity = own;
  tarn_status status = tarn__plan_set_solve(call, &set, plan->offsets, &placed);
  if (status != TARN_OK) return status;
  plan->info.answer = placed.answer;
  plan->info.lower_bound = placed.bound;
  plan->has_offsets = tarn__plan_fits(placed.answer);
  plan->info.height = plan->has_offsets ? placed.height : 0;
  plan->heights[0] = plan->info.height;
  memset(plan->arenas, 0, fill->problem->count * sizeof *plan->arenas);
  return TARN_OK;
}

tarn_status tarn__plan_fill_in(tarn__plan_call *call,
                               const tarn__plan_fill *fill, tarn_plan *plan) {
  return plan->arena_count == 1 ? fill_one(call, fill, plan)
                                : tarn__plan_arenas_fill(call, fill, plan);
}

// --- solving -----------------------------------------------------------------

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
    status = take_options(problem, options, &taken);
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

// --- plans -------------------------------------------------------------------

tarn_status tarn__plan_make(const tarn_plan_problem *problem,
                            tarn_plan **out_plan) {
  tarn_plan *plan = tarn__host_alloc(sizeof *plan);
  *out_plan = plan;
  if (plan == NULL) return TARN_E_NOMEM;
  tarn__plan_memory *memory = &plan->memory;
  size_t room = problem->count + 1;
  plan->info.struct_size = sizeof plan->info;
  plan->info.answer = TARN_PLAN_OUT_OF_TIME;
  plan->info.count = problem->count;
  plan->arena_count = tarn__plan_arena_count(problem);
  plan->offsets = tarn__plan_array(memory, room, sizeof *plan->offsets);
  plan->arenas = tarn__plan_array(memory, room, sizeof *plan->arenas);
  plan->heights =
      tarn__plan_array(memory, plan->arena_count, sizeof *plan->heights);
  plan->conflict = tarn__plan_array(memory, room, sizeof *plan->conflict);
  return tarn__plan_memory_status(memory);
}

void tarn_plan_destroy(tarn_plan *plan) {
  if (plan == NULL) return;
  tarn__plan_memory_free(&plan->memory);
  tarn__host_free(plan, sizeof *plan);
}

void tarn__plan_swap(tarn_plan *plan, tarn_plan *other) {
  tarn_plan mine = *plan;
  *plan = *other;
  *other = mine;
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
  if (plan == NULL || out_info == NULL ||
      !tarn__struct_size(out_info->struct_size,
                         TARN__SIZE_UP_TO(tarn_plan_info, conflict_minimal),
                         sizeof *out_info, &size)) {
    return tarn__fail(TARN_E_INVALID, "plan info: NULL or struct_size");
  }
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
