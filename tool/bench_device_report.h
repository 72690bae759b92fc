// bench_device_report.h - what `tarn bench device` found, with the machine that
// it found it on.
#ifndef TARN_TOOL_BENCH_DEVICE_REPORT_H_
#define TARN_TOOL_BENCH_DEVICE_REPORT_H_

#include "bench/device_bench.h"
#include "kit/options.h"

// Writes all of them to stdout. JSON: one object.
void bench_device_report_write(const device_bench_result *results, size_t count,
                               const char *machine, options_output output);

#endif  // TARN_TOOL_BENCH_DEVICE_REPORT_H_
