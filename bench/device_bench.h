// device_bench.h - what copies, streams and events of a device take.
//
// The figures are the same for each device; those for which there is a goal
// have it for devices of one type. `tarn bench device --help` tells what each
// is, and device_copies.c and device_streams.c how it is measured.
#ifndef TARN_BENCH_DEVICE_BENCH_H_
#define TARN_BENCH_DEVICE_BENCH_H_

#include "figure.h"
#include "kit/child.h"
#include "probe.h"

enum { DEVICE_BENCH_FIGURES = 19, DEVICE_BENCH_NAME_SIZE = 64 };

typedef struct device_bench {
  const char *device;  // as tarn_device_open takes it
  const stopwatch *watch;
  size_t passes;  // that count, of each figure; 0: as many as take 0.2 s
} device_bench;

// The |index|-th figure, below DEVICE_BENCH_FIGURES, with its goal for the
// device of that name, "cpu:0".
bench_figure device_bench_figure_of(size_t index, const char *device);

typedef struct device_bench_result {
  char device[DEVICE_BENCH_NAME_SIZE];  // "cpu:0"
  double values[DEVICE_BENCH_FIGURES];  // NaN: there is none
  bool is_there[DEVICE_BENCH_FIGURES];  // the device can do that at all
  char failed[DEVICE_BENCH_FIGURES][PROBE_TEXT_SIZE];  // why not; "": it did
} device_bench_result;

// Measures in a process of its own. False if there are no figures at all:
// |why|, CHILD_TEXT_SIZE bytes, says what became of it.
bool device_bench_run(const device_bench *bench, device_bench_result *out,
                      char *why);

// Whether there is such a device; asked in a process of its own, as a device
// that is open here could not be opened in the child. False: |why| as above.
bool device_bench_try(const device_bench *bench, char *why);

#endif  // TARN_BENCH_DEVICE_BENCH_H_
