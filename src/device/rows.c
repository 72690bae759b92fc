// Gather and scatter: checked, then the device's own function, queued on the
// stream, or the stand-in, which is copies: within the device if the dtypes are
// equal, and by a staging slot if elements are converted or added
// (base/rows_walk.c).
//
// Only one staging slot is held, as the ring requires, so nothing here may call
// a function that takes another, such as tarn_device_set.
#include "tarn/rows.h"

#include "base/convert.h"
#include "base/rows_walk.h"
#include "device/device.h"

typedef tarn_status rows_slot(int id, void *stream, const tarn_rows *rows);

static const tarn__device_table_entry slots[] = {
    [TARN__ROWS_GATHER] = TARN__EXT_ENTRY(gather),
    [TARN__ROWS_SCATTER] = TARN__EXT_ENTRY(scatter),
    [TARN__ROWS_SCATTER_ADD] = TARN__EXT_ENTRY(scatter_add),
};

// --- the stand-in ----------------------------------------------------------

static tarn_status view(void *device, tarn_addr at, size_t size, bool read,
                        unsigned char **bytes) {
  return read ? tarn_copy_d2h(device, *bytes, at, size, NULL) : TARN_OK;
}

static tarn_status write(void *device, tarn_addr to, unsigned char *bytes,
                         size_t size) {
  return tarn_copy_h2d(device, to, bytes, size, NULL);
}

static tarn_status copy(void *device, tarn_addr to, tarn_addr from,
                        size_t size) {
  return tarn_copy_d2d(device, to, from, size, NULL);
}

// After the stream was waited for. |rows| was checked. A bad index is found
// before any row is moved.
static tarn_status stand_in(tarn_device *device, tarn__rows_action action,
                            const tarn_rows *rows) {
  void *slot = NULL;
  tarn_status status = tarn__staging_acquire(device, &slot);
  if (status != TARN_OK) {
    // A shortage of host memory, and nothing has happened.
    return status == TARN_FULL ? TARN_E_NOMEM : status;
  }
  char text[TARN__ERROR_TEXT / 2];
  tarn__rows_reach reach = {view,   write, copy,
                            device, slot,  TARN__STAGING_SLOT_SIZE};
  status = tarn__rows_walk(action, rows, &reach, text, sizeof text);
  if (text[0] != '\0') {
    (void)tarn__fail(status, "%s: %s: %s", device->name, slots[action].name,
                     text);
  }
  tarn__staging_release(device, slot);
  return status;
}

// --- the functions ---------------------------------------------------------

static tarn_status check(tarn_device *device, tarn__rows_action action,
                         const tarn_rows *given, tarn_stream *stream,
                         tarn_rows *out) {
  TARN__TRY(tarn__device_check(device));
  TARN__TRY(tarn__rows_check(given, out));
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
  rows_slot *slot =
      (rows_slot *)tarn__table_at(device->ext, slots[action].offset);
  if (slot == NULL) return TARN_E_UNSUPPORTED;
  TARN__TRY(tarn__device_enter(device));
  void *native = stream != NULL ? stream->native : NULL;
  tarn_status status = slot(device->handle.id, native, rows);
  return tarn__extension_result(device, slots[action].name, 0, status);
}

static tarn_status run(tarn_device *device, tarn__rows_action action,
                       const tarn_rows *given, tarn_stream *stream) {
  tarn_rows rows;
  tarn_status status = check(device, action, given, stream, &rows);
  if (status != TARN_OK || rows.index_count == 0) return status;
  status = do_natively(device, action, &rows, stream);
  if (status == TARN_E_UNSUPPORTED) {
    status = stream != NULL ? tarn_stream_synchronize(stream) : TARN_OK;
    if (status == TARN_OK) status = stand_in(device, action, &rows);
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
