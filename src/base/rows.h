// rows.h - checks of a tarn_rows without its indices, and the address of a row.
#ifndef TARN_BASE_ROWS_H_
#define TARN_BASE_ROWS_H_

#include <string.h>

#include "tarn/base.h"

// The operation (tarn_rows in base.h).
typedef enum tarn__rows_action {
  TARN__ROWS_GATHER,
  TARN__ROWS_SCATTER,
  TARN__ROWS_SCATTER_ADD,
} tarn__rows_action;

// Checks |given| without its indices: struct_size, dtypes, strides, flags, the
// reference, that the rows of the table are within it, and that no address or
// size overflows. |*out| is a copy of this version's size with both strides
// set; it points to the caller's arrays.
//
// TARN_E_INVALID  the text says what is wrong. |*out| is zero.
TARN_MUST_CHECK tarn_status tarn__rows_check(const tarn_rows *given,
                                             tarn_rows *out);

// The bytes of one row of the table, and of the dense block. Of rows that were
// checked, as all below.
size_t tarn__rows_table_bytes(const tarn_rows *rows);
size_t tarn__rows_dense_bytes(const tarn_rows *rows);

// Whether |index| is that of a row.
static inline bool tarn__rows_has(const tarn_rows *rows, int64_t index) {
  return index >= 0 && (uint64_t)index < rows->table_count;
}

// The index at |position| of |indices|, of any alignment, which are of |dtype|.
static inline int64_t tarn__rows_index_at(tarn_dtype dtype, const void *indices,
                                          size_t position) {
  const unsigned char *bytes = indices;
  int32_t narrow = 0;
  int64_t wide = 0;
  if (dtype == TARN_DTYPE_I64) {
    memcpy(&wide, bytes + position * sizeof wide, sizeof wide);
    return wide;
  }
  memcpy(&narrow, bytes + position * sizeof narrow, sizeof narrow);
  return narrow;
}

// "index 7 at position 3 is not in 0..4"; of an index that is, "row 4 of the
// table spans two chunks"
void tarn__rows_say_bad(const tarn_rows *rows, int64_t index, size_t position,
                        char *out, size_t out_size);

// The last chunk that begins at or before |offset|; empty ones that begin there
// come before it. No step of the search depends on a jump, which for random
// rows could not be foretold.
static inline size_t tarn__rows_chunk_of(const tarn_reference *table,
                                         size_t offset) {
  size_t low = 0;
  for (size_t left = table->count; left > 1;) {
    size_t half = left / 2;
    low += half & -(size_t)(table->offsets[low + half] <= offset);
    left -= half;
  }
  return low;
}

// The address of row |index|, which the table has and which takes |bytes|; 0 if
// it lies in two chunks.
static inline tarn_addr tarn__rows_place(const tarn_rows *rows, size_t index,
                                         size_t bytes) {
  const tarn_reference *table = &rows->table;
  size_t offset = rows->table_offset + index * rows->table_stride;
  if (table->count == 1) return table->chunks[0] + offset;  // all rows fit
  size_t i = tarn__rows_chunk_of(table, offset);
  bool fits = offset + bytes <= table->offsets[i + 1];
  return fits ? table->chunks[i] + (offset - table->offsets[i]) : 0;
}

#endif  // TARN_BASE_ROWS_H_
