// report.h - what a replay found, in words and figures.
#ifndef TARN_TOOL_REPORT_H_
#define TARN_TOOL_REPORT_H_

#include <stdio.h>

#include "kit/options.h"
#include "replay.h"

// One trace and the results of each pool.
typedef struct report {
  const tarn_trace *trace;
  const char *device;  // "cpu:0", "cpu:0 (dry)"
  bool dry;            // times without a device are not compared
  size_t threads;      // 0: not replayed
  const replay_result *results;
  size_t result_count;
} report;

// Writes all of them to |out|. JSON: one object, or an array of several.
void report_write(const report *reports, size_t count, options_output output,
                  FILE *out);

// "page_unit_pool: second iteration 21.3 x faster than no_pool.", of |result|
// against the report's yardstick: no_pool, or the first pool if that is not
// among them. False if there is nothing to say: pools that refused requests are
// not compared, nor dry runs.
bool report_compare(const report *r, const replay_result *result, char *out,
                    size_t out_size);

// "12 requests, live peak 3.50 MiB at event 7 of 20": one line about |trace|.
void report_describe(const tarn_trace *trace, char *out, size_t out_size);

enum { REPORT_TEXT_SIZE = 320 };

#endif  // TARN_TOOL_REPORT_H_
