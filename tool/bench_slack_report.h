// bench_slack_report.h - what `tarn bench pool --slack` found: what each
// workload takes and holds, against the slack of a pool.
#ifndef TARN_TOOL_BENCH_SLACK_REPORT_H_
#define TARN_TOOL_BENCH_SLACK_REPORT_H_

#include "bench_pool_report.h"
#include "kit/options.h"

// |count| reports, whose rows are those of each of |pools|: first with the
// slack that it has by itself, then with each of |slacks|.
typedef struct bench_slack_report {
  const bench_pool_report *reports;
  size_t count;
  const options_list *pools;
  const options_list *slacks;
} bench_slack_report;

// The names of these rows: "arena_pool", "arena_pool:slack=64M", ...
void bench_slack_names(const options_list *pools, const options_list *slacks,
                       options_list *out);

// Writes all of them to stdout. JSON: one object.
void bench_slack_report_write(const bench_slack_report *r,
                              options_output output);

#endif  // TARN_TOOL_BENCH_SLACK_REPORT_H_
