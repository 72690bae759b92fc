// The clock and the progress of a call, and the plan that it makes.
//
// Heights and bounds of single instances reach the caller only where they hold
// for the whole problem.
#include "plan/call.h"

#include "base/hostmem.h"
#include "base/status.h"

// --- what a call spends and tells --------------------------------------------

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

void tarn__plan_complete(const tarn_plan_problem *problem, const bool *left_out,
                         uint64_t bound, tarn_plan *plan) {
  bool all_in_first = true;
  plan->has_offsets = true;
  plan->info.lower_bound = bound;
  plan->info.height = 0;
  for (size_t i = 0; i < plan->arena_count; i++)
    plan->heights[i] = 0;
  for (size_t i = 0; i < problem->count; i++) {
    if (!tarn__plan_is_in(left_out, i)) continue;
    uint64_t end = plan->offsets[i] + problem->buffers[i].size;
    uint64_t *height = &plan->heights[plan->arenas[i]];
    if (*height < end) *height = end;
    all_in_first &= plan->arenas[i] == 0;
  }
  for (size_t i = 0; i < plan->arena_count; i++)
    plan->info.height += plan->heights[i];
  bool optimal = all_in_first && plan->info.height <= bound;
  plan->info.answer = optimal ? TARN_PLAN_OPTIMAL : TARN_PLAN_FEASIBLE;
}
