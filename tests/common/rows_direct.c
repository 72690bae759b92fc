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
#include "rows_scene.h"
#include "support/effort.h"
#include "support/faults.h"
#include "support/run.h"

enum { MANY = 140000 };  // indices: enough to sort them

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

static void try_shape(const rows_scene_shape *c) {
  for (int a = TARN__ROWS_GATHER; a <= TARN__ROWS_SCATTER_ADD; a++) {
    if (a == TARN__ROWS_SCATTER_ADD && !tarn__convert_can_add(c->table))
      continue;
    rows_scene s;
    rows_scene_set_up(&s, c);
    rows_scene_expect(&s, (tarn__rows_action)a);
    rows_scene_tear_down(&s);
  }
}

// --- shapes ----------------------------------------------------------------

static tarn_dtype draw_dtype(tarn_dtype like) {
  for (;;) {
    tarn_dtype dtype = (tarn_dtype)(1 + rows_scene_draw(TARN_DTYPE_BOOL));
    if (like == TARN_DTYPE_NONE || tarn__convert_is_possible(dtype, like))
      return dtype;
  }
}

// Half of them begin with a line.
static size_t draw_shift(void) {
  return rows_scene_draw(2) != 0 ? 0 : rows_scene_draw(ROWS_SCENE_LINE);
}

static void draw_shape(rows_scene_shape *c) {
  tarn_dtype table = draw_dtype(TARN_DTYPE_NONE);
  *c = (rows_scene_shape){
      .table = table,
      .dense = rows_scene_draw(2) != 0 ? table : draw_dtype(table),
      .width = rows_scene_draw(2) != 0 ? rows_scene_draw(5) * 16
                                       : rows_scene_draw(100),
      .table_count = 1 + rows_scene_draw(500),
      .index_count = rows_scene_draw(700),
      .table_gap = rows_scene_draw(3) != 0 ? 0 : rows_scene_draw(70),
      .dense_gap = rows_scene_draw(3) != 0 ? 0 : rows_scene_draw(70),
      .table_shift = draw_shift(),
      .dense_shift = draw_shift(),
      .chunks = rows_scene_draw(ROWS_SCENE_CHUNKS + 1),
      .flags = (uint32_t)rows_scene_draw(2),
      .threads = (uint32_t)rows_scene_draw(5),
      .narrow = rows_scene_draw(2) != 0,
  };
}

TEST(every_shape_is_as_the_model) {
  for (int i = 0; i < EFFORT(600, 100); i++) {
    rows_scene_shape c;
    draw_shape(&c);
    try_shape(&c);
  }
}

// Every count of rows about those at which a window is full.
TEST_LOOP(every_count_is_as_the_model, THREADS_ARE_WATCHED ? 0 : 1) {
  for (size_t count = 0; count < 320; count += (size_t)EFFORT(1, 3)) {
    rows_scene_shape c = {
        .table = TARN_DTYPE_U8,
        .dense = TARN_DTYPE_U8,
        .width = 24,
        .table_count = 50,
        .index_count = count,
        .flags =
            TARN_ROWS_SKIP_BAD | (count % 2 != 0 ? TARN_ROWS_PAST_CACHES : 0)};
    try_shape(&c);
    c.width = 64;
    try_shape(&c);
  }
}

// Rows of every size up to long ones: copied in two parts, in more, and by
// memcpy. In half of them indices are narrow, and some are of no row.
TEST_LOOP(every_size_of_row_is_as_the_model, THREADS_ARE_WATCHED ? 0 : 1) {
  for (size_t width = 1; width < 1300; width += width < 300 ? 1 : 37) {
    rows_scene_shape c = {.table = TARN_DTYPE_U8,
                          .dense = TARN_DTYPE_U8,
                          .width = width,
                          .table_count = 40,
                          .index_count = (size_t)EFFORT(170, 40),
                          .table_shift = width % 5,
                          .dense_shift = width % 3,
                          .dense_gap = width % 7,
                          .flags = TARN_ROWS_SKIP_BAD,
                          .narrow = width % 2 != 0};
    try_shape(&c);
  }
}

// So much that it goes past the caches, where rows begin with a line or not.
TEST_LOOP(much_is_as_the_model, THREADS_ARE_WATCHED ? 0 : 1) {
  static const size_t shifts[] = {0, 16, 1};
  for (int i = 0; i < 3 * 3 * 2; i += EFFORT(1, 5)) {
    rows_scene_shape c = {.table = TARN_DTYPE_F32,
                          .dense = TARN_DTYPE_F32,
                          .width = i < 9 ? 32 : 33,
                          .table_count = 5000,
                          .index_count = 40000,
                          .table_shift = shifts[i % 3],
                          .dense_shift = shifts[i / 3 % 3],
                          .dense_gap = i % 2 != 0 ? ROWS_SCENE_LINE : 0,
                          .chunks = 2,
                          .flags = TARN_ROWS_SKIP_BAD};
    try_shape(&c);
  }
}

