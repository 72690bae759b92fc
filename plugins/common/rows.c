// Gather and scatter. If addresses are pointers, rows_direct.c moves the rows.
// Otherwise memory may be in pieces: this file moves a row in spans that are
// contiguous at both ends, and an element that crosses pieces through a buffer.
//
//   indices     [ 4, 0, 9, ... ]            32 of them
//   batch       [ &row 4, &row 0, 0, ... ]  0: a bad index to skip
//   dense       [ row ][ row ][ zeros ]     for a gather
#include "common/rows.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/convert.h"
#include "base/hostmem.h"
#include "base/rows.h"
#include "base/status.h"
#include "common/rows_direct.h"

enum {
  BATCH = 32,
  ELEMENT_MAX = 8,
};

typedef struct job {
  tarn__rows_action action;
  const tarn_rows *rows;
  tarn__common_rows_reach *reach;
  void *context;
  char *text;
  size_t text_size;
  size_t table_bytes;  // of a row
  size_t dense_bytes;
} job;

__attribute__((format(printf, 2, 3), cold)) static tarn_status refuse(
    const job *j, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(j->text, j->text_size, format, args);
  va_end(args);
  return TARN_E_INVALID;
}

// --- bytes at addresses ----------------------------------------------------

static unsigned char *reach_bytes(const job *j, tarn_addr addr, size_t size,
                                  size_t *out_size) {
  *out_size = size;
  unsigned char *bytes = j->reach(j->context, addr, size, out_size);
  if (*out_size > size) *out_size = size;
  return bytes;
}

static tarn_status unreached(const job *j, tarn_addr addr, size_t size) {
  return refuse(j, "the device does not reach %zu bytes at 0x%" PRIx64, size,
                addr);
}

static tarn_status read_bytes(const job *j, tarn_addr from, void *to,
                              size_t size) {
  unsigned char *out = to;
  while (size != 0) {
    size_t now = 0;
    const unsigned char *bytes = reach_bytes(j, from, size, &now);
    if (bytes == NULL) return unreached(j, from, size);
    memcpy(out, bytes, now);
    out += now;
    from += now;
    size -= now;
  }
  return TARN_OK;
}

// |from| NULL: zeros.
static tarn_status write_bytes(const job *j, tarn_addr to,
                               const unsigned char *from, size_t size) {
  while (size != 0) {
    size_t now = 0;
    unsigned char *bytes = reach_bytes(j, to, size, &now);
    if (bytes == NULL) return unreached(j, to, size);
    if (from == NULL) {
      memset(bytes, 0, now);
    } else {
      memcpy(bytes, from, now);
      from += now;
    }
    to += now;
    size -= now;
  }
  return TARN_OK;
}

// --- one row ---------------------------------------------------------------

// Moves |count| elements that are contiguous at both ends.
static void move_elements(const job *j, void *table, void *dense,
                          size_t count) {
  tarn_dtype of_table = j->rows->table_dtype;
  tarn_dtype of_dense = j->rows->dense_dtype;
  switch (j->action) {
    case TARN__ROWS_GATHER:
      tarn__convert(of_dense, dense, of_table, table, count);
      return;
    case TARN__ROWS_SCATTER:
      tarn__convert(of_table, table, of_dense, dense, count);
      return;
    case TARN__ROWS_SCATTER_ADD:
      tarn__convert_add(of_table, table, of_dense, dense, count);
      return;
  }
}

// Moves one element, either end of which may cross pieces.
static tarn_status move_split(const job *j, tarn_addr table, tarn_addr dense) {
  unsigned char in_table[ELEMENT_MAX] = {0};
  unsigned char in_dense[ELEMENT_MAX] = {0};
  size_t table_size = tarn_dtype_size(j->rows->table_dtype);
  size_t dense_size = tarn_dtype_size(j->rows->dense_dtype);
  TARN__TRY(read_bytes(j, table, in_table, table_size));
  TARN__TRY(read_bytes(j, dense, in_dense, dense_size));
  move_elements(j, in_table, in_dense, 1);
  if (j->action == TARN__ROWS_GATHER) {
    return write_bytes(j, dense, in_dense, dense_size);
  }
  return write_bytes(j, table, in_table, table_size);
}

static tarn_status move_row(const job *j, tarn_addr table, tarn_addr dense) {
  size_t table_size = tarn_dtype_size(j->rows->table_dtype);
  size_t dense_size = tarn_dtype_size(j->rows->dense_dtype);
  size_t left = j->rows->width;
  while (left != 0) {
    size_t table_here = 0;
    size_t dense_here = 0;
    unsigned char *t = reach_bytes(j, table, left * table_size, &table_here);
    if (t == NULL) return unreached(j, table, left * table_size);
    unsigned char *d = reach_bytes(j, dense, left * dense_size, &dense_here);
    if (d == NULL) return unreached(j, dense, left * dense_size);
    size_t now = tarn__lesser(table_here / table_size, dense_here / dense_size);
    if (now != 0) {
      move_elements(j, t, d, now);
    } else {
      now = 1;
      TARN__TRY(move_split(j, table, dense));
    }
    table += now * table_size;
    dense += now * dense_size;
    left -= now;
  }
  return TARN_OK;
}

