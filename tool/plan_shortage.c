// The bytes needed at once, and plans of some of the buffers.
#include "plan_shortage.h"

#include <stdlib.h>

#include "plan_changes.h"

// The step in which most is live. Sizes sum up to less than 2^63.
static void find_most(const tarn_plan_problem *problem, plan_shortage *out) {
  plan_changes changes = plan_changes_make(problem, NULL, problem->count, NULL);
  uint64_t live = 0;
  for (size_t i = 0; i < changes.count; i++) {
    const plan_change *change = &changes.items[i];
    live = change->begins ? live + change->size : live - change->size;
    if (live <= out->needed) continue;
    out->needed = live;
    out->step = change->step;
  }
  plan_changes_deinit(&changes);
}

plan_shortage plan_shortage_find(const tarn_plan_problem *problem,
                                 double seconds) {
  plan_shortage s = {0};
  uint64_t bound = 0, capacity = plan_fit_capacity(problem);
  find_most(problem, &s);
  if (tarn_plan_lower_bound(problem, &bound) != TARN_OK) bound = 0;
  // In place less is needed, fixed offsets may need more.
  s.has_step = s.needed == bound;
  s.needed = bound;
  s.excess = bound > capacity ? bound - capacity : 0;
  s.offsets = plan_fit_unlimited(problem, seconds, &s.height);
  s.moves = plan_fit_moves(problem, seconds);
  return s;
}

void plan_shortage_deinit(plan_shortage *s) {
  free(s->offsets);
  plan_moves_deinit(&s->moves);
  *s = (plan_shortage){0};
}
