// synced_bench.h - what synced buffers cost, and what they spare.
//
// `tarn bench synced --help` tells what each figure is, synced_figures.h how it
// is measured.
#ifndef TARN_BENCH_SYNCED_BENCH_H_
#define TARN_BENCH_SYNCED_BENCH_H_

#include "figure.h"
#include "tarn/tarn.h"

enum { SYNCED_BENCH_FIGURES = 6 };

typedef struct synced_bench {
  const char *device;  // as tarn_device_open takes it
  size_t passes;       // that count, of each figure; 0: as many as are usual
  size_t images;       // of 3 x 224 x 224 floats, in a batch
  size_t rows;         // that are written
} synced_bench;

// |index| is below SYNCED_BENCH_FIGURES; all devices have the same goals.
bench_figure synced_bench_figure_of(size_t index, const char *device);

// For bench_figures_run, with a synced_bench; as in device_bench.h.
child_work synced_bench_measure;
child_work synced_bench_open;

#endif  // TARN_BENCH_SYNCED_BENCH_H_
