// Small gathers: 1,024 rows that are in the caches, again and again, by one
// process alone. Such a call shows what it costs besides the copies. Batches of
// calls alternate with batches of NumPy's.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kit/stopwatch.h"
#include "probe.h"
#include "whole_indices.h"
#include "whole_scene.h"
#include "whole_take.h"

enum {
  ROWS = 1024,
  CALLS = 64,             // of a batch
  BATCHES_OF_A_PASS = 3,  // for each pass of the large ones
};

// No more than the table and the batches have.
static size_t rows_of(const whole_scene *s, size_t row_bytes) {
  size_t rows = s->bench->table_bytes / row_bytes;
  size_t batch = whole_batch_rows(s->bench, row_bytes);
  if (rows > batch) rows = batch;
  return rows < ROWS ? rows : ROWS;
}

static bool put_indices(whole_scene *s, size_t rows) {
  whole_draw_uniform(s->numbers, rows, rows, 1);
  return whole_put(s, s->indices, s->numbers, rows * sizeof *s->numbers);
}

// The first call is not counted.
static bool time_gather(whole_scene *s, size_t row_bytes, size_t rows,
                        double *out_us) {
  bool did = whole_act(s, WHOLE_GATHER, row_bytes, rows);
  double begin = stopwatch_cpu_ns();
  for (size_t i = 0; i < CALLS && did; i++)
    did = whole_act(s, WHOLE_GATHER, row_bytes, rows);
  *out_us = (stopwatch_cpu_ns() - begin) / CALLS / 1e3;
  return did;
}

// NaN if NumPy is not there, or has answered wrongly before.
static double time_take(const whole_scene *s, whole_small *small) {
  double us = NAN;
  whole_take_job job = {small->row_bytes, small->rows, small->rows, CALLS};
  if (s->take == NULL || small->why[0] != '\0' ||
      !whole_take_measure(s->take, &job, &us, small->why)) {
    return NAN;
  }
  return us;
}

static bool measure(whole_scene *s, whole_small *small) {
  double gathers[BATCHES_OF_A_PASS * WHOLE_PASSES_MOST];
  double takes[BATCHES_OF_A_PASS * WHOLE_PASSES_MOST];
  double ratios[BATCHES_OF_A_PASS * WHOLE_PASSES_MOST];
  size_t batches = BATCHES_OF_A_PASS * s->bench->passes;
  if (!put_indices(s, small->rows)) return false;
  for (size_t i = 0; i < batches; i++) {
    if (i % 2 == 0) takes[i] = time_take(s, small);
    if (!time_gather(s, small->row_bytes, small->rows, &gathers[i]))
      return false;
    if (i % 2 != 0) takes[i] = time_take(s, small);
    ratios[i] = gathers[i] / takes[i];
  }
  small->gather_us = probe_median(gathers, batches);
  if (s->take == NULL || small->why[0] != '\0') return true;
  small->take_us = probe_median(takes, batches);
  small->over_take = probe_median(ratios, batches);
  return true;
}

bool whole_small_measure(whole_scene *s, whole_result *out) {
  bool is_mapped = s->kind.type != TARN_WHOLE_DISTRIBUTED;
  if (!is_mapped || !s->is_plain) return true;
  for (size_t i = 0; i < s->bench->row_count; i++) {
    whole_small small = {.kind = s->kind,
                         .row_bytes = s->bench->row_bytes[i],
                         .rows = rows_of(s, s->bench->row_bytes[i]),
                         .gather_us = NAN,
                         .take_us = NAN,
                         .over_take = NAN};
    bool did = s->rank != 0 || measure(s, &small);
    if (!whole_agree(s, did, 0, NULL)) return false;
    out->smalls[out->small_count++] = small;
  }
  return true;
}
