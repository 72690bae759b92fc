// Tensors in wholes of any layout: numbers only, so that the wholes here are
// made up, with no memory and no other ranks.
#include <string.h>

#include "support/effort.h"
#include "support/run.h"
#include "whole/whole.h"

enum { MOST = 12 };

static struct {
  tarn_whole whole;
  size_t offsets[MOST + 1];
  tarn_addr parts[MOST];
} made;

// A whole as rank |rank| of |ranks| has it, with |counts| blocks each.
static tarn_whole *make_up(size_t rank, size_t ranks, const size_t *counts,
                           size_t granularity) {
  size_t size = 0;
  memset(&made, 0, sizeof made);
  for (size_t r = 0; r < ranks; r++)
    size += counts[r] * granularity;
  made.whole = (tarn_whole){.generation = tarn__os_generation(),
                            .rank = rank,
                            .ranks = ranks,
                            .type = TARN_WHOLE_CHUNKED,
                            .size = size,
                            .granularity = granularity,
                            .offsets = made.offsets,
                            .parts = made.parts};
  assert_ok(
      tarn__partition_offsets(counts, ranks, size, granularity, made.offsets));
  for (size_t r = 0; r < ranks; r++)
    made.parts[r] = (tarn_addr)(r + 1) << 44;
  return &made.whole;
}

#define MAKE_UP(rank, granularity, ...)                           \
  make_up(rank, sizeof((size_t[]){__VA_ARGS__}) / sizeof(size_t), \
          (const size_t[]){__VA_ARGS__}, granularity)

static void assert_rows(const tarn_whole_tensor *tensor, size_t rank,
                        size_t first, size_t count) {
  size_t got_first = 7;
  size_t got_count = 7;
  assert_ok(tarn_whole_tensor_rows(tensor, rank, &got_first, &got_count));
  ck_assert_uint_eq(got_count, count);
  if (count > 0) ck_assert_uint_eq(got_first, first);
}

// --- making ----------------------------------------------------------------

TEST(matrices) {
  tarn_whole_tensor t;
  tarn_addr address = 0;
  tarn_whole *whole = MAKE_UP(1, 40, 4, 4, 4, 3);
  assert_ok(tarn_whole_tensor_make(whole, TARN_DTYPE_F32, 15, 10, &t));
  ck_assert_ptr_eq(t.whole, whole);
  ck_assert_uint_eq(t.dims, 2);
  ck_assert_uint_eq(t.rows, 15);
  ck_assert_uint_eq(t.width, 10);
  ck_assert_uint_eq(t.stride, 10);
  ck_assert_uint_eq(t.offset, 0);
  assert_rows(&t, 0, 0, 4);
  assert_rows(&t, 1, 4, 4);
  assert_rows(&t, 3, 12, 3);
  assert_ok(tarn_whole_tensor_local(&t, &address));
  ck_assert_uint_eq(address, (tarn_addr)2 << 44);
}

TEST(vectors) {
  tarn_whole_tensor t;
  tarn_whole *whole = MAKE_UP(0, 8, 10, 1);
  assert_ok(tarn_whole_tensor_make(whole, TARN_DTYPE_I64, 11, 0, &t));
  ck_assert_uint_eq(t.dims, 1);
  ck_assert_uint_eq(t.width, 1);
  ck_assert_uint_eq(t.stride, 1);
  assert_rows(&t, 0, 0, 10);
  assert_rows(&t, 1, 10, 1);
  // Blocks of two elements.
  assert_ok(tarn_whole_tensor_make(whole, TARN_DTYPE_F32, 22, 0, &t));
  assert_rows(&t, 0, 0, 20);
}

TEST(fewer_rows_than_there_is_room_for) {
  tarn_whole_tensor t;
  tarn_addr address = 7;
  tarn_whole *whole = MAKE_UP(2, 8, 2, 2, 2);
  assert_ok(tarn_whole_tensor_make(whole, TARN_DTYPE_I64, 3, 0, &t));
  assert_rows(&t, 0, 0, 2);
  assert_rows(&t, 1, 2, 1);
  assert_rows(&t, 2, 3, 0);
  assert_ok(tarn_whole_tensor_local(&t, &address));
  ck_assert_uint_eq(address, 0);
  assert_ok(tarn_whole_tensor_make(whole, TARN_DTYPE_I64, 0, 0, &t));
  assert_rows(&t, 0, 0, 0);
}

