// device_bench.h - what copies, streams and events of a device take.
//
// The figures are the same for each device, but for those that a device has
// nothing to measure for. Those for which there is a goal have it for devices
// of one type. `tarn bench device --help` tells what each is, and
// device_figures.h how it is measured.
#ifndef TARN_BENCH_DEVICE_BENCH_H_
#define TARN_BENCH_DEVICE_BENCH_H_

#include "figure.h"
#include "probe.h"

enum { DEVICE_BENCH_FIGURES = 52 };

typedef struct device_bench {
  const char *device;  // as tarn_device_open takes it
  const stopwatch *watch;
  size_t passes;       // that count, of each figure; 0: as many as take 0.2 s
  size_t table;        // bytes, of the table that rows are gathered out of
  bool rows;           // the figures of device_tables.c instead
  const char *net;     // a program that trains one; NULL: none
  const char *plugin;  // for that program, a file in the folder where it finds
                       // the device; NULL: it finds it by itself
} device_bench;

// The |index|-th figure, below DEVICE_BENCH_FIGURES, with its goal for the
// device of that name, "cpu:0".
bench_figure device_bench_figure_of(size_t index, const char *device);

// For bench_figures_run, with a device_bench.
child_work device_bench_measure;

// Asks only whether there is such a device; in a process of its own, as a
// device that is open here could not be opened in the child.
child_work device_bench_open;

#endif  // TARN_BENCH_DEVICE_BENCH_H_
