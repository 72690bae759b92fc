// bench_footprint.h - `tarn bench whole --footprint`, in each rank.
#ifndef TARN_TOOL_BENCH_FOOTPRINT_H_
#define TARN_TOOL_BENCH_FOOTPRINT_H_

#include "bench/footprint_bench.h"
#include "kit/options.h"

// Measures with the sizes and the ranks of |whole|; the first rank reports.
// TOOL_NO after a message of that rank.
tool_exit bench_footprint_measure(const tool_verb *verb,
                                  const whole_bench *whole,
                                  footprint_view joined, options_output output);

#endif  // TARN_TOOL_BENCH_FOOTPRINT_H_
