// What is wrong with options is said once, here.
#include "plan/options.h"

#include <math.h>
#include <string.h>

#include "base/status.h"

enum { MOST_THREADS = 1024 };

static const double default_seconds = 1;

tarn_status tarn__plan_options_take(const tarn_plan_problem *problem,
                                    const tarn_plan_options *given,
                                    tarn_plan_options *out) {
  size_t known;
  *out = (tarn_plan_options){.time_limit_s = default_seconds, .threads = 1};
  if (given == NULL) return TARN_OK;
  if (!tarn__struct_size(given->struct_size,
                         TARN__SIZE_UP_TO(tarn_plan_options, user), sizeof *out,
                         &known)) {
    return tarn__fail(TARN_E_INVALID, "plan options: a struct_size of %zu",
                      given->struct_size);
  }
  memcpy(out, given, known);
  if (isnan(out->time_limit_s) || out->time_limit_s < 0) {
    return tarn__fail(TARN_E_INVALID, "plan options: a time limit of %g s",
                      out->time_limit_s);
  }
  if (out->threads > MOST_THREADS) {
    return tarn__fail(TARN_E_INVALID, "plan options: %u threads", out->threads);
  }
  if (out->previous != NULL && out->previous_arenas == NULL &&
      tarn__plan_arena_count(problem) > 1) {
    return tarn__fail(TARN_E_INVALID,
                      "plan options: a plan made before without its arenas");
  }
  if (out->time_limit_s == 0) out->time_limit_s = default_seconds;
  if (out->threads == 0) out->threads = 1;
  return TARN_OK;
}
