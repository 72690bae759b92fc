// synced_fault.h - one call of what an access needs fails: host memory, memory
// of a device, or a copy.
#ifndef TARN_TESTS_SYNCED_SYNCED_FAULT_H_
#define TARN_TESTS_SYNCED_SYNCED_FAULT_H_

#include "synced_scene.h"

// Rarely true: then the next access of |place| on |stream| may fail. Remembers
// what is true before it; it comes before sm_plan_access.
bool sp_arm(const sm_root *r, unsigned place, int stream);

// Nothing fails any more. True if |status| is such a failure: then what was
// true before still is, or the copies that were made count.
bool sp_has_failed(sm_root *r, tarn_status status);

// How often.
extern unsigned long sp_failures;

#endif  // TARN_TESTS_SYNCED_SYNCED_FAULT_H_
