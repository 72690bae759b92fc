// Each op, once: prepared without the clock, then begun by all ranks at the
// same moment. The time is that of the last rank to be done.
#include <string.h>

#include "kit/stopwatch.h"
#include "whole_indices.h"
#include "whole_scene.h"

// Ranks have their own indices.
static uint64_t seed_of(const whole_scene *s) {
  return s->seed * WHOLE_RANKS_MOST + s->rank;
}

static size_t width_of(size_t row_bytes) {
  return row_bytes / sizeof(float);
}

// ---------------------------------------------------------------------------
// The library's functions
// ---------------------------------------------------------------------------

typedef tarn_status move_fn(const tarn_whole_tensor *table,
                            const tarn_whole_rows *rows, tarn_stream *stream);

static move_fn *const moves[] = {
    [WHOLE_GATHER] = tarn_whole_gather,
    [WHOLE_SCATTER] = tarn_whole_scatter,
    [WHOLE_SCATTER_ADD] = tarn_whole_scatter_add,
};

static bool move_rows(whole_scene *s, whole_op op, size_t row_bytes,
                      size_t count) {
  tarn_whole_tensor table;
  tarn_whole_rows rows = {.struct_size = sizeof rows,
                          .place = tarn_place_on(s->device),
                          .dense = s->dense,
                          .indices = s->indices,
                          .index_dtype = TARN_DTYPE_I64,
                          .index_count = count};
  size_t all = s->bench->table_bytes / row_bytes;
  return whole_did(s, tarn_whole_tensor_make(s->whole, TARN_DTYPE_F32, all,
                                             width_of(row_bytes), &table)) &&
         whole_did(s, moves[op](&table, &rows, NULL));
}

// ---------------------------------------------------------------------------
// What they are compared with
// ---------------------------------------------------------------------------

// Parts that follow each other are one.
static void gather_from_one(const whole_scene *s, size_t row, size_t count) {
  unsigned char *to = (unsigned char *)(uintptr_t)s->dense;
  const unsigned char *from = s->parts[0];
  const int64_t *indices = (const int64_t *)(uintptr_t)s->indices;
  for (size_t i = 0; i < count; i++)
    memcpy(to + i * row, from + (size_t)indices[i] * row, row);
}

static void gather_from_parts(const whole_scene *s, size_t row, size_t count) {
  unsigned char *to = (unsigned char *)(uintptr_t)s->dense;
  const int64_t *indices = (const int64_t *)(uintptr_t)s->indices;
  size_t part_rows = whole_part_bytes(s->bench) / row;
  for (size_t i = 0; i < count; i++) {
    size_t index = (size_t)indices[i];
    const unsigned char *part = s->parts[index / part_rows];
    memcpy(to + i * row, part + index % part_rows * row, row);
  }
}

static bool gather_plain(whole_scene *s, size_t row_bytes, size_t count) {
  bool is_one = s->kind.type == TARN_WHOLE_CONTINUOUS;
  (is_one ? gather_from_one : gather_from_parts)(s, row_bytes, count);
  return true;
}

static bool copy(whole_scene *s) {
  size_t size = s->bench->batch_bytes;
  if (!s->is_plain) {
    return whole_did(s,
                     tarn_copy_d2d(s->device, s->dense, s->source, size, NULL));
  }
  memcpy((void *)(uintptr_t)s->dense, (const void *)(uintptr_t)s->source, size);
  return true;
}

// ---------------------------------------------------------------------------
// A job
// ---------------------------------------------------------------------------

static bool takes_part(const whole_scene *s, whole_job job) {
  return !job.alone || s->rank == 0;
}

static bool draw(whole_scene *s, whole_job job, size_t row_bytes,
                 size_t count) {
  size_t rows = s->bench->table_bytes / row_bytes;
  if (job.zipf) {
    whole_draw_zipf(s->numbers, count, rows, seed_of(s));
  } else {
    whole_draw_uniform(s->numbers, count, rows, seed_of(s));
  }
  return whole_put(s, s->indices, s->numbers, count * sizeof *s->numbers);
}

// The scattered rows are those of the table, and the added ones are 0: the
// table does not change.
static bool fill_dense(whole_scene *s, whole_job job, size_t row_bytes,
                       size_t count) {
  if (job.op == WHOLE_SCATTER) {
    whole_rows_fill(s->rows, s->numbers, count, width_of(row_bytes), 0);
  } else if (job.op == WHOLE_SCATTER_ADD) {
    memset(s->rows, 0, count * row_bytes);
  } else {
    return true;
  }
  return whole_put(s, s->dense, s->rows, count * row_bytes);
}

static bool prepare(whole_scene *s, whole_job job, size_t row_bytes,
                    size_t count) {
  s->seed++;
  return job.op == WHOLE_MEMCPY || !takes_part(s, job) ||
         (draw(s, job, row_bytes, count) &&
          fill_dense(s, job, row_bytes, count));
}

bool whole_act(whole_scene *s, whole_op op, size_t row_bytes, size_t count) {
  if (op == WHOLE_MEMCPY) return copy(s);
  if (op == WHOLE_PLAIN_GATHER) return gather_plain(s, row_bytes, count);
  return move_rows(s, op, row_bytes, count);
}

// Ranks wake up one after the other: so all wait for a moment that lies behind.
static bool begin_together(whole_scene *s, bool prepared, uint64_t *out_begin) {
  enum { AHEAD_NS = 50000 };
  if (!whole_agree(s, prepared, stopwatch_clock_ns(), out_begin)) return false;
  *out_begin += AHEAD_NS;
  while (stopwatch_clock_ns() < *out_begin) {
  }
  return true;
}

static bool measure_peer(whole_scene *s, whole_job job, size_t row_bytes,
                         double *out_gbs) {
  s->seed++;
  bool did = s->rank != 0 || whole_peer_measure(s->peer, job.op, row_bytes,
                                                s->seed, out_gbs, s->why);
  if (!did) s->status = TARN_E_UNSUPPORTED;  // no failure of ours
  return whole_agree(s, did, 0, NULL);
}

static bool is_peer(whole_op op) {
  return op == WHOLE_MPI_WINDOW || op == WHOLE_MPI_ALLTOALLV;
}

bool whole_job_fits(const whole_scene *s, whole_job job) {
  bool is_mapped = s->kind.type != TARN_WHOLE_DISTRIBUTED;
  switch (job.op) {
    case WHOLE_PLAIN_GATHER:
      return is_mapped && s->is_plain && s->parts[0] != NULL;
    case WHOLE_MPI_WINDOW:
      return is_mapped && s->peer != NULL;
    case WHOLE_MPI_ALLTOALLV:
      return !is_mapped && s->peer != NULL;
    default:
      return (!job.zipf || s->bench->zipf) && (!job.alone || is_mapped);
  }
}

bool whole_job_do(whole_scene *s, whole_job job, size_t row_bytes,
                  double *out_gbs) {
  uint64_t begin = 0;
  uint64_t end = 0;
  if (is_peer(job.op)) return measure_peer(s, job, row_bytes, out_gbs);
  size_t count = whole_batch_rows(s->bench, row_bytes);
  bool prepared = prepare(s, job, row_bytes, count);
  if (!begin_together(s, prepared, &begin)) return false;
  bool did = !takes_part(s, job) || whole_act(s, job.op, row_bytes, count);
  if (!whole_agree(s, did, stopwatch_clock_ns(), &end)) return false;
  size_t ranks = job.alone ? 1 : s->bench->ranks;
  *out_gbs = (double)(ranks * count * row_bytes) / (double)(end - begin);
  return true;
}
