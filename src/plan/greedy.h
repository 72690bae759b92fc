// greedy.h - plans at once, that are good but not proved to be the best.
//
// Items are put down one by one in a good order, each as low as those allow
// that lie there already. Several orders and ways are tried, the quickest
// first.
#ifndef TARN_PLAN_GREEDY_H_
#define TARN_PLAN_GREEDY_H_

#include "plan/instance.h"
#include "plan/stop.h"

// Improves |offsets|, one per item, of |*height| (UINT64_MAX: there is no plan
// yet), in units, until the height is at most |target|, |stop| says stop, or
// all ways have been tried. At least one way is tried to its end, whatever
// |stop| says, if there is no plan yet. Fixed items are where they must be.
//
// With fixed items and a plan's height beyond any limit this always finds a
// plan: above all that is fixed there is room.
//
// Cost:         O(n log n) for the first way, and as a rule for all.
// TARN_E_NOMEM  no host memory; |offsets| is the best so far.
TARN_MUST_CHECK tarn_status
tarn__plan_greedy(const tarn__plan_instance *instance, uint64_t target,
                  tarn__plan_stop *stop, uint64_t *offsets, uint64_t *height);

#endif  // TARN_PLAN_GREEDY_H_
