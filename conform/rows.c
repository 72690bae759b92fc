// Gather and scatter of rows, against a model on the host.
#include <string.h>

#include "check.h"

enum { TABLE_ROWS = 97, WIDTH = 33, INDICES = 50, NO_BAD = -1 };

// A table, dense rows and indices on the device, and what the host holds of
// them. Elements are small whole numbers, so that sums are exact.
typedef struct scene {
  tarn_rows rows;
  tarn_addr chunks[2];
  size_t offsets[3];
  void *device_dense;
  float table[TABLE_ROWS][WIDTH];
  float dense[INDICES][WIDTH];
  int64_t indices[INDICES];
} scene;

static void fill_scene(scene *s) {
  for (size_t i = 0; i < TABLE_ROWS * (size_t)WIDTH; i++)
    (&s->table[0][0])[i] = (float)(i % 1009);
  for (size_t i = 0; i < INDICES * (size_t)WIDTH; i++)
    (&s->dense[0][0])[i] = (float)(i % 499) + 2000;
  for (size_t i = 0; i < INDICES; i++)
    s->indices[i] = (int64_t)(i * 37 % TABLE_ROWS);  // no two are the same
}

// The table lies in two chunks that are apart, as rows of ranks do.
static bool place_table(conform_target *t, scene *s) {
  enum { FIRST = 40 };
  size_t row = sizeof s->table[0];
  void *blocks[2];
  s->offsets[0] = 0;
  s->offsets[1] = FIRST * row;
  s->offsets[2] = TABLE_ROWS * row;
  for (size_t i = 0; i < 2; i++) {
    size_t size = s->offsets[i + 1] - s->offsets[i];
    if (!check_take(t, size, &blocks[i]) ||
        !check_put(t, blocks[i], (char *)s->table + s->offsets[i], size)) {
      return false;
    }
    s->chunks[i] = check_address(blocks[i]);
  }
  return true;
}

static bool place(conform_target *t, scene *s) {
  void *indices = NULL;
  if (!place_table(t, s) || !check_take(t, sizeof s->dense, &s->device_dense) ||
      !check_put(t, s->device_dense, s->dense, sizeof s->dense) ||
      !check_take(t, sizeof s->indices, &indices) ||
      !check_put(t, indices, s->indices, sizeof s->indices)) {
    return false;
  }
  s->rows = (tarn_rows){.struct_size = sizeof s->rows,
                        .table = {s->chunks, s->offsets, 2},
                        .table_dtype = TARN_DTYPE_F32,
                        .table_stride = sizeof s->table[0],
                        .table_count = TABLE_ROWS,
                        .width = WIDTH,
                        .dense = check_address(s->device_dense),
                        .dense_dtype = TARN_DTYPE_F32,
                        .dense_stride = sizeof s->dense[0],
                        .indices = check_address(indices),
                        .index_dtype = TARN_DTYPE_I64,
                        .index_count = INDICES};
  return true;
}

static bool make_scene(conform_target *t, scene *s) {
  fill_scene(s);
  return place(t, s);
}

// ---------------------------------------------------------------------------
// The model
// ---------------------------------------------------------------------------

static bool dense_is(conform_target *t, scene *s, const char *what) {
  float got[INDICES][WIDTH];
  if (!check_get(t, got, s->device_dense, sizeof got)) return false;
  for (size_t i = 0; i < INDICES; i++) {
    for (size_t j = 0; j < WIDTH; j++) {
      EXPECT(t, got[i][j] == s->dense[i][j],
             "%s: dense row %zu, element %zu is %g, not %g", what, i, j,
             (double)got[i][j], (double)s->dense[i][j]);
    }
  }
  return true;
}

static bool table_is(conform_target *t, scene *s, const char *what) {
  static const size_t row = sizeof s->table[0];
  for (size_t i = 0; i < TABLE_ROWS; i++) {
    float got[WIDTH];
    size_t chunk = i * row >= s->offsets[1];
    size_t within = i * row - s->offsets[chunk];
    const void *at = (const void *)(uintptr_t)(s->chunks[chunk] + within);
    if (!check_get(t, got, at, row)) return false;
    for (size_t j = 0; j < WIDTH; j++) {
      EXPECT(t, got[j] == s->table[i][j],
             "%s: table row %zu, element %zu is %g, not %g", what, i, j,
             (double)got[j], (double)s->table[i][j]);
    }
  }
  return true;
}

static void model_gather(scene *s) {
  for (size_t i = 0; i < INDICES; i++)
    memcpy(s->dense[i], s->table[s->indices[i]], sizeof s->dense[i]);
}

static void model_scatter(scene *s) {
  for (size_t i = 0; i < INDICES; i++)
    memcpy(s->table[s->indices[i]], s->dense[i], sizeof s->dense[i]);
}

static void model_scatter_add(scene *s) {
  for (size_t i = 0; i < INDICES; i++) {
    for (size_t j = 0; j < WIDTH; j++)
      s->table[s->indices[i]][j] += s->dense[i][j];
  }
}

// ---------------------------------------------------------------------------
// Checks
// ---------------------------------------------------------------------------

static bool gather(conform_target *t) {
  scene s;
  if (!make_scene(t, &s)) return false;
  EXTENSION(t, gather, t->device.id, NULL, &s.rows);
  model_gather(&s);
  return dense_is(t, &s, "after gather") &&
         table_is(t, &s, "after gather, which must not change it");
}

static bool scatter(conform_target *t) {
  scene s;
  if (!make_scene(t, &s)) return false;
  EXTENSION(t, scatter, t->device.id, NULL, &s.rows);
  model_scatter(&s);
  return table_is(t, &s, "after scatter");
}

