// Gather and scatter against a naive model: element by element, each byte of
// the table looked for chunk by chunk.
#include "common/rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/convert.h"
#include "base/hostmem.h"
#include "base/rows.h"
#include "support/faults.h"
#include "support/run.h"

enum {
  CHUNKS_MAX = 5,
  CHUNK_ROOM = 4096,
  DENSE_ROOM = 16384,
  INDICES_MAX = 80,
  TEXT_SIZE = 160,
  GAP = 0x5a,  // in bytes that no call may write
};

// One table, dense block and list of indices.
typedef struct scene {
  unsigned char chunks[CHUNKS_MAX][CHUNK_ROOM];
  unsigned char dense[DENSE_ROOM];
  unsigned char indices[INDICES_MAX * 8 + 1];
  tarn_addr addresses[CHUNKS_MAX];
  size_t offsets[CHUNKS_MAX + 1];
  int64_t wanted[INDICES_MAX];
  tarn_rows rows;
} scene;

static uint32_t seed = 1;

static uint32_t draw(uint32_t below) {
  seed = seed * 1664525u + 1013904223u;
  return (seed >> 8) % below;
}

static tarn_addr address_of(const void *ptr) {
  return (tarn_addr)(uintptr_t)ptr;
}

// --- scenes ----------------------------------------------------------------

// No float is a NaN, of which a sum may keep either sign and payload.
static void fill(unsigned char *bytes, size_t size) {
  for (size_t i = 0; i < size; i++)
    bytes[i] = (unsigned char)(draw(256) & 0x7b);
}

// Each chunk holds whole rows, some none.
static void lay_chunks(scene *s, size_t stride) {
  size_t rows = 0;
  s->rows.table.count = 1 + draw(CHUNKS_MAX);
  for (size_t i = 0; i < s->rows.table.count; i++) {
    size_t here = draw(4) == 0 ? 0 : draw(12);
    size_t lead = i == 0 ? s->rows.table_offset : 0;
    s->addresses[i] = address_of(s->chunks[i]);
    s->offsets[i + 1] = s->offsets[i] + lead + here * stride;
    rows += here;
  }
  s->rows.table_count = rows;
  s->rows.table.chunks = s->addresses;
  s->rows.table.offsets = s->offsets;
}

static void draw_indices(scene *s) {
  size_t count = s->rows.table_count == 0 ? 0 : draw(INDICES_MAX);
  s->rows.index_dtype = draw(2) ? TARN_DTYPE_I32 : TARN_DTYPE_I64;
  size_t size = tarn_dtype_size(s->rows.index_dtype);
  s->rows.index_count = count;
  s->rows.indices = address_of(s->indices + draw(2));
  for (size_t i = 0; i < count; i++) {
    s->wanted[i] = draw((uint32_t)s->rows.table_count);
    if ((s->rows.flags & TARN_ROWS_SKIP_BAD) != 0 && draw(5) == 0) {
      s->wanted[i] = draw(2) ? -1 : (int64_t)s->rows.table_count;
    }
    memcpy((unsigned char *)(uintptr_t)s->rows.indices + i * size,
           &s->wanted[i], size);
  }
}

static void draw_scene(scene *s, tarn_dtype table, tarn_dtype dense) {
  memset(s, 0, sizeof *s);
  fill(s->chunks[0], sizeof s->chunks);
  fill(s->dense, sizeof s->dense);
  s->rows.struct_size = sizeof s->rows;
  s->rows.table_dtype = table;
  s->rows.dense_dtype = dense;
  s->rows.width = draw(20);
  s->rows.flags = draw(2);
  s->rows.table_offset = draw(9);
  size_t stride = s->rows.width * tarn_dtype_size(table) + draw(7);
  s->rows.table_stride = stride;
  s->rows.dense_stride = s->rows.width * tarn_dtype_size(dense) + draw(7);
  s->rows.dense = address_of(s->dense + draw(8));
  lay_chunks(s, stride);
  draw_indices(s);
  tarn_rows checked;
  assert_ok(tarn__rows_check(&s->rows, &checked));
  s->rows = checked;
}

// --- the model -------------------------------------------------------------

static unsigned char *table_byte(scene *s, size_t offset) {
  size_t i = 0;
  while (s->offsets[i + 1] <= offset)
    i++;
  return s->chunks[i] + (offset - s->offsets[i]);
}

