// Rows are compared before anything is timed: the speed of wrong rows is no
// figure.
#include <stdio.h>

#include "whole_indices.h"
#include "whole_scene.h"

static size_t width_of(size_t row_bytes) {
  return row_bytes / sizeof(float);
}

static bool put_indices(whole_scene *s, size_t count) {
  return whole_put(s, s->indices, s->numbers, count * sizeof *s->numbers);
}

// |count| rows of |numbers|, each element with |more| added, into |dense|.
static bool put_rows(whole_scene *s, size_t row_bytes, size_t count,
                     float more) {
  whole_rows_fill(s->rows, s->numbers, count, width_of(row_bytes), more);
  return whole_put(s, s->dense, s->rows, count * row_bytes);
}

static bool rows_are(whole_scene *s, size_t row_bytes, size_t count, float more,
                     const char *what) {
  if (!whole_get(s, s->rows, s->dense, count * row_bytes)) return false;
  if (whole_rows_right(s->rows, s->numbers, count, width_of(row_bytes), more))
    return true;
  s->status = TARN_E_CORRUPT;
  snprintf(s->why, sizeof s->why, "rows of %zu bytes are wrong after %s",
           row_bytes, what);
  return false;
}

// Gathers rows |numbers| of all ranks and sees whether |more| was added.
static bool gather_and_see(whole_scene *s, size_t row_bytes, size_t count,
                           float more, const char *what) {
  bool ready = put_indices(s, count);
  if (!whole_agree(s, ready, 0, NULL)) return false;
  bool right = whole_act(s, WHOLE_GATHER, row_bytes, count) &&
               rows_are(s, row_bytes, count, more, what);
  return whole_agree(s, right, 0, NULL);
}

static void draw_any(whole_scene *s, size_t row_bytes, size_t count) {
  whole_draw_uniform(s->numbers, count, s->bench->table_bytes / row_bytes,
                     ++s->seed * WHOLE_RANKS_MOST + s->rank);
}

static bool check_gather(whole_scene *s, size_t row_bytes, size_t count) {
  draw_any(s, row_bytes, count);
  return gather_and_see(s, row_bytes, count, 0, "a gather");
}

// Each rank for itself: the baseline must do the same work.
static bool check_plain(whole_scene *s, size_t row_bytes, size_t count) {
  draw_any(s, row_bytes, count);
  bool right = put_indices(s, count) &&
               whole_act(s, WHOLE_PLAIN_GATHER, row_bytes, count) &&
               rows_are(s, row_bytes, count, 0, "a plain gather");
  return whole_agree(s, right, 0, NULL);
}

// Each rank has rows of its own: every N-th of those that all ranks draw.
static void draw_of_rank(whole_scene *s, size_t rank, size_t rows,
                         size_t count) {
  size_t ranks = s->bench->ranks;
  whole_draw_different(s->numbers, count, rows / ranks, s->seed);
  for (size_t i = 0; i < count; i++)
    s->numbers[i] = s->numbers[i] * (int64_t)ranks + (int64_t)rank;
}

static bool scatter_all(whole_scene *s, size_t row_bytes, size_t count,
                        float more) {
  draw_of_rank(s, s->rank, s->bench->table_bytes / row_bytes, count);
  bool ready = put_indices(s, count) && put_rows(s, row_bytes, count, more);
  if (!whole_agree(s, ready, 0, NULL)) return false;
  bool did = whole_act(s, WHOLE_SCATTER, row_bytes, count);
  return whole_agree(s, did, 0, NULL);
}

// Each rank gathers the rows that the rank before it has scattered.
static bool check_scatter(whole_scene *s, size_t row_bytes, size_t count) {
  size_t next = (s->rank + 1) % s->bench->ranks;
  s->seed++;
  if (!scatter_all(s, row_bytes, count, 1)) return false;
  draw_of_rank(s, next, s->bench->table_bytes / row_bytes, count);
  if (!gather_and_see(s, row_bytes, count, 1, "a scatter")) return false;
  return scatter_all(s, row_bytes, count, 0);
}

// All ranks add to the same rows.
static bool add_all(whole_scene *s, size_t row_bytes, size_t count,
                    float each) {
  for (size_t i = 0; i < count * width_of(row_bytes); i++)
    s->rows[i] = each;
  bool ready = put_indices(s, count) &&
               whole_put(s, s->dense, s->rows, count * row_bytes);
  if (!whole_agree(s, ready, 0, NULL)) return false;
  bool did = whole_act(s, WHOLE_SCATTER_ADD, row_bytes, count);
  return whole_agree(s, did, 0, NULL);
}

static bool check_add(whole_scene *s, size_t row_bytes, size_t count) {
  float ranks = (float)s->bench->ranks;
  whole_draw_different(s->numbers, count, s->bench->table_bytes / row_bytes,
                       ++s->seed);
  return add_all(s, row_bytes, count, 1) &&
         gather_and_see(s, row_bytes, count, ranks, "a scatter-add") &&
         add_all(s, row_bytes, count, -1) &&
         gather_and_see(s, row_bytes, count, 0, "a second scatter-add");
}

bool whole_check(whole_scene *s, whole_op op, size_t row_bytes) {
  size_t most = s->bench->table_bytes / row_bytes / s->bench->ranks;
  size_t count = whole_batch_rows(s->bench, row_bytes);
  if (count > most) count = most;
  if (op == WHOLE_PLAIN_GATHER) return check_plain(s, row_bytes, count);
  if (op == WHOLE_SCATTER) return check_scatter(s, row_bytes, count);
  if (op == WHOLE_SCATTER_ADD) return check_add(s, row_bytes, count);
  return check_gather(s, row_bytes, count);
}
