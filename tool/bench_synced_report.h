// bench_synced_report.h - what `tarn bench synced` found.
#ifndef TARN_TOOL_BENCH_SYNCED_REPORT_H_
#define TARN_TOOL_BENCH_SYNCED_REPORT_H_

#include "bench/synced_bench.h"
#include "kit/options.h"

// Writes all of them to stdout; |machine| stands in each form but JSON, which
// is one object of results alone.
void bench_synced_report_write(const synced_bench_result *results, size_t count,
                               const char *machine, options_output output);

#endif  // TARN_TOOL_BENCH_SYNCED_REPORT_H_
