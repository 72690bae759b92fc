// The cases are made of numbers so small that every dtype has them and their
// sums, in whatever order.
#include "rows_model.h"

#include <stdlib.h>
#include <string.h>

#include "base/convert.h"
#include "support/run.h"
#include "tarn/rows.h"

// Bytes of a block behind what is used of it: none of them may be touched, but
// an empty one can be had, and a chunk can be said to end a little later.
enum { SLACK = 8 };

static unsigned random_next(void) {
  static unsigned seed = 12345;
  seed = seed * 1664525u + 1013904223u;
  return seed >> 8;
}

// Small numbers, which every dtype has: sums stay exact in whatever order.
void rows_fill(unsigned char *bytes, size_t size, tarn_dtype dtype) {
  size_t step = tarn_dtype_size(dtype);
  for (size_t at = 0; at + step <= size; at += step) {
    unsigned number = random_next() % 5;
    bool floats = dtype == TARN_DTYPE_F64 || dtype == TARN_DTYPE_F32 ||
                  dtype == TARN_DTYPE_F16 || dtype == TARN_DTYPE_BF16;
    double real = number;
    int64_t whole = number;
    if (dtype == TARN_DTYPE_BOOL) {
      bytes[at] = number & 1;
    } else if (floats) {
      tarn__convert(dtype, bytes + at, TARN_DTYPE_F64, &real, 1);
    } else {
      tarn__convert(dtype, bytes + at, TARN_DTYPE_I64, &whole, 1);
    }
  }
}

static tarn_addr upload(tarn_device *device, const void *bytes, size_t size) {
  tarn_addr addr = 0;
  assert_ok(tarn_device_allocate(tarn_place_on(device), size + SLACK, &addr));
  assert_ok(tarn_copy_h2d(device, addr, bytes, size, NULL));
  return addr;
}

static void *room(size_t size) {
  void *bytes = calloc(size + 1, 1);
  ck_assert_ptr_nonnull(bytes);
  return bytes;
}

static void describe(rows_stage *s, const rows_shape *c) {
  size_t table_row = c->width * tarn_dtype_size(c->table_dtype);
  size_t dense_row = c->width * tarn_dtype_size(c->dense_dtype);
  s->rows = (tarn_rows){
      .struct_size = sizeof s->rows,
      .table_dtype = c->table_dtype,
      .table_offset = c->offset,
      .table_stride = c->table_gap ? table_row + c->table_gap : 0,
      .table_count = c->table_count,
      .width = c->width,
      .dense_dtype = c->dense_dtype,
      .dense_stride = c->dense_gap ? dense_row + c->dense_gap : 0,
      .index_dtype = c->index_dtype,
      .index_count = c->index_count,
      .flags = c->flags,
  };
  s->table_size = c->offset + c->table_count * (table_row + c->table_gap);
  s->dense_size = c->index_count * (dense_row + c->dense_gap);
  s->index_size = c->index_count * tarn_dtype_size(c->index_dtype);
}

static void upload_table(rows_stage *s, const rows_shape *c) {
  size_t row = c->width * tarn_dtype_size(c->table_dtype) + c->table_gap;
  size_t cut =
      c->in_chunks ? c->offset + c->table_count / 2 * row : s->table_size;
  s->offsets[1] = cut;
  s->offsets[2] = s->table_size;
  s->chunks[0] = upload(s->device, s->table, cut);
  if (c->in_chunks) {
    s->chunks[1] = upload(s->device, s->table + cut, s->table_size - cut);
  }
  s->rows.table = (tarn_reference){s->chunks, s->offsets, c->in_chunks ? 2 : 1};
}

void rows_stage_upload_indices(rows_stage *s) {
  unsigned char *narrow = room(s->index_size);
  tarn__convert(s->rows.index_dtype, narrow, TARN_DTYPE_I64, s->indices,
                s->rows.index_count);
  if (s->rows.indices == 0) {
    s->rows.indices = upload(s->device, narrow, s->index_size);
  } else {
    assert_ok(
        tarn_copy_h2d(s->device, s->rows.indices, narrow, s->index_size, NULL));
  }
  free(narrow);
}

// Where bad ones are passed over, some are out of range, on either side.
static int64_t pick_index(const rows_shape *c, size_t i) {
  int64_t index = (int64_t)(random_next() % (c->table_count + 1));
  if (index != (int64_t)c->table_count) return index;
  if (c->flags == 0) return 0;
  return i % 2 ? index : -1;
}

