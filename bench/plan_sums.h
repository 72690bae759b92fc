// plan_sums.h - the sums over the rows of `tarn bench plan`.
#ifndef TARN_BENCH_PLAN_SUMS_H_
#define TARN_BENCH_PLAN_SUMS_H_

#include "plan_bench.h"

// Fills |result->sums| from its rows.
void plan_sums(plan_bench_result *result);

#endif  // TARN_BENCH_PLAN_SUMS_H_
