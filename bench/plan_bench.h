// plan_bench.h - how quickly the planner finds plans, how low they are, and
// what google/minimalloc's program takes for the same.
//
// Each row is a problem that is solved in a process of its own. A file
// X.1048576.csv has its capacity in its name, as those of google/minimalloc
// have; without one the lower bound is the capacity.
#ifndef TARN_BENCH_PLAN_BENCH_H_
#define TARN_BENCH_PLAN_BENCH_H_

#include "figure.h"
#include "plan_job.h"

typedef enum plan_bench_part {
  PLAN_BENCH_FIT = 0,  // files: a plan within the capacity
  PLAN_BENCH_EARLY,    // files: the lowest plan after a tenth of a second
  PLAN_BENCH_LOW,      // files: the lowest plan within a time
  PLAN_BENCH_WIDE,     // perfect packings of many steps
  PLAN_BENCH_NARROW,   // of few
  PLAN_BENCH_LARGE,    // models of many thousand buffers
  PLAN_BENCH_PARTS,
} plan_bench_part;

// "fit", "early", "low", "wide", "narrow", "large"; NULL beyond.
const char *plan_bench_part_name(size_t index);

typedef struct plan_bench {
  const char *folder;  // of *.csv; NULL: none
  const char *peer;    // a program with its path; NULL: none
  bool parts[PLAN_BENCH_PARTS];
  double seconds;   // of the processor, for fit and low
  uint64_t rounds;  // of packings, each with other seeds
  // Told before each row, of how many in all; may be NULL.
  void (*step)(void *context, size_t total, const char *what);
  void *context;
} plan_bench;

enum { PLAN_BENCH_NAME = 64 };

typedef struct plan_bench_row {
  plan_bench_part part;
  char name[PLAN_BENCH_NAME];
  plan_job_result took;
  double limit;       // seconds within which |took.wanted| should be reached
  bool has_capacity;  // in its name
  bool has_peer;
  char peer_failed[CHILD_TEXT_SIZE];
  double peer_seconds;
  double peer_peak;
} plan_bench_row;

// The height that counts in the part, 0 without a plan, how well it is known,
// and the seconds until the wanted height was reached.
uint64_t plan_bench_height(const plan_bench_row *row);
tarn_plan_answer plan_bench_answer(const plan_bench_row *row);
double plan_bench_seconds(const plan_bench_row *row);

// Whether what was wanted was there within the limit, and no slower than of the
// peer.
bool plan_bench_is_met(const plan_bench_row *row);

typedef enum plan_bench_sum {
  PLAN_BENCH_FITTED,
  PLAN_BENCH_FIT_SECONDS,
  PLAN_BENCH_BOUND_SECONDS,
  PLAN_BENCH_FIT_PEAK,
  PLAN_BENCH_PEER_FITTED,
  PLAN_BENCH_PEER_SECONDS,
  PLAN_BENCH_PEER_OVER,
  PLAN_BENCH_PEER_LEAST,
  PLAN_BENCH_EARLY_WORST,
  PLAN_BENCH_LOW_REACHED,
  PLAN_BENCH_LOW_PROVED,
  PLAN_BENCH_WIDE_REACHED,
  PLAN_BENCH_NARROW_REACHED,
  PLAN_BENCH_LARGE_WORST,
  PLAN_BENCH_LARGE_PEAK,
  PLAN_BENCH_SUMS,
} plan_bench_sum;

// The sums over all rows of a part.
typedef struct plan_bench_figure {
  bench_figure shown;
  double value;  // NaN: not measured
} plan_bench_figure;

typedef struct plan_bench_result {
  plan_bench_row *rows;
  size_t count;
  plan_bench_figure sums[PLAN_BENCH_SUMS];
  size_t failed;              // rows that have no figures
  char why[CHILD_TEXT_SIZE];  // nothing could be measured; else empty
} plan_bench_result;

// Free it with plan_bench_result_free.
plan_bench_result plan_bench_run(const plan_bench *bench);
void plan_bench_result_free(plan_bench_result *result);

#endif  // TARN_BENCH_PLAN_BENCH_H_