TEST(ranks_without_rows) {
  tarn_whole_tensor t;
  tarn_whole *whole = MAKE_UP(1, 16, 0, 3, 0, 0, 2, 0);
  assert_ok(tarn_whole_tensor_make(whole, TARN_DTYPE_F64, 5, 2, &t));
  assert_rows(&t, 0, 0, 0);
  assert_rows(&t, 1, 0, 3);
  assert_rows(&t, 2, 3, 0);
  assert_rows(&t, 4, 3, 2);
  assert_rows(&t, 5, 5, 0);
}

static void assert_no_tensor(tarn_whole *whole, tarn_dtype dtype, size_t rows,
                             size_t width, const char *words) {
  tarn_whole_tensor none;
  memset(&none, 0x5a, sizeof none);
  assert_status(tarn_whole_tensor_make(whole, dtype, rows, width, &none),
                TARN_E_INVALID);
  assert_error_says(words);
  ck_assert_ptr_null(none.whole);
  ck_assert_uint_eq(none.width, 0);
}

TEST(what_is_no_tensor) {
  tarn_whole *whole = MAKE_UP(0, 16, 3, 3);
  assert_no_tensor(NULL, TARN_DTYPE_F32, 1, 1, "NULL");
  assert_no_tensor(whole, TARN_DTYPE_NONE, 1, 1, "unknown dtype");
  assert_no_tensor(whole, (tarn_dtype)99, 1, 1, "unknown dtype 99");
  assert_no_tensor(whole, TARN_DTYPE_F32, 7, 4, "do not fit in the 96 bytes");
  assert_no_tensor(whole, TARN_DTYPE_F32, 4, 6, "blocks of 16 bytes");
  assert_no_tensor(whole, TARN_DTYPE_F32, SIZE_MAX / 4, 4, "do not fit");
  assert_no_tensor(whole, TARN_DTYPE_F32, 1, SIZE_MAX,
                   "neither size is a multiple");
  assert_status(tarn_whole_tensor_make(whole, TARN_DTYPE_F32, 1, 4, NULL),
                TARN_E_INVALID);
}

// Rows of two blocks, where the partition has cut between the two.
TEST(rows_with_two_owners) {
  tarn_whole_tensor t;
  tarn_whole *whole = MAKE_UP(0, 16, 3, 3);
  assert_no_tensor(whole, TARN_DTYPE_F32, 3, 8, "row 1 (32 bytes) has two");
  assert_error_says("the part of rank 1 begins within it");
  whole = MAKE_UP(0, 16, 4, 2);
  assert_ok(tarn_whole_tensor_make(whole, TARN_DTYPE_F32, 3, 8, &t));
  // Bytes behind the last row may be cut as they like.
  whole = MAKE_UP(0, 16, 2, 1, 1);
  assert_ok(tarn_whole_tensor_make(whole, TARN_DTYPE_F32, 1, 8, &t));
}

TEST(forks_and_nulls) {
  tarn_whole_tensor t;
  size_t first = 0;
  size_t count = 0;
  tarn_addr address = 0;
  tarn_whole *whole = MAKE_UP(0, 4, 6);
  assert_ok(tarn_whole_tensor_make(whole, TARN_DTYPE_F32, 6, 0, &t));
  assert_status(tarn_whole_tensor_rows(NULL, 0, &first, &count),
                TARN_E_INVALID);
  assert_status(tarn_whole_tensor_rows(&t, 0, NULL, &count), TARN_E_INVALID);
  assert_status(tarn_whole_tensor_rows(&t, 0, &first, NULL), TARN_E_INVALID);
  assert_status(tarn_whole_tensor_rows(&t, 1, &first, &count), TARN_E_INVALID);
  assert_error_says("rank 1 is not below 1");
  assert_status(tarn_whole_tensor_local(&t, NULL), TARN_E_INVALID);
  assert_status(tarn_whole_tensor_local(NULL, &address), TARN_E_INVALID);
  whole->generation++;
  assert_status(tarn_whole_tensor_local(&t, &address), TARN_E_STATE);
  assert_error_says("fork");
}

// --- parts of them ---------------------------------------------------------

