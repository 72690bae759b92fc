// pool_bench.h - what one allocator takes for the requests of one workload.
//
// A pass is all requests. Requests take a few nanoseconds, less than it takes
// to read a clock, so whole passes are timed and divided:
//
//   first    from nothing
//   second   the first that can reuse
//   steady   the median of those after, over the count of requests; of passes
//            that take more than a second the second one
//
// There is one second pass in the life of an allocator. A pool of Tarn can
// begin anew, and does so as long as that is quick: then the median counts.
//
// Where blocks are touched, one byte of each page is written after each alloc,
// and the same pass over a buffer that is resident (touch.h) is taken off: what
// remains is the allocator, page faults included. Several threads share a pass
// as kit/crossing.h says.
//
// The shares of alloc and free come from a second series of passes, in which
// each request is timed by itself, less the time that the same loop takes
// without requests. The median of each request over those passes, summed up by
// kind, gives the proportion in which the steady pass is split. p99 is of those
// samples. A last pass reads the held memory.
#ifndef TARN_BENCH_POOL_BENCH_H_
#define TARN_BENCH_POOL_BENCH_H_

#include "kit/child.h"
#include "kit/requests.h"
#include "kit/stopwatch.h"

typedef struct pool_bench {
  const request_list *requests;  // which free all that they allocate
  uint64_t live_peak_bytes;      // of these
  const stopwatch *watch;
  const char *name;    // of the allocator, as peer_find knows it
  const char *device;  // of Tarn's pools; NULL: cpu:0
  size_t threads;      // 1 to CROSSING_THREADS_MOST
  bool spread;         // each of several threads keeps a processor, in turn
  size_t hogs;         // busy threads beside them, up to PLACEMENT_HOGS_MOST
  bool touched;
  child_limits limits;
  size_t passes;  // that count; 0: at least 31, 5 if one takes over 0.1 s
} pool_bench;

enum { POOL_BENCH_FIRST, POOL_BENCH_SECOND, POOL_BENCH_STEADY };

// NaN: not known, or not to be had.
typedef struct pool_bench_result {
  double alloc_ns_median;
  double free_ns_median;
  double alloc_ns_p99;
  double by_address_ns_median;   // alloc and free, where free has the address
  double iteration_ms[3];        // of the passes above
  double mops;                   // million requests a second, steady
  double reserved_over_live;     // peaks
  double varies_ms;              // the median distance from the steady pass
  double pair_ns;                // alloc and free: pass / (requests / 2)
  char failed[CHILD_TEXT_SIZE];  // why there are no figures; "": there are
} pool_bench_result;

// A row that is not begun, because |why|.
pool_bench_result pool_bench_not_run(const char *why);

// Whether a row without figures is a result: a library that is not installed,
// or a limit.
bool pool_bench_is_finding(const pool_bench_result *result);

// Measures in a process of its own. Failing is a result.
pool_bench_result pool_bench_run(const pool_bench *bench);

// Whether the allocator can be had at all: a name can have wrong options.
// False: |why|, CHILD_TEXT_SIZE bytes, says why not.
bool pool_bench_try(const pool_bench *bench, char *why);

#endif  // TARN_BENCH_POOL_BENCH_H_