static void model_element(scene *s, tarn__rows_action action, size_t row,
                          int64_t index, size_t column) {
  size_t t_size = tarn_dtype_size(s->rows.table_dtype);
  size_t d_size = tarn_dtype_size(s->rows.dense_dtype);
  unsigned char *d = (unsigned char *)(uintptr_t)s->rows.dense +
                     row * s->rows.dense_stride + column * d_size;
  if (index < 0 || (uint64_t)index >= s->rows.table_count) {
    if (action == TARN__ROWS_GATHER) memset(d, 0, d_size);
    return;
  }
  unsigned char *t =
      table_byte(s, s->rows.table_offset +
                        (size_t)index * s->rows.table_stride + column * t_size);
  if (action == TARN__ROWS_GATHER) {
    tarn__convert(s->rows.dense_dtype, d, s->rows.table_dtype, t, 1);
  } else if (action == TARN__ROWS_SCATTER) {
    tarn__convert(s->rows.table_dtype, t, s->rows.dense_dtype, d, 1);
  } else {
    tarn__convert_add(s->rows.table_dtype, t, s->rows.dense_dtype, d, 1);
  }
}

static void run_model(scene *s, tarn__rows_action action) {
  for (size_t i = 0; i < s->rows.index_count; i++) {
    for (size_t k = 0; k < s->rows.width; k++)
      model_element(s, action, i, s->wanted[i], k);
  }
}

// --- reaching --------------------------------------------------------------

// Never more than so many bytes at a time; those at |hole| not at all.
typedef struct splitter {
  size_t most;
  tarn_addr hole;
} splitter;

static unsigned char *reach_pieces(void *context, tarn_addr addr, size_t size,
                                   size_t *out_size) {
  splitter *split = context;
  size_t piece = 1 + draw((uint32_t)split->most);
  *out_size = piece < size || draw(2) ? piece : size;
  if (split->hole - addr < *out_size) return NULL;
  return (unsigned char *)(uintptr_t)addr;
}

static void expect_model(tarn__rows_action action, tarn_dtype table,
                         tarn_dtype dense, size_t most) {
  static scene real;
  static scene model;
  splitter split = {most, UINT64_MAX};
  char text[TEXT_SIZE] = "?";
  draw_scene(&real, table, dense);
  model = real;
  model.rows.dense =
      address_of(model.dense + (real.rows.dense - address_of(real.dense)));
  run_model(&model, action);
  require(tarn__rows_run(action, &real.rows, most != 0 ? reach_pieces : NULL,
                         &split, text, sizeof text) == TARN_OK);
  require(text[0] == '\0');
  require(memcmp(real.chunks, model.chunks, sizeof real.chunks) == 0);
  require(memcmp(real.dense, model.dense, sizeof real.dense) == 0);
}

TEST(every_pair_is_as_the_model) {
  static const size_t pieces[] = {0, 1, 3, 17, 64};
  size_t pairs = 0;
  for (int table = 1; table <= TARN_DTYPE_BOOL; table++) {
    for (int dense = 1; dense <= TARN_DTYPE_BOOL; dense++) {
      if (!tarn__convert_is_possible((tarn_dtype)table, (tarn_dtype)dense)) {
        continue;
      }
      bool can_add = tarn__convert_can_add((tarn_dtype)table);
      int actions = can_add ? TARN__ROWS_SCATTER_ADD : TARN__ROWS_SCATTER;
      pairs++;
      for (int i = 0; i < 30 * (actions + 1); i++) {
        expect_model((tarn__rows_action)(i % (actions + 1)), (tarn_dtype)table,
                     (tarn_dtype)dense, pieces[i % 5]);
      }
    }
  }
  ck_assert_uint_eq(pairs, 4 * 4 + 8 * 8 + 1);
}

// --- what goes wrong -------------------------------------------------------

static char text[TEXT_SIZE];

// Five rows of two i32 in one chunk, gathered to i32.
typedef struct plain {
  int32_t table[10];
  int32_t dense[8];
  int64_t indices[4];
  tarn_addr chunks[2];
  size_t offsets[3];
  tarn_rows rows;
} plain;

static void make_plain(plain *p) {
  *p = (plain){.indices = {1, 0, 4, 1}, .offsets = {0, 40}};
  for (int i = 0; i < 10; i++)
    p->table[i] = i;
  p->chunks[0] = address_of(p->table);
  p->rows = (tarn_rows){
      .struct_size = sizeof p->rows,
      .table = {p->chunks, p->offsets, 1},
      .table_dtype = TARN_DTYPE_I32,
      .table_count = 5,
      .table_stride = 8,
      .width = 2,
      .dense = address_of(p->dense),
      .dense_dtype = TARN_DTYPE_I32,
      .dense_stride = 8,
      .indices = address_of(p->indices),
      .index_dtype = TARN_DTYPE_I64,
      .index_count = 4,
  };
}

static void expect_refused(const tarn_rows *rows, tarn__rows_action action,
                           splitter *split, const char *says) {
  memset(text, 'x', sizeof text);
  ck_assert_int_eq(tarn__rows_run(action, rows, split ? reach_pieces : NULL,
                                  split, text, sizeof text),
                   TARN_E_INVALID);
  ck_assert_msg(strstr(text, says) != NULL, "'%s' does not say '%s'", text,
                says);
}

