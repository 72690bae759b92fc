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

#endif  // TARN_PLAN_RESULT_H_