void rows_stage_set_up(rows_stage *s, tarn_device *device,
                       const rows_shape *c) {
  memset(s, 0, sizeof *s);
  s->device = device;
  describe(s, c);
  s->table = room(s->table_size);
  s->dense = room(s->dense_size);
  s->indices = room(c->index_count * sizeof *s->indices);
  rows_fill(s->table, s->table_size, c->table_dtype);
  rows_fill(s->dense, s->dense_size, c->dense_dtype);
  for (size_t i = 0; i < c->index_count; i++) {
    s->indices[i] = pick_index(c, i);
  }
  upload_table(s, c);
  s->rows.dense = upload(device, s->dense, s->dense_size);
  rows_stage_upload_indices(s);
}

void rows_stage_tear_down(rows_stage *s) {
  tarn_place place = tarn_place_on(s->device);
  size_t cut = s->offsets[1];
  assert_ok(tarn_device_deallocate(place, s->chunks[0], cut + SLACK));
  if (s->chunks[1] != 0) {
    assert_ok(tarn_device_deallocate(place, s->chunks[1],
                                     s->table_size - cut + SLACK));
  }
  assert_ok(
      tarn_device_deallocate(place, s->rows.dense, s->dense_size + SLACK));
  assert_ok(
      tarn_device_deallocate(place, s->rows.indices, s->index_size + SLACK));
  free(s->table);
  free(s->dense);
  free(s->indices);
}

// --- the model -------------------------------------------------------------

static void model_row(rows_stage *s, rows_action a, size_t i, size_t table_row,
                      size_t dense_row) {
  const tarn_rows *r = &s->rows;
  size_t stride = r->table_stride ? r->table_stride : table_row;
  unsigned char *dense =
      s->dense + i * (r->dense_stride ? r->dense_stride : dense_row);
  if (s->indices[i] < 0 || (size_t)s->indices[i] >= r->table_count) {
    if (a == ROWS_GATHER) memset(dense, 0, dense_row);
    return;
  }
  unsigned char *row =
      s->table + r->table_offset + (size_t)s->indices[i] * stride;
  if (a == ROWS_GATHER) {
    tarn__convert(r->dense_dtype, dense, r->table_dtype, row, r->width);
  } else if (a == ROWS_SCATTER) {
    tarn__convert(r->table_dtype, row, r->dense_dtype, dense, r->width);
  } else {
    tarn__convert_add(r->table_dtype, row, r->dense_dtype, dense, r->width);
  }
}

void rows_stage_model(rows_stage *s, rows_action a) {
  for (size_t i = 0; i < s->rows.index_count; i++) {
    model_row(s, a, i, s->rows.width * tarn_dtype_size(s->rows.table_dtype),
              s->rows.width * tarn_dtype_size(s->rows.dense_dtype));
  }
}

tarn_status rows_stage_run(rows_stage *s, rows_action a, tarn_stream *stream) {
  if (a == ROWS_GATHER) return tarn_rows_gather(s->device, &s->rows, stream);
  if (a == ROWS_SCATTER) return tarn_rows_scatter(s->device, &s->rows, stream);
  return tarn_rows_scatter_add(s->device, &s->rows, stream);
}

static void expect_bytes(tarn_device *device, tarn_addr addr,
                         const unsigned char *expected, size_t size) {
  unsigned char *got = room(size);
  assert_ok(tarn_copy_d2h(device, got, addr, size, NULL));
  ck_assert_mem_eq(got, expected, size);
  free(got);
}

// Table and dense rows are as the model has them, gaps included.
void rows_stage_expect(const rows_stage *s) {
  size_t cut = s->offsets[1];
  expect_bytes(s->device, s->chunks[0], s->table, cut);
  if (s->chunks[1] != 0) {
    expect_bytes(s->device, s->chunks[1], s->table + cut, s->table_size - cut);
  }
  expect_bytes(s->device, s->rows.dense, s->dense, s->dense_size);
}

// A scatter of equal indices leaves any of the rows: make them different.
void rows_stage_make_distinct(rows_stage *s) {
  for (size_t i = 0; i < s->rows.index_count; i++) {
    s->indices[i] = (int64_t)(s->rows.table_count - 1 - i);
  }
  rows_stage_upload_indices(s);
}
