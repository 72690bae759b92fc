// Tensors: views of whole memory as rows of elements.
//
//            offset
//   whole   | . . . |r0 ....|. .|r1 ....|. .|r2 ....|. . . |
//   owners  |     rank 0            |      rank 1          |
//                   |<-width->|
//                   |<- stride ->|
//
// A row has one owner in every partition. This is checked once for each
// boundary between ranks, not for each row. Sizes are elements in the public
// struct, and bytes in the internal one.
#include <assert.h>
#include <string.h>

#include "base/status.h"
#include "whole/whole.h"

// --- what is one -----------------------------------------------------------

// The end of the last row; 0 for a tensor without rows.
static bool find_end(const tarn__whole_tensor *tensor, size_t *out_end) {
  *out_end = 0;
  if (tensor->rows == 0) return true;
  return tarn_size_mul(tensor->stride, tensor->rows - 1, out_end) &&
         tarn_size_add(*out_end, tensor->offset, out_end) &&
         tarn_size_add(*out_end, tensor->row_bytes, out_end);
}

// In bytes; false: something overflows.
static bool measure(const tarn_whole_tensor *tensor, tarn__whole_tensor *out,
                    size_t *out_end) {
  size_t element = tarn_dtype_size(tensor->dtype);
  *out = (tarn__whole_tensor){.whole = tensor->whole,
                              .dtype = tensor->dtype,
                              .rows = tensor->rows,
                              .width = tensor->width};
  return tarn_size_mul(tensor->width, element, &out->row_bytes) &&
         tarn_size_mul(tensor->stride, element, &out->stride) &&
         tarn_size_mul(tensor->offset, element, &out->offset) &&
         find_end(out, out_end);
}

static tarn_status check_form(const tarn_whole_tensor *tensor) {
  if (tarn_dtype_size(tensor->dtype) == 0) {
    return tarn__fail(TARN_E_INVALID, "whole tensor: unknown dtype %d",
                      (int)tensor->dtype);
  }
  bool vector = tensor->dims == 1 && tensor->width == 1;
  if (!vector && tensor->dims != 2) {
    return tarn__fail(TARN_E_INVALID,
                      "whole tensor: dims is %zu and width is %zu, where a "
                      "vector has dims 1 and width 1, and a matrix dims 2",
                      tensor->dims, tensor->width);
  }
  if (tensor->width > 0 && tensor->width <= tensor->stride) return TARN_OK;
  return tarn__fail(TARN_E_INVALID,
                    "whole tensor: width is %zu and stride is %zu elements; "
                    "width must be above 0 and stride no less than width",
                    tensor->width, tensor->stride);
}

static tarn_status check_extent(const tarn_whole_tensor *tensor,
                                tarn__whole_tensor *out) {
  size_t end = 0;
  if (measure(tensor, out, &end) && end <= tensor->whole->size) return TARN_OK;
  return tarn__fail(
      TARN_E_INVALID,
      "whole tensor: %zu rows of %zu x %s with stride %zu and offset %zu do "
      "not fit in the %zu bytes of the whole memory",
      tensor->rows, tensor->width, tarn_dtype_name(tensor->dtype),
      tensor->stride, tensor->offset, tensor->whole->size);
}

// The row that byte |at| is within, but not at its beginning; |rows|: none.
static size_t row_across(const tarn__whole_tensor *tensor, size_t at) {
  assert(tensor->stride > 0);
  if (at <= tensor->offset) return tensor->rows;
  size_t row = (at - tensor->offset) / tensor->stride;
  size_t within = (at - tensor->offset) % tensor->stride;
  bool across = within > 0 && within < tensor->row_bytes;
  return across && row < tensor->rows ? row : tensor->rows;
}

