// figure.h - a named value that a benchmark measures, and what it should be.
#ifndef TARN_BENCH_FIGURE_H_
#define TARN_BENCH_FIGURE_H_

#include "kit/child.h"
#include "kit/sheet.h"

typedef struct bench_figure {
  const char *name;
  const char *unit;
  const char *what;  // a few words
  double goal;       // NaN: none
  sheet_bound bound;
} bench_figure;

// Cells of a row: name, |device| unless NULL, value, unit, goal, met and what.
void bench_figure_cells(sheet *s, const bench_figure *figure,
                        const char *device, double value);

// A row of these, and of |failed| unless NULL.
void bench_figure_write(sheet *s, const bench_figure *figure,
                        const char *device, double value, const char *failed);

enum {
  BENCH_FIGURES_MOST = 56,
  BENCH_NAME_SIZE = 64,
  BENCH_TEXT_SIZE = 192,
  BENCH_ABOUT_SIZE = 384,
};

// What was measured of a device, figure by figure.
typedef struct bench_figures {
  char device[BENCH_NAME_SIZE];  // "cpu:0"
  char about[BENCH_ABOUT_SIZE];  // the device in its plug-in's words; "": none
  char why[BENCH_TEXT_SIZE];     // why there are none at all; "": there are
  double values[BENCH_FIGURES_MOST];  // NaN: there is none
  bool is_there[BENCH_FIGURES_MOST];  // the device can do that at all
  char failed[BENCH_FIGURES_MOST][BENCH_TEXT_SIZE];  // why not; "": it did
} bench_figures;

// |work| on |bench| fills a bench_figures, in a process of its own. False if
// there are no figures at all: |why|, CHILD_TEXT_SIZE bytes, says what became
// of it.
bool bench_figures_run(child_work *work, void *bench, bench_figures *out,
                       char *why);

// Begins a report, which names the machine that its figures are from: the
// processor, how many of it are online, the kernel, and a warning if this
// program was not built to be fast.
sheet *bench_sheet_begin(options_output output);

#endif  // TARN_BENCH_FIGURE_H_
