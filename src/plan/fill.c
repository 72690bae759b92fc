// One arena is a set; several are shared out.
#include "plan/fill.h"

#include <string.h>

#include "plan/arenas.h"
#include "plan/set.h"

static uint64_t capacity_of(const tarn__plan_fill *fill) {
  uint64_t own = tarn__plan_capacity(fill->problem, 0);
  bool given = fill->capacity != 0 && (own == 0 || fill->capacity < own);
  return given ? fill->capacity : own;
}

static tarn_status fill_one(tarn__plan_call *call, const tarn__plan_fill *fill,
                            tarn_plan *plan) {
  tarn__plan_set set = {.problem = fill->problem,
                        .left_out = fill->left_out,
                        .capacity = capacity_of(fill),
                        .minimise = fill->minimise,
                        .is_whole = fill->is_whole,
                        .node_limit = fill->node_limit};
  tarn__plan_laid placed;
  tarn_status status = tarn__plan_set_solve(call, &set, plan->offsets, &placed);
  if (status != TARN_OK) return status;
  plan->info.answer = placed.answer;
  plan->info.lower_bound = placed.bound;
  plan->has_offsets =
      placed.answer == TARN_PLAN_OPTIMAL || placed.answer == TARN_PLAN_FEASIBLE;
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