static tarn_status check_owners(const tarn__whole_tensor *tensor) {
  const tarn_whole *whole = tensor->whole;
  for (size_t r = 1; r < whole->ranks; r++) {
    size_t row = row_across(tensor, whole->offsets[r]);
    if (row < tensor->rows) {
      return tarn__fail(
          TARN_E_INVALID,
          "whole tensor: row %zu (%zu bytes) has two owners: the part of rank "
          "%zu begins within it, since blocks have %zu bytes. Create the whole "
          "memory with a granularity of %zu, or by tarn_whole_table_create",
          row, tensor->row_bytes, r, whole->granularity, tensor->row_bytes);
    }
  }
  return TARN_OK;
}

// A row is in one block, at the same byte as in others.
static tarn_status check_pager(const tarn__whole_tensor *tensor) {
  size_t block = tensor->whole->granularity;
  bool spaced = tensor->rows <= 1 || tensor->stride % block == 0;
  if (tensor->whole->pager == NULL) return TARN_OK;
  if (spaced && tensor->offset % block + tensor->row_bytes <= block)
    return TARN_OK;
  return tarn__fail(
      TARN_E_INVALID,
      "whole tensor: rows of %zu bytes with a stride of %zu and an offset of "
      "%zu bytes are not within records of %zu, in which the table is on the "
      "disk",
      tensor->row_bytes, tensor->stride, tensor->offset, block);
}

static tarn_status check_tensor(const tarn_whole_tensor *tensor,
                                tarn__whole_tensor *out) {
  TARN__TRY(check_form(tensor));
  TARN__TRY(check_extent(tensor, out));
  TARN__TRY(check_pager(out));
  return check_owners(out);
}

tarn_status tarn__tensor_check(const tarn_whole_tensor *tensor,
                               tarn__whole_tensor *out) {
  memset(out, 0, sizeof *out);
  if (tensor == NULL) return tarn__fail(TARN_E_INVALID, "whole tensor: NULL");
  TARN__TRY(tarn__whole_check(tensor->whole));
  return check_tensor(tensor, out);
}

// --- making ----------------------------------------------------------------

// A tensor that fits for one number of ranks should fit for all: a row must be
// a number of blocks, or a block a number of rows.
static tarn_status check_blocks(const tarn_whole_tensor *tensor) {
  size_t bytes = 0;
  size_t block = tensor->whole->granularity;
  bool fits =
      tarn_size_mul(tensor->width, tarn_dtype_size(tensor->dtype), &bytes) &&
      bytes > 0 && (bytes % block == 0 || block % bytes == 0);
  if (fits) return TARN_OK;
  return tarn__fail(TARN_E_INVALID,
                    "whole tensor: rows of %zu x %s and blocks of %zu bytes: "
                    "neither size is a multiple of the other",
                    tensor->width, tarn_dtype_name(tensor->dtype), block);
}

tarn_whole_tensor tarn__tensor_of(tarn_whole *whole, tarn_dtype dtype,
                                  size_t rows, size_t width) {
  size_t length = width > 0 ? width : 1;
  return (tarn_whole_tensor){.whole = whole,
                             .dtype = dtype,
                             .dims = width > 0 ? 2 : 1,
                             .rows = rows,
                             .width = length,
                             .stride = length};
}

tarn_status tarn_whole_tensor_make(tarn_whole *whole, tarn_dtype dtype,
                                   size_t rows, size_t width,
                                   tarn_whole_tensor *out_tensor) {
  tarn__whole_tensor measured;
  if (out_tensor == NULL)
    return tarn__fail(TARN_E_INVALID, "whole tensor: NULL");
  memset(out_tensor, 0, sizeof *out_tensor);
  TARN__TRY(tarn__whole_check(whole));
  tarn_whole_tensor made = tarn__tensor_of(whole, dtype, rows, width);
  TARN__TRY(check_form(&made));
  TARN__TRY(check_blocks(&made));
  TARN__TRY(check_tensor(&made, &measured));
  *out_tensor = made;
  return TARN_OK;
}

