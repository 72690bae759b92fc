// Gather and scatter: checked, then the device's own function, queued on the
// stream, or the stand-in, which is copies.
//
//   one staging slot    [ indices | of the table | of the dense rows ]
//
// The host reads the indices in pieces, twice: first to check all of them
// before a row moves, then to move the rows. If the dtypes are equal, a row is
// copied within the device. If elements are converted or added, a group of
// rows, or a span of a wide row, goes through the host:
//
//   gather              table ──d2h──► convert ──────────► h2d ──► dense
//   scatter, _add       dense ──d2h──► convert or add ───► h2d ──► table
//                              (add: table ──d2h──┘)
//
// Rows are moved in order, so that an index that occurs twice adds twice. Only
// one staging slot is held, as the ring requires, so nothing here may call a
// function that takes another, such as tarn_device_set.
#include "tarn/rows.h"

#include <string.h>

#include "base/convert.h"
#include "base/rows.h"
#include "device/device.h"

typedef tarn_status rows_slot(int id, void *stream, const tarn_rows *rows);

static const tarn__device_table_entry slots[] = {
    [TARN__ROWS_GATHER] = TARN__EXT_ENTRY(gather),
    [TARN__ROWS_SCATTER] = TARN__EXT_ENTRY(scatter),
    [TARN__ROWS_SCATTER_ADD] = TARN__EXT_ENTRY(scatter_add),
};

enum {
  INDEX_ROOM = 128 << 10,
  PART_ROOM = (TARN__STAGING_SLOT_SIZE - INDEX_ROOM) / 2,
};

typedef struct job {
  tarn_device *device;
  tarn__rows_action action;
  const tarn_rows *rows;
  unsigned char *indices;  // three parts of one staging slot
  unsigned char *table;
  unsigned char *dense;
  size_t loaded;  // the position of the first index that is here, and how
  size_t count;   // many are
} job;

// --- indices ---------------------------------------------------------------

static tarn_status load_indices(job *j, size_t first) {
  size_t size = tarn_dtype_size(j->rows->index_dtype);
  size_t count = tarn__lesser(j->rows->index_count - first, INDEX_ROOM / size);
  if (j->loaded == first && j->count == count) return TARN_OK;
  j->loaded = first;
  j->count = 0;
  TARN__TRY(tarn_copy_d2h(j->device, j->indices,
                          j->rows->indices + first * size, count * size, NULL));
  j->count = count;
  return TARN_OK;
}

// The index at |position|, which is loaded.
static int64_t index_at(const job *j, size_t position) {
  size_t at = position - j->loaded;
  int32_t narrow = 0;
  int64_t wide = 0;
  if (j->rows->index_dtype == TARN_DTYPE_I64) {
    memcpy(&wide, j->indices + at * sizeof wide, sizeof wide);
    return wide;
  }
  memcpy(&narrow, j->indices + at * sizeof narrow, sizeof narrow);
  return narrow;
}

static tarn_status refuse(const job *j, int64_t index, size_t position) {
  char text[TARN__ERROR_TEXT / 2];
  tarn__rows_say_bad(j->rows, index, position, text, sizeof text);
  return tarn__fail(TARN_E_INVALID, "%s: %s: %s", j->device->name,
                    slots[j->action].name, text);
}

// Where the row of the index at |position| stands; 0 for one to pass over.
static tarn_status find_row(const job *j, size_t position, tarn_addr *out) {
  *out = 0;
  int64_t index = index_at(j, position);
  if (!tarn__rows_has(j->rows, index)) {
    bool skips = (j->rows->flags & TARN_ROWS_SKIP_BAD) != 0;
    return skips ? TARN_OK : refuse(j, index, position);
  }
  if (j->rows->width == 0) return TARN_OK;
  *out = tarn__rows_locate(j->rows, (size_t)index);
  if (*out != 0) return TARN_OK;
  return tarn__fail(TARN_E_INVALID,
                    "%s: %s: row %lld of the table spans two chunks",
                    j->device->name, slots[j->action].name, (long long)index);
}

static tarn_status check_rows(const job *j) {
  for (size_t i = 0; i < j->count; i++) {
    tarn_addr row = 0;
    TARN__TRY(find_row(j, j->loaded + i, &row));
  }
  return TARN_OK;
}

// Calls |each| with each piece of the indices.
static tarn_status in_pieces(job *j, tarn_status (*each)(const job *j)) {
  for (size_t first = 0; first < j->rows->index_count; first += j->count) {
    TARN__TRY(load_indices(j, first));
    TARN__TRY(each(j));
  }
  return TARN_OK;
}

// --- rows as they are ------------------------------------------------------

static tarn_addr dense_row(const job *j, size_t position) {
  return j->rows->dense + position * j->rows->dense_stride;
}

static tarn_status clear_dense_row(const job *j, size_t position) {
  size_t size = tarn__rows_dense_bytes(j->rows);
  memset(j->dense, 0, tarn__lesser(size, PART_ROOM));
  for (size_t done = 0; done < size;) {
    size_t piece = tarn__lesser(size - done, PART_ROOM);
    TARN__TRY(tarn_copy_h2d(j->device, dense_row(j, position) + done, j->dense,
                            piece, NULL));
    done += piece;
  }
  return TARN_OK;
}

