// course.h - a training: steps, flushes, and pairs that were held out.
#ifndef TARN_EXAMPLES_RECOMMEND_COURSE_H_
#define TARN_EXAMPLES_RECOMMEND_COURSE_H_

#include <stdio.h>

#include "table.h"

typedef struct course {
  tarn_comm *comm;
  table *table;
  size_t steps;
  size_t flush;    // steps
  FILE *progress;  // NULL: none
} course;

// Of all ranks.
typedef struct course_tally {
  double rows;  // that were gathered
  double seconds;
  double loss;    // of a pair, in the mean
  double missed;  // that were not in memory when they were asked for
  double blocks_read;
  double blocks_written;
} course_tally;

// Among held-out pairs, how often the item that was taken has a higher score
// than one that was shown: the area under the curve (AUC).
typedef struct course_auc {
  double learned;
  double hidden;  // by the hidden vectors: the most that can be expected
  double bound;   // what chance does not reach
} course_auc;

typedef struct course_result {
  size_t from;  // the step at which it began
  course_tally all;
  course_auc before;
  course_auc after;
} course_result;

// All ranks.
tarn_status course_run(const course *c, course_result *out);

#endif  // TARN_EXAMPLES_RECOMMEND_COURSE_H_
