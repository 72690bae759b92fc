// Optimizers of embeddings.
//
//   together  all ranks apply gradients to one table, by turns with gathers of
//             the same rows of it
//   alone     the first rank does, to a table of its own, by turns with a step
//             of PyTorch's optimizer by one thread
//
// Rows are drawn at random, each as likely as another.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit/tool.h"
#include "table_parts.h"
#include "table_scene.h"
#include "table_torch.h"
#include "tarn/embedding.h"
#include "whole_indices.h"

enum { COUNT = 1 << 18, KINDS = 3 };  // gradients of all ranks in an apply

static const size_t usual_size = (size_t)256 << 20;

// --- figures -----------------------------------------------------------------

enum {
  OVER_GATHER,
  OVER_TORCH = OVER_GATHER + KINDS,
  GATHER_GBS = OVER_TORCH + KINDS,
  APPLY_GBS,
  ALONE_NS = APPLY_GBS + KINDS,
  TORCH_NS = ALONE_NS + KINDS,
  FIGURES = TORCH_NS + KINDS
};

#define BYTES "bytes of gradients, rows and states, read and written"

static const bench_figure figures[FIGURES] = {
    [OVER_GATHER] = {"apply_sgd_over_gather", "ratio", BYTES, .6,
                     SHEET_AT_LEAST},
    {"apply_adagrad_over_gather", "ratio", "", .6, SHEET_AT_LEAST},
    {"apply_adam_over_gather", "ratio", "", .6, SHEET_AT_LEAST},
    [OVER_TORCH] = {"apply_sgd_over_torch", "ratio",
                    "one rank over one thread, with coalescing", 2.5,
                    SHEET_AT_LEAST},
    {"apply_adagrad_over_torch", "ratio", "", 2.5, SHEET_AT_LEAST},
    {"apply_adam_over_torch", "ratio", "", 2.5, SHEET_AT_LEAST},
    [GATHER_GBS] = {"gather", "GB/s", "of all ranks, read and written", NAN,
                    SHEET_AT_LEAST},
    [APPLY_GBS] = {"apply_sgd", "GB/s", "likewise", NAN, SHEET_AT_LEAST},
    {"apply_adagrad", "GB/s", "", NAN, SHEET_AT_LEAST},
    {"apply_adam", "GB/s", "", NAN, SHEET_AT_LEAST},
    [ALONE_NS] = {"apply_sgd_alone", "ns", "for a gradient, by one rank", NAN,
                  SHEET_AT_MOST},
    {"apply_adagrad_alone", "ns", "", NAN, SHEET_AT_MOST},
    {"apply_adam_alone", "ns", "", NAN, SHEET_AT_MOST},
    [TORCH_NS] = {"torch_sgd", "ns", "likewise", NAN, SHEET_AT_MOST},
    {"torch_adagrad", "ns", "", NAN, SHEET_AT_MOST},
    {"torch_adam", "ns", "", NAN, SHEET_AT_MOST},
};

// --- kinds -------------------------------------------------------------------

typedef struct kind {
  tarn_optimizer optimizer;
  size_t states;
  size_t counts;  // bytes of a row's
} kind;

static const kind kinds[KINDS] = {{TARN_OPTIMIZER_SGD, 0, 0},
                                  {TARN_OPTIMIZER_ADAGRAD, 1, 0},
                                  {TARN_OPTIMIZER_ADAM, 2, sizeof(int32_t)}};

// --- a table and what is applied ---------------------------------------------

typedef struct job {
  tarn_comm *comm;
  tarn_whole_tensor table;
  tarn_embedding *embedding;
  tarn_whole_rows rows;  // gradients, and where gathered rows go
  int64_t *indices;
  float *dense;
  size_t count;
  size_t distinct;  // rows of all ranks' indices
  size_t row_bytes;
  table_samples apply, peer;
} job;

static size_t count_distinct(const job *j, const int64_t *indices,
                             size_t count) {
  size_t distinct = 0;
  unsigned char *seen = tool_array(j->table.rows, 1);
  for (size_t i = 0; i < count; i++) {
    distinct += seen[indices[i]] == 0;
    seen[indices[i]] = 1;
  }
  free(seen);
  return distinct;
}

// All ranks draw those of all, and each takes its part.
static void draw_rows(job *j) {
  size_t rank = tarn_comm_rank(j->comm);
  size_t ranks = tarn_comm_size(j->comm);
  size_t width = j->table.width;
  j->count = COUNT / ranks;
  size_t all = j->count * ranks;
  int64_t *indices = tool_array(all, sizeof *indices);
  whole_draw_uniform(indices, all, j->table.rows, 1);
  j->distinct = count_distinct(j, indices, all);
  j->indices = tool_array(j->count, sizeof *j->indices);
  memcpy(j->indices, indices + rank * j->count, j->count * sizeof *indices);
  free(indices);
  j->dense = tool_array(j->count * width, sizeof *j->dense);
  for (size_t i = 0; i < j->count * width; i++)
    j->dense[i] = 1;
  j->rows = (tarn_whole_rows){.struct_size = sizeof j->rows,
                              .place = TARN_HOST,
                              .dense = (tarn_addr)(uintptr_t)j->dense,
                              .indices = (tarn_addr)(uintptr_t)j->indices,
                              .index_dtype = TARN_DTYPE_I64,
                              .index_count = j->count};
}

