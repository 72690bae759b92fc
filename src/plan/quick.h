// quick.h - a plan in little time, without a clock: what it takes depends on
// the instance alone.
#ifndef TARN_PLAN_QUICK_H_
#define TARN_PLAN_QUICK_H_

#include "plan/instance.h"

// Fills |out_offsets|, one per item, in units, with the lowest plan of a few
// orders; ends at once with a plan that is proved to be the lowest.
// |*out_height|: its height.
//
// Cost:          O(n^2) below 8,192 items where most of them are live at once,
//                else O(n log n): of more items, an order that takes longer is
//                given up.
// TARN_E_NOMEM   no host memory.
TARN_MUST_CHECK tarn_status tarn__plan_quick(const tarn__plan_instance *in,
                                             uint64_t *out_offsets,
                                             uint64_t *out_height);

#endif  // TARN_PLAN_QUICK_H_
