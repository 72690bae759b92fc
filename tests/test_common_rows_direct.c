// Gather and scatter where addresses are pointers: shapes of all kinds, batches
// that are sorted by region, several threads; against a loop that takes one row
// after the other. The linker puts a function of this file in front of
// pthread_create (--wrap), so that threads can be counted and refused.
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/convert.h"
#include "base/hostmem.h"
#include "base/rows.h"
#include "base/status.h"
#include "common/rows.h"
#include "support/effort.h"
#include "support/faults.h"
#include "support/run.h"

enum {
  TEXT_SIZE = 160,
  LINE = 64,
  SLACK = 64,         // behind and before a block, which nobody may write
  MANY = 140 * 1000,  // indices: more than four batches
  CHUNKS_MAX = 4,
};

// --- threads under control -------------------------------------------------

static atomic_uint threads_made;
static atomic_uint threads_left = UINT32_MAX;  // that the system has to give

// NOLINTBEGIN(bugprone-reserved-identifier): --wrap makes these names.
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *context);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *context);
// NOLINTEND(bugprone-reserved-identifier)

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *context) {
  if (threads_left == 0) return EAGAIN;
  threads_left--;
  threads_made++;
  return __real_pthread_create(thread, attributes, start, context);
}

// --- scenes ----------------------------------------------------------------

typedef struct shape {
  tarn_dtype table;
  tarn_dtype dense;
  size_t width;
  size_t table_count;
  size_t index_count;
  size_t table_gap;  // bytes between rows
  size_t dense_gap;
  size_t table_shift;  // of the first row, from the beginning of a line on
  size_t dense_shift;
  size_t chunks;  // 0: one
  size_t meet;    // rows among which indices are; 0: all
  uint32_t flags;
  uint32_t threads;
  bool narrow;  // i32 indices
} shape;

typedef struct block {
  unsigned char *bytes;  // what the library gets
  unsigned char *model;
  unsigned char *all;  // |bytes| and slack, whose size is |size|
  size_t size;
} block;

typedef struct scene {
  block table;
  block dense;
  int64_t *wanted;
  void *indices;
  tarn_addr chunks[CHUNKS_MAX];
  size_t offsets[CHUNKS_MAX + 1];
  tarn_rows rows;
} scene;

static uint64_t seed = 1;

static size_t draw(size_t below) {
  seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
  return (size_t)(seed >> 33) % below;
}

static tarn_addr address_of(const void *ptr) {
  return (tarn_addr)(uintptr_t)ptr;
}

// No float is a NaN, of which a sum may keep either sign and payload.
static void make_block(block *b, size_t size, size_t shift) {
  b->size = (size + shift + 2 * SLACK + LINE - 1) / LINE * LINE;
  b->all = aligned_alloc(LINE, b->size);
  b->model = malloc(b->size);
  ck_assert(b->all != NULL && b->model != NULL);
  for (size_t i = 0; i < b->size; i++)
    b->all[i] = (unsigned char)((i * 2654435761u >> 13) & 0x7b);
  memcpy(b->model, b->all, b->size);
  b->bytes = b->all + SLACK + shift;
}

static void free_block(block *b) {
  free(b->all);
  free(b->model);
}

static void lay_chunks(scene *s, const shape *c) {
  size_t stride = s->rows.table_stride;
  size_t count = c->chunks == 0 ? 1 : c->chunks;
  size_t each = (c->table_count + count - 1) / count;
  for (size_t i = 0; i < count; i++) {
    size_t end =
        (i + 1) * each < c->table_count ? (i + 1) * each : c->table_count;
    s->chunks[i] = address_of(s->table.bytes) + s->offsets[i];
    s->offsets[i + 1] = end * stride;
  }
  s->rows.table = (tarn_reference){s->chunks, s->offsets, count};
}

static int64_t draw_index(const shape *c) {
  size_t among = c->meet != 0 ? c->meet : c->table_count;
  bool bad = (c->flags & TARN_ROWS_SKIP_BAD) != 0 && draw(5) == 0;
  if (bad) return draw(2) != 0 ? -1 : (int64_t)c->table_count;
  return (int64_t)(draw(among) * (c->table_count / among));
}

static void put_index(scene *s, size_t position, int64_t index) {
  s->wanted[position] = index;
  if (s->rows.index_dtype == TARN_DTYPE_I32) {
    ((int32_t *)s->indices)[position] = (int32_t)index;
  } else {
    ((int64_t *)s->indices)[position] = index;
  }
}