// --- many: sorted by region, and by threads --------------------------------

// 32 MiB of rows of 4 f32, of which each region has some.
static const rows_scene_shape many = {.table = TARN_DTYPE_F32,
                                      .dense = TARN_DTYPE_F32,
                                      .width = 4,
                                      .table_count = 2 << 20,
                                      .index_count = MANY};

TEST_RANGE(many_are_as_the_model, THREADS_ARE_WATCHED ? 2 : 1, EFFORT(5, 3)) {
  rows_scene_shape c = many;
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

// A gather is sorted where it goes past the caches.
TEST_RANGE(many_lines_are_as_the_model, THREADS_ARE_WATCHED ? 2 : 1,
           THREADS_ARE_WATCHED ? 3 : EFFORT(3, 2)) {
  rows_scene_shape c = many;
  c.width = 16;
  c.table_count = 512 << 10;
  c.threads = (uint32_t)_i;
  c.flags = TARN_ROWS_SKIP_BAD;
  try_shape(&c);
}

// In a table of larger rows there is a power of two of them in a region, the
// last of which is not full.
TEST_LOOP(regions_of_odd_rows, THREADS_ARE_WATCHED ? 0 : 1) {
  rows_scene_shape c = many;
  c.width = 25;
  c.table_gap = 3;
  c.table_count = 330000;
  c.threads = 2;
  try_shape(&c);
}

TEST(threads_are_made_and_gone) {
  rows_scene_shape c = many;
  c.threads = 3;
  threads_made = 0;
  try_shape(&c);
  ck_assert_uint_eq(threads_made, 6);  // two for each action
  c.threads = 1;
  try_shape(&c);
  c.threads = UINT32_MAX;
  c.index_count = 100;  // not worth a thread
  try_shape(&c);
  ck_assert_uint_eq(threads_made, 6);  // two for each action
}

TEST(more_threads_than_make_sense) {
  rows_scene_shape c = many;
  c.threads = UINT32_MAX;
  threads_made = 0;
  try_shape(&c);
  ck_assert_uint_gt(threads_made, 0);
  ck_assert_uint_lt(threads_made, 192);
}

TEST_LOOP(without_threads_it_goes_on, EFFORT(3, 2)) {
  rows_scene_shape c = many;
  c.threads = 4;
  threads_made = 0;
  threads_left = (unsigned)_i;
  try_shape(&c);
  threads_left = UINT32_MAX;
  ck_assert_int_eq((int)threads_made, _i);
}

static void try_many(void *context) {
  rows_scene *s = context;
  rows_scene_expect(s, TARN__ROWS_SCATTER);
}

// Without memory to sort, rows are moved as they come.
TEST(without_memory_it_goes_on) {
  rows_scene s;
  rows_scene_set_up(&s, &many);
  ck_assert_uint_ge(faults_sweep(try_many, &s), 3);
  rows_scene_tear_down(&s);
}

// Rows of a library that does not know the field end before it.
TEST(an_older_library_has_no_threads) {
  rows_scene s;
  rows_scene_set_up(&s, &many);
  s.rows.struct_size = TARN__SIZE_UP_TO(tarn_rows, flags);
  s.rows.threads = 4;
  threads_made = 0;
  rows_scene_expect(&s, TARN__ROWS_SCATTER_ADD);
  ck_assert_uint_eq(threads_made, 0);
  size_t size = 0;
  tarn_rows *copy = tarn__rows_copy(&s.rows, &size);
  ck_assert_ptr_nonnull(copy);
  ck_assert_uint_eq(copy->threads, 0);
  tarn__host_free(copy, size);
  rows_scene_tear_down(&s);
}

// --- what goes wrong -------------------------------------------------------

static void expect_refused(rows_scene *s, const char *says) {
  for (int a = TARN__ROWS_GATHER; a <= TARN__ROWS_SCATTER_ADD; a++) {
    char text[ROWS_SCENE_TEXT] = "?";
    ck_assert_int_eq(rows_scene_run(s, (tarn__rows_action)a, text),
                     TARN_E_INVALID);
    ck_assert_msg(strstr(text, says) != NULL, "'%s' does not say '%s'", text,
                  says);
  }
}

// In the first batch, the sorted one, the last, and at their ends: the first
// bad one is named, whichever thread met another.
TEST_RANGE(the_first_bad_index_is_named, 1, EFFORT(4, 3)) {
  static const size_t positions[] = {0,     1,     79,    32767,   32768,
                                     40000, 65535, 65536, MANY - 1};
  static const int64_t bad[] = {-1, 2 << 20, INT64_MAX, INT64_MIN};
  rows_scene_shape c = many;
  c.threads = (uint32_t)_i;
  rows_scene s;
  rows_scene_set_up(&s, &c);
  rows_scene_put(&s, MANY - 1, INT64_MAX);
  for (size_t k = sizeof positions / sizeof positions[0]; k-- > 0;) {
    char says[ROWS_SCENE_TEXT];
    rows_scene_put(&s, positions[k], bad[k % 4]);
    snprintf(says, sizeof says, "index %lld at position %zu is not in 0..%zu",
             (long long)bad[k % 4], positions[k], c.table_count - 1);
    expect_refused(&s, says);
  }
  rows_scene_tear_down(&s);
}

// At each place of a window that is found, and at both sizes of indices.
TEST_LOOP(the_first_bad_index_of_few_is_named, THREADS_ARE_WATCHED ? 0 : 1) {
  static const int64_t bad[] = {-1, 50, INT32_MAX, INT32_MIN};
  for (size_t k = 0; k < 320; k += (size_t)EFFORT(1, 3)) {
    rows_scene_shape c = {.table = TARN_DTYPE_F32,
                          .dense = TARN_DTYPE_F32,
                          .width = 16,
                          .table_count = 50,
                          .index_count = 320,
                          .narrow = k % 2 != 0};
    rows_scene s;
    char says[ROWS_SCENE_TEXT];
    rows_scene_set_up(&s, &c);
    rows_scene_put(&s, 319, 50);
    rows_scene_put(&s, k, bad[k % 4]);
    snprintf(says, sizeof says, "index %lld at position %zu is not in 0..49",
             (long long)bad[k % 4], k);
    expect_refused(&s, says);
    rows_scene_tear_down(&s);
  }
}

TEST_RANGE(a_row_in_two_chunks_is_named, 1, EFFORT(4, 3)) {
  static const size_t positions[] = {3, 40000, MANY - 1};
  rows_scene_shape c = many;
  c.chunks = 2;
  c.threads = (uint32_t)_i;
  rows_scene s;
  rows_scene_set_up(&s, &c);
  size_t torn = c.table_count / 2 - 1;
  for (size_t k = 0; k < MANY; k++) {
    if (s.wanted[k] == (int64_t)torn) rows_scene_put(&s, k, 0);
  }
  s.offsets[1] -= 4;
  for (size_t k = 0; k < 3; k++) {
    int64_t before = s.wanted[positions[k]];
    rows_scene_put(&s, positions[k], (int64_t)torn);
    expect_refused(&s, "row 1048575 of the table spans two chunks");
    rows_scene_put(&s, positions[k], before);
  }
  rows_scene_tear_down(&s);
}

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

TEST_RANGE(indices_above_two_to_the_31, 1, EFFORT(3, 2)) {
  uint32_t *table = mmap(NULL, FAR_SIZE, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ck_assert(table != MAP_FAILED);
  rows_scene_shape c = many;
  c.table = c.dense = TARN_DTYPE_U32;
  c.width = 1;
  c.table_count = 1000;
  c.threads = (uint32_t)_i;
  rows_scene s;
  rows_scene_set_up(&s, &c);
  s.chunks[0] = rows_scene_address(table);
  s.offsets[1] = FAR_SIZE;
  s.rows.table_count = FAR_COUNT;
  fill_far(table);
  for (size_t i = 0; i < MANY; i++)
    rows_scene_put(&s, i, (int64_t)far_row(i % FAR_ROWS));
  char text[ROWS_SCENE_TEXT];
  const uint32_t *dense = (const uint32_t *)(const void *)s.dense.bytes;
  require(rows_scene_run(&s, TARN__ROWS_GATHER, text) == TARN_OK);
  for (size_t i = 0; i < MANY; i++)
    require(dense[i] == (uint32_t)far_row(i % FAR_ROWS));
  require(rows_scene_run(&s, TARN__ROWS_SCATTER_ADD, text) == TARN_OK);
  for (size_t k = 0; k < FAR_ROWS; k++) {
    uint32_t times = 1 + MANY / FAR_ROWS;
    require(table[far_row(k)] == (uint32_t)far_row(k) * times);
  }
  rows_scene_tear_down(&s);
  munmap(table, FAR_SIZE);
}

int main(void) {
  faults_install();
  return run_tests();
}
