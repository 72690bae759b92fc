// Step after step, each between two looks of every rank at itself: what a look
// finds more than the one before, the step has taken. Ranks meet between steps,
// and not between looks.
#include "footprint_bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "whole_indices.h"
#include "whole_scene.h"

// What a step has taken of one rank. Memory may get less.
typedef struct account {
  uint64_t messages;
  int64_t host_bytes;
  int64_t peak_bytes;
  int64_t mapped_bytes;
  int64_t descriptors;
  uint64_t near;  // ranks of its machine
} account;

typedef struct scene {
  whole_scene whole;
  tarn_whole_tensor table;
  account taken[FOOTPRINT_STEPS];
  footprint_result *out;
} scene;

const char *footprint_step_name(footprint_step step) {
  static const char *const names[FOOTPRINT_STEPS] = {
      "communicator", "table", "first gather", "gather", "first fetch"};
  return names[step];
}

// ---------------------------------------------------------------------------
// Steps
// ---------------------------------------------------------------------------

static tarn_status create(scene *s) {
  const whole_bench *b = s->whole.bench;
  size_t width = b->row_bytes[0] / sizeof(float);
  const tarn_whole_table_options options = {
      .struct_size = sizeof options,
      .type = TARN_WHOLE_DISTRIBUTED,
      .place = {s->whole.device, TARN_PLACE_HOST},
      .dtype = TARN_DTYPE_F32,
      .rows = b->table_bytes / b->row_bytes[0],
      .width = width};
  tarn_status status =
      tarn_whole_table_create(s->whole.comm, &options, &s->table);
  s->whole.whole = s->table.whole;
  return status;
}

static tarn_whole_rows rows_of(const scene *s) {
  const whole_bench *b = s->whole.bench;
  return (tarn_whole_rows){.struct_size = sizeof(tarn_whole_rows),
                           .place = tarn_place_on(s->whole.device),
                           .dense = s->whole.dense,
                           .indices = s->whole.indices,
                           .index_dtype = TARN_DTYPE_I64,
                           .index_count = whole_batch_rows(b, b->row_bytes[0])};
}

static tarn_status gather(scene *s) {
  const tarn_whole_rows rows = rows_of(s);
  return tarn_whole_gather(&s->table, &rows, NULL);
}

static tarn_status fetch(scene *s) {
  const tarn_whole_rows rows = rows_of(s);
  tarn_whole_fetch *fetch = NULL;
  tarn_status status = tarn_whole_gather_begin(&s->table, &rows, &fetch);
  return status == TARN_OK ? tarn_whole_gather_end(fetch) : status;
}

typedef tarn_status step_fn(scene *s);
static step_fn *const steps[FOOTPRINT_STEPS] = {
    [FOOTPRINT_TABLE] = create,
    [FOOTPRINT_FIRST_GATHER] = gather,
    [FOOTPRINT_GATHER] = gather,
    [FOOTPRINT_FETCH] = fetch,
};

static account between(footprint_view before, footprint_view now) {
  return (account){
      .messages = now.messages - before.messages,
      .host_bytes = (int64_t)now.host_bytes - (int64_t)before.host_bytes,
      .peak_bytes = (int64_t)now.peak_bytes - (int64_t)before.host_bytes,
      .mapped_bytes = (int64_t)now.mapped_bytes - (int64_t)before.mapped_bytes,
      .descriptors = (int64_t)now.descriptors};
}

static bool take_step(scene *s, footprint_step step) {
  whole_scene *w = &s->whole;
  const whole_bench *b = w->bench;
  size_t all = b->table_bytes / b->row_bytes[0];
  whole_draw_uniform(w->numbers, whole_batch_rows(b, b->row_bytes[0]), all,
                     (uint64_t)step * WHOLE_RANKS_MOST + w->rank);
  bool ready = whole_put(w, w->indices, w->numbers, w->indices_size);
  if (!whole_agree(w, ready, 0, NULL)) return false;
  footprint_view before = footprint_look();
  bool did = whole_did(w, steps[step](s));
  s->taken[step] = between(before, footprint_look());
  return whole_agree(w, did, 0, NULL);
}

// ---------------------------------------------------------------------------
// Figures
// ---------------------------------------------------------------------------

static bool count_near(scene *s, size_t *out) {
  tarn_comm *near = NULL;
  whole_scene *w = &s->whole;
  if (!whole_did(w, tarn_comm_split_by_machine(w->comm, &near))) return false;
  *out = tarn_comm_size(near);
  return whole_did(w, tarn_comm_destroy(near));
}

static void raise_to(double *most, double value) {
  if (value > *most) *most = value;
}

static footprint_figure sum_up(const account *all, size_t ranks) {
  footprint_figure f = {0};
  for (size_t r = 0; r < ranks; r++) {
    const account *a = &all[r];
    raise_to(&f.messages, (double)a->messages);
    raise_to(&f.host_bytes, (double)a->host_bytes);
    raise_to(&f.peak_bytes, (double)a->peak_bytes);
    raise_to(&f.mapped_bytes, (double)a->mapped_bytes);
    raise_to(&f.descriptors, (double)a->descriptors);
    raise_to(&f.shared_bytes, (double)a->mapped_bytes / (double)a->near);
    f.messages_mean += (double)a->messages / (double)ranks;
  }
  return f;
}

static void forget_unknown(footprint_figure *f, bool watched) {
  if (!footprint_counts_messages()) f->messages = f->messages_mean = NAN;
  if (!watched) f->peak_bytes = NAN;
}

static bool tell(scene *s, footprint_step step, size_t near, bool watched) {
  whole_scene *w = &s->whole;
  account all[WHOLE_RANKS_MOST];
  account *own = &s->taken[step];
  own->near = near;
  tarn_status status = tarn_comm_allgather(w->comm, own, sizeof *own, all);
  w->is_broken = !whole_did(w, status);
  if (w->is_broken) return false;
  footprint_figure *f = &s->out->figures[step];
  *f = sum_up(all, w->bench->ranks);
  forget_unknown(f, watched);
  s->out->count++;
  return true;
}

static bool take_steps(scene *s, footprint_view joined) {
  size_t near = 0;
  bool did = whole_scene_open(&s->whole);
  s->taken[FOOTPRINT_COMM] = between((footprint_view){0}, joined);
  for (size_t i = FOOTPRINT_TABLE; i < FOOTPRINT_STEPS && did; i++)
    did = take_step(s, (footprint_step)i);
  if (did) did = whole_agree(&s->whole, count_near(s, &near), 0, NULL);
  for (size_t i = 0; i < FOOTPRINT_STEPS && did; i++)
    did = tell(s, (footprint_step)i, near, joined.peak_bytes != 0);
  return did;
}

void footprint_bench_run(const whole_bench *bench, footprint_view joined,
                         footprint_result *out) {
  scene s = {.out = out};
  s.whole = (whole_scene){
      .bench = bench, .comm = bench->comm, .rank = tarn_comm_rank(bench->comm)};
  out->ranks = bench->ranks;
  out->machines = tarn_comm_machines(bench->comm);
  bool did = take_steps(&s, joined);
  if (!did) snprintf(out->failed, sizeof out->failed, "%s", s.whole.why);
  if (!whole_table_end(&s.whole) && did)
    snprintf(out->failed, sizeof out->failed, "%s", s.whole.why);
  whole_scene_close(&s.whole);
}
