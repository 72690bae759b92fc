// overlap.h - who lies in whose way, and who may stay.
//
// A sweep over sections with the pieces that are there in order of their
// offsets, so that whoever comes is compared with neighbours only.
#ifndef TARN_PLAN_OVERLAP_H_
#define TARN_PLAN_OVERLAP_H_

#include "plan/instance.h"

#define TARN__PLAN_NOBODY UINT64_MAX

// Lets as much stay as it finds room for: of two items that share a byte the
// one of less worth goes, its worth being its area. |offsets|, one per item, in
// bytes; an item at TARN__PLAN_NOBODY takes no part. Who |firm| names (NULL:
// nobody) never goes. |stays|, one per item, says who is left: no two of them
// share a byte, but for two that are firm.
//
// Cost:         O(n log n), and n times what is live at once to move entries.
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status
tarn__plan_overlap_sift(const tarn__plan_instance *instance,
                        const uint64_t *offsets, const bool *firm, bool *stays);

// Two items at |offsets|, in bytes, that share a byte in a section, the first
// two that the sweep meets; without any both are TARN__PLAN_NO_ITEM.
//
// Cost:         as above.
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status
tarn__plan_overlap_find(const tarn__plan_instance *instance,
                        const uint64_t *offsets, uint32_t out_items[2]);

// Whether two fixed items share a byte in a section.
//
// Cost:         O(n) where no two are fixed, else as above.
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status tarn__plan_fixed_collide(
    const tarn__plan_instance *instance, bool *out_collide);

#endif  // TARN_PLAN_OVERLAP_H_
