// What is to be known of rows before an index is read.
#include "base/rows.h"

#include <string.h>

#include "support/run.h"

static const tarn_addr CHUNKS[] = {0x1000, 0, 0x3000};
static const size_t OFFSETS[] = {0, 96, 96, 256};

// Ten rows of 4 f32, packed, in chunks of 96, 0 and 160 bytes.
static tarn_rows good_rows(void) {
  return (tarn_rows){
      .struct_size = sizeof(tarn_rows),
      .table = {CHUNKS, OFFSETS, 3},
      .table_dtype = TARN_DTYPE_F32,
      .table_count = 10,
      .width = 4,
      .dense = 0x8000,
      .dense_dtype = TARN_DTYPE_F16,
      .indices = 0x9000,
      .index_dtype = TARN_DTYPE_I32,
      .index_count = 5,
  };
}

static void refuse(tarn_rows rows, const char *text) {
  static const tarn_rows zero;
  tarn_rows out;
  memset(&out, 1, sizeof out);
  assert_status(tarn__rows_check(&rows, &out), TARN_E_INVALID);
  assert_error_says(text);
  ck_assert_mem_eq(&out, &zero, sizeof out);
}

// refuse(good_rows() with |change| made to it, |text|)
#define REFUSE(change, text)   \
  do {                         \
    tarn_rows r = good_rows(); \
    change;                    \
    refuse(r, text);           \
  } while (0)

TEST(strides_are_set) {
  tarn_rows rows = good_rows();
  tarn_rows out;
  assert_ok(tarn__rows_check(&rows, &out));
  ck_assert_uint_eq(out.table_stride, 16);
  ck_assert_uint_eq(out.dense_stride, 8);
  ck_assert_uint_eq(tarn__rows_table_bytes(&out), 16);
  ck_assert_uint_eq(tarn__rows_dense_bytes(&out), 8);
  ck_assert_uint_eq(out.struct_size, sizeof out);
  ck_assert_ptr_eq(out.table.chunks, CHUNKS);
  rows.table_stride = 24;
  rows.dense_stride = 9;
  rows.struct_size = 0;
  assert_ok(tarn__rows_check(&rows, &out));
  ck_assert_uint_eq(out.table_stride, 24);
  ck_assert_uint_eq(out.dense_stride, 9);
}

TEST(what_is_empty_is_possible) {
  tarn_rows out;
  tarn_rows rows = good_rows();
  rows.index_count = rows.dense = rows.indices = 0;
  assert_ok(tarn__rows_check(&rows, &out));
  rows = good_rows();
  rows.table = (tarn_reference){NULL, NULL, 0};
  rows.table_count = 0;
  assert_ok(tarn__rows_check(&rows, &out));
  rows = good_rows();
  rows.width = rows.dense = 0;
  assert_ok(tarn__rows_check(&rows, &out));
  ck_assert_uint_eq(out.table_stride, 0);
}

TEST(structs_of_other_sizes) {
  struct {
    tarn_rows rows;
    uint64_t beyond;
  } longer = {good_rows(), 7};
  tarn_rows out;
  longer.rows.struct_size = sizeof longer;
  assert_ok(tarn__rows_check(&longer.rows, &out));
  ck_assert_uint_eq(out.struct_size, sizeof out);
  REFUSE(r.struct_size = 8, "struct_size is 8");
  assert_status(tarn__rows_check(NULL, &out), TARN_E_INVALID);
  assert_error_says("rows: NULL");
}

TEST(dtypes_and_flags) {
  REFUSE(r.table_dtype = TARN_DTYPE_I32,
         "i32 of the table and f16 of the dense rows");
  REFUSE(r.dense_dtype = TARN_DTYPE_NONE, "none of the dense rows");
  REFUSE(r.dense_dtype = (tarn_dtype)99, "none of the dense rows");
  REFUSE(r.table_dtype = TARN_DTYPE_BOOL, "bool of the table");
  REFUSE(r.index_dtype = TARN_DTYPE_U32, "indices are i32 or i64, not u32");
  REFUSE(r.flags = 4 | TARN_ROWS_SKIP_BAD, "unknown flags 0x5");
  tarn_rows out;
  tarn_rows rows = good_rows();
  rows.flags = TARN_ROWS_SKIP_BAD;
  rows.index_dtype = TARN_DTYPE_I64;
  assert_ok(tarn__rows_check(&rows, &out));
}

