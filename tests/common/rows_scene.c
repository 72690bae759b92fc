// Blocks have some bytes before and behind them, which no call may write.
#include "rows_scene.h"

#include <stdlib.h>
#include <string.h>

#include "base/convert.h"
#include "common/rows.h"
#include "support/run.h"

enum {
  SLACK = 64,
  PERIOD = 4099,  // a prime
};

static uint64_t seed = 1;

size_t rows_scene_draw(size_t below) {
  seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
  return (size_t)(seed >> 33) % below;
}

tarn_addr rows_scene_address(const void *ptr) {
  return (tarn_addr)(uintptr_t)ptr;
}

// The same numbers again and again, a prime of bytes apart. No float is a NaN,
// of which a sum may keep either sign and payload.
static void fill(unsigned char *bytes, size_t size) {
  size_t done = size < PERIOD ? size : PERIOD;
  for (size_t i = 0; i < done; i++)
    bytes[i] = (unsigned char)(rows_scene_draw(256) & 0x7b);
  while (done < size) {
    size_t now = done < size - done ? done : size - done;
    memcpy(bytes + done, bytes, now);
    done += now;
  }
}

static void make_block(rows_scene_block *b, size_t size, size_t shift) {
  b->size = (size + shift + SLACK + SLACK + ROWS_SCENE_LINE - 1) /
            ROWS_SCENE_LINE * ROWS_SCENE_LINE;
  b->all = aligned_alloc(ROWS_SCENE_LINE, b->size);
  b->model = malloc(b->size);
  ck_assert(b->all != NULL && b->model != NULL);
  fill(b->all, b->size);
  memcpy(b->model, b->all, b->size);
  b->bytes = b->all + SLACK + shift;
}

static void free_block(rows_scene_block *b) {
  free(b->all);
  free(b->model);
}

static void lay_chunks(rows_scene *s, const rows_scene_shape *c) {
  size_t stride = s->rows.table_stride;
  size_t count = c->chunks == 0 ? 1 : c->chunks;
  size_t each = (c->table_count + count - 1) / count;
  for (size_t i = 0; i < count; i++) {
    size_t end =
        (i + 1) * each < c->table_count ? (i + 1) * each : c->table_count;
    s->chunks[i] = rows_scene_address(s->table.bytes) + s->offsets[i];
    s->offsets[i + 1] = end * stride;
  }
  s->rows.table = (tarn_reference){s->chunks, s->offsets, count};
}

static int64_t draw_index(const rows_scene_shape *c) {
  size_t among = c->meet != 0 ? c->meet : c->table_count;
  bool bad = (c->flags & TARN_ROWS_SKIP_BAD) != 0 && rows_scene_draw(5) == 0;
  if (bad) return rows_scene_draw(2) != 0 ? -1 : (int64_t)c->table_count;
  return (int64_t)(rows_scene_draw(among) * (c->table_count / among));
}

void rows_scene_put(rows_scene *s, size_t position, int64_t index) {
  s->wanted[position] = index;
  if (s->rows.index_dtype == TARN_DTYPE_I32) {
    ((int32_t *)s->indices)[position] = (int32_t)index;
  } else {
    ((int64_t *)s->indices)[position] = index;
  }
}

static void draw_indices(rows_scene *s, const rows_scene_shape *c) {
  s->wanted = malloc((c->index_count + 1) * sizeof *s->wanted);
  s->indices = malloc((c->index_count + 1) * sizeof(int64_t));
  ck_assert(s->wanted != NULL && s->indices != NULL);
  s->rows.indices = rows_scene_address(s->indices);
  for (size_t i = 0; i < c->index_count; i++)
    rows_scene_put(s, i, draw_index(c));
}

void rows_scene_set_up(rows_scene *s, const rows_scene_shape *c) {
  size_t t_row = c->width * tarn_dtype_size(c->table) + c->table_gap;
  size_t d_row = c->width * tarn_dtype_size(c->dense) + c->dense_gap;
  memset(s, 0, sizeof *s);
  make_block(&s->table, c->table_count * t_row, c->table_shift);
  make_block(&s->dense, c->index_count * d_row, c->dense_shift);
  s->rows = (tarn_rows){
      .struct_size = sizeof s->rows,
      .table_dtype = c->table,
      .table_stride = t_row,
      .table_count = c->table_count,
      .width = c->width,
      .dense = rows_scene_address(s->dense.bytes),
      .dense_dtype = c->dense,
      .dense_stride = d_row,
      .index_dtype = c->narrow ? TARN_DTYPE_I32 : TARN_DTYPE_I64,
      .index_count = c->index_count,
      .flags = c->flags,
      .threads = c->threads,
  };
  lay_chunks(s, c);
  draw_indices(s, c);
}

void rows_scene_tear_down(rows_scene *s) {
  free_block(&s->table);
  free_block(&s->dense);
  free(s->wanted);
  free(s->indices);
}

// --- the model -------------------------------------------------------------

static void model_row(rows_scene *s, tarn__rows_action action, size_t i) {
  const tarn_rows *r = &s->rows;
  unsigned char *d =
      s->dense.model + (s->dense.bytes - s->dense.all) + i * r->dense_stride;
  if (s->wanted[i] < 0 || (uint64_t)s->wanted[i] >= r->table_count) {
    if (action == TARN__ROWS_GATHER) memset(d, 0, tarn__rows_dense_bytes(r));
    return;
  }
  unsigned char *t = s->table.model + (s->table.bytes - s->table.all) +
                     (size_t)s->wanted[i] * r->table_stride;
  if (action == TARN__ROWS_GATHER) {
    tarn__convert(r->dense_dtype, d, r->table_dtype, t, r->width);
  } else if (action == TARN__ROWS_SCATTER) {
    tarn__convert(r->table_dtype, t, r->dense_dtype, d, r->width);
  } else {
    tarn__convert_add(r->table_dtype, t, r->dense_dtype, d, r->width);
  }
}

static void run_model(rows_scene *s, tarn__rows_action action) {
  for (size_t i = 0; i < s->rows.index_count; i++)
    model_row(s, action, i);
}

tarn_status rows_scene_run(rows_scene *s, tarn__rows_action action,
                           char *text) {
  return tarn__rows_run(action, &s->rows, NULL, NULL, text, ROWS_SCENE_TEXT);
}

// Every byte of both blocks is as the model has it, and so are equal indices:
// of a scatter the last stays, and sums are made in order.
void rows_scene_expect(rows_scene *s, tarn__rows_action action) {
  char text[ROWS_SCENE_TEXT] = "?";
  run_model(s, action);
  require(rows_scene_run(s, action, text) == TARN_OK);
  require(text[0] == '\0');
  require(memcmp(s->table.all, s->table.model, s->table.size) == 0);
  require(memcmp(s->dense.all, s->dense.model, s->dense.size) == 0);
}
