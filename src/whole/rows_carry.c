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
#include <assert.h>
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

// --- who reaches what ------------------------------------------------------

bool tarn__rows_are_touchable(tarn_place place) {
  return place.kind != TARN_PLACE_DEVICE || tarn_place_equal(place, TARN_HOST);
}

static tarn_device *device_of(const tarn__whole_carriage *c, tarn_place place) {
  return place.device != NULL ? place.device : c->host;
}

static uint32_t bit_of(tarn__rows_action action) {
  switch (action) {
    case TARN__ROWS_GATHER:
      return TARN_EXTENSION_GATHER;
    case TARN__ROWS_SCATTER:
      return TARN_EXTENSION_SCATTER;
    case TARN__ROWS_SCATTER_ADD:
      break;
  }
  return TARN_EXTENSION_SCATTER_ADD;
}

// Whether |device| reaches its place on the host. Where the library stands in
// for a function, it copies within the device, for which no memory of the host
// is its own. A table is registered; all else is pinned if the device can do
// that, and plain memory if not.
static bool reaches_host(const tarn__whole_carriage *c, tarn_device *device,
                         bool is_table) {
  return (tarn_device_extensions(device) & bit_of(c->action)) != 0 &&
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
  switch (c->action) {
    case TARN__ROWS_GATHER:
      return tarn_rows_gather(device, &rows, stream);
    case TARN__ROWS_SCATTER:
      return tarn_rows_scatter(device, &rows, stream);
    case TARN__ROWS_SCATTER_ADD:
      break;
  }
  return tarn_rows_scatter_add(device, &rows, stream);
}

// --- copies ----------------------------------------------------------------

static tarn_status view(tarn_place place, tarn_addr address, size_t size,
                        void **out) {
  return tarn_device_host_view(place, address, size, out);
}

// At least one end is a device's own memory.
static tarn_status copy(tarn_place to, tarn_addr target, tarn_place from,
                        tarn_addr source, size_t size) {
  void *bytes = NULL;
  tarn_status status = TARN_OK;
  if (tarn__rows_are_touchable(to)) {
    status = view(to, target, size, &bytes);
    if (status != TARN_OK) return status;
    return tarn_copy_d2h(from.device, bytes, source, size, NULL);
  }
  if (tarn__rows_are_touchable(from)) {
    status = view(from, source, size, &bytes);
    if (status != TARN_OK) return status;
    return tarn_copy_h2d(to.device, target, bytes, size, NULL);
  }
  return tarn_copy_p2p(to.device, target, from.device, source, size, NULL);
}

// --- indices on the host ---------------------------------------------------

static tarn_status fetch(tarn_place place, tarn_addr address, void *out,
                         size_t size) {
  void *bytes = NULL;
  if (!tarn__rows_are_touchable(place)) {
    return tarn_copy_d2h(place.device, out, address, size, NULL);
  }
  tarn_status status = view(place, address, size, &bytes);
  if (status == TARN_OK) memcpy(out, bytes, size);
  return status;
}

// Narrow numbers in the second half of |room| become wide ones in all of it.
// From the first on, none is written over before it was read.
static void widen(int64_t *room, size_t count) {
  const unsigned char *narrow =
      (const unsigned char *)room + count * sizeof(int32_t);
  for (size_t i = 0; i < count; i++) {
    int32_t value;
    memcpy(&value, narrow + i * sizeof value, sizeof value);
    room[i] = value;
  }
}

static tarn_status fetch_indices(tarn_place place, const tarn_rows *rows,
                                 size_t first, size_t count,
                                 int64_t *out_indices) {
  size_t size = tarn_dtype_size(rows->index_dtype);
  bool narrow = rows->index_dtype == TARN_DTYPE_I32;
  unsigned char *out = (unsigned char *)out_indices;
  if (narrow) out += count * size;
  tarn_status status =
      fetch(place, rows->indices + first * size, out, count * size);
  if (status == TARN_OK && narrow) widen(out_indices, count);
  return status;
}

tarn_status tarn__rows_view_indices(tarn_place place, const tarn_rows *rows,
                                    size_t first, size_t count, int64_t *room,
                                    const void **out_indices) {
  void *bytes = NULL;
  size_t size = tarn_dtype_size(rows->index_dtype);
  bool as_it_is =
      rows->index_dtype == TARN_DTYPE_I64 && tarn__rows_are_touchable(place);
  tarn_status status =
      as_it_is ? view(place, rows->indices + first * size, count * size, &bytes)
               : fetch_indices(place, rows, first, count, room);
  *out_indices = as_it_is ? bytes : room;
  return status;
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
    int64_t index;
    memcpy(&index, (const unsigned char *)indices + i * sizeof index,
           sizeof index);
    if (!tarn__rows_has(rows, index)) return refuse(rows, index, first + i);
  }
  return TARN_OK;
}

tarn_status tarn__rows_check_indices(tarn_place place, const tarn_rows *rows,
                                     int64_t *room, size_t most) {
  tarn_status status = TARN_OK;
  if ((rows->flags & TARN_ROWS_SKIP_BAD) != 0) return TARN_OK;
  for (size_t i = 0; status == TARN_OK && i < rows->index_count; i += most) {
    size_t count = tarn__lesser(rows->index_count - i, most);
    const void *indices = NULL;
    status = tarn__rows_view_indices(place, rows, i, count, room, &indices);
    if (status == TARN_OK) status = check_some(rows, indices, i, count);
  }
  return status;
}

