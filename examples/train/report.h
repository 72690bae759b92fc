// report.h - what a run comes to, for people and as a line of JSON.
#ifndef TARN_EXAMPLES_TRAIN_REPORT_H_
#define TARN_EXAMPLES_TRAIN_REPORT_H_

#include "course.h"
#include "options.h"

typedef struct report {
  const options *of;
  size_t ranks;
  tarn_model_needs memory;  // of the net at this rank
  course_result result;
} report;

// Reads what the net, the table and the pools hold, while they are there.
TARN_MUST_CHECK tarn_status report_init(report *r, const options *of,
                                        const course *c,
                                        const course_result *result);

// Of the memory at this rank. It asks the library, and so may fail.
TARN_MUST_CHECK tarn_status report_memory(const report *r, const course *c);

void report_result(const report *r);
void report_json(const report *r);

#endif  // TARN_EXAMPLES_TRAIN_REPORT_H_
