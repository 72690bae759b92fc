// overlap.h - which items at given offsets share bytes, and which may stay.
//
// A sweep over sections keeps the live pieces in order of their offsets, so
// that a new piece is compared with its neighbours only.
#ifndef TARN_PLAN_OVERLAP_H_
#define TARN_PLAN_OVERLAP_H_

#include "plan/instance.h"

// Chooses items that may stay: of two items that share a byte the one of
// smaller area goes. |offsets|, one per item, in bytes; an item at
// TARN__PLAN_NOWHERE takes no part. Items in |firm| (NULL: none) never go.
// |stays|, one per item, is the result: no two items that stay share a byte,
// unless both are firm.
//
// Cost:         O(n log n), and n times what is live at once to move entries.
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status
tarn__plan_overlap_sift(const tarn__plan_instance *instance,
                        const uint64_t *offsets, const bool *firm, bool *stays);

// Finds two items at |offsets|, in bytes, that share a byte in a section; if
// there are none, both are TARN__PLAN_NO_ITEM.
//
// Cost:         as above.
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status
tarn__plan_overlap_find(const tarn__plan_instance *instance,
                        const uint64_t *offsets, uint32_t out_items[2]);

// The same of the fixed items, at their offsets.
//
// Cost:         O(n) where no two are fixed, else as above.
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status tarn__plan_fixed_overlap(
    const tarn__plan_instance *instance, uint32_t out_items[2]);

#endif  // TARN_PLAN_OVERLAP_H_