TEST(bad_indices_are_named) {
  static const int64_t bad[] = {7, 5, -1, INT64_MAX, INT64_MIN};
  plain p;
  make_plain(&p);
  p.indices[3] = 7;
  expect_refused(&p.rows, TARN__ROWS_GATHER, NULL,
                 "index 7 at position 3 is not in 0..4");
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    p.indices[2] = bad[i];
    for (int action = 0; action < 3; action++) {
      expect_refused(&p.rows, (tarn__rows_action)action, NULL, "at position 2");
    }
  }
}

TEST(bad_indices_are_passed_over) {
  plain p;
  make_plain(&p);
  p.rows.flags = TARN_ROWS_SKIP_BAD;
  p.indices[1] = -1;
  p.indices[3] = 5;
  memset(p.dense, GAP, sizeof p.dense);
  ck_assert_int_eq(
      tarn__rows_run(TARN__ROWS_GATHER, &p.rows, NULL, NULL, text, sizeof text),
      TARN_OK);
  static const int32_t expected[] = {2, 3, 0, 0, 8, 9, 0, 0};
  ck_assert_mem_eq(p.dense, expected, sizeof expected);
}

TEST(a_row_in_two_chunks_is_refused) {
  plain p;
  make_plain(&p);
  p.rows.table.count = 2;
  p.offsets[1] = 36;
  p.offsets[2] = 40;
  p.chunks[1] = address_of(p.table + 9);
  expect_refused(&p.rows, TARN__ROWS_GATHER, NULL,
                 "row 4 of the table spans two chunks");
}

TEST(bool_is_not_added) {
  plain p;
  make_plain(&p);
  p.rows.table_dtype = p.rows.dense_dtype = TARN_DTYPE_BOOL;
  expect_refused(&p.rows, TARN__ROWS_SCATTER_ADD, NULL,
                 "elements of bool cannot be added");
}

TEST(what_is_not_reached_is_named) {
  plain p;
  make_plain(&p);
  const void *holes[] = {p.table + 3, p.dense + 5, p.indices + 2};
  for (size_t i = 0; i < 3; i++) {
    splitter split = {3, address_of(holes[i])};
    for (int action = 0; action < 3; action++) {
      expect_refused(&p.rows, (tarn__rows_action)action, &split,
                     "the device does not reach");
    }
  }
  splitter zeros = {3, address_of(p.dense + 5)};
  p.rows.flags = TARN_ROWS_SKIP_BAD;
  p.indices[2] = -1;
  expect_refused(&p.rows, TARN__ROWS_GATHER, &zeros,
                 "the device does not reach");
}

TEST(nothing_to_do) {
  plain p;
  make_plain(&p);
  p.rows.index_count = 0;
  p.rows.dense = p.rows.indices = 0;
  ck_assert_int_eq(tarn__rows_run(TARN__ROWS_SCATTER, &p.rows, NULL, NULL, text,
                                  sizeof text),
                   TARN_OK);
  make_plain(&p);
  p.rows.width = 0;
  p.indices[0] = 9;
  expect_refused(&p.rows, TARN__ROWS_GATHER, NULL, "index 9 at position 0");
}

// --- copies ----------------------------------------------------------------

static void copy_rows(void *context) {
  size_t size = 0;
  tarn_rows *copy = tarn__rows_copy(context, &size);
  tarn__host_free(copy, size);
}

TEST(a_copy_needs_nothing_of_the_caller) {
  plain p;
  make_plain(&p);
  p.rows.table.count = 2;
  p.offsets[1] = 16;
  p.offsets[2] = 40;
  p.chunks[1] = address_of(p.table + 4);
  size_t size = 0;
  tarn_rows *copy = tarn__rows_copy(&p.rows, &size);
  ck_assert_ptr_nonnull(copy);
  memset(p.offsets, 0xff, sizeof p.offsets);
  memset(p.chunks, 0xff, sizeof p.chunks);
  ck_assert_int_eq(
      tarn__rows_run(TARN__ROWS_GATHER, copy, NULL, NULL, text, sizeof text),
      TARN_OK);
  static const int32_t expected[] = {2, 3, 0, 1, 8, 9, 2, 3};
  ck_assert_mem_eq(p.dense, expected, sizeof expected);
  tarn__host_free(copy, size);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

TEST(copies_survive_every_fault) {
  plain p;
  make_plain(&p);
  ck_assert_uint_eq(faults_sweep(copy_rows, &p.rows), 2);
  p.rows.table.count = SIZE_MAX / 8;
  size_t size = 1;
  ck_assert_ptr_null(tarn__rows_copy(&p.rows, &size));
  ck_assert_uint_eq(size, 0);
  p.rows.table = (tarn_reference){NULL, NULL, 0};
  copy_rows(&p.rows);
}

int main(void) {
  faults_install();
  return run_tests();
}
