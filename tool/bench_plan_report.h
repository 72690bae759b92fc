// bench_plan_report.h - what `tarn bench plan` writes.
#ifndef TARN_TOOL_BENCH_PLAN_REPORT_H_
#define TARN_TOOL_BENCH_PLAN_REPORT_H_

#include "bench/plan_bench.h"
#include "kit/options.h"

void bench_plan_report(const plan_bench_result *result, options_output output);

#endif  // TARN_TOOL_BENCH_PLAN_REPORT_H_
