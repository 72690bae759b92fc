// course.h - the course of a training: steps, and then the rows that were held
// out.
#ifndef TARN_EXAMPLES_TRAIN_COURSE_H_
#define TARN_EXAMPLES_TRAIN_COURSE_H_

#include <stdio.h>
#include <tarn/tarn.h>

#include "gradients.h"
#include "loader.h"
#include "mlp.h"

typedef struct course {
  tarn_comm *comm;
  loader *from;
  mlp *net;
  gradients *slopes;
  size_t steps;
  bool prefetch;
  FILE *progress;  // NULL: none is told
} course;

// Seconds, means over the ranks. The first step, which takes memory, is not in
// them.
typedef struct course_times {
  double steps;    // all of them
  double compute;  // forward, backward, and the descent
  double batches;  // beginning to gather them, and waiting for them
  double sums;     // gradients of other ranks
} course_times;

typedef struct course_result {
  double loss;      // of the rows held out
  double accuracy;  // likewise
  double bound;     // no rule that does not look at features is more accurate
  course_times times;
  uint64_t moved;         // bytes of synced buffers, in all steps of all ranks
  uint64_t avoided;       // likewise: bytes that were used and not copied
  double gather_seconds;  // for GATHERS batches, with nothing else to do
  double gather_bytes;    // of all ranks
} course_result;

enum { GATHERS = 16 };

// Collective.
TARN_MUST_CHECK tarn_status course_run(const course *c, course_result *out);

#endif  // TARN_EXAMPLES_TRAIN_COURSE_H_