// Sets |*end| where it is that of the tensor.
static tarn_status check_ends(const char *what, size_t begin, size_t count,
                              size_t *end) {
  if (*end == TARN_WHOLE_END) *end = count;
  if (begin <= *end && *end <= count) return TARN_OK;
  return tarn__fail(
      TARN_E_INVALID,
      "whole tensor: %s %zu to %zu are not a range within 0 to %zu", what,
      begin, *end, count);
}

tarn_status tarn_whole_tensor_sub(const tarn_whole_tensor *tensor,
                                  size_t row_begin, size_t row_end,
                                  size_t column_begin, size_t column_end,
                                  tarn_whole_tensor *out_tensor) {
  tarn__whole_tensor measured;
  if (out_tensor == NULL)
    return tarn__fail(TARN_E_INVALID, "whole tensor: NULL");
  tarn_whole_tensor made = {.whole = NULL};
  if (tensor != NULL) made = *tensor;
  memset(out_tensor, 0, sizeof *out_tensor);
  TARN__TRY(tarn__tensor_check(tensor != NULL ? &made : NULL, &measured));
  TARN__TRY(check_ends("rows", row_begin, made.rows, &row_end));
  TARN__TRY(check_ends("columns", column_begin, made.width, &column_end));
  if (column_begin == column_end) {
    return tarn__fail(TARN_E_INVALID,
                      "whole tensor: the range of columns is empty");
  }
  made.rows = row_end - row_begin;
  made.width = column_end - column_begin;
  made.offset += row_begin * made.stride + column_begin;
  *out_tensor = made;
  return TARN_OK;
}

// --- rows of a rank --------------------------------------------------------

size_t tarn__tensor_row_from(const tarn__whole_tensor *tensor, size_t at) {
  if (at <= tensor->offset) return 0;
  size_t distance = at - tensor->offset;
  size_t row = distance / tensor->stride + (distance % tensor->stride != 0);
  return row < tensor->rows ? row : tensor->rows;
}

void tarn__tensor_rows(const tarn__whole_tensor *tensor, size_t rank,
                       size_t *out_first, size_t *out_count) {
  assert(tensor->whole != NULL);
  const size_t *offsets = tensor->whole->offsets;
  *out_first = tarn__tensor_row_from(tensor, offsets[rank]);
  *out_count = tarn__tensor_row_from(tensor, offsets[rank + 1]) - *out_first;
}

tarn_status tarn_whole_tensor_rows(const tarn_whole_tensor *tensor, size_t rank,
                                   size_t *out_first, size_t *out_count) {
  tarn__whole_tensor measured;
  if (out_first == NULL || out_count == NULL) {
    return tarn__fail(TARN_E_INVALID, "whole tensor: NULL");
  }
  *out_first = 0;
  *out_count = 0;
  TARN__TRY(tarn__tensor_check(tensor, &measured));
  TARN__TRY(tarn__whole_check_rank(measured.whole, rank));
  tarn__tensor_rows(&measured, rank, out_first, out_count);
  return TARN_OK;
}

tarn_status tarn_whole_tensor_local(const tarn_whole_tensor *tensor,
                                    tarn_addr *out_address) {
  tarn__whole_tensor measured;
  size_t first = 0;
  size_t count = 0;
  if (out_address == NULL) {
    return tarn__fail(TARN_E_INVALID, "whole tensor: NULL");
  }
  *out_address = 0;
  TARN__TRY(tarn__tensor_check(tensor, &measured));
  const tarn_whole *whole = measured.whole;
  assert(whole != NULL);
  tarn__tensor_rows(&measured, whole->rank, &first, &count);
  if (whole->pager != NULL) return tarn__whole_lacks(whole, "addresses");
  if (count == 0) return TARN_OK;
  *out_address = whole->parts[whole->rank] + measured.offset +
                 first * measured.stride - whole->offsets[whole->rank];
  return TARN_OK;
}
