// try.h - a function that only passes a failure on.
#ifndef TARN_EXAMPLES_JOB_TRY_H_
#define TARN_EXAMPLES_JOB_TRY_H_

#include <tarn/tarn.h>

#define TRY(call)                                 \
  do {                                            \
    tarn_status try_status = (call);              \
    if (try_status != TARN_OK) return try_status; \
  } while (0)

// The first failure of several calls that are all made.
static inline tarn_status first_of(tarn_status one, tarn_status other) {
  return one != TARN_OK ? one : other;
}

#endif  // TARN_EXAMPLES_JOB_TRY_H_
