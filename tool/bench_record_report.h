// bench_record_report.h - what `tarn bench record` found, with the machine that
// it found it on.
#ifndef TARN_TOOL_BENCH_RECORD_REPORT_H_
#define TARN_TOOL_BENCH_RECORD_REPORT_H_

#include "bench/record_bench.h"
#include "kit/options.h"

// Writes the result to stdout. JSON: one object.
void bench_record_report_write(const record_bench_result *result,
                               const char *machine, options_output output);

#endif  // TARN_TOOL_BENCH_RECORD_REPORT_H_
