// greedy.h - good plans at once, which are not proved to be the best.
//
// Items are placed one by one in an order, each as low as the placed ones
// allow. Several orders are tried, the quickest first.
#ifndef TARN_PLAN_GREEDY_H_
#define TARN_PLAN_GREEDY_H_

#include "plan/instance.h"
#include "plan/stop.h"

// Improves |offsets|, one per item, of |*height| (UINT64_MAX: there is no plan
// yet), in units, until the height is at most |target|, |stop| says stop, or
// all orders have been tried. If there is no plan yet, one is made whatever
// |stop| says: above all fixed items there is room. Fixed items lie at their
// offsets.
//
// Cost:         O(n log n) for the first order, and as a rule for all.
// TARN_E_NOMEM  no host memory; |offsets| is the best so far.
TARN_MUST_CHECK tarn_status
tarn__plan_greedy(const tarn__plan_instance *instance, uint64_t target,
                  tarn__plan_stop *stop, uint64_t *offsets, uint64_t *height);

// Fills |out_offsets|, one per item, in units, with a plan made in one pass
// over time, as a pool would make it at run time: an item that begins takes a
// free range that it fits in closely, an item that ends frees its own. Gaps are
// not used, and all items lie above the fixed ones.
//
// Cost:          O(n); 8 bytes for each item and section, 40 for each range
//                that is live or free at once.
// TARN_E_NOMEM   no host memory.
TARN_MUST_CHECK tarn_status tarn__plan_one_pass(const tarn__plan_instance *in,
                                                uint64_t *out_offsets);

#endif  // TARN_PLAN_GREEDY_H_
