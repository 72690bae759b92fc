// record_bench.h - what the recorder costs the program that it is preloaded
// into, and what is lost of it when that is killed.
//
// The program is this one, started anew for one of two kinds of work
// (record_bench_work). It replaces blocks, at random one of 64, by new ones of
// 64 KiB to 1 MiB, small ones as often as large ones, through 4 to 19 functions
// that call each other. Either the whole of each block is written, as programs
// do with their buffers, or none is touched, so that only malloc and free
// remain.
//
// Each pass runs it without the recorder, with it but without stacks, and with
// stacks; every other pass in turned order. What counts is the processor's time
// of the whole process, the kernel's for it included: it has one thread, waits
// for nothing, and other programs would only be seen in the time of the clock.
// Of all passes the median counts, of the time and of the ratio to the run
// without a recorder in the same pass.
//
// A program of Python does the same (record_python.h), a twentieth as often,
// without the recorder, with stacks of the machine alone, with frames of Python
// as well, and under memray.
#ifndef TARN_BENCH_RECORD_BENCH_H_
#define TARN_BENCH_RECORD_BENCH_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "figure.h"

enum { RECORD_BENCH_FIGURES = 13, RECORD_BENCH_TEXT = 256 };

typedef struct record_bench {
  const char *program;   // to be started with "bench record --work NAME ..."
  const char *recorder;  // the library to preload
  uint64_t allocations;  // in each run
  size_t passes;
  // Told before each run; may be NULL.
  void (*step)(void *context, const char *what);
  void *context;
} record_bench;

// |index| is below RECORD_BENCH_FIGURES.
const bench_figure *record_bench_figure_at(size_t index);

typedef struct record_bench_result {
  double values[RECORD_BENCH_FIGURES];  // NaN: see |failed|
  char failed[RECORD_BENCH_TEXT];       // "": all were measured, but:
  // What could not, since something is not installed: no failure.
  char missing[RECORD_BENCH_FIGURES][RECORD_BENCH_TEXT];
} record_bench_result;

// How often |step| is called.
size_t record_bench_steps(const record_bench *bench);

// Measures; failing is a result. Files that it makes, in TMPDIR or /tmp, are
// removed again.
record_bench_result record_bench_run(const record_bench *bench);

// The work itself: "touched", "bare", or "told", which writes the number of
// allocs and frees to stdout after each, as 8 bytes, and never ends. False: it
// is none of these.
bool record_bench_work(const char *name, uint64_t allocations);

#endif  // TARN_BENCH_RECORD_BENCH_H_
