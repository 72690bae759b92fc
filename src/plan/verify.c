// STUB: to be replaced.
#include "base/status.h"
#include "plan/problem.h"

tarn_status tarn_plan_verify(const tarn_plan_problem *problem,
                             const uint64_t *offsets, const uint32_t *arenas,
                             uint64_t *out_height) {
  (void)offsets, (void)arenas;
  *out_height = 0;
  (void)problem;
  return tarn__fail(TARN_E_UNSUPPORTED, "plan verify: not built yet");
}
