// identical.h - items that cannot be told from each other.
#ifndef TARN_PLAN_IDENTICAL_H_
#define TARN_PLAN_IDENTICAL_H_

#include "plan/instance.h"

// Fills |next|, by item, so that items with the same pieces and the same
// alignment follow each other in rings; one without any is its own.
//
// Cost:         O(n log n).
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status
tarn__plan_identical(const tarn__plan_instance *instance, uint32_t *next);

#endif  // TARN_PLAN_IDENTICAL_H_