static void draw_indices(scene *s, const shape *c) {
  s->wanted = malloc((c->index_count + 1) * sizeof *s->wanted);
  s->indices = malloc((c->index_count + 1) * sizeof(int64_t));
  ck_assert(s->wanted != NULL && s->indices != NULL);
  s->rows.indices = address_of(s->indices);
  for (size_t i = 0; i < c->index_count; i++)
    put_index(s, i, draw_index(c));
}

static void set_up(scene *s, const shape *c) {
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
      .dense = address_of(s->dense.bytes),
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

static void tear_down(scene *s) {
  free_block(&s->table);
  free_block(&s->dense);
  free(s->wanted);
  free(s->indices);
}

// --- the model -------------------------------------------------------------

static void model_row(scene *s, tarn__rows_action action, size_t i) {
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

static void run_model(scene *s, tarn__rows_action action) {
  for (size_t i = 0; i < s->rows.index_count; i++)
    model_row(s, action, i);
}

static tarn_status run(scene *s, tarn__rows_action action, char *text) {
  return tarn__rows_run(action, &s->rows, NULL, NULL, text, TEXT_SIZE);
}

// Every byte of both blocks is as the model has it, and so are equal indices:
// of a scatter the last stays, and sums are made in order.
static void expect_model(scene *s, tarn__rows_action action) {
  char text[TEXT_SIZE] = "?";
  run_model(s, action);
  require(run(s, action, text) == TARN_OK);
  require(text[0] == '\0');
  require(memcmp(s->table.all, s->table.model, s->table.size) == 0);
  require(memcmp(s->dense.all, s->dense.model, s->dense.size) == 0);
}

static void try_shape(const shape *c) {
  for (int a = TARN__ROWS_GATHER; a <= TARN__ROWS_SCATTER_ADD; a++) {
    if (a == TARN__ROWS_SCATTER_ADD && !tarn__convert_can_add(c->table))
      continue;
    scene s;
    set_up(&s, c);
    expect_model(&s, (tarn__rows_action)a);
    tear_down(&s);
  }
}

// --- shapes ----------------------------------------------------------------

static tarn_dtype draw_dtype(tarn_dtype like) {
  for (;;) {
    tarn_dtype dtype = (tarn_dtype)(1 + draw(TARN_DTYPE_BOOL));
    if (like == TARN_DTYPE_NONE || tarn__convert_is_possible(dtype, like))
      return dtype;
  }
}

// Half of them begin with a line.
static size_t draw_shift(void) {
  return draw(2) != 0 ? 0 : draw(LINE);
}

static void draw_shape(shape *c) {
  tarn_dtype table = draw_dtype(TARN_DTYPE_NONE);
  *c = (shape){
      .table = table,
      .dense = draw(2) != 0 ? table : draw_dtype(table),
      .width = draw(2) != 0 ? draw(5) * 16 : draw(100),
      .table_count = 1 + draw(500),
      .index_count = draw(700),
      .table_gap = draw(3) != 0 ? 0 : draw(70),
      .dense_gap = draw(3) != 0 ? 0 : draw(70),
      .table_shift = draw_shift(),
      .dense_shift = draw_shift(),
      .chunks = draw(CHUNKS_MAX + 1),
      .flags = (uint32_t)draw(2),
      .threads = (uint32_t)draw(5),
      .narrow = draw(2) != 0,
  };
}

START_TEST(every_shape_is_as_the_model) {
  for (int i = 0; i < EFFORT(600, 100); i++) {
    shape c;
    draw_shape(&c);
    try_shape(&c);
  }
}
END_TEST

// Every count of rows about those at which a window is full.
START_TEST(every_count_is_as_the_model) {
  for (size_t count = 0; count < 200; count++) {
    shape c = {.table = TARN_DTYPE_U8,
               .dense = TARN_DTYPE_U8,
               .width = 24,
               .table_count = 50,
               .index_count = count,
               .flags = TARN_ROWS_SKIP_BAD};
    try_shape(&c);
  }
}
END_TEST

// So much that it goes past the caches, where rows begin with a line or not.
START_TEST(much_is_as_the_model) {
  static const size_t shifts[] = {0, 16, 1};
  for (int i = 0; i < 3 * 3 * 2; i++) {
    shape c = {.table = TARN_DTYPE_F32,
               .dense = TARN_DTYPE_F32,
               .width = i < 9 ? 32 : 33,
               .table_count = 5000,
               .index_count = 40 * 1000,
               .table_shift = shifts[i % 3],
               .dense_shift = shifts[i / 3 % 3],
               .dense_gap = i % 2 != 0 ? LINE : 0,
               .chunks = 2,
               .flags = TARN_ROWS_SKIP_BAD};
    try_shape(&c);
  }
}
END_TEST

// --- many: sorted by region, and by threads --------------------------------

// 32 MiB of rows of 4 f32, of which each region has some.
static const shape many = {.table = TARN_DTYPE_F32,
                           .dense = TARN_DTYPE_F32,
                           .width = 4,
                           .table_count = 2 << 20,
                           .index_count = MANY};

START_TEST(many_are_as_the_model) {
  shape c = many;
  c.threads = (uint32_t)_i;
  try_shape(&c);
  c.chunks = 3;
  c.flags = TARN_ROWS_SKIP_BAD;
  c.narrow = true;
  try_shape(&c);
  c.dense = TARN_DTYPE_BF16;
  c.meet = 700;  // each index comes 200 times
  try_shape(&c);
}
END_TEST

// In a table of larger rows there is a power of two of them in a region, the
// last of which is not full.
START_TEST(regions_of_odd_rows) {
  shape c = many;
  c.width = 25;
  c.table_gap = 3;
  c.table_count = 330 * 1000;
  c.threads = 2;
  try_shape(&c);
}
END_TEST

START_TEST(threads_are_made_and_gone) {
  shape c = many;
  c.threads = 3;
  threads_made = 0;
  try_shape(&c);
  ck_assert_uint_eq(threads_made, 3 * 2);
  c.threads = 1;
  try_shape(&c);
  c.threads = 0;
  try_shape(&c);
  c.threads = UINT32_MAX;
  c.index_count = 100;  // not worth a thread
  try_shape(&c);
  ck_assert_uint_eq(threads_made, 3 * 2);
}
END_TEST

START_TEST(more_threads_than_make_sense) {
  shape c = many;
  c.threads = UINT32_MAX;
  threads_made = 0;
  try_shape(&c);
  ck_assert_uint_gt(threads_made, 0);
  ck_assert_uint_lt(threads_made, 3 * 64);
}
END_TEST

START_TEST(without_threads_it_goes_on) {
  shape c = many;
  c.threads = 4;
  threads_made = 0;
  threads_left = (unsigned)_i;
  try_shape(&c);
  threads_left = UINT32_MAX;
  ck_assert_int_eq((int)threads_made, _i);
}
END_TEST

static void try_many(void *context) {
  scene *s = context;
  expect_model(s, TARN__ROWS_GATHER);
}

// Without memory to sort, rows are moved as they come.
START_TEST(without_memory_it_goes_on) {
  scene s;
  set_up(&s, &many);
  ck_assert_uint_ge(faults_sweep(try_many, &s), 3);
  tear_down(&s);
}
END_TEST

// Rows of a library that does not know the field end before it.
START_TEST(an_older_library_has_no_threads) {
  scene s;
  set_up(&s, &many);
  s.rows.struct_size = TARN__SIZE_UP_TO(tarn_rows, flags);
  s.rows.threads = 4;
  threads_made = 0;
  expect_model(&s, TARN__ROWS_SCATTER_ADD);
  ck_assert_uint_eq(threads_made, 0);
  size_t size = 0;
  tarn_rows *copy = tarn__rows_copy(&s.rows, &size);
  ck_assert_ptr_nonnull(copy);
  ck_assert_uint_eq(copy->threads, 0);
  tarn__host_free(copy, size);
  tear_down(&s);
}
END_TEST

// --- what goes wrong -------------------------------------------------------

static void expect_refused(scene *s, const char *says) {
  for (int a = TARN__ROWS_GATHER; a <= TARN__ROWS_SCATTER_ADD; a++) {
    char text[TEXT_SIZE] = "?";
    ck_assert_int_eq(run(s, (tarn__rows_action)a, text), TARN_E_INVALID);
    ck_assert_msg(strstr(text, says) != NULL, "'%s' does not say '%s'", text,
                  says);
  }
}

// In the first batch, the sorted one, the last, and at their ends: the first
// bad one is named, whichever thread met another.
START_TEST(the_first_bad_index_is_named) {
  static const size_t positions[] = {0,     1,     79,    32767,   32768,
                                     40000, 65535, 65536, MANY - 1};
  static const int64_t bad[] = {-1, 2 << 20, INT64_MAX, INT64_MIN};
  shape c = many;
  c.threads = (uint32_t)_i;
  scene s;
  set_up(&s, &c);
  put_index(&s, MANY - 1, INT64_MAX);
  for (size_t k = sizeof positions / sizeof positions[0]; k-- > 0;) {
    char says[TEXT_SIZE];
    put_index(&s, positions[k], bad[k % 4]);
    snprintf(says, sizeof says, "index %lld at position %zu is not in 0..%zu",
             (long long)bad[k % 4], positions[k], c.table_count - 1);
    expect_refused(&s, says);
  }
  tear_down(&s);
}
END_TEST

START_TEST(a_row_in_two_chunks_is_named) {
  static const size_t positions[] = {3, 40000, MANY - 1};
  shape c = many;
  c.chunks = 2;
  c.threads = (uint32_t)_i;
  scene s;
  set_up(&s, &c);
  size_t torn = c.table_count / 2 - 1;
  for (size_t k = 0; k < MANY; k++) {
    if (s.wanted[k] == (int64_t)torn) put_index(&s, k, 0);
  }
  s.offsets[1] -= 4;
  for (size_t k = 0; k < 3; k++) {
    int64_t before = s.wanted[positions[k]];
    put_index(&s, positions[k], (int64_t)torn);
    expect_refused(&s, "row 1048575 of the table lies in two chunks");
    put_index(&s, positions[k], before);
  }
  tear_down(&s);
}
END_TEST

// --- large -----------------------------------------------------------------

// 12 GiB of addresses, of which little is touched.
enum { FAR_ROWS = 1000 };
static const size_t FAR_COUNT = (size_t)3 << 30;
static const size_t FAR_SIZE = (size_t)12 << 30;

static size_t far_row(size_t k) {
  return FAR_COUNT - 1 - k * (FAR_COUNT / FAR_ROWS);
}

// Every row, far above 2^31, holds its number.
static void fill_far(uint32_t *table) {
  for (size_t k = 0; k < FAR_ROWS; k++)
    table[far_row(k)] = (uint32_t)far_row(k);
}

START_TEST(indices_above_two_to_the_31) {
  uint32_t *table = mmap(NULL, FAR_SIZE, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ck_assert(table != MAP_FAILED);
  shape c = many;
  c.table = c.dense = TARN_DTYPE_U32;
  c.width = 1;
  c.table_count = 1000;
  c.threads = (uint32_t)_i;
  scene s;
  set_up(&s, &c);
  s.chunks[0] = address_of(table);
  s.offsets[1] = FAR_SIZE;
  s.rows.table_count = FAR_COUNT;
  fill_far(table);
  for (size_t i = 0; i < MANY; i++)
    put_index(&s, i, (int64_t)far_row(i % FAR_ROWS));
  char text[TEXT_SIZE];
  const uint32_t *dense = (const uint32_t *)(const void *)s.dense.bytes;
  require(run(&s, TARN__ROWS_GATHER, text) == TARN_OK);
  for (size_t i = 0; i < MANY; i++)
    require(dense[i] == (uint32_t)far_row(i % FAR_ROWS));
  require(run(&s, TARN__ROWS_SCATTER_ADD, text) == TARN_OK);
  for (size_t k = 0; k < FAR_ROWS; k++) {
    uint32_t times = 1 + MANY / FAR_ROWS;
    require(table[far_row(k)] == (uint32_t)far_row(k) * times);
  }
  tear_down(&s);
  munmap(table, FAR_SIZE);
}
END_TEST

static TCase *loop_case(Suite *suite, const char *name) {
  TCase *c = tcase_create(name);
  tcase_set_timeout(c, 600);
  suite_add_tcase(suite, c);
  return c;
}

int main(void) {
  faults_install();
  Suite *suite = suite_create("plug-ins: rows by pointers");
  ADD_CASE(suite, "shapes", every_shape_is_as_the_model,
           every_count_is_as_the_model, much_is_as_the_model,
           regions_of_odd_rows);
  ADD_CASE(suite, "threads", threads_are_made_and_gone,
           more_threads_than_make_sense, an_older_library_has_no_threads);
  ADD_CASE(suite, "memory", without_memory_it_goes_on);
  TCase *loops = loop_case(suite, "many");
  tcase_add_loop_test(loops, many_are_as_the_model, 1, 5);
  tcase_add_loop_test(loops, without_threads_it_goes_on, 0, 3);
  tcase_add_loop_test(loops, the_first_bad_index_is_named, 1, 4);
  tcase_add_loop_test(loops, a_row_in_two_chunks_is_named, 1, 4);
  tcase_add_loop_test(loops, indices_above_two_to_the_31, 1, 3);
  return run_suite(suite);
}
