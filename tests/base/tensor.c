// Checked sizes, dtypes, shapes.
#include <stdlib.h>
#include <string.h>

#include "support/run.h"

TEST(sums_and_products_at_the_edge) {
  size_t out = 7;
  ck_assert(tarn_size_add(SIZE_MAX - 1, 1, &out));
  ck_assert_uint_eq(out, SIZE_MAX);
  ck_assert(!tarn_size_add(SIZE_MAX, 1, &out));
  ck_assert_uint_eq(out, 0);
  ck_assert(tarn_size_mul(SIZE_MAX / 2, 2, &out));
  ck_assert_uint_eq(out, SIZE_MAX - 1);
  ck_assert(!tarn_size_mul(SIZE_MAX / 2 + 1, 2, &out));
  ck_assert_uint_eq(out, 0);
}

TEST(rounding_up_never_wraps) {
  size_t out = 7;
  ck_assert(tarn_size_align_up(0, 4096, &out));
  ck_assert_uint_eq(out, 0);
  ck_assert(tarn_size_align_up(1, 4096, &out));
  ck_assert_uint_eq(out, 4096);
  ck_assert(tarn_size_align_up(4096, 4096, &out));
  ck_assert_uint_eq(out, 4096);
  ck_assert(!tarn_size_align_up(SIZE_MAX, 4096, &out));
  ck_assert_uint_eq(out, 0);
  ck_assert(!tarn_size_align_up(1, 0, &out));
  ck_assert(!tarn_size_align_up(1, 3, &out));
}

TEST(names_and_sizes_of_dtypes) {
  for (int d = TARN_DTYPE_F64; d <= TARN_DTYPE_BOOL; d++) {
    const char *name = tarn_dtype_name((tarn_dtype)d);
    ck_assert_int_eq(tarn_dtype_parse(name), d);
    ck_assert_uint_gt(tarn_dtype_size((tarn_dtype)d), 0);
  }
  ck_assert_uint_eq(tarn_dtype_size(TARN_DTYPE_BF16), 2);
  ck_assert_uint_eq(tarn_dtype_size(TARN_DTYPE_NONE), 0);
  ck_assert_uint_eq(tarn_dtype_size((tarn_dtype)99), 0);
  ck_assert_uint_eq(tarn_dtype_size((tarn_dtype)-1), 0);
  ck_assert_str_eq(tarn_dtype_name((tarn_dtype)99), "none");
  ck_assert_int_eq(tarn_dtype_parse("none"), TARN_DTYPE_NONE);
  ck_assert_int_eq(tarn_dtype_parse("f33"), TARN_DTYPE_NONE);
  ck_assert_int_eq(tarn_dtype_parse(NULL), TARN_DTYPE_NONE);
}

static tarn_shape shape_of(const int64_t *dims, size_t rank) {
  return (tarn_shape){dims, rank};
}

TEST(counts_of_shapes) {
  size_t count = 9;
  const int64_t image[] = {TARN_DIM_BATCH, 3, 224, 224};
  assert_ok(tarn_shape_count(shape_of(image, 4), 8, &count));
  ck_assert_uint_eq(count, 8 * 3 * 224 * 224);
  assert_ok(tarn_shape_count(shape_of(NULL, 0), 8, &count));
  ck_assert_uint_eq(count, 1);
  assert_ok(tarn_shape_count(shape_of(image, 4), 0, &count));
  ck_assert_uint_eq(count, 0);
  assert_ok(tarn_shape_size(shape_of(image, 4), TARN_DTYPE_F16, 2, &count));
  ck_assert_uint_eq(count, 2 * 3 * 224 * 224 * 2);
}

TEST(bad_shapes_are_refused) {
  size_t out = 9;
  const int64_t negative[] = {4, -2};
  assert_status(tarn_shape_count(shape_of(negative, 2), 1, &out),
                TARN_E_INVALID);
  ck_assert_uint_eq(out, 0);
  assert_error_says("dimension 1 is -2");
  const int64_t batch[] = {TARN_DIM_BATCH};
  assert_status(tarn_shape_count(shape_of(batch, 1), -3, &out), TARN_E_INVALID);
  assert_status(tarn_shape_count(shape_of(NULL, 1), 1, &out), TARN_E_INVALID);
  const int64_t huge[] = {INT64_MAX, INT64_MAX};
  assert_status(tarn_shape_count(shape_of(huge, 2), 1, &out), TARN_E_INVALID);
  const int64_t half[] = {INT64_MAX};
  assert_status(tarn_shape_size(shape_of(half, 1), TARN_DTYPE_F64, 1, &out),
                TARN_E_INVALID);
  ck_assert_uint_eq(out, 0);
  assert_status(tarn_shape_size(shape_of(half, 1), TARN_DTYPE_NONE, 1, &out),
                TARN_E_INVALID);
}

TEST(an_empty_tensor_is_empty_whatever_the_rest) {
  size_t out = 9;
  const int64_t dims[] = {INT64_MAX, INT64_MAX, 0};
  assert_ok(tarn_shape_count(shape_of(dims, 3), 1, &out));
  ck_assert_uint_eq(out, 0);
  const int64_t bad[] = {0, -5};
  assert_status(tarn_shape_count(shape_of(bad, 2), 1, &out), TARN_E_INVALID);
}