TEST(strides_and_sizes) {
  REFUSE(r.table_stride = 15,
         "the table stride of 15 bytes is less than a row of 16");
  REFUSE(r.dense_stride = 7,
         "the dense stride of 7 bytes is less than a row of 8");
  REFUSE(r.width = SIZE_MAX / 4 + 1, "x f32 overflow");
  REFUSE(r.table_stride = SIZE_MAX / 2, "table rows at a stride");
  REFUSE(r.table_offset = SIZE_MAX - 8, "table rows at a stride");
  REFUSE(r.table_count = 17,
         "17 table rows end at byte 272, beyond the chunks, which end at 256");
  REFUSE(r.table_offset = 97, "end at byte 257");
  REFUSE(r.dense_stride = SIZE_MAX / 2, "dense rows at 0x8000 on overflow");
  REFUSE(r.dense = UINT64_MAX - 8, "dense rows at");
  REFUSE(r.indices = UINT64_MAX - 8, "indices at");
  REFUSE(r.index_count = SIZE_MAX / 2, "overflow");
  REFUSE(r.dense = 0, "the address of the dense rows is 0");
  REFUSE(r.indices = 0, "the address of the indices is 0");
}

static tarn_addr locate(const tarn_rows *rows, size_t index) {
  return tarn__rows_place(rows, index, tarn__rows_table_bytes(rows));
}

TEST(references) {
  static const size_t late[] = {8, 96, 96, 256};
  static const size_t falling[] = {0, 96, 95, 256};
  static const tarn_addr nowhere[] = {0x1000, 0, 0};
  static const tarn_addr high[] = {0x1000, 0, UINT64_MAX - 100};
  REFUSE(r.table.offsets = late, "the first offset of the table is 8, not 0");
  REFUSE(r.table.offsets = falling, "offset 2 of the table is 95, below");
  REFUSE(r.table.offsets = NULL, "3 chunks but its offsets are NULL");
  REFUSE(r.table.chunks = NULL, "3 chunks but its addresses are NULL");
  REFUSE(r.table.chunks = nowhere,
         "chunk 2 of the table (160 bytes) has the invalid address 0x0");
  REFUSE(r.table.chunks = high, "chunk 2 of the table");
  REFUSE(r.table.count = 0, "which end at 0");
}

TEST(rows_are_found) {
  tarn_rows rows = good_rows();
  tarn_rows out;
  rows.table_stride = 24;
  assert_ok(tarn__rows_check(&rows, &out));
  ck_assert_uint_eq(locate(&out, 0), 0x1000);
  ck_assert_uint_eq(locate(&out, 3), 0x1000 + 72);
  ck_assert_uint_eq(locate(&out, 4), 0x3000);
  ck_assert_uint_eq(locate(&out, 9), 0x3000 + 120);
  rows.table_offset = 4;
  assert_ok(tarn__rows_check(&rows, &out));
  ck_assert_uint_eq(locate(&out, 3), 0x1000 + 76);
  rows.table_offset = 12;
  assert_ok(tarn__rows_check(&rows, &out));
  ck_assert_uint_eq(locate(&out, 3), 0);
  ck_assert_uint_eq(locate(&out, 4), 0x3000 + 12);
}

TEST(rows_of_one_chunk) {
  tarn_rows rows = good_rows();
  tarn_rows out;
  static const size_t whole[] = {0, 256};
  rows.table = (tarn_reference){CHUNKS, whole, 1};
  rows.table_offset = 96;
  assert_ok(tarn__rows_check(&rows, &out));
  for (size_t i = 0; i < 10; i++)
    ck_assert_uint_eq(locate(&out, i), 0x1000 + 96 + 16 * i);
}

TEST(bad_indices) {
  tarn_rows rows = good_rows();
  char text[80];
  rows.table_count = 5;
  ck_assert(tarn__rows_has(&rows, 0) && tarn__rows_has(&rows, 4));
  ck_assert(!tarn__rows_has(&rows, -1) && !tarn__rows_has(&rows, 5));
  ck_assert(!tarn__rows_has(&rows, INT64_MIN));
  tarn__rows_say_bad(&rows, 7, 3, text, sizeof text);
  ck_assert_str_eq(text, "index 7 at position 3 is not in 0..4");
  rows.table_count = 0;
  tarn__rows_say_bad(&rows, -1, 0, text, sizeof text);
  ck_assert_str_eq(text, "index -1 at position 0: the table has no rows");
}
