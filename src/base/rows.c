// Checking a tarn_rows, and finding a row among the chunks of its table.
//
//   offsets     0            96   96                    256
//               |   chunk 0   |    |      chunk 2        |    chunk 1 is empty
//   rows          [ 0 ][ 1 ]   . .  [ 3 ][ 4 ][ 5 ][ 6 ]
//                 ^ table_offset
//
// Every row of the table ends within the last offset, so that the offset of a
// row never overflows once the check has passed.
#include "base/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/convert.h"
#include "base/status.h"

enum {
  KNOWN_FLAGS = TARN_ROWS_SKIP_BAD | TARN_ROWS_PAST_CACHES,
  FIRST_SIZE = TARN__SIZE_UP_TO(tarn_rows, flags),
};

size_t tarn__rows_table_bytes(const tarn_rows *rows) {
  return rows->width * tarn_dtype_size(rows->table_dtype);
}

size_t tarn__rows_dense_bytes(const tarn_rows *rows) {
  return rows->width * tarn_dtype_size(rows->dense_dtype);
}

// --- the reference ---------------------------------------------------------

static tarn_status check_chunk(const tarn_reference *table, size_t i) {
  size_t begin = table->offsets[i];
  size_t end = table->offsets[i + 1];
  if (end < begin) {
    return tarn__fail(
        TARN_E_INVALID,
        "rows: offset %zu of the table is %zu, below the preceding %zu", i + 1,
        end, begin);
  }
  if (end == begin) return TARN_OK;
  if (table->chunks[i] == 0 || table->chunks[i] > UINT64_MAX - (end - begin)) {
    return tarn__fail(TARN_E_INVALID,
                      "rows: chunk %zu of the table (%zu bytes) has the "
                      "invalid address 0x%" PRIx64,
                      i, end - begin, table->chunks[i]);
  }
  return TARN_OK;
}

static tarn_status check_reference(const tarn_reference *table) {
  if (table->count == 0) return TARN_OK;
  if (table->chunks == NULL || table->offsets == NULL) {
    return tarn__fail(
        TARN_E_INVALID, "rows: the table has %zu chunks but its %s are NULL",
        table->count, table->chunks == NULL ? "addresses" : "offsets");
  }
  if (table->offsets[0] != 0) {
    return tarn__fail(TARN_E_INVALID,
                      "rows: the first offset of the table is %zu, not 0",
                      table->offsets[0]);
  }
  for (size_t i = 0; i < table->count; i++) {
    TARN__TRY(check_chunk(table, i));
  }
  return TARN_OK;
}

static size_t reference_size(const tarn_reference *table) {
  return table->count == 0 ? 0 : table->offsets[table->count];
}

// --- dtypes, strides, extents ----------------------------------------------

static tarn_status check_dtypes(const tarn_rows *rows) {
  if (!tarn__convert_is_possible(rows->dense_dtype, rows->table_dtype)) {
    return tarn__fail(
        TARN_E_INVALID,
        "rows: no conversion between %s of the table and %s of the dense rows",
        tarn_dtype_name(rows->table_dtype), tarn_dtype_name(rows->dense_dtype));
  }
  if (rows->index_dtype != TARN_DTYPE_I32 &&
      rows->index_dtype != TARN_DTYPE_I64) {
    return tarn__fail(TARN_E_INVALID, "rows: indices are i32 or i64, not %s",
                      tarn_dtype_name(rows->index_dtype));
  }
  if ((rows->flags & ~(unsigned)KNOWN_FLAGS) != 0) {
    return tarn__fail(TARN_E_INVALID, "rows: unknown flags 0x%x",
                      (unsigned)rows->flags);
  }
  return TARN_OK;
}

