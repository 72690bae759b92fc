// The arguments of a call, and rows between lines, staging and dense rows.
#include <string.h>

#include "base/status.h"
#include "cache/cache.h"

enum {
  STREAM_FROM = 4 << 20
};  // bytes of a call that caches had better not keep

// --- arguments -------------------------------------------------------------

bool tarn__cache_is_alone(const tarn_cache *cache) {
  const tarn_whole *whole = cache->table.whole;
  return tarn__rows_are_alone(TARN__ROWS_GATHER, whole) &&
         (cache->mode == TARN_CACHE_READ_ONLY ||
          tarn__rows_are_alone(TARN__ROWS_SCATTER, whole));
}

tarn_status tarn__cache_call_read(tarn__cache_call *call,
                                  const tarn_whole_rows *given,
                                  tarn_stream *stream) {
  tarn__whole_rows_order order;
  const tarn_whole_tensor *table = &call->cache->table;
  TARN__TRY(tarn__whole_check(table->whole));
  TARN__TRY(tarn__rows_order_read(call->action, table, given, stream, &order));
  if (stream != NULL) TARN__TRY(tarn_stream_synchronize(stream));
  call->rows = order.rows;
  call->rows.table_count = table->rows;
  call->user = (tarn__cache_rows){.place = order.place,
                                  .address = order.rows.dense,
                                  .dtype = order.rows.dense_dtype,
                                  .stride = order.rows.dense_stride,
                                  .count = order.rows.index_count};
  return TARN_OK;
}

tarn_status tarn__cache_call_check(tarn__cache_call *call) {
  return tarn__rows_check_indices(call->user.place, &call->rows, call->room,
                                  TARN__SIEVE_BATCH);
}

tarn__cache_rows tarn__cache_lines(const tarn_cache *cache) {
  return (tarn__cache_rows){.place = cache->place,
                            .address = cache->block.address,
                            .dtype = cache->table.dtype,
                            .stride = cache->row_bytes,
                            .count = cache->lines};
}

// --- numbers ---------------------------------------------------------------

static tarn_status put(tarn_place place, tarn_addr to, const void *numbers,
                       size_t size) {
  void *bytes = NULL;
  if (!tarn__rows_are_touchable(place))
    return tarn_copy_h2d(place.device, to, numbers, size, NULL);
  TARN__TRY(tarn_device_host_view(place, to, size, &bytes));
  memcpy(bytes, numbers, size);
  return TARN_OK;
}

// A device that moves rows in its place on the host needs numbers there too.
tarn_status tarn__cache_numbers_begin(tarn_place place, const void *numbers,
                                      size_t size, tarn__cache_numbers *out) {
  tarn_pool *pool = NULL;
  *out = (tarn__cache_numbers){.address = (tarn_addr)(uintptr_t)numbers};
  if (size == 0 || tarn_place_equal(place, TARN_HOST)) return TARN_OK;
  TARN__TRY(tarn_pool_of(place, &pool));
  TARN__TRY(tarn_pool_alloc(pool, size, 0, NULL, &out->block));
  out->address = out->block.address;
  tarn_status status = put(place, out->address, numbers, size);
  if (status == TARN_OK) return TARN_OK;
  tarn__failure failure = tarn__failure_of(status);
  (void)!tarn__cache_numbers_end(out);
  return tarn__failure_tell(&failure);
}

// Numbers that could not be put there have been ended by begin.
tarn_status tarn__cache_numbers_end(tarn__cache_numbers *numbers) {
  tarn_block block = numbers->block;
  numbers->block = (tarn_block){.pool = NULL};
  return block.pool != NULL ? tarn_pool_free(&block, NULL) : TARN_OK;
}

// --- rows ------------------------------------------------------------------

static size_t extent(const tarn__cache_rows *rows, size_t width) {
  size_t row = width * tarn_dtype_size(rows->dtype);
  return rows->count == 0 ? 0 : (rows->count - 1) * rows->stride + row;
}

static uint64_t flags_of(const tarn__cache_call *call) {
  size_t bytes = call->user.count * call->cache->row_bytes;
  return TARN_ROWS_SKIP_BAD | (call->rows.flags & TARN_ROWS_PAST_CACHES) |
         (bytes >= STREAM_FROM ? TARN_ROWS_PAST_CACHES : 0);
}

tarn_status tarn__cache_carry(const tarn__cache_call *call,
                              tarn__rows_action action,
                              const tarn__cache_rows *many,
                              const tarn__cache_rows *few, const void *indices,
                              tarn_dtype dtype) {
  const tarn_whole_tensor *table = &call->cache->table;
  const tarn_addr chunks[] = {many->address};
  const size_t offsets[] = {0, extent(many, table->width)};
  tarn__cache_numbers numbers;
  if (few->count == 0 || many->count == 0) return TARN_OK;
  TARN__TRY(tarn__cache_numbers_begin(
      few->place, indices, few->count * tarn_dtype_size(dtype), &numbers));
  const tarn__whole_carriage carriage = {
      .action = action,
      .rows = {.struct_size = sizeof(tarn_rows),
               .table = {chunks, offsets, 1},
               .table_dtype = many->dtype,
               .table_stride = many->stride,
               .table_count = many->count,
               .width = table->width,
               .dense = few->address,
               .dense_dtype = few->dtype,
               .dense_stride = few->stride,
               .indices = numbers.address,
               .index_dtype = dtype,
               .index_count = few->count,
               .flags = flags_of(call),
               .threads = call->rows.threads},
      .table = many->place,
      .dense = few->place,
      .host = table->whole->host};
  tarn_status status = tarn__rows_carry(&carriage, NULL);
  tarn__keep_first(&status, tarn__cache_numbers_end(&numbers));
  return status;
}
