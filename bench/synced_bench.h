// synced_bench.h - what synced buffers cost, and what they spare.
//
// `tarn bench synced --help` tells what each figure is, synced_figures.h how it
// is measured.
#ifndef TARN_BENCH_SYNCED_BENCH_H_
#define TARN_BENCH_SYNCED_BENCH_H_

#include "figure.h"
#include "kit/child.h"
#include "tarn/tarn.h"

enum {
  SYNCED_BENCH_FIGURES = 6,
  SYNCED_NAME_SIZE = 64,
  SYNCED_TEXT_SIZE = 192
};

typedef struct synced_bench {
  const char *device;  // as tarn_device_open takes it
  size_t passes;       // that count, of each figure; 0: as many as are usual
  size_t images;       // of 3 x 224 x 224 floats, in a batch
  size_t rows;         // that are written
} synced_bench;

// |index| is below SYNCED_BENCH_FIGURES.
const bench_figure *synced_bench_figure_at(size_t index);

typedef struct synced_bench_result {
  char device[SYNCED_NAME_SIZE];        // "sim:0"
  double values[SYNCED_BENCH_FIGURES];  // NaN: there is none
  bool is_there[SYNCED_BENCH_FIGURES];  // it makes sense on that device
  char failed[SYNCED_BENCH_FIGURES][SYNCED_TEXT_SIZE];  // why not; "": it did
} synced_bench_result;

// Measures in a process of its own. False if there are no figures at all:
// |why|, CHILD_TEXT_SIZE bytes, says what became of it.
bool synced_bench_run(const synced_bench *bench, synced_bench_result *out,
                      char *why);

// Whether there is such a device; asked in a process of its own, as in
// device_bench.h. False: |why| as above.
bool synced_bench_try(const synced_bench *bench, char *why);

#endif  // TARN_BENCH_SYNCED_BENCH_H_