static bool begin(table_scene *s, job *j, tarn_comm *comm) {
  const table_bench *b = s->bench;
  size_t size = b->size != 0 ? b->size : usual_size;
  *j = (job){.comm = comm, .row_bytes = b->row_bytes};
  const tarn_whole_table_options options = {
      .struct_size = sizeof options,
      .type = TARN_WHOLE_CONTINUOUS,
      .place = TARN_HOST,
      .dtype = TARN_DTYPE_F32,
      .rows = size / b->row_bytes,
      .width = b->row_bytes / sizeof(float)};
  if (!table_did(s, tarn_whole_table_create(comm, &options, &j->table)))
    return false;
  draw_rows(j);
  return true;
}

static bool end(table_scene *s, job *j) {
  free(j->indices);
  free(j->dense);
  return table_did(s, tarn_whole_destroy(j->table.whole));
}

// --- steps -------------------------------------------------------------------

static bool apply(table_scene *s, void *context) {
  const job *j = context;
  return table_did(s, tarn_embedding_apply(j->embedding, &j->rows, NULL));
}

static bool gather(table_scene *s, void *context) {
  const job *j = context;
  return table_did(s, tarn_whole_gather(&j->table, &j->rows, NULL));
}

static bool make_embedding(table_scene *s, job *j, const kind *k) {
  tarn_embedding_options options;
  return table_did(s, tarn_embedding_defaults(k->optimizer, &options)) &&
         table_did(s,
                   tarn_embedding_create(&j->table, &options, &j->embedding));
}

static bool end_embedding(table_scene *s, job *j) {
  return table_did(s, tarn_embedding_destroy(j->embedding));
}

// --- together ----------------------------------------------------------------

// Of an apply.
static double bytes_of(const job *j, const kind *k, size_t ranks) {
  size_t row = (1 + k->states) * j->row_bytes + k->counts;
  return (double)(j->count * ranks * j->row_bytes + 2 * j->distinct * row);
}

static void note_together(const job *j, size_t which, size_t ranks,
                          table_result *out) {
  double ratios[TABLE_PASSES_MOST];
  double bytes = bytes_of(j, &kinds[which], ranks);
  double gathered = 2 * (double)(j->count * ranks * j->row_bytes);
  for (size_t i = 0; i < j->apply.count; i++)
    ratios[i] = bytes / j->apply.ns[i] / (gathered / j->peer.ns[i]);
  table_note(out, OVER_GATHER + which, ratios, j->apply.count);
  table_note_rate(out, APPLY_GBS + which, &j->apply, bytes);
  table_note_rate(out, GATHER_GBS, &j->peer, gathered);
}

// The first pass does not count.
static bool measure_together(table_scene *s, table_result *out) {
  job j;
  if (!begin(s, &j, s->comm)) return false;
  for (size_t k = 0; k < KINDS; k++) {
    if (!make_embedding(s, &j, &kinds[k])) return false;
    for (size_t i = 0; i <= s->bench->passes; i++) {
      if (!table_time(s, gather, &j, &j.peer) ||
          !table_time(s, apply, &j, &j.apply)) {
        return false;
      }
      if (i == 0) j.peer.count = j.apply.count = 0;
    }
    note_together(&j, k, s->bench->ranks, out);
    if (!end_embedding(s, &j)) return false;
  }
  return end(s, &j);
}

// --- alone -------------------------------------------------------------------

static void note_alone(const job *j, size_t which, table_result *out) {
  double ns[TABLE_PASSES_MOST];
  for (size_t i = 0; i < j->apply.count; i++)
    ns[i] = j->apply.ns[i] / (double)j->count;
  table_note(out, ALONE_NS + which, ns, j->apply.count);
  for (size_t i = 0; i < j->peer.count; i++)
    ns[i] = j->peer.ns[i] / (double)j->count;
  table_note(out, TORCH_NS + which, ns, j->peer.count);
  table_note_speedup(out, OVER_TORCH + which, &j->apply, &j->peer);
}

static bool step_torch(table_scene *s, job *j, const kind *k, talk *torch) {
  const table_torch_job step = {.optimizer = tarn_optimizer_name(k->optimizer),
                                .rows = j->table.rows,
                                .width = j->table.width,
                                .count = j->count};
  double ns = 0;
  if (!table_torch_step(torch, &step, &ns, s->why)) return false;
  table_sample(&j->peer, ns);
  return true;
}

// |torch| may be NULL.
static bool time_alone(table_scene *alone, job *j, const kind *k, talk *torch) {
  if (!make_embedding(alone, j, k)) return false;
  for (size_t i = 0; i <= alone->bench->passes; i++) {
    if (!table_time(alone, apply, j, &j->apply)) return false;
    if (torch != NULL && !step_torch(alone, j, k, torch)) return false;
    if (i == 0) j->peer.count = j->apply.count = 0;
  }
  return end_embedding(alone, j);
}

static bool time_all_alone(table_scene *alone, talk *torch, table_result *out) {
  job j;
  if (!begin(alone, &j, alone->comm)) return false;
  for (size_t k = 0; k < KINDS; k++) {
    if (!time_alone(alone, &j, &kinds[k], torch)) return false;
    note_alone(&j, k, out);
  }
  return end(alone, &j);
}

static bool measure_alone(table_scene *alone, void *context) {
  table_result *out = context;
  talk *torch = table_torch_start(alone->why);
  for (size_t k = 0; torch == NULL && k < KINDS; k++) {
    table_skip(out, OVER_TORCH + k, alone->why);
    table_skip(out, TORCH_NS + k, alone->why);
  }
  bool did = time_all_alone(alone, torch, out);
  talk_stop(torch, true);
  return did;
}

static bool measure(table_scene *s, table_result *out) {
  return measure_together(s, out) && table_alone(s, measure_alone, out);
}

const table_part table_apply_part = {
    .name = "apply", .figures = figures, .count = FIGURES, .measure = measure};
