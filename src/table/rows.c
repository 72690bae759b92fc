// Own rows to and from the bytes of a file. Where the host sees no memory of
// the table, a part at a time is copied, with the gaps between rows: those may
// belong to other columns, and go back as they were.
#include "table/rows.h"

#include <string.h>

#include "base/convert.h"
#include "base/hostmem.h"
#include "base/status.h"
#include "whole/pager.h"

// Bytes of the table that are copied at a time, or a row.
enum { BOUNCE = 1 << 20 };

// --- begin and end ---------------------------------------------------------

static tarn_status measure(tarn__table_rows *rows) {
  const tarn_whole_tensor *tensor = &rows->tensor;
  const tarn_whole *whole = tensor->whole;
  if (!tarn__convert_is_possible(rows->file_dtype, tensor->dtype)) {
    return tarn__fail(TARN_E_INVALID, "table: elements of %s are no %s",
                      tarn_dtype_name(tensor->dtype),
                      tarn_dtype_name(rows->file_dtype));
  }
  TARN__TRY(
      tarn_whole_tensor_rows(tensor, whole->rank, &rows->first, &rows->count));
  rows->paged = whole->pager != NULL;
  if (!rows->paged) TARN__TRY(tarn_whole_tensor_local(tensor, &rows->address));
  size_t element = tarn_dtype_size(tensor->dtype);
  rows->place = whole->place;
  rows->stride = tensor->stride * element;
  rows->row_memory = tensor->width * element;
  rows->row = tensor->width * tarn_dtype_size(rows->file_dtype);
  rows->linear = !rows->paged && rows->file_dtype == tensor->dtype &&
                 (rows->stride == rows->row_memory || rows->count <= 1);
  return TARN_OK;
}

// From the first row to the end of the last.
static size_t extent(const tarn__table_rows *rows, size_t count) {
  return count == 0 ? 0 : (count - 1) * rows->stride + rows->row_memory;
}

static tarn_status look(tarn__table_rows *rows) {
  void *view = NULL;
  if (rows->count == 0 || rows->paged) return TARN_OK;
  tarn_status status = tarn_device_host_view(rows->place, rows->address,
                                             extent(rows, rows->count), &view);
  rows->view = view;
  if (status != TARN_E_UNSUPPORTED) return status;
  if (rows->linear) return TARN_OK;
  size_t most = rows->stride > BOUNCE ? rows->stride : BOUNCE;
  rows->bounce_size = tarn__lesser(most, extent(rows, rows->count));
  rows->bounce = tarn__host_alloc(rows->bounce_size);
  return rows->bounce != NULL ? TARN_OK : TARN_E_NOMEM;
}

tarn_status tarn__table_rows_begin(const tarn_whole_tensor *tensor,
                                   tarn_dtype file_dtype,
                                   tarn__table_rows *out) {
  *out = (tarn__table_rows){.tensor = *tensor, .file_dtype = file_dtype};
  TARN__TRY(measure(out));
  return look(out);
}

void tarn__table_rows_end(tarn__table_rows *rows) {
  tarn__host_free(rows->bounce, rows->bounce_size);
  rows->bounce = NULL;
}

void *tarn__table_rows_at(const tarn__table_rows *rows, size_t offset) {
  return rows->linear && rows->view != NULL ? rows->view + offset : NULL;
}

// --- rows that the host sees -----------------------------------------------

static void take(const tarn__table_rows *rows, const unsigned char *table,
                 unsigned char *file, size_t count) {
  for (size_t i = 0; i < count; i++)
    tarn__convert(rows->file_dtype, file + i * rows->row, rows->tensor.dtype,
                  table + i * rows->stride, rows->tensor.width);
}

static void give(const tarn__table_rows *rows, unsigned char *table,
                 const unsigned char *file, size_t count) {
  for (size_t i = 0; i < count; i++)
    tarn__convert(rows->tensor.dtype, table + i * rows->stride,
                  rows->file_dtype, file + i * rows->row, rows->tensor.width);
}

// --- rows that it does not see ---------------------------------------------

// How many rows fit into the bounce, of |count|.
static size_t fit(const tarn__table_rows *rows, size_t count) {
  size_t most = (rows->bounce_size - rows->row_memory) / rows->stride + 1;
  return tarn__lesser(most, count);
}

