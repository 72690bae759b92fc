// Gather and scatter: checked, then the device's own function, queued on the
// stream, or the stand-in.
#include "tarn/rows.h"

#include "base/convert.h"
#include "device/device.h"
#include "device/rows.h"

const char *tarn__rows_action_name(tarn__rows_action action) {
  static const char *const names[] = {
      [TARN__ROWS_GATHER] = "gather",
      [TARN__ROWS_SCATTER] = "scatter",
      [TARN__ROWS_SCATTER_ADD] = "scatter_add",
  };
  return names[action];
}

typedef tarn_status rows_slot(int id, void *stream, const tarn_rows *rows);

static rows_slot *slot_of(const tarn_device_ext *ext,
                          tarn__rows_action action) {
  switch (action) {
    case TARN__ROWS_GATHER:
      return ext->gather;
    case TARN__ROWS_SCATTER:
      return ext->scatter;
    case TARN__ROWS_SCATTER_ADD:
      break;
  }
  return ext->scatter_add;
}

static tarn_status check(tarn_device *device, tarn__rows_action action,
                         const tarn_rows *given, tarn_stream *stream,
                         tarn_rows *out) {
  tarn_status status = tarn__device_check(device);
  if (status == TARN_OK) status = tarn__rows_check(given, out);
  if (status != TARN_OK) return status;
  if (action == TARN__ROWS_SCATTER_ADD &&
      !tarn__convert_can_add(out->table_dtype)) {
    return tarn__fail(TARN_E_INVALID, "rows: elements of %s cannot be added",
                      tarn_dtype_name(out->table_dtype));
  }
  return stream != NULL ? tarn__stream_check(stream, device) : TARN_OK;
}

// TARN_E_UNSUPPORTED: not by this device.
static tarn_status do_natively(tarn_device *device, tarn__rows_action action,
                               const tarn_rows *rows, tarn_stream *stream) {
  rows_slot *slot = slot_of(device->ext, action);
  if (slot == NULL) return TARN_E_UNSUPPORTED;
  tarn_status status = tarn__device_enter(device);
  if (status != TARN_OK) return status;
  void *native = stream != NULL ? stream->native : NULL;
  status = slot(device->handle.id, native, rows);
  return tarn__extension_result(device, tarn__rows_action_name(action), 0,
                                status);
}

static tarn_status run(tarn_device *device, tarn__rows_action action,
                       const tarn_rows *given, tarn_stream *stream) {
  tarn_rows rows;
  tarn_status status = check(device, action, given, stream, &rows);
  if (status != TARN_OK || rows.index_count == 0) return status;
  status = do_natively(device, action, &rows, stream);
  if (status == TARN_E_UNSUPPORTED) {
    status = stream != NULL ? tarn_stream_synchronize(stream) : TARN_OK;
    if (status == TARN_OK) status = tarn__rows_stand_in(device, action, &rows);
  }
  return tarn__stream_settle(stream, status);
}

tarn_status tarn_rows_gather(tarn_device *device, const tarn_rows *rows,
                             tarn_stream *stream) {
  return run(device, TARN__ROWS_GATHER, rows, stream);
}

tarn_status tarn_rows_scatter(tarn_device *device, const tarn_rows *rows,
                              tarn_stream *stream) {
  return run(device, TARN__ROWS_SCATTER, rows, stream);
}

tarn_status tarn_rows_scatter_add(tarn_device *device, const tarn_rows *rows,
                                  tarn_stream *stream) {
  return run(device, TARN__ROWS_SCATTER_ADD, rows, stream);
}