static bool scatter_add(conform_target *t) {
  scene s;
  fill_scene(&s);
  for (size_t i = 0; i < INDICES; i++)
    s.indices[i] = (int64_t)(i % 7);  // each comes several times
  if (!place(t, &s)) return false;
  EXTENSION(t, scatter_add, t->device.id, NULL, &s.rows);
  model_scatter_add(&s);
  return table_is(t, &s, "after scatter_add with indices that repeat");
}

static bool gather_on_stream(conform_target *t) {
  scene s;
  C_Stream stream = NULL;
  if (!check_stream(t, &stream) || !make_scene(t, &s)) return false;
  EXTENSION(t, gather, t->device.id, stream, &s.rows);
  model_gather(&s);
  return check_wait(t, stream) && dense_is(t, &s, "after gather on a stream");
}

static bool gather_int32(conform_target *t) {
  scene s;
  int32_t narrow[INDICES];
  void *indices = NULL;
  if (!make_scene(t, &s) || !check_take(t, sizeof narrow, &indices))
    return false;
  for (size_t i = 0; i < INDICES; i++)
    narrow[i] = (int32_t)s.indices[i];
  if (!check_put(t, indices, narrow, sizeof narrow)) return false;
  s.rows.indices = check_address(indices);
  s.rows.index_dtype = TARN_DTYPE_I32;
  EXTENSION(t, gather, t->device.id, NULL, &s.rows);
  model_gather(&s);
  return dense_is(t, &s, "after gather with indices of 32 bits");
}

static bool nothing(conform_target *t) {
  scene s;
  if (!make_scene(t, &s)) return false;
  s.rows.index_count = 0;
  EXTENSION(t, gather, t->device.id, NULL, &s.rows);
  return dense_is(t, &s, "after gather of no rows");
}

static bool refuses_bad(conform_target *t, int64_t bad) {
  scene s;
  fill_scene(&s);
  s.indices[INDICES / 2] = bad;
  if (!place(t, &s)) return false;
  tarn_status got = t->ext->gather(t->device.id, NULL, &s.rows);
  if (!conform_can(t, "gather", got)) return false;
  EXPECT(t, got == TARN_E_INVALID,
         "the index %lld of %d rows is answered %s, not TARN_E_INVALID",
         (long long)bad, (int)TABLE_ROWS, tarn_status_name(got));
  return true;
}

static bool bad_index(conform_target *t) {
  return refuses_bad(t, TABLE_ROWS) && refuses_bad(t, -1) &&
         refuses_bad(t, INT64_MAX) && refuses_bad(t, INT64_MIN);
}

static bool skip_bad(conform_target *t) {
  scene s;
  fill_scene(&s);
  s.indices[3] = TABLE_ROWS;
  s.indices[INDICES - 1] = NO_BAD;
  if (!place(t, &s)) return false;
  s.rows.flags = TARN_ROWS_SKIP_BAD;
  EXTENSION(t, gather, t->device.id, NULL, &s.rows);
  s.indices[3] = s.indices[INDICES - 1] = 0;
  model_gather(&s);
  memset(s.dense[3], 0, sizeof s.dense[3]);
  memset(s.dense[INDICES - 1], 0, sizeof s.dense[INDICES - 1]);
  return dense_is(t, &s, "after gather that skips bad indices");
}

#define ROWS \
  "// a table of 97 rows of 33 floats in two chunks, 50 indices of 64 bits\n"

static const conform_check checks[] = {
    {CHECK("rows.gather", gather, .extends = {SLOT(gather)}),
     .code = ROWS "ext->gather(d.id, NULL, &rows);\n"
                  "// dense[i] is table[indices[i]]\n"},
    {CHECK("rows.gather_by_32_bit_indices", gather_int32,
           .extends = {SLOT(gather)}),
     .code = "rows.index_dtype = TARN_DTYPE_I32;\n"
             "ext->gather(d.id, NULL, &rows);\n"
             "// dense[i] is table[indices[i]]\n"},
    {CHECK("rows.gather_on_a_stream", gather_on_stream,
           .needs = {NEED(create_stream)}, .extends = {SLOT(gather)}),
     .code = ROWS "ext->gather(d.id, s, &rows);\n"
                  "table->synchronize_stream(&d, s);\n"
                  "// dense[i] is table[indices[i]]\n"},
    {CHECK("rows.gather_nothing", nothing, .extends = {SLOT(gather)}),
     .code = "rows.index_count = 0;\n"
             "assert(ext->gather(d.id, NULL, &rows) == TARN_OK);\n"},
    {CHECK("rows.scatter", scatter, .extends = {SLOT(scatter)}),
     .code = ROWS "ext->scatter(d.id, NULL, &rows);\n"
                  "// table[indices[i]] is dense[i], the others as before\n"},
    {CHECK("rows.scatter_add", scatter_add, .extends = {SLOT(scatter_add)}),
     .code = ROWS "// each of which comes several times\n"
                  "ext->scatter_add(d.id, NULL, &rows);\n"
                  "// table[indices[i]] has grown by dense[i], each time\n"},
    {CHECK("rows.bad_index_is_refused", bad_index, .extends = {SLOT(gather)}),
     .code = "indices[25] = 97;  // of 97 rows; or -1, INT64_MAX, INT64_MIN\n"
             "assert(ext->gather(d.id, NULL, &rows) == TARN_E_INVALID);\n"},
    {CHECK("rows.bad_index_is_skipped", skip_bad, .extends = {SLOT(gather)}),
     .code = "indices[3] = 97;  // of 97 rows\n"
             "rows.flags = TARN_ROWS_SKIP_BAD;\n"
             "ext->gather(d.id, NULL, &rows);  // dense[3] is zero\n"},
};

const conform_subject conform_rows = CONFORM_SUBJECT(checks);