// --- by way of a block -----------------------------------------------------

typedef struct ferry {
  const tarn__whole_carriage *carriage;
  const tarn_rows *rows;  // of the carriage
  tarn_device *device;    // that reaches the table
  tarn_place place;       // its memory
  tarn_block block;
  size_t dense_bytes;  // of a row
  size_t index_bytes;
  size_t most;        // rows at a time
  size_t indices_at;  // in the block
} ferry;

static tarn_addr dense_room(const ferry *f) {
  return f->block.address;
}

static tarn_addr index_room(const ferry *f) {
  return f->block.address + f->indices_at;
}

// Dense rows from |first| on to the block, or from there: in one copy where
// there is no gap between them, which would be another's.
static tarn_status copy_dense(const ferry *f, size_t first, size_t count,
                              bool back) {
  bool packed = f->rows->dense_stride == f->dense_bytes;
  size_t copies = packed ? 1 : count;
  size_t size = packed ? count * f->dense_bytes : f->dense_bytes;
  tarn_status status = TARN_OK;
  for (size_t k = 0; status == TARN_OK && k < copies; k++) {
    tarn_addr here = dense_room(f) + k * f->dense_bytes;
    tarn_addr there = f->rows->dense + (first + k) * f->rows->dense_stride;
    status = back ? copy(f->carriage->dense, there, f->place, here, size)
                  : copy(f->place, here, f->carriage->dense, there, size);
  }
  return status;
}

static tarn_status copy_indices(const ferry *f, size_t first, size_t count) {
  return copy(f->place, index_room(f), f->carriage->dense,
              f->rows->indices + first * f->index_bytes,
              count * f->index_bytes);
}

static tarn_status cross(const ferry *f, size_t first, size_t count) {
  tarn__rows_action action = f->carriage->action;
  tarn_rows rows = *f->rows;
  rows.dense = dense_room(f);
  rows.dense_stride = f->dense_bytes;
  rows.indices = index_room(f);
  rows.index_count = count;
  tarn_status status = copy_indices(f, first, count);
  if (status == TARN_OK && action != TARN__ROWS_GATHER) {
    status = copy_dense(f, first, count, false);
  }
  if (status == TARN_OK) status = move(f->carriage, f->device, &rows, NULL);
  if (status == TARN_OK && action == TARN__ROWS_GATHER) {
    status = copy_dense(f, first, count, true);
  }
  return status;
}

static tarn_status cross_all(const ferry *f) {
  tarn_status status = TARN_OK;
  size_t all = f->rows->index_count;
  for (size_t i = 0; status == TARN_OK && i < all; i += f->most)
    status = cross(f, i, tarn__lesser(all - i, f->most));
  return status;
}

static tarn_status check_indices(const tarn__whole_carriage *c) {
  size_t most = tarn__lesser(c->rows.index_count, BLOCK_INDICES);
  if ((c->rows.flags & TARN_ROWS_SKIP_BAD) != 0) return TARN_OK;
  int64_t *room = tarn__host_array(most, sizeof *room);
  if (room == NULL) return TARN_E_NOMEM;
  tarn_status status = tarn__rows_check_indices(c->dense, &c->rows, room, most);
  tarn__host_free_array(room, most, sizeof *room);
  return status;
}

// Rows that go at a time, and the block for them.
static bool plan_block(ferry *f, size_t *out_size) {
  size_t fit = f->dense_bytes > 0 ? BLOCK_ROWS / f->dense_bytes : SIZE_MAX;
  f->most =
      tarn__lesser(tarn__lesser(fit, BLOCK_INDICES), f->rows->index_count);
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
  tarn_status status = tarn_pool_of(f->place, &pool);
  if (status != TARN_OK) return status;
  return tarn_pool_alloc(pool, size, ALIGNMENT, NULL, &f->block);
}

// The device of the table, or the host.
static ferry make_ferry(const tarn__whole_carriage *c) {
  bool touchable = tarn__rows_are_touchable(c->table);
  return (ferry){.carriage = c,
                 .rows = &c->rows,
                 .device = touchable ? c->host : c->table.device,
                 .place = touchable ? TARN_HOST : c->table,
                 .dense_bytes = tarn__rows_dense_bytes(&c->rows),
                 .index_bytes = tarn_dtype_size(c->rows.index_dtype)};
}

static tarn_status ferry_across(const tarn__whole_carriage *c) {
  ferry f = make_ferry(c);
  tarn_status status = check_indices(c);
  if (status == TARN_OK) status = take_block(&f);
  if (status != TARN_OK) return status;
  status = cross_all(&f);
  tarn_status freed = tarn_pool_free(&f.block, NULL);
  return status == TARN_OK ? freed : status;
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
  tarn_status status =
      stream != NULL ? tarn_stream_synchronize(stream) : TARN_OK;
  if (status != TARN_OK) return status;
  if (device != NULL) {
    return move(carriage, device, &carriage->rows, NULL);
  }
  status = tarn__rows_check(&carriage->rows, &checked);
  if (status != TARN_OK || checked.index_count == 0) return status;
  tarn__whole_carriage whole = *carriage;
  whole.rows = checked;
  return ferry_across(&whole);
}
