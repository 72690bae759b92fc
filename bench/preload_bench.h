// preload_bench.h - real programs under allocators that are preloaded.
//
// Each pass runs every program once under every allocator, one after the other,
// every other pass in turned order, so that a disturbance affects all alike. Of
// all passes the median counts. What is told:
//
//   the process      its processor's time, of which the kernel's; the most that
//                    was resident
//   its steps        programs that work in steps write a line after each: the
//                    processor's time that it took, and the page faults so far.
//                    From these: the first and the second step, the median of
//                    the others, and the faults after the first
//   Tarn             the share of large requests that were served without the
//                    system, from the report of libtarn-malloc.so
#ifndef TARN_BENCH_PRELOAD_BENCH_H_
#define TARN_BENCH_PRELOAD_BENCH_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  PRELOAD_TEXT = 256,
  PRELOAD_WORDS = 256,  // of a command line
  PRELOAD_ALLOCATORS = 5,
};

// --- what is run -------------------------------------------------------------

typedef struct preload_words {
  const char *words[PRELOAD_WORDS];  // ends with NULL
  size_t count;
  char texts[8192];  // what some of them point to
  size_t used;
} preload_words;

// What programs are told.
typedef struct preload_scale {
  const char *tool;    // this program, which is one of them
  const char *python;  // an interpreter with PyTorch, NumPy
  uint64_t steps;      // 0: each program's own number
  uint64_t threads;
} preload_scale;

// The names of the programs; NULL from |index| on that is beyond the last.
// Those behind the first preload_usual() are run only if they are named.
const char *preload_program_name(size_t index);
size_t preload_usual(void);

// The command line of the program; and one that ends well where the program can
// be run, with what is missing if it cannot. |out_probe->count| 0: it always
// can.
void preload_program(const char *name, const preload_scale *scale,
                     preload_words *out, preload_words *out_probe,
                     const char **out_missing);

// The allocators: glibc, jemalloc, tcmalloc, mimalloc, tarn.
const char *preload_allocator_name(size_t index);

// The work of the tool itself: "blocks", |steps| steps; or "probe", which ends
// well where the library that LD_PRELOAD names is there. -1: it is none of
// these; else an exit status.
int preload_work(const char *name, uint64_t steps);

// --- measuring ---------------------------------------------------------------

typedef enum preload_value {
  PRELOAD_CPU_S,
  PRELOAD_SYSTEM_S,
  PRELOAD_FAULTS,   // after the first step; of all, where there are no steps
  PRELOAD_PEAK,     // bytes
  PRELOAD_RUN_S,    // of the clock
  PRELOAD_FIRST_S,  // the first step, as are the next two
  PRELOAD_SECOND_S,
  PRELOAD_STEADY_S,
  PRELOAD_SHARE,  // NaN: not under Tarn
  PRELOAD_VALUES,
} preload_value;

typedef struct preload_result {
  double values[PRELOAD_VALUES];  // NaN: there is none
  char failed[PRELOAD_TEXT];      // "": it did not
} preload_result;

// A column of a table: an allocator, or a pool of Tarn's.
typedef struct preload_column {
  const char *allocator;
  const char *pool;  // NULL: the default
} preload_column;

typedef struct preload_bench {
  preload_scale scale;
  const char *heap;  // libtarn-malloc.so
  const char *const *programs;
  size_t program_count;
  const preload_column *columns;
  size_t column_count;
  uint64_t passes;
  // Told before each run; may be NULL.
  void (*step)(void *context, const char *what);
  void *context;
} preload_bench;

// Measures into |out|, which is all zero: for each program its columns. Failing
// is a result. Files that it makes, in TMPDIR or /tmp, are removed again.
void preload_bench_run(const preload_bench *bench, preload_result *out);

#endif  // TARN_BENCH_PRELOAD_BENCH_H_
