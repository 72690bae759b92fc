// bench_counters_report.h - what `tarn bench counters` found, with the machine
// that it found it on.
#ifndef TARN_TOOL_BENCH_COUNTERS_REPORT_H_
#define TARN_TOOL_BENCH_COUNTERS_REPORT_H_

#include "bench/counters_bench.h"
#include "kit/options.h"

// Writes the results of all |pools| to stdout. JSON: one object.
void bench_counters_report_write(const counters_bench_result *results,
                                 const options_list *pools, const char *machine,
                                 options_output output);

#endif  // TARN_TOOL_BENCH_COUNTERS_REPORT_H_
