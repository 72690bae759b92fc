// solve.h - one instance, one capacity: greedy plans first, then the search.
#ifndef TARN_PLAN_SOLVE_H_
#define TARN_PLAN_SOLVE_H_

#include "plan/instance.h"
#include "plan/stop.h"

// Told of how far it is, on the thread of the caller, at each better plan and
// about ten times a second; |height| UINT64_MAX: there is none. False: stop.
typedef struct tarn__plan_watcher {
  bool (*tell)(void *user, uint64_t height, uint64_t bound, uint64_t nodes);
  void *user;
} tarn__plan_watcher;

typedef struct tarn__plan_aim {
  uint64_t capacity;                  // units; UINT64_MAX: no limit
  bool minimise;                      // go on below a capacity that is kept
  uint64_t node_limit;                // 0: none
  uint32_t threads;                   // at least 1
  uint64_t deadline_ns;               // as in tarn__plan_stop
  atomic_bool *asked;                 // as there; set when |watcher| says stop
  const tarn__plan_watcher *watcher;  // NULL: nobody
} tarn__plan_aim;

typedef struct tarn__plan_found {
  tarn_plan_answer answer;
  uint64_t height;  // units; UINT64_MAX: no plan
  uint64_t bound;   // units, proved
  uint64_t nodes;
} tarn__plan_found;

// |offsets|, one per item, holds the plan where there is one, in units. A plan
// that is there already, of |found->height|, is where it begins; UINT64_MAX:
// there is none. An instance without items has a plan of height 0.
//
// The answer is OPTIMAL where height and bound have met; INFEASIBLE where the
// bound is above the capacity; FEASIBLE where the height is within it; else
// OUT_OF_TIME, and the height is that of a plan that is too high.
//
// TARN_E_NOMEM  no host memory, and no plan.
TARN_MUST_CHECK tarn_status
tarn__plan_solve(const tarn__plan_instance *instance, const tarn__plan_aim *aim,
                 uint64_t *offsets, tarn__plan_found *found);

#endif  // TARN_PLAN_SOLVE_H_
