// A table: a whole and the tensor that fills it, made together. Here the tensor
// is known before the memory is cut, so that blocks are its rows.
#include <string.h>

#include "base/status.h"
#include "whole/whole.h"

static tarn_status take(const tarn_whole_table_options *given,
                        tarn_whole_table_options *out) {
  size_t size = 0;
  memset(out, 0, sizeof *out);
  if (given == NULL) return tarn__fail(TARN_E_INVALID, "table options: NULL");
  if (!tarn__struct_size(given->struct_size,
                         TARN__SIZE_UP_TO(tarn_whole_table_options, name),
                         sizeof *out, &size)) {
    return tarn__fail(TARN_E_INVALID, "table options: struct_size is %zu",
                      given->struct_size);
  }
  memcpy(out, given, size);
  return TARN_OK;
}

static size_t width_of(const tarn_whole_table_options *table) {
  return table->width > 0 ? table->width : 1;
}

// The bytes of a row and of all rows.
static tarn_status measure(const tarn_whole_table_options *table,
                           tarn_whole_options *out) {
  size_t element = tarn_dtype_size(table->dtype);
  if (element == 0) {
    return tarn__fail(TARN_E_INVALID, "table options: %d is no dtype",
                      (int)table->dtype);
  }
  if (tarn_size_mul(width_of(table), element, &out->granularity) &&
      tarn_size_mul(table->rows, out->granularity, &out->size)) {
    return TARN_OK;
  }
  return tarn__fail(TARN_E_INVALID,
                    "table options: %zu rows of %zu x %s overflow", table->rows,
                    width_of(table), tarn_dtype_name(table->dtype));
}

static tarn_whole_tensor tensor_of(tarn_whole *whole,
                                   const tarn_whole_table_options *table) {
  return (tarn_whole_tensor){.whole = whole,
                             .dtype = table->dtype,
                             .dims = table->width > 0 ? 2 : 1,
                             .rows = table->rows,
                             .width = width_of(table),
                             .stride = width_of(table)};
}

tarn_status tarn_whole_table_create(tarn_comm *comm,
                                    const tarn_whole_table_options *options,
                                    tarn_whole_tensor *out_tensor) {
  tarn_whole_table_options table;
  tarn_whole *whole = NULL;
  if (out_tensor != NULL) memset(out_tensor, 0, sizeof *out_tensor);
  tarn_status status = take(options, &table);
  if (status == TARN_OK && out_tensor == NULL) {
    status = tarn__fail(TARN_E_INVALID, "table: NULL");
  }
  tarn_whole_options bytes = {.struct_size = sizeof bytes,
                              .type = table.type,
                              .place = table.place,
                              .partition = table.partition,
                              .name = table.name};
  if (status == TARN_OK) status = measure(&table, &bytes);
  const tarn__whole_request wish = {.refused = status,
                                    .call = TARN__WHOLE_TABLE_CREATE,
                                    .options = &bytes,
                                    .dtype = table.dtype,
                                    .width = table.width};
  status = tarn__whole_create(comm, &wish, &whole);
  if (status == TARN_OK && out_tensor != NULL) {
    *out_tensor = tensor_of(whole, &table);
  }
  return status;
}
