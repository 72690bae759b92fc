// Gather, scatter and scatter-add of whole memory: the public calls. Where all
// of it is mapped, each rank moves its rows itself. Other rows, sums, to which
// several ranks may add, and rows of several copies go to exchange.c.
#include "whole/rows.h"

#include <stdio.h>
#include <string.h>

#include "base/convert.h"
#include "base/status.h"

// --- arguments -------------------------------------------------------------

static tarn_status check_place(tarn_place place) {
  bool known = place.kind == TARN_PLACE_HOST ||
               place.kind == TARN_PLACE_DEVICE ||
               place.kind == TARN_PLACE_UNIFIED;
  if (known && (place.device != NULL || place.kind == TARN_PLACE_HOST)) {
    return TARN_OK;
  }
  return tarn__fail(
      TARN_E_INVALID, "whole rows: invalid place of kind %d with %s",
      (int)place.kind, place.device != NULL ? "a device" : "no device");
}

// Checks all but the table, which the indices are not looked up in here.
static tarn_status check_dense(const tarn__whole_tensor *table,
                               const tarn_whole_rows *given, tarn_rows *out) {
  tarn_dtype dense = given->dense_dtype;
  tarn_rows rows = {
      .struct_size = sizeof rows,
      .table_dtype = table->dtype,
      .table_stride = table->stride,
      .width = table->width,
      .dense = given->dense,
      .dense_dtype = dense != TARN_DTYPE_NONE ? dense : table->dtype,
      .dense_stride = given->dense_stride,
      .indices = given->indices,
      .index_dtype = given->index_dtype,
      .index_count = given->index_count,
      .flags = given->flags,
      .threads = given->threads,
  };
  return tarn__rows_check(&rows, out);
}

static tarn_status check_add(tarn__rows_action action, tarn_dtype dtype) {
  if (action != TARN__ROWS_SCATTER_ADD || tarn__convert_can_add(dtype)) {
    return TARN_OK;
  }
  return tarn__fail(TARN_E_INVALID,
                    "whole rows: elements of %s cannot be added",
                    tarn_dtype_name(dtype));
}

static tarn_device *device_of(const tarn_whole *whole, tarn_place place) {
  return place.device != NULL ? place.device : whole->host;
}

static tarn_status check_stream(const tarn_whole *whole, tarn_place place,
                                tarn_stream *stream) {
  if (stream == NULL) return TARN_OK;
  tarn_device *device = tarn_stream_device(stream);
  if (device == device_of(whole, place) ||
      device == device_of(whole, whole->place)) {
    return TARN_OK;
  }
  return tarn__fail(TARN_E_INVALID,
                    "whole rows: the stream is of %s, but neither the table "
                    "nor the dense rows are there",
                    tarn_device_name(device));
}

tarn_status tarn__rows_order_read(tarn__rows_action action,
                                  const tarn_whole_tensor *table,
                                  const tarn_whole_rows *given,
                                  tarn_stream *stream,
                                  tarn__whole_rows_order *out) {
  tarn_whole_rows taken;
  *out = (tarn__whole_rows_order){.action = action, .stream = stream};
  TARN__TRY(tarn__tensor_check(table, &out->table));
  TARN__TRY(tarn__take_struct("whole rows", given,
                              TARN__SIZE_UP_TO(tarn_whole_rows, threads),
                              &taken, sizeof taken));
  TARN__TRY(check_place(taken.place));
  TARN__TRY(check_add(action, table->dtype));
  out->place = taken.place;
  TARN__TRY(check_stream(table->whole, taken.place, stream));
  return check_dense(&out->table, &taken, &out->rows);
}

// --- mapped types ----------------------------------------------------------

static tarn_status move(const tarn__whole_rows_order *order) {
  const tarn__whole_tensor *table = &order->table;
  tarn__whole_carriage carriage = {.action = order->action,
                                   .rows = order->rows,
                                   .table = table->whole->place,
                                   .dense = order->place,
                                   .host = table->whole->host};
  carriage.rows.table = table->whole->reference;
  carriage.rows.table_offset = table->offset;
  carriage.rows.table_count = table->rows;
  return tarn__rows_carry(&carriage, order->stream);
}

// A device's own text may not name the bad index: finds it again on the host.
static tarn_status explain(const tarn__whole_rows_order *order,
                           tarn_status status) {
  enum { SOME = 256 };
  int64_t room[SOME];
  tarn_rows rows = order->rows;
  tarn__failure failure = tarn__failure_of(status);
  if (status != TARN_E_INVALID || order->stream != NULL) return status;
  rows.table_count = order->table.rows;
  if (tarn__rows_check_indices(order->place, &rows, room, SOME) !=
      TARN_E_INVALID) {
    return tarn__failure_tell(&failure);
  }
  return status;
}

tarn_status tarn__rows_move_mapped(const tarn__whole_rows_order *order) {
  return explain(order, move(order));
}

// --- the calls -------------------------------------------------------------

bool tarn__rows_are_alone(tarn__rows_action action, const tarn_whole *whole) {
  bool in_copies = whole->spread == TARN_WHOLE_COPIES;
  if (!whole->mapped) return false;
  return action == TARN__ROWS_GATHER ||
         (action == TARN__ROWS_SCATTER && !in_copies);
}

tarn_status tarn__whole_rows_run(tarn__rows_action action,
                                 const tarn_whole_tensor *table,
                                 const tarn_whole_rows *rows,
                                 tarn_stream *stream, tarn_status status) {
  tarn__whole_rows_order order = {.action = action};
  tarn__whole_subject subject;
  if (table == NULL) return tarn__fail(TARN_E_INVALID, "whole rows: NULL");
  TARN__TRY(tarn__whole_check(table->whole));
  if (status == TARN_OK)
    status = tarn__rows_order_read(action, table, rows, stream, &order);
  if (!tarn__rows_are_alone(action, table->whole)) {
    return tarn__exchange_run(table->whole, &order, status);
  }
  if (status == TARN_OK) status = tarn__rows_move_mapped(&order);
  if (status == TARN_OK) return TARN_OK;
  subject = tarn__whole_subject_of((tarn__whole_call)action, table->whole);
  return tarn__whole_say_call(&subject, status);
}

tarn_status tarn_whole_gather(const tarn_whole_tensor *table,
                              const tarn_whole_rows *rows,
                              tarn_stream *stream) {
  return tarn__whole_rows_run(TARN__ROWS_GATHER, table, rows, stream, TARN_OK);
}

tarn_status tarn_whole_scatter(const tarn_whole_tensor *table,
                               const tarn_whole_rows *rows,
                               tarn_stream *stream) {
  return tarn__whole_rows_run(TARN__ROWS_SCATTER, table, rows, stream, TARN_OK);
}

tarn_status tarn_whole_scatter_add(const tarn_whole_tensor *table,
                                   const tarn_whole_rows *rows,
                                   tarn_stream *stream) {
  return tarn__whole_rows_run(TARN__ROWS_SCATTER_ADD, table, rows, stream,
                              TARN_OK);
}