static tarn_status fetch(const tarn__table_rows *rows, size_t row,
                         size_t count) {
  return tarn_copy_d2h(rows->place.device, rows->bounce,
                       rows->address + row * rows->stride, extent(rows, count),
                       NULL);
}

static tarn_status take_far(const tarn__table_rows *rows, size_t row,
                            unsigned char *file, size_t count) {
  size_t some = 0;
  for (size_t i = 0; i < count; i += some) {
    some = fit(rows, count - i);
    TARN__TRY(fetch(rows, row + i, some));
    take(rows, rows->bounce, file + i * rows->row, some);
  }
  return TARN_OK;
}

static tarn_status give_far(const tarn__table_rows *rows, size_t row,
                            const unsigned char *file, size_t count) {
  size_t some = 0;
  bool gaps = rows->stride != rows->row_memory;
  for (size_t i = 0; i < count; i += some) {
    some = fit(rows, count - i);
    if (gaps) TARN__TRY(fetch(rows, row + i, some));
    give(rows, rows->bounce, file + i * rows->row, some);
    TARN__TRY(tarn_copy_h2d(rows->place.device,
                            rows->address + (row + i) * rows->stride,
                            rows->bounce, extent(rows, some), NULL));
  }
  return TARN_OK;
}

// --- rows on a disk --------------------------------------------------------

// To |out|, or from |in| if that is NULL.
static tarn_status page(const tarn__table_rows *rows, size_t row, size_t count,
                        unsigned char *out, const unsigned char *in) {
  enum { WINDOW = 512 };
  const tarn__whole_pager *pager = rows->tensor.whole->pager;
  tarn__whole_tensor tensor;
  uint64_t blocks[WINDOW];
  void *pinned[WINDOW];
  size_t byte = 0;
  size_t some = 0;
  TARN__TRY(tarn__tensor_check(&rows->tensor, &tensor));
  for (size_t at = 0; at < count; at += some) {
    size_t most = tarn__lesser(count - at, WINDOW);
    for (size_t i = 0; i < most; i++)
      blocks[i] = tarn__pager_find(&tensor, rows->first + row + at + i, &byte);
    TARN__TRY(pager->pin(pager->context, blocks, most, pinned, &some));
    for (size_t i = 0; i < some; i++) {
      unsigned char *bytes = (unsigned char *)pinned[i] + byte;
      size_t offset = (at + i) * rows->row;
      if (out != NULL) {
        take(rows, bytes, out + offset, 1);
      } else {
        give(rows, bytes, in + offset, 1);
      }
    }
    pager->unpin(pager->context, pinned, some, out == NULL);
  }
  return TARN_OK;
}

// --- both ------------------------------------------------------------------

tarn_status tarn__table_rows_get(const tarn__table_rows *rows, size_t offset,
                                 void *out, size_t size) {
  const void *seen = tarn__table_rows_at(rows, offset);
  if (seen != NULL) {
    memcpy(out, seen, size);
    return TARN_OK;
  }
  if (rows->linear) {
    return tarn_copy_d2h(rows->place.device, out, rows->address + offset, size,
                         NULL);
  }
  size_t row = offset / rows->row;
  size_t count = size / rows->row;
  if (rows->paged) return page(rows, row, count, out, NULL);
  if (rows->view == NULL) return take_far(rows, row, out, count);
  take(rows, rows->view + row * rows->stride, out, count);
  return TARN_OK;
}

tarn_status tarn__table_rows_put(const tarn__table_rows *rows, size_t offset,
                                 const void *bytes, size_t size) {
  void *seen = tarn__table_rows_at(rows, offset);
  if (seen != NULL) {
    memcpy(seen, bytes, size);
    return TARN_OK;
  }
  if (rows->linear) {
    return tarn_copy_h2d(rows->place.device, rows->address + offset, bytes,
                         size, NULL);
  }
  size_t row = offset / rows->row;
  size_t count = size / rows->row;
  if (rows->paged) return page(rows, row, count, NULL, bytes);
  if (rows->view == NULL) return give_far(rows, row, bytes, count);
  give(rows, rows->view + row * rows->stride, bytes, count);
  return TARN_OK;
}
