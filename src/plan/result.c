// A plan once it is made: a few arrays, and what it says of itself.
#include "plan/result.h"

#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"

// --- coming and going --------------------------------------------------------

tarn_status tarn__plan_make(const tarn_plan_problem *problem,
                            tarn_plan **out_plan) {
  tarn_plan *plan = tarn__host_alloc(sizeof *plan);
  *out_plan = plan;
  if (plan == NULL) return TARN_E_NOMEM;
  plan->info.struct_size = sizeof plan->info;
  plan->info.answer = TARN_PLAN_OUT_OF_TIME;
  plan->info.count = problem->count;
  plan->arena_count = tarn__plan_arena_count(problem);
  plan->offsets = tarn__host_array(problem->count + 1, sizeof *plan->offsets);
  plan->arenas = tarn__host_array(problem->count + 1, sizeof *plan->arenas);
  plan->heights = tarn__host_array(plan->arena_count, sizeof *plan->heights);
  plan->conflict = tarn__host_array(problem->count + 1, sizeof *plan->conflict);
  bool made = plan->offsets != NULL && plan->arenas != NULL &&
              plan->heights != NULL && plan->conflict != NULL;
  return made ? TARN_OK : TARN_E_NOMEM;
}

void tarn_plan_destroy(tarn_plan *plan) {
  if (plan == NULL) return;
  size_t room = plan->info.count + 1;
  tarn__host_free_array(plan->offsets, room, sizeof *plan->offsets);
  tarn__host_free_array(plan->arenas, room, sizeof *plan->arenas);
  tarn__host_free_array(plan->heights, plan->arena_count,
                        sizeof *plan->heights);
  tarn__host_free_array(plan->conflict, room, sizeof *plan->conflict);
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
