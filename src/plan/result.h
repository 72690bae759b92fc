// result.h - a plan, as those who make it fill it in.
#ifndef TARN_PLAN_RESULT_H_
#define TARN_PLAN_RESULT_H_

#include "plan/problem.h"

struct tarn_plan {
  tarn_plan_info info;
  size_t arena_count;
  bool has_offsets;
  uint64_t *offsets;  // by buffer
  uint32_t *arenas;   // by buffer
  uint64_t *heights;  // by arena
  size_t *conflict;   // info.conflict_count, room for info.count
};

// One for |problem| with nothing in it; tarn_plan_destroy, also after a
// failure, gives back what there is of it.
//
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status tarn__plan_make(const tarn_plan_problem *problem,
                                            tarn_plan **out_plan);

// Moves answer, height, offsets, arenas and heights from one plan to another
// of the same problem, and what was in the other back.
void tarn__plan_swap(tarn_plan *plan, tarn_plan *other);

#endif  // TARN_PLAN_RESULT_H_