TEST(parts_of_matrices) {
  tarn_whole_tensor t;
  tarn_whole_tensor sub;
  tarn_whole_tensor again;
  tarn_addr address = 0;
  tarn_whole *whole = MAKE_UP(1, 40, 4, 4, 4, 3);
  assert_ok(tarn_whole_tensor_make(whole, TARN_DTYPE_F32, 15, 10, &t));
  assert_ok(tarn_whole_tensor_sub(&t, 3, 9, 2, 7, &sub));
  ck_assert_uint_eq(sub.rows, 6);
  ck_assert_uint_eq(sub.width, 5);
  ck_assert_uint_eq(sub.stride, 10);
  ck_assert_uint_eq(sub.offset, 32);
  assert_rows(&sub, 0, 0, 1);
  assert_rows(&sub, 1, 1, 4);
  assert_rows(&sub, 2, 5, 1);
  assert_rows(&sub, 3, 6, 0);
  assert_ok(tarn_whole_tensor_local(&sub, &address));
  ck_assert_uint_eq(address, ((tarn_addr)2 << 44) + 8);
  assert_ok(tarn_whole_tensor_sub(&sub, 1, TARN_WHOLE_END, 4, TARN_WHOLE_END,
                                  &again));
  ck_assert_uint_eq(again.rows, 5);
  ck_assert_uint_eq(again.width, 1);
  ck_assert_uint_eq(again.dims, 2);
  ck_assert_uint_eq(again.offset, 46);
  // In place.
  assert_ok(tarn_whole_tensor_sub(&t, 5, 5, 0, TARN_WHOLE_END, &t));
  ck_assert_uint_eq(t.rows, 0);
}

TEST(parts_of_vectors) {
  tarn_whole_tensor t;
  tarn_whole_tensor sub;
  tarn_whole *whole = MAKE_UP(0, 2, 10, 1);
  assert_ok(tarn_whole_tensor_make(whole, TARN_DTYPE_F16, 11, 0, &t));
  assert_ok(
      tarn_whole_tensor_sub(&t, 8, TARN_WHOLE_END, 0, TARN_WHOLE_END, &sub));
  ck_assert_uint_eq(sub.dims, 1);
  ck_assert_uint_eq(sub.offset, 8);
  assert_rows(&sub, 0, 0, 2);
  assert_rows(&sub, 1, 2, 1);
  assert_ok(tarn_whole_tensor_sub(&t, 0, 1, 0, 1, &sub));
  assert_status(tarn_whole_tensor_sub(&t, 0, 1, 0, 2, &sub), TARN_E_INVALID);
  assert_error_says("columns 0 to 2 are not a range within 0 to 1");
}

TEST(parts_beyond_the_ends) {
  tarn_whole_tensor t;
  tarn_whole_tensor sub;
  memset(&sub, 0x5a, sizeof sub);
  tarn_whole *whole = MAKE_UP(0, 40, 15);
  assert_ok(tarn_whole_tensor_make(whole, TARN_DTYPE_F32, 15, 10, &t));
  assert_status(tarn_whole_tensor_sub(&t, 0, 16, 0, 10, &sub), TARN_E_INVALID);
  assert_error_says("rows 0 to 16 are not a range within 0 to 15");
  ck_assert_ptr_null(sub.whole);
  assert_status(tarn_whole_tensor_sub(&t, 4, 3, 0, 10, &sub), TARN_E_INVALID);
  assert_error_says("rows 4 to 3");
  assert_status(tarn_whole_tensor_sub(&t, 16, TARN_WHOLE_END, 0, 10, &sub),
                TARN_E_INVALID);
  assert_status(tarn_whole_tensor_sub(&t, 0, 1, 0, 11, &sub), TARN_E_INVALID);
  assert_error_says("columns 0 to 11 are not a range within 0 to 10");
  assert_status(tarn_whole_tensor_sub(&t, 0, 1, 3, 3, &sub), TARN_E_INVALID);
  assert_error_says("the range of columns is empty");
  assert_status(tarn_whole_tensor_sub(NULL, 0, 1, 0, 1, &sub), TARN_E_INVALID);
  assert_status(tarn_whole_tensor_sub(&t, 0, 1, 0, 1, NULL), TARN_E_INVALID);
}

// --- values that no call has made ------------------------------------------

static void assert_refused(tarn_whole_tensor t, const char *words) {
  size_t first = 7;
  size_t count = 7;
  assert_status(tarn_whole_tensor_rows(&t, 0, &first, &count), TARN_E_INVALID);
  assert_error_says(words);
  ck_assert_uint_eq(first, 0);
  ck_assert_uint_eq(count, 0);
}

