// Rows between two places. A device that reaches both ends moves them itself.
// If there is none, the device of the table moves them from or to a block of
// its own, and copies connect the block with the dense rows:
//
//   dense, indices          block of a pool             table
//   at their place ──copy──► [ indices | rows ] ◄─rows─► at its place
//                  ◄─copy──
//
// The block has a bounded size, so rows pass through it a part at a time. All
// indices are checked before the first row moves.
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "tarn/rows.h"
#include "whole/rows.h"

enum {
  BLOCK_ROWS = 1 << 20,   // bytes of dense rows that go at a time, or one row
  BLOCK_INDICES = 32768,  // of them at most
  ALIGNMENT = 64,
};

// --- which memory a device or the host reaches -----------------------------

bool tarn__rows_are_touchable(tarn_place place) {
  return place.kind != TARN_PLACE_DEVICE || tarn_place_equal(place, TARN_HOST);
}

static tarn_device *device_of(const tarn__whole_carriage *c, tarn_place place) {
  return place.device != NULL ? place.device : c->host;
}

// The function that moves rows, and the extension of a device that moves them
// itself.
static const struct {
  tarn_status (*move)(tarn_device *device, const tarn_rows *rows,
                      tarn_stream *stream);
  uint32_t extension;
} actions[] = {
    [TARN__ROWS_GATHER] = {tarn_rows_gather, TARN_EXTENSION_GATHER},
    [TARN__ROWS_SCATTER] = {tarn_rows_scatter, TARN_EXTENSION_SCATTER},
    [TARN__ROWS_SCATTER_ADD] = {tarn_rows_scatter_add,
                                TARN_EXTENSION_SCATTER_ADD},
};

// Whether |device| reaches its place on the host. Where the library stands in
// for a function, it copies within the device, for which no memory of the host
// is its own. A table is registered; all else is pinned if the device can do
// that, and plain memory if not.
static bool reaches_host(const tarn__whole_carriage *c, tarn_device *device,
                         bool is_table) {
  return (tarn_device_extensions(device) & actions[c->action].extension) != 0 &&
         (is_table ||
          (tarn_device_functions(device) & TARN_FN_HOST_MEMORY) != 0);
}

static bool reaches(const tarn__whole_carriage *c, tarn_device *device,
                    bool is_table) {
  tarn_place place = is_table ? c->table : c->dense;
  if (device == c->host) return tarn__rows_are_touchable(place);
  if (device != place.device) return false;
  return place.kind != TARN_PLACE_HOST || reaches_host(c, device, is_table);
}

// A device that can move the rows without copies; NULL: none. The device of the
// stream is preferred, since the call need not wait then.
static tarn_device *find_device(const tarn__whole_carriage *c,
                                tarn_stream *stream) {
  tarn_device *candidates[] = {
      stream != NULL ? tarn_stream_device(stream) : c->host,
      device_of(c, c->table), device_of(c, c->dense), c->host};
  for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++) {
    if (reaches(c, candidates[i], true) && reaches(c, candidates[i], false)) {
      return candidates[i];
    }
  }
  return NULL;
}

// Of the hint to pass the caches by, only the host is sure to know.
static tarn_status move(const tarn__whole_carriage *c, tarn_device *device,
                        const tarn_rows *given, tarn_stream *stream) {
  tarn_rows rows = *given;
  if (device != c->host) rows.flags &= ~(uint64_t)TARN_ROWS_PAST_CACHES;
  return actions[c->action].move(device, &rows, stream);
}

// --- copies ----------------------------------------------------------------

// At least one end is a device's own memory.
static tarn_status copy(tarn_place to, tarn_addr target, tarn_place from,
                        tarn_addr source, size_t size) {
  void *bytes = NULL;
  if (tarn__rows_are_touchable(to)) {
    TARN__TRY(tarn_device_host_view(to, target, size, &bytes));
    return tarn_copy_d2h(from.device, bytes, source, size, NULL);
  }
  if (tarn__rows_are_touchable(from)) {
    TARN__TRY(tarn_device_host_view(from, source, size, &bytes));
    return tarn_copy_h2d(to.device, target, bytes, size, NULL);
  }
  return tarn_copy_p2p(to.device, target, from.device, source, size, NULL);
}

