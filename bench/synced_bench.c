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

_Static_assert(sizeof figures / sizeof figures[0] == SYNCED_BENCH_FIGURES,
               "every figure has its place in a result");

bench_figure synced_bench_figure_of(size_t index, const char *device) {
  (void)device;
  return figures[index].shown;
}

// ---------------------------------------------------------------------------
// What the figures share
// ---------------------------------------------------------------------------

bool synced_refused(char *why) {
  snprintf(why, BENCH_TEXT_SIZE, "%s", tarn_last_error());
  return false;
}

size_t synced_passes(const synced_scene *s, size_t usual, size_t most) {
  size_t asked = s->bench->passes;
  if (asked == 0) return usual;
  return asked < most ? asked : most;
}

static tarn_status add_moved(void *context, const tarn_traffic *traffic) {
  synced_moved *sum = context;
  if (tarn_place_equal(traffic->from, TARN_HOST)) {
    sum->copies_in += traffic->copies;
    sum->bytes_in += traffic->bytes_moved;
  } else {
    sum->copies_out += traffic->copies;
    sum->bytes_out += traffic->bytes_moved;
  }
  return TARN_OK;
}

bool synced_read_moved(tarn_synced *buffer, synced_moved *out) {
  *out = (synced_moved){0};
  return tarn_synced_traffic(buffer, add_moved, out) == TARN_OK;
}

static bool take(tarn_place place, size_t size, tarn_block *out) {
  tarn_pool *pool = NULL;
  return tarn_pool_of(place, &pool) == TARN_OK &&
         tarn_pool_alloc(pool, size, 0, NULL, out) == TARN_OK;
}

bool synced_pair_take(const synced_scene *s, size_t size, synced_pair *out) {
  tarn_place pinned = {s->device, TARN_PLACE_HOST};
  return take(pinned, size, &out->here) && take(s->place, size, &out->there);
}

void synced_pair_give(synced_pair *pair) {
  if (pair->there.pool != NULL) (void)tarn_pool_free(&pair->there, NULL);
  if (pair->here.pool != NULL) (void)tarn_pool_free(&pair->here, NULL);
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