// --- batches ---------------------------------------------------------------

static tarn_status read_indices(const job *j, size_t first, size_t count,
                                int64_t *out) {
  tarn_dtype dtype = j->rows->index_dtype;
  size_t size = tarn_dtype_size(dtype);
  unsigned char raw[BATCH * sizeof(int64_t)];
  TARN__TRY(read_bytes(j, j->rows->indices + first * size, raw, count * size));
  tarn__convert(TARN_DTYPE_I64, out, dtype, raw, count);
  return TARN_OK;
}

// Where the row of |index| is; 0 for one to pass over.
static tarn_status find_row(const job *j, int64_t index, size_t position,
                            tarn_addr *out) {
  *out = 0;
  if (!tarn__rows_has(j->rows, index)) {
    if ((j->rows->flags & TARN_ROWS_SKIP_BAD) != 0) return TARN_OK;
    tarn__rows_say_bad(j->rows, index, position, j->text, j->text_size);
    return TARN_E_INVALID;
  }
  if (j->table_bytes == 0) return TARN_OK;
  *out = tarn__rows_locate(j->rows, (size_t)index);
  if (*out == 0) {
    return refuse(j, "row %" PRId64 " of the table spans two chunks", index);
  }
  return TARN_OK;
}

static tarn_status find_batch(const job *j, size_t first, size_t count,
                              tarn_addr *out) {
  int64_t indices[BATCH];
  tarn_status status = read_indices(j, first, count, indices);
  for (size_t k = 0; status == TARN_OK && k < count; k++) {
    status = find_row(j, indices[k], first + k, &out[k]);
  }
  return status;
}

static tarn_status move_batch(const job *j, size_t first, size_t count) {
  tarn_addr table[BATCH];
  tarn_status status = find_batch(j, first, count, table);
  for (size_t k = 0; status == TARN_OK && k < count; k++) {
    tarn_addr dense = j->rows->dense + (first + k) * j->rows->dense_stride;
    if (table[k] != 0) {
      status = move_row(j, table[k], dense);
    } else if (j->action == TARN__ROWS_GATHER) {
      status = write_bytes(j, dense, NULL, j->dense_bytes);
    }
  }
  return status;
}

tarn_status tarn__rows_run(tarn__rows_action action, const tarn_rows *rows,
                           tarn__common_rows_reach *reach, void *context,
                           char *text, size_t text_size) {
  const job j = {
      .action = action,
      .rows = rows,
      .reach = reach,
      .context = context,
      .text = text,
      .text_size = text_size,
      .table_bytes = tarn__rows_table_bytes(rows),
      .dense_bytes = tarn__rows_dense_bytes(rows),
  };
  if (text_size != 0) text[0] = '\0';
  if (action == TARN__ROWS_SCATTER_ADD &&
      !tarn__convert_can_add(rows->table_dtype)) {
    return refuse(&j, "elements of %s cannot be added",
                  tarn_dtype_name(rows->table_dtype));
  }
  if (reach == NULL) return tarn__rows_direct(action, rows, text, text_size);
  tarn_status status = TARN_OK;
  for (size_t i = 0; status == TARN_OK && i < rows->index_count; i += BATCH) {
    status = move_batch(&j, i, tarn__lesser(rows->index_count - i, BATCH));
  }
  return status;
}

// --- for a queue -----------------------------------------------------------

tarn_rows *tarn__rows_copy(const tarn_rows *rows, size_t *out_size) {
  const tarn_reference *table = &rows->table;
  size_t entries = 0;
  size_t size = 0;
  *out_size = 0;
  if (!tarn_size_mul(table->count, sizeof(tarn_addr) + sizeof(size_t),
                     &entries) ||
      !tarn_size_add(entries, sizeof *rows + sizeof(size_t), &size)) {
    return NULL;
  }
  tarn_rows *copy = tarn__host_alloc(size);
  if (copy == NULL) return NULL;
  tarn_addr *chunks = (tarn_addr *)(copy + 1);
  size_t *offsets = (size_t *)(chunks + table->count);
  memcpy(copy, rows, tarn__lesser(rows->struct_size, sizeof *copy));
  copy->table.chunks = chunks;
  copy->table.offsets = offsets;
  if (table->count != 0) {
    memcpy(chunks, table->chunks, table->count * sizeof *chunks);
    memcpy(offsets, table->offsets, (table->count + 1) * sizeof *offsets);
  }
  *out_size = size;
  return copy;
}

C_Status tarn__rows_submit(C_Stream stream, tarn__common_queue_op *op,
                           const tarn_rows *rows) {
  op->owned = tarn__rows_copy(rows, &op->owned_size);
  if (op->owned == NULL) return tarn__wordless(C_FAILED);
  C_Status status = tarn__queue_submit(stream, op);
  if (status != C_SUCCESS) tarn__host_free(op->owned, op->owned_size);
  return status;
}