// --- indices on the host ---------------------------------------------------

// Narrow numbers in the second half of |room| become wide ones in all of it.
// From the first on, none is written over before it was read.
static void widen(int64_t *room, size_t count) {
  const unsigned char *narrow =
      (const unsigned char *)room + count * sizeof(int32_t);
  for (size_t i = 0; i < count; i++)
    room[i] = tarn__rows_index_at(TARN_DTYPE_I32, narrow, i);
}

tarn_status tarn__rows_view_indices(tarn_place place, const tarn_rows *rows,
                                    size_t first, size_t count, int64_t *room,
                                    const void **out_indices) {
  bool narrow = rows->index_dtype == TARN_DTYPE_I32;
  size_t index = tarn_dtype_size(rows->index_dtype);
  size_t size = count * index;
  tarn_addr address = rows->indices + first * index;
  unsigned char *copied = (unsigned char *)room + (narrow ? size : 0);
  void *bytes = NULL;
  *out_indices = room;
  if (tarn__rows_are_touchable(place)) {
    TARN__TRY(tarn_device_host_view(place, address, size, &bytes));
    if (!narrow) *out_indices = bytes;
    if (narrow) memcpy(copied, bytes, size);
  } else {
    TARN__TRY(tarn_copy_d2h(place.device, copied, address, size, NULL));
  }
  if (narrow) widen(room, count);
  return TARN_OK;
}

static tarn_status refuse(const tarn_rows *rows, int64_t index,
                          size_t position) {
  char text[128];
  tarn__rows_say_bad(rows, index, position, text, sizeof text);
  return tarn__fail(TARN_E_INVALID, "rows: %s", text);
}

static tarn_status check_some(const tarn_rows *rows, const void *indices,
                              size_t first, size_t count) {
  for (size_t i = 0; i < count; i++) {
    int64_t index = tarn__rows_index_at(TARN_DTYPE_I64, indices, i);
    if (!tarn__rows_has(rows, index)) return refuse(rows, index, first + i);
  }
  return TARN_OK;
}

tarn_status tarn__rows_check_indices(tarn_place place, const tarn_rows *rows,
                                     int64_t *room, size_t most) {
  if ((rows->flags & TARN_ROWS_SKIP_BAD) != 0) return TARN_OK;
  for (size_t i = 0; i < rows->index_count; i += most) {
    size_t count = tarn__lesser(rows->index_count - i, most);
    const void *indices = NULL;
    TARN__TRY(tarn__rows_view_indices(place, rows, i, count, room, &indices));
    TARN__TRY(check_some(rows, indices, i, count));
  }
  return TARN_OK;
}

// --- by way of a block -----------------------------------------------------

typedef struct ferry {
  const tarn__whole_carriage *carriage;
  tarn_device *device;  // that reaches the table
  tarn_place place;     // its memory
  tarn_block block;
  size_t dense_bytes;  // of a row
  size_t index_bytes;
  size_t most;        // rows at a time
  size_t indices_at;  // in the block
} ferry;

// Dense rows from |first| on to the block, or from there: in one copy where
// there is no gap between them, which would be another's.
static tarn_status copy_dense(const ferry *f, size_t first, size_t count,
                              bool back) {
  const tarn_rows *rows = &f->carriage->rows;
  bool packed = rows->dense_stride == f->dense_bytes;
  size_t copies = packed ? 1 : count;
  size_t size = packed ? count * f->dense_bytes : f->dense_bytes;
  for (size_t k = 0; k < copies; k++) {
    tarn_addr here = f->block.address + k * f->dense_bytes;
    tarn_addr there = rows->dense + (first + k) * rows->dense_stride;
    TARN__TRY(back ? copy(f->carriage->dense, there, f->place, here, size)
                   : copy(f->place, here, f->carriage->dense, there, size));
  }
  return TARN_OK;
}

