// counters_bench.h - what counting takes of an alloc and a free that hit.
//
// One block of 4 KiB is taken and given back, a thousand times in a row: the
// pool has it idle each time, so that only the front and the strategy's
// shortest path are timed. Each pass times all rows once, by handle and by
// address, and every other pass in reverse order, so that a disturbance affects
// all alike. The result is the median of all passes, of the time and of the
// difference to the first row in the same pass.
#ifndef TARN_BENCH_COUNTERS_BENCH_H_
#define TARN_BENCH_COUNTERS_BENCH_H_

#include "kit/child.h"
#include "kit/stopwatch.h"

enum { COUNTERS_BENCH_ROWS = 7 };

typedef struct counters_bench {
  const char *pool;    // a strategy, with its options
  const char *device;  // as tarn_device_open takes it
  const stopwatch *watch;
  size_t passes;  // that count
} counters_bench;

// A row without its figures.
typedef struct counters_bench_row {
  const char *name;
  const char *what;  // a few words
} counters_bench_row;

// |index| is below COUNTERS_BENCH_ROWS; 0 is the default of a pool.
counters_bench_row counters_bench_row_at(size_t index);

// Nanoseconds of one alloc and one free; NaN: not known.
typedef struct counters_bench_figures {
  double by_handle;
  double by_address;
  double more_by_handle;  // than the first row
  double more_by_address;
} counters_bench_figures;

typedef struct counters_bench_result {
  counters_bench_figures rows[COUNTERS_BENCH_ROWS];
  char failed[CHILD_TEXT_SIZE];  // why there are no figures; "": there are
} counters_bench_result;

// Measures in a process of its own. Failing is a result.
counters_bench_result counters_bench_run(const counters_bench *bench);

// Whether the device and the pool can be had at all: a name can have wrong
// options. False: |why|, CHILD_TEXT_SIZE bytes, says why not.
bool counters_bench_try(const counters_bench *bench, char *why);

#endif  // TARN_BENCH_COUNTERS_BENCH_H_
