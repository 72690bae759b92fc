// bench_whole_report.h - what `tarn bench whole` found.
#ifndef TARN_TOOL_BENCH_WHOLE_REPORT_H_
#define TARN_TOOL_BENCH_WHOLE_REPORT_H_

#include "bench/whole_bench.h"
#include "kit/options.h"

// Of one device.
typedef struct bench_whole_outcome {
  whole_bench bench;
  whole_result result;
} bench_whole_outcome;

// Writes all of them to stdout: figures, how tables came to be and goals as
// three tables; CSV has the figures only, JSON is one object.
void bench_whole_report_write(const bench_whole_outcome *outcomes, size_t count,
                              options_output output);

#endif  // TARN_TOOL_BENCH_WHOLE_REPORT_H_