static tarn_status cross(const ferry *f, size_t first, size_t count) {
  tarn__rows_action action = f->carriage->action;
  tarn_rows rows = f->carriage->rows;
  tarn_addr indices = rows.indices + first * f->index_bytes;
  rows.dense = f->block.address;
  rows.dense_stride = f->dense_bytes;
  rows.indices = f->block.address + f->indices_at;
  rows.index_count = count;
  TARN__TRY(copy(f->place, rows.indices, f->carriage->dense, indices,
                 count * f->index_bytes));
  if (action != TARN__ROWS_GATHER) {
    TARN__TRY(copy_dense(f, first, count, false));
  }
  TARN__TRY(move(f->carriage, f->device, &rows, NULL));
  if (action == TARN__ROWS_GATHER) {
    TARN__TRY(copy_dense(f, first, count, true));
  }
  return TARN_OK;
}

static tarn_status cross_all(const ferry *f) {
  size_t all = f->carriage->rows.index_count;
  for (size_t i = 0; i < all; i += f->most)
    TARN__TRY(cross(f, i, tarn__lesser(all - i, f->most)));
  return TARN_OK;
}

// Rows that go at a time, and the block for them.
static bool plan_block(ferry *f, size_t *out_size) {
  size_t fit = f->dense_bytes > 0 ? BLOCK_ROWS / f->dense_bytes : SIZE_MAX;
  f->most = tarn__lesser(tarn__lesser(fit, BLOCK_INDICES),
                         f->carriage->rows.index_count);
  if (f->most == 0) f->most = 1;
  return tarn_size_mul(f->most, f->dense_bytes, out_size) &&
         tarn_size_align_up(*out_size, ALIGNMENT, &f->indices_at) &&
         tarn_size_add(f->indices_at, f->most * f->index_bytes, out_size);
}

static tarn_status take_block(ferry *f) {
  tarn_pool *pool = NULL;
  size_t size = 0;
  if (!plan_block(f, &size)) {
    return tarn__fail(
        TARN_E_INVALID,
        "whole rows: a row of %zu bytes is too large for a staging block",
        f->dense_bytes);
  }
  TARN__TRY(tarn_pool_of(f->place, &pool));
  return tarn_pool_alloc(pool, size, ALIGNMENT, NULL, &f->block);
}

// As many at a time as cross: a copy from a device takes long.
static tarn_status check_indices(const tarn__whole_carriage *c) {
  size_t most = tarn__lesser(c->rows.index_count, BLOCK_INDICES);
  if ((c->rows.flags & TARN_ROWS_SKIP_BAD) != 0) return TARN_OK;
  int64_t *room = tarn__host_array(most, sizeof *room);
  if (room == NULL) return TARN_E_NOMEM;
  tarn_status status = tarn__rows_check_indices(c->dense, &c->rows, room, most);
  tarn__host_free_array(room, most, sizeof *room);
  return status;
}

// By the device of the table, or the host.
static tarn_status ferry_across(const tarn__whole_carriage *c) {
  bool touchable = tarn__rows_are_touchable(c->table);
  ferry f = {.carriage = c,
             .device = touchable ? c->host : c->table.device,
             .place = touchable ? TARN_HOST : c->table,
             .dense_bytes = tarn__rows_dense_bytes(&c->rows),
             .index_bytes = tarn_dtype_size(c->rows.index_dtype)};
  TARN__TRY(check_indices(c));
  TARN__TRY(take_block(&f));
  tarn_status status = cross_all(&f);
  tarn__keep_first(&status, tarn_pool_free(&f.block, NULL));
  return status;
}

// --- all of it -------------------------------------------------------------

tarn_status tarn__rows_carry(const tarn__whole_carriage *carriage,
                             tarn_stream *stream) {
  tarn_rows checked;
  tarn_device *device = find_device(carriage, stream);
  if (device != NULL && stream != NULL &&
      tarn_stream_device(stream) == device) {
    return move(carriage, device, &carriage->rows, stream);
  }
  TARN__TRY(stream != NULL ? tarn_stream_synchronize(stream) : TARN_OK);
  if (device != NULL) {
    return move(carriage, device, &carriage->rows, NULL);
  }
  tarn_status status = tarn__rows_check(&carriage->rows, &checked);
  if (status != TARN_OK || checked.index_count == 0) return status;
  tarn__whole_carriage whole = *carriage;
  whole.rows = checked;
  return ferry_across(&whole);
}