TEST(values_that_were_tampered_with) {
  tarn_whole_tensor good;
  tarn_whole *whole = MAKE_UP(0, 40, 8, 7);
  assert_ok(tarn_whole_tensor_make(whole, TARN_DTYPE_F32, 15, 10, &good));
  tarn_whole_tensor t = good;
  t.rows = 16;
  assert_refused(t, "do not fit in the 600 bytes");
  t = good;
  t.offset = 1;
  assert_refused(t, "do not fit");
  t = good;
  t.offset = SIZE_MAX;
  assert_refused(t, "do not fit");
  t = good;
  t.stride = SIZE_MAX / 2;
  assert_refused(t, "do not fit");
  t = good;
  t.stride = 9;
  assert_refused(t, "stride is 9");
  t = good;
  t.width = 0;
  assert_refused(t, "width is 0");
  t = good;
  t.dims = 3;
  assert_refused(t, "dims is 3");
  t = good;
  t.dims = 1;
  assert_refused(t, "dims is 1");
  t = good;
  t.dtype = TARN_DTYPE_NONE;
  assert_refused(t, "unknown dtype");
  t = good;
  t.rows = 14;
  t.offset = 5;
  assert_refused(t, "row 7 (40 bytes) has two owners");
}

// --- against a walk over all rows ------------------------------------------

static uint64_t state = 88172645463325252;

static size_t draw(size_t below) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (size_t)(state % below);
}

static tarn_whole *draw_whole(void) {
  size_t counts[MOST];
  size_t ranks = 1 + draw(MOST);
  for (size_t r = 0; r < ranks; r++)
    counts[r] = draw(3) == 0 ? 0 : draw(9);
  return make_up(draw(ranks), ranks, counts, 24);
}

static void compare_rows(const tarn_whole_tensor *t) {
  size_t count[MOST] = {0};
  tarn__whole_tensor measured;
  assert_ok(tarn__tensor_check(t, &measured));
  for (size_t row = 0; row < t->rows; row++) {
    size_t at = (t->offset + row * t->stride) * 4;
    size_t owner =
        tarn__partition_owner(t->whole->offsets, t->whole->ranks, at);
    require(measured.offset + row * measured.stride == at);
    require(at + t->width * 4 <= t->whole->offsets[owner + 1]);
    count[owner]++;
  }
  size_t next = 0;
  for (size_t r = 0; r < t->whole->ranks; r++) {
    size_t first = 0;
    size_t got = 0;
    tarn__tensor_rows(&measured, r, &first, &got);
    require(got == count[r]);
    require(got == 0 || first == next);
    next += got;
  }
}

TEST(rows_are_those_that_a_walk_finds) {
  for (int round = 0; round < EFFORT(3000, 300); round++) {
    tarn_whole_tensor t;
    tarn_whole *whole = draw_whole();
    size_t rows = whole->size / 24;
    assert_ok(tarn_whole_tensor_make(whole, TARN_DTYPE_F32, rows, 6, &t));
    compare_rows(&t);
    size_t begin = draw(rows + 1);
    size_t left = draw(6);
    assert_ok(tarn_whole_tensor_sub(&t, begin, begin + draw(rows - begin + 1),
                                    left, left + 1 + draw(6 - left), &t));
    compare_rows(&t);
  }
}

// --- beyond 4 GiB ----------------------------------------------------------

TEST(rows_beyond_4_gib) {
  tarn_whole_tensor t;
  tarn_addr address = 0;
  size_t half = (size_t)3 << 31;
  tarn_whole *whole = MAKE_UP(1, 64, half, half);
  assert_ok(tarn_whole_tensor_make(whole, TARN_DTYPE_F32, 2 * half, 16, &t));
  assert_rows(&t, 0, 0, half);
  assert_rows(&t, 1, half, half);
  assert_ok(tarn_whole_tensor_sub(&t, half + ((size_t)1 << 32) + 5,
                                  TARN_WHOLE_END, 3, 4, &t));
  ck_assert_uint_eq(t.offset, (half + ((size_t)1 << 32) + 5) * 16 + 3);
  assert_rows(&t, 1, 0, half - ((size_t)1 << 32) - 5);
  assert_ok(tarn_whole_tensor_local(&t, &address));
  ck_assert_uint_eq(address,
                    ((tarn_addr)2 << 44) + (((size_t)1 << 32) + 5) * 64 + 12);
}
