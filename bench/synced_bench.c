// The figures of synced buffers: which there are, and the process in which they
// are measured.
#include "synced_bench.h"

#include <math.h>
#include <stdio.h>

#include "synced_figures.h"

typedef bool measure_fn(const synced_scene *s, double *out, char *why);

typedef struct figure {
  bench_figure shown;
  measure_fn *measure;
} figure;

// The first one before others have made streams, so that its thread is the only
// one of the process.
static const figure figures[] = {
    {{"valid_access_over_two_locked_operations", "ratio",
      "begin and end, the bytes are there", 1.8, SHEET_AT_MOST},
     synced_access},
    {{"document_copies", "copies",
      "of the nine accesses of the SyncedMemory example", 4, SHEET_EXACTLY},
     synced_document},
    {{"prefetch_d2h_bytes", "bytes", "that come back for each batch", 0,
      SHEET_AT_MOST},
     synced_prefetch_bytes},
    {{"prefetch_over_max", "ratio", "an iteration over its copy or its use",
      1.1, SHEET_AT_MOST},
     synced_prefetch_time},
    {{"scattered_extra_bytes", "bytes",
      "copied beyond the rows that were written", 0, SHEET_AT_MOST},
     synced_rows_bytes},
    {{"scattered_us_per_row", "us", "beyond the copy, each row by itself", 0.5,
      SHEET_AT_MOST},
     synced_rows_time},
};

_Static_assert(sizeof figures / sizeof figures[0] == SYNCED_BENCH_FIGURES &&
                   (int)SYNCED_BENCH_FIGURES <= (int)BENCH_FIGURES_MOST,
               "every figure has its place in a result");

bench_figure synced_bench_figure_of(size_t index, const char *device) {
  (void)device;
  return figures[index].shown;
}

// ---------------------------------------------------------------------------
// The process
// ---------------------------------------------------------------------------

static bool open_device(const synced_bench *bench, synced_scene *s,
                        bench_figures *f) {
  *s = (synced_scene){.bench = bench};
  if (tarn_device_open(bench->device, &s->device) != TARN_OK)
    return synced_refused(f->why);
  s->place = tarn_place_on(s->device);
  snprintf(f->device, sizeof f->device, "%s", tarn_device_name(s->device));
  return true;
}

// Between the host and the host nothing is ever copied.
static bool makes_sense(const synced_scene *s, size_t index) {
  return index == 0 || !tarn_place_equal(s->place, TARN_HOST);
}

void synced_bench_measure(void *bench, void *out_figures) {
  bench_figures *r = out_figures;
  synced_scene s;
  if (!open_device(bench, &s, r)) return;
  for (size_t i = 0; i < SYNCED_BENCH_FIGURES; i++) {
    r->values[i] = NAN;
    r->is_there[i] = makes_sense(&s, i);
    if (!r->is_there[i]) continue;
    if (figures[i].measure(&s, &r->values[i], r->failed[i])) continue;
    r->values[i] = NAN;
  }
  (void)tarn_device_close(s.device);
}

void synced_bench_open(void *bench, void *out_figures) {
  synced_scene s;
  if (open_device(bench, &s, out_figures)) (void)tarn_device_close(s.device);
}
