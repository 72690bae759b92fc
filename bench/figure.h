// figure.h - a named value that a benchmark measures, and what it should be.
#ifndef TARN_BENCH_FIGURE_H_
#define TARN_BENCH_FIGURE_H_

#include "kit/sheet.h"

typedef struct bench_figure {
  const char *name;
  const char *unit;
  const char *what;  // a few words
  double goal;       // NaN: none
  sheet_bound bound;
} bench_figure;

// The cells of a row: name, |device| unless NULL, value, unit, goal, met, what,
// and |failed| unless NULL.
void bench_figure_write(sheet *s, const bench_figure *figure,
                        const char *device, double value, const char *failed);

// Begins a report, which names the machine that its figures are from: the
// processor, how many of it are online, the kernel, and a warning if this
// program was not built to be fast.
sheet *bench_sheet_begin(options_output output);

#endif  // TARN_BENCH_FIGURE_H_
