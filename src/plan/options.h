// options.h - whether options make sense, and what a zero stands for.
#ifndef TARN_PLAN_OPTIONS_H_
#define TARN_PLAN_OPTIONS_H_

#include "plan/problem.h"

// Copies |given| (NULL: all zero) for |problem|, with defaults where it says
// zero, and zeros where its version ends.
//
// TARN_E_INVALID  the text names the option and the value.
TARN_MUST_CHECK tarn_status
tarn__plan_options_take(const tarn_plan_problem *problem,
                        const tarn_plan_options *given, tarn_plan_options *out);

#endif  // TARN_PLAN_OPTIONS_H_