static tarn_status copy_row(const job *j, size_t position) {
  tarn_addr row = 0;
  bool gathers = j->action == TARN__ROWS_GATHER;
  TARN__TRY(find_row(j, position, &row));
  if (row == 0) return gathers ? clear_dense_row(j, position) : TARN_OK;
  tarn_addr dense = dense_row(j, position);
  size_t size = tarn__rows_dense_bytes(j->rows);
  return gathers ? tarn_copy_d2d(j->device, dense, row, size, NULL)
                 : tarn_copy_d2d(j->device, row, dense, size, NULL);
}

static tarn_status copy_rows(const job *j) {
  for (size_t i = 0; i < j->count; i++) {
    TARN__TRY(copy_row(j, j->loaded + i));
  }
  return TARN_OK;
}

// --- rows through the host -------------------------------------------------

// Elements |element| to |element| + |width| of |count| rows. Several rows are
// whole ones.
typedef struct block {
  size_t position;
  size_t count;
  size_t element;
  size_t width;
} block;

// Where the dense bytes of the block's row |k| are on the device.
static tarn_addr dense_at(const job *j, const block *b, size_t k) {
  return dense_row(j, b->position + k) +
         b->element * tarn_dtype_size(j->rows->dense_dtype);
}

// The dense rows of a block to the host or back: in one copy where no gap is
// between them.
static tarn_status copy_dense(const job *j, const block *b, bool to_host) {
  size_t bytes = b->width * tarn_dtype_size(j->rows->dense_dtype);
  bool packed = bytes == j->rows->dense_stride;
  size_t copies = packed ? 1 : b->count;
  size_t size = packed ? bytes * b->count : bytes;
  for (size_t k = 0; k < copies; k++) {
    unsigned char *here = j->dense + k * bytes;
    tarn_addr there = dense_at(j, b, k);
    TARN__TRY(to_host ? tarn_copy_d2h(j->device, here, there, size, NULL)
                      : tarn_copy_h2d(j->device, there, here, size, NULL));
  }
  return TARN_OK;
}

// |row|, of the table, becomes |dense|, on the host; zeros where there is none.
static tarn_status gather_row(const job *j, const block *b, tarn_addr row,
                              unsigned char *dense) {
  const tarn_rows *rows = j->rows;
  if (row == 0) {
    memset(dense, 0, b->width * tarn_dtype_size(rows->dense_dtype));
    return TARN_OK;
  }
  size_t size = tarn_dtype_size(rows->table_dtype);
  TARN__TRY(tarn_copy_d2h(j->device, j->table, row + b->element * size,
                          b->width * size, NULL));
  tarn__convert(rows->dense_dtype, dense, rows->table_dtype, j->table,
                b->width);
  return TARN_OK;
}

// |dense|, on the host, goes to or is added to |row|, if there is one.
static tarn_status scatter_row(const job *j, const block *b, tarn_addr row,
                               const unsigned char *dense) {
  const tarn_rows *rows = j->rows;
  size_t size = tarn_dtype_size(rows->table_dtype);
  tarn_addr there = row + b->element * size;
  if (row == 0) return TARN_OK;
  if (j->action == TARN__ROWS_SCATTER) {
    tarn__convert(rows->table_dtype, j->table, rows->dense_dtype, dense,
                  b->width);
  } else {
    TARN__TRY(tarn_copy_d2h(j->device, j->table, there, b->width * size, NULL));
    tarn__convert_add(rows->table_dtype, j->table, rows->dense_dtype, dense,
                      b->width);
  }
  return tarn_copy_h2d(j->device, there, j->table, b->width * size, NULL);
}

static tarn_status move_row(const job *j, const block *b, size_t k) {
  tarn_addr row = 0;
  TARN__TRY(find_row(j, b->position + k, &row));
  unsigned char *dense =
      j->dense + k * b->width * tarn_dtype_size(j->rows->dense_dtype);
  return j->action == TARN__ROWS_GATHER ? gather_row(j, b, row, dense)
                                        : scatter_row(j, b, row, dense);
}

static tarn_status move_block(const job *j, const block *b) {
  bool gathers = j->action == TARN__ROWS_GATHER;
  if (!gathers) TARN__TRY(copy_dense(j, b, true));
  for (size_t k = 0; k < b->count; k++) {
    TARN__TRY(move_row(j, b, k));
  }
  return gathers ? copy_dense(j, b, false) : TARN_OK;
}

static tarn_status move_rows(const job *j) {
  size_t width = j->rows->width;
  size_t dense = tarn_dtype_size(j->rows->dense_dtype);
  size_t table = tarn_dtype_size(j->rows->table_dtype);
  size_t span = PART_ROOM / (dense > table ? dense : table);
  size_t group = span > width ? span / width : 1;
  for (size_t i = 0; i < j->count; i += group) {
    size_t count = tarn__lesser(j->count - i, group);
    for (size_t e = 0; e < width; e += span) {
      block b = {j->loaded + i, count, e, tarn__lesser(width - e, span)};
      TARN__TRY(move_block(j, &b));
    }
  }
  return TARN_OK;
}

// --- all of it -------------------------------------------------------------

static tarn_status do_all(job *j) {
  bool as_it_is = j->action != TARN__ROWS_SCATTER_ADD &&
                  j->rows->table_dtype == j->rows->dense_dtype;
  TARN__TRY(in_pieces(j, check_rows));
  if (j->rows->width == 0) return TARN_OK;
  return in_pieces(j, as_it_is ? copy_rows : move_rows);
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
  unsigned char *bytes = slot;
  job j = {
      .device = device,
      .action = action,
      .rows = rows,
      .indices = bytes,
      .table = bytes + INDEX_ROOM,
      .dense = bytes + INDEX_ROOM + PART_ROOM,
  };
  status = do_all(&j);
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
