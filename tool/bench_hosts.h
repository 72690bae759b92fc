// bench_hosts.h - `tarn bench whole --hosts`, in each rank.
#ifndef TARN_TOOL_BENCH_HOSTS_H_
#define TARN_TOOL_BENCH_HOSTS_H_

#include "bench/hosts_bench.h"
#include "kit/options.h"

// Measures with the sizes and the ranks of |whole|; the first rank reports.
// |interface|: NULL for any. TOOL_NO after a message of that rank.
tool_exit bench_hosts_measure(const tool_verb *verb, const whole_bench *whole,
                              const char *interface, bool no_mpi,
                              options_output output);

// Writes what was found to tool_out(): figures and goals as two tables; CSV has
// the figures only, JSON is one object.
void bench_hosts_report_write(const hosts_bench *bench,
                              const hosts_result *result,
                              options_output output);

#endif  // TARN_TOOL_BENCH_HOSTS_H_
