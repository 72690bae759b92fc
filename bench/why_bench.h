// why_bench.h - the cost of a large snapshot: read by the library, and searched
// by the tool for the holders of memory.
//
// Each measurement is a process of its own, so that its peak of resident memory
// is its own too.
#ifndef TARN_BENCH_WHY_BENCH_H_
#define TARN_BENCH_WHY_BENCH_H_

#include "figure.h"
#include "kit/child.h"
#include "why_trace.h"

typedef struct why_bench {
  uint64_t opcodes;  // of the snapshot that is made
  size_t passes;     // the median counts
  const char *keep;  // where the snapshot stays; NULL: it is removed
} why_bench;

typedef enum why_bench_row {
  WHY_BENCH_OPCODES,
  WHY_BENCH_FILE,
  WHY_BENCH_READ_WALL,
  WHY_BENCH_READ_CPU,
  WHY_BENCH_READ_PEAK,
  WHY_BENCH_READ_PER_OPCODE,
  WHY_BENCH_READ_PER_BYTE,
  WHY_BENCH_WHY_WALL,
  WHY_BENCH_WHY_CPU,
  WHY_BENCH_WHY_PEAK,
  WHY_BENCH_ROWS,
} why_bench_row;

const bench_figure *why_bench_figure_at(why_bench_row row);

typedef struct why_bench_result {
  double values[WHY_BENCH_ROWS];  // NaN: not measured
  char failed[CHILD_TEXT_SIZE];   // why not; empty if all were
} why_bench_result;

why_bench_result why_bench_run(const why_bench *bench);

#endif  // TARN_BENCH_WHY_BENCH_H_
