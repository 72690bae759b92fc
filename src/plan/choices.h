// choices.h - the search over what merges.
#ifndef TARN_PLAN_CHOICES_H_
#define TARN_PLAN_CHOICES_H_

#include "plan/choosing.h"

// Goes on until nothing more is asked for, the share is spent, or nothing more
// can be proved with any number of nodes.
//
// TARN_E_NOMEM  no host memory; what was found is kept.
TARN_MUST_CHECK tarn_status tarn__plan_choices_search(tarn__plan_choosing *s);

#endif  // TARN_PLAN_CHOICES_H_
