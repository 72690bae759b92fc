#include "row_trial.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/effort.h"

const row_kind row_kinds[ROW_KINDS] = {
    [ROW_DISTRIBUTED] = {"distributed", TARN_WHOLE_DISTRIBUTED,
                         TARN_WHOLE_PARTS},
    [ROW_PARTS] = {"hierarchical in parts", TARN_WHOLE_HIERARCHICAL,
                   TARN_WHOLE_PARTS},
    [ROW_COPIES] = {"hierarchical in copies", TARN_WHOLE_HIERARCHICAL,
                    TARN_WHOLE_COPIES},
};

static void must(tarn_status status, const char *what) {
  if (status == TARN_OK) return;
  fprintf(stderr, "rows: %s: %s: %s\n", what, tarn_status_name(status),
          tarn_last_error());
  exit(EXIT_FAILURE);
}

static void expect(bool holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "rows: not so: %s\n", what);
  exit(EXIT_FAILURE);
}

// Of all ranks, known to each.
static uint64_t random_of(uint64_t *state) {
  *state += UINT64_C(0x9e3779b97f4a7c15);
  uint64_t x = *state;
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

typedef struct table_shape {
  size_t rows;
  size_t width;
  size_t count;  // of indices of a rank, at most
} table_shape;

typedef struct table {
  const table_shape *shape;
  tarn_comm *comm;
  size_t rank;
  size_t ranks;
  tarn_whole_tensor tensor;
  float *local;
  size_t first;
  size_t owned;
} table;

static float value_of(size_t row, size_t column) {
  return (float)((row * 31 + column * 7) % 65521) / 8;
}

static void fill(const table *t) {
  for (size_t r = 0; r < t->owned; r++) {
    for (size_t k = 0; k < t->shape->width; k++)
      t->local[r * t->shape->width + k] = value_of(t->first + r, k);
  }
}

static void meet(const table *t) {
  must(tarn_comm_barrier(t->comm), "barrier");
}

static tarn_status try_make(tarn_comm *comm, const row_kind *kind,
                            const table_shape *shape, table *out) {
  tarn_addr local = 0;
  *out = (table){.shape = shape,
                 .comm = comm,
                 .rank = tarn_comm_rank(comm),
                 .ranks = tarn_comm_size(comm)};
  tarn_whole_table_options options = {.struct_size = sizeof options,
                                      .type = kind->type,
                                      .spread = kind->spread,
                                      .place = TARN_HOST,
                                      .dtype = TARN_DTYPE_F32,
                                      .rows = shape->rows,
                                      .width = shape->width};
  tarn_status status = tarn_whole_table_create(comm, &options, &out->tensor);
  if (status != TARN_OK) return status;
  must(
      tarn_whole_tensor_rows(&out->tensor, out->rank, &out->first, &out->owned),
      "rows");
  must(tarn_whole_tensor_local(&out->tensor, &local), "local");
  out->local = (float *)(uintptr_t)local;
  fill(out);
  return TARN_OK;
}

static table make(tarn_comm *comm, const row_kind *kind,
                  const table_shape *shape) {
  table t;
  must(try_make(comm, kind, shape, &t), "create");
  return t;
}

// --- requests --------------------------------------------------------------

typedef struct request {
  size_t count;
  int64_t *indices;
  float *dense;
  tarn_whole_rows rows;
} request;

// Rank |of|'s: how many, and which.
static size_t draw(const table_shape *shape, size_t of, uint64_t seed,
                   int64_t *indices) {
  uint64_t state = seed * 1000 + of;
  size_t count = of % 4 == 3 ? 0 : random_of(&state) % (shape->count + 1);
  for (size_t i = 0; i < count; i++)
    indices[i] = (int64_t)(random_of(&state) % shape->rows);
  return count;
}

static request request_of(const table *t, uint64_t seed) {
  const table_shape *shape = t->shape;
  request q = {.indices = malloc((shape->count + 1) * sizeof *q.indices)};
  expect(q.indices != NULL, "there is memory");
  q.count = draw(shape, t->rank, seed, q.indices);
  q.dense = malloc((q.count + 1) * shape->width * sizeof *q.dense);
  expect(q.dense != NULL, "there is memory");
  q.rows = (tarn_whole_rows){.struct_size = sizeof q.rows,
                             .place = TARN_HOST,
                             .dense = (tarn_addr)(uintptr_t)q.dense,
                             .indices = (tarn_addr)(uintptr_t)q.indices,
                             .index_dtype = TARN_DTYPE_I64,
                             .index_count = q.count};
  return q;
}

static void drop(request *q) {
  free(q->indices);
  free(q->dense);
}

// --- the three ways --------------------------------------------------------

static void try_gather(const table *t, uint64_t seed) {
  request q = request_of(t, seed);
  size_t width = t->shape->width;
  memset(q.dense, 0xee, q.count * width * sizeof *q.dense);
  meet(t);
  must(tarn_whole_gather(&t->tensor, &q.rows, NULL), "gather");
  meet(t);
  for (size_t i = 0; i < q.count; i++) {
    for (size_t k = 0; k < width; k++)
      expect(q.dense[i * width + k] == value_of((size_t)q.indices[i], k),
             "a gathered element");
  }
  drop(&q);
}

// Each rank writes rows of its own number, counted by the ranks.
static void try_scatter(const table *t, uint64_t seed) {
  request q = request_of(t, seed);
  size_t width = t->shape->width;
  size_t kept = 0;
  for (size_t i = 0; i < q.count; i++) {
    if ((size_t)q.indices[i] % t->ranks == t->rank)
      q.indices[kept++] = q.indices[i];
  }
  q.rows.index_count = kept;
  for (size_t i = 0; i < kept; i++) {
    for (size_t k = 0; k < width; k++)
      q.dense[i * width + k] = -value_of((size_t)q.indices[i], k) - 1;
  }
  must(tarn_whole_scatter(&t->tensor, &q.rows, NULL), "scatter");
  meet(t);
  memset(q.dense, 0xee, kept * width * sizeof *q.dense);
  must(tarn_whole_gather(&t->tensor, &q.rows, NULL), "gather");
  for (size_t i = 0; i < kept; i++) {
    for (size_t k = 0; k < width; k++)
      expect(q.dense[i * width + k] == -value_of((size_t)q.indices[i], k) - 1,
             "a scattered element");
  }
  meet(t);
  fill(t);
  meet(t);
  drop(&q);
}

static float added(size_t of, size_t i, size_t k) {
  return (float)((of * 131 + i * 17 + k) % 1000003) * 1.3e-3f;
}

// In the order of ranks and of their indices, to the last bit.
static void try_add(const table *t, uint64_t seed) {
  request q = request_of(t, seed);
  size_t width = t->shape->width;
  size_t own = t->owned * width;
  float *model = malloc((own + 1) * sizeof *model);
  int64_t *indices = malloc((t->shape->count + 1) * sizeof *indices);
  expect(model != NULL && indices != NULL, "there is memory");
  if (own != 0) memcpy(model, t->local, own * sizeof *model);
  for (size_t r = 0; r < t->ranks; r++) {
    size_t count = draw(t->shape, r, seed, indices);
    for (size_t i = 0; i < count; i++) {
      size_t row = (size_t)indices[i] - t->first;
      for (size_t k = 0; row < t->owned && k < width; k++)
        model[row * width + k] += added(r, i, k);
    }
  }
  for (size_t i = 0; i < q.count * width; i++)
    q.dense[i] = added(t->rank, i / width, i % width);
  must(tarn_whole_scatter_add(&t->tensor, &q.rows, NULL), "scatter_add");
  expect(own == 0 || memcmp(model, t->local, own * sizeof *model) == 0,
         "sums in the order of ranks");
  meet(t);
  fill(t);
  meet(t);
  free(model);
  free(indices);
  drop(&q);
}

// --- all shapes ------------------------------------------------------------

void try_rows(tarn_comm *comm, const row_kind *kind, size_t shapes) {
  static const table_shape all[] = {{1000, 16, 50},     {1, 1, 3},
                                    {3, 5, 40},         {5000, 257, 3000},
                                    {40, 200000, 12},   {20000, 1, 70000},
                                    {100000, 64, 90000}};
  enum { SEEDS = EFFORT(2, 1) };
  for (size_t i = 0; i < sizeof all / sizeof *all && i < shapes; i++) {
    table t = make(comm, kind, &all[i]);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
      try_gather(&t, seed);
      try_scatter(&t, seed + 10);
      try_add(&t, seed + 20);
    }
    must(tarn_whole_destroy(t.tensor.whole), "destroy");
  }
}

