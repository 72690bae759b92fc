// rows.h - the rows of a tensor that this rank owns, as bytes of a file.
//
// In a file rows follow one another without gaps, in a dtype that may differ
// from the table's. Where neither differs (|linear|), bytes may be moved from
// and to any offset, else whole rows.
#ifndef TARN_TABLE_ROWS_H_
#define TARN_TABLE_ROWS_H_

#include "tarn/whole.h"

typedef struct tarn__table_rows {
  tarn_whole_tensor tensor;
  size_t first;  // of the tensor, this rank's first row
  size_t count;
  tarn_dtype file_dtype;
  size_t row;  // bytes of a row in the file
  bool linear;
  tarn_place place;     // of the table
  tarn_addr address;    // of the first row
  size_t stride;        // bytes in the table from one row to the next
  size_t row_memory;    // bytes of a row there
  bool paged;           // the table is on a disk
  unsigned char *view;  // where the host sees the first row; NULL: it does not
  unsigned char *bounce;  // for what it does not see, if not |linear|
  size_t bounce_size;
} tarn__table_rows;

// The rows of this rank. Nothing is asked of other ranks.
//
// TARN_E_INVALID  the tensor is wrong, or its elements do not convert to or
//                 from |file_dtype|.
// TARN_E_NOMEM.
TARN_MUST_CHECK tarn_status
tarn__table_rows_begin(const tarn_whole_tensor *tensor, tarn_dtype file_dtype,
                       tarn__table_rows *out);
void tarn__table_rows_end(tarn__table_rows *rows);

// The bytes at |offset| in the table, if they are linear and the host sees
// them; else NULL.
void *tarn__table_rows_at(const tarn__table_rows *rows, size_t offset);

// Moves |size| bytes at |offset|, both multiples of a row if not |linear|: from
// the table to |out|, or from |bytes| to the table.
//
// TARN_E_DEVICE  the driver failed. Errors of a pager.
TARN_MUST_CHECK tarn_status tarn__table_rows_get(const tarn__table_rows *rows,
                                                 size_t offset, void *out,
                                                 size_t size);
TARN_MUST_CHECK tarn_status tarn__table_rows_put(const tarn__table_rows *rows,
                                                 size_t offset,
                                                 const void *bytes,
                                                 size_t size);

#endif  // TARN_TABLE_ROWS_H_
