// whole_take.h - the same small gather by NumPy: np.take(table, indices,
// axis=0, out=out, mode="clip") in a process of Python, which waits for a
// question to measure once.
#ifndef TARN_BENCH_WHOLE_TAKE_H_
#define TARN_BENCH_WHOLE_TAKE_H_

#include "talk.h"
#include "whole_bench.h"

// The rows of a gather, and how often it is made in a measurement.
typedef struct whole_take_job {
  size_t row_bytes;
  size_t rows;   // of the table
  size_t count;  // that are gathered
  size_t calls;
} whole_take_job;

// Starts it; talk_stop ends it. NULL: |why|, WHOLE_TEXT_SIZE bytes, says why
// not.
talk *whole_take_start(char *why);

// Microseconds of a call. False: |why| as above.
bool whole_take_measure(talk *take, const whole_take_job *job, double *out_us,
                        char *why);

#endif  // TARN_BENCH_WHOLE_TAKE_H_