void gather_same(tarn_comm *comm) {
  enum { WIDTH = 64 };
  static const size_t rows = ROWS_SAME / WIDTH / sizeof(float);
  const table_shape shape = {rows, WIDTH, 2 * rows};
  table t = make(comm, &row_kinds[ROW_PARTS], &shape);
  request q = request_of(&t, 1);
  free(q.dense);
  q.dense = malloc(2 * ROWS_SAME);
  expect(q.dense != NULL, "there is memory");
  for (size_t i = 0; i < 2 * rows; i++)
    q.indices[i] = (int64_t)(i * 7919 % rows);
  q.rows.dense = (tarn_addr)(uintptr_t)q.dense;
  q.rows.index_count = 2 * rows;
  meet(&t);
  must(tarn_whole_gather(&t.tensor, &q.rows, NULL), "gather");
  for (size_t i = 0; i < 2 * rows * WIDTH; i++)
    expect(q.dense[i] == value_of((size_t)q.indices[i / WIDTH], i % WIDTH),
           "an element that all gather");
  drop(&q);
  must(tarn_whole_destroy(t.tensor.whole), "destroy");
}

tarn_status gather_until(tarn_comm *comm, const row_kind *kind,
                         void begun(void),
                         tarn_status between(tarn_comm *comm)) {
  static const table_shape shape = {100000, 64, 50000};
  table t;
  tarn_status status = try_make(comm, kind, &shape, &t);
  if (status != TARN_OK) return status;
  status = tarn_comm_barrier(comm);
  if (t.rank == 0 && status == TARN_OK) begun();
  for (uint64_t seed = 0; status == TARN_OK; seed++) {
    request q = request_of(&t, seed);
    status = tarn_whole_gather(&t.tensor, &q.rows, NULL);
    drop(&q);
    if (status == TARN_OK && between != NULL) status = between(comm);
  }
  char text[512];
  snprintf(text, sizeof text, "%s", tarn_last_error());
  (void)tarn_whole_destroy(t.tensor.whole);
  return tarn_fail(status, text);
}