// Sets |*stride| if it is 0.
static tarn_status check_stride(const char *which, size_t width,
                                tarn_dtype dtype, size_t *stride) {
  size_t bytes = 0;
  if (!tarn_size_mul(width, tarn_dtype_size(dtype), &bytes)) {
    return tarn__fail(TARN_E_INVALID, "rows: the bytes of %zu x %s overflow",
                      width, tarn_dtype_name(dtype));
  }
  if (*stride == 0) *stride = bytes;
  if (*stride < bytes) {
    return tarn__fail(
        TARN_E_INVALID,
        "rows: the %s stride of %zu bytes is less than a row of %zu", which,
        *stride, bytes);
  }
  return TARN_OK;
}

// Where |count| rows of |bytes| end that begin at |begin|.
static bool end_of_rows(size_t begin, size_t count, size_t stride, size_t bytes,
                        size_t *out) {
  *out = begin;
  if (count == 0) return true;
  return tarn_size_mul(count - 1, stride, out) &&
         tarn_size_add(*out, bytes, out) && tarn_size_add(*out, begin, out);
}

static tarn_status check_table(const tarn_rows *rows) {
  size_t end = 0;
  size_t size = reference_size(&rows->table);
  if (!end_of_rows(rows->table_offset, rows->table_count, rows->table_stride,
                   tarn__rows_table_bytes(rows), &end)) {
    return tarn__fail(TARN_E_INVALID,
                      "rows: %zu table rows at a stride of %zu overflow",
                      rows->table_count, rows->table_stride);
  }
  if (rows->table_count != 0 && end > size) {
    return tarn__fail(TARN_E_INVALID,
                      "rows: %zu table rows end at byte %zu, beyond the "
                      "chunks, which end at %zu",
                      rows->table_count, end, size);
  }
  return TARN_OK;
}

// |count| things of the caller's from |address| on.
static tarn_status check_array(const char *which, tarn_addr address,
                               size_t count, size_t stride, size_t bytes) {
  size_t end = 0;
  if (count == 0 || bytes == 0) return TARN_OK;
  if (address == 0) {
    return tarn__fail(TARN_E_INVALID, "rows: the address of the %s is 0",
                      which);
  }
  if (!end_of_rows(address, count, stride, bytes, &end)) {
    return tarn__fail(TARN_E_INVALID,
                      "rows: %zu %s at 0x%" PRIx64 " on overflow", count, which,
                      address);
  }
  return TARN_OK;
}

static tarn_status check_extents(tarn_rows *rows) {
  TARN__TRY(check_stride("table", rows->width, rows->table_dtype,
                         &rows->table_stride));
  TARN__TRY(check_stride("dense", rows->width, rows->dense_dtype,
                         &rows->dense_stride));
  TARN__TRY(check_table(rows));
  TARN__TRY(check_array("dense rows", rows->dense, rows->index_count,
                        rows->dense_stride, tarn__rows_dense_bytes(rows)));
  size_t index = tarn_dtype_size(rows->index_dtype);
  return check_array("indices", rows->indices, rows->index_count, index, index);
}

static tarn_status check(tarn_rows *rows) {
  TARN__TRY(check_dtypes(rows));
  TARN__TRY(check_reference(&rows->table));
  return check_extents(rows);
}

tarn_status tarn__rows_check(const tarn_rows *given, tarn_rows *out) {
  TARN__TRY(tarn__take_struct("rows", given, FIRST_SIZE, out, sizeof *out));
  out->struct_size = sizeof *out;
  tarn_status status = check(out);
  if (status != TARN_OK) memset(out, 0, sizeof *out);
  return status;
}

// --- rows ------------------------------------------------------------------

void tarn__rows_say_bad(const tarn_rows *rows, int64_t index, size_t position,
                        char *out, size_t out_size) {
  if (tarn__rows_has(rows, index)) {
    snprintf(out, out_size, "row %" PRId64 " of the table spans two chunks",
             index);
  } else if (rows->table_count == 0) {
    snprintf(out, out_size,
             "index %" PRId64 " at position %zu: the table has no rows", index,
             position);
  } else {
    snprintf(out, out_size,
             "index %" PRId64 " at position %zu is not in 0..%zu", index,
             position, rows->table_count - 1);
  }
}
