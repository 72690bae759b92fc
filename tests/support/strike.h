// strike.h - plays a scene with ranks, one of which is struck at one of its
// steps (tracer.h): it is killed, or stopped. The others must get over it by
// themselves, and nothing may be left of any of them.
#ifndef TARN_TESTS_SUPPORT_STRIKE_H_
#define TARN_TESTS_SUPPORT_STRIKE_H_

#include "support/tracer.h"
#include "whole/whole_scenes.h"

typedef struct strike {
  const scene *scene;
  size_t ranks;  // 2 or 3
  size_t victim;
  size_t step;  // of the victim, from 1 on; SIZE_MAX: it is not struck
  bool stops;   // else it is killed
  uint64_t timeout_ms;
  tracer_look *look;  // is shown what the victim calls; may be NULL
  void *context;
} strike;

typedef struct strike_end {
  bool struck;     // the victim came as far as that
  size_t steps;    // that it made
  size_t told;     // other ranks that were told; the rest had done before
  double worst_s;  // the longest that one of them waited, from the strike, or
                   // from the call that it made later, to the answer
  bool too_slow;   // ranks that were not struck were taken for late: expected
                   // where the timeout is short and the machine is busy
} strike_end;

// Fails the test if anything is not as it must be.
strike_end strike_run(const strike *plan);

#endif  // TARN_TESTS_SUPPORT_STRIKE_H_
