// onepass.h - a plan in one pass over time, for what is too large for more.
//
// As a pool would at run time: what begins takes a free range that it fits in
// closely, what ends gives its own back. Gaps are not used, and all lies above
// what is fixed.
#ifndef TARN_PLAN_ONEPASS_H_
#define TARN_PLAN_ONEPASS_H_

#include "plan/instance.h"

// Fills |out_offsets|, one per item, in units.
//
// Cost:          O(n); 8 bytes for each item and section, 40 for each range
//                that is live or free at once.
// TARN_E_NOMEM   no host memory.
TARN_MUST_CHECK tarn_status tarn__plan_one_pass(const tarn__plan_instance *in,
                                                uint64_t *out_offsets);

#endif  // TARN_PLAN_ONEPASS_H_
