// stop.h - when work on a plan is to stop early.
//
// Each thread of a call of tarn_plan_solve has one. Reading the clock costs as
// much as a node of the search, so loops call tarn__plan_stop_now() every few
// hundred microseconds of work.
#ifndef TARN_PLAN_STOP_H_
#define TARN_PLAN_STOP_H_

#include <stdatomic.h>

#include "base/os.h"
#include "tarn/plan.h"

typedef struct tarn__plan_stop {
  uint64_t deadline_ns;  // of tarn__os_now_ns; UINT64_MAX: none
  atomic_bool *asked;    // of all threads: by the caller, or by an error
  // On the thread of the caller only, else NULL: to be called at |watch_ns| or
  // after, with the nodes of the run so far. False: stop.
  bool (*watch)(void *user, uint64_t nodes);
  void *user;
  uint64_t watch_ns;
} tarn__plan_stop;

#define TARN__PLAN_WATCH_EACH_NS UINT64_C(100000000)

// Whether to return with the best plan so far. |nodes|: of the run so far, 0 if
// none are counted.
static inline bool tarn__plan_stop_now(tarn__plan_stop *stop, uint64_t nodes) {
  if (atomic_load_explicit(stop->asked, memory_order_relaxed)) return true;
  uint64_t now = tarn__os_now_ns();
  if (stop->watch != NULL && now >= stop->watch_ns) {
    stop->watch_ns = now + TARN__PLAN_WATCH_EACH_NS;
    if (!stop->watch(stop->user, nodes)) {
      atomic_store_explicit(stop->asked, true, memory_order_relaxed);
      return true;
    }
  }
  return now >= stop->deadline_ns;
}

#endif  // TARN_PLAN_STOP_H_
