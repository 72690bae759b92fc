// bench_pool_report.h - what `tarn bench pool` found, with the machine that it
// found it on.
#ifndef TARN_TOOL_BENCH_POOL_REPORT_H_
#define TARN_TOOL_BENCH_POOL_REPORT_H_

#include "bench/pool_bench.h"
#include "kit/options.h"
#include "kit/sheet.h"

// One workload and what each allocator took for it.
typedef struct bench_pool_report {
  const char *name;
  const tarn_trace *trace;  // of several draws, that with the highest peak
  size_t seeds;             // how many draws a pass has
  size_t threads;
  bool spread;                 // each keeps a processor
  size_t hogs;                 // threads that take them away
  bool touched;                // each page of a block is written to
  char *const *names;          // of the allocators ...
  pool_bench_result *results;  // ... and what they took
  size_t result_count;
} bench_pool_report;

// A new table for |r|.
void bench_pool_report_title(sheet *s, const bench_pool_report *r);

// Its cells but for the workload's name, which are the same in all of its rows.
void bench_pool_report_scene(sheet *s, const bench_pool_report *r);

// Writes all of them to stdout. JSON: one object.
void bench_pool_report_write(const bench_pool_report *reports, size_t count,
                             options_output output);

#endif  // TARN_TOOL_BENCH_POOL_REPORT_H_
