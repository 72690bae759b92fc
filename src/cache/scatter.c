// Scatter: rows go into lines, which need not be read for that; rows that get
// no line go to the table.
#include "base/hostmem.h"
#include "base/status.h"
#include "cache/cache.h"

enum { BATCH = TARN__SIEVE_BATCH };

// --- rows into lines -------------------------------------------------------

// The user's rows of the part. Entries that are |found| go to their lines.
static tarn_status put(tarn__cache_part *part, const tarn__cache_rows *user,
                       tarn__cache_sieve_found found) {
  const tarn__cache_rows lines = tarn__cache_lines(part->call->cache);
  if (tarn__cache_part_slots(part, found) == 0) return TARN_OK;
  return tarn__cache_carry(part->call, TARN__ROWS_SCATTER, &lines, user,
                           part->slots, TARN_DTYPE_I64);
}

// Others may be writing a row to the table to make room: it is changed after
// that.
static void await_written(const tarn__cache_part *part) {
  for (size_t i = 0; i < part->count; i++)
    if (part->found[i] == TARN__SIEVE_THERE)
      tarn__sieve_await_written(part->call->cache->sieve, part->lines[i]);
}

// What others are filling is overwritten after that. Those that are there, and
// were given their rows already, are given them once more.
static tarn_status put_all(tarn__cache_part *part,
                           const tarn__cache_rows *user) {
  tarn_status status = put(part, user, TARN__SIEVE_TO_FILL);
  tarn__cache_part_filled(part, status == TARN_OK);
  TARN__TRY(status);
  tarn__cache_part_await(part);
  await_written(part);
  return put(part, user, TARN__SIEVE_THERE);
}

// --- rows past the cache ---------------------------------------------------

static size_t name_rest(tarn__cache_part *part) {
  size_t count = 0;
  for (size_t i = 0; i < part->count; i++) {
    if (part->found[i] != TARN__SIEVE_ABSENT || part->keys[i] == UINT64_MAX)
      continue;
    part->rows[count] = (int64_t)part->keys[i];
    part->slots[count++] = (int64_t)i;
  }
  return count;
}

static tarn_status write_rest(tarn__cache_part *part,
                              const tarn__cache_rows *user,
                              tarn_status status) {
  size_t count = status == TARN_OK ? name_rest(part) : 0;
  part->staging.count = count;
  if (status == TARN_OK)
    status = tarn__cache_carry(part->call, TARN__ROWS_GATHER, user,
                               &part->staging, part->slots, TARN_DTYPE_I64);
  status = tarn__cache_part_move(part, TARN__ROWS_SCATTER, count, status);
  if (status != TARN_OK) return status;
  atomic_fetch_add(&part->call->cache->around, count);
  atomic_fetch_add(&part->call->cache->through, count);
  return TARN_OK;
}

// --- all of it -------------------------------------------------------------

static tarn_status load_keys(tarn__cache_call *call, size_t first, size_t count,
                             uint64_t *keys) {
  for (size_t i = 0; i < count; i += BATCH) {
    size_t some = tarn__lesser(count - i, BATCH);
    const void *indices = NULL;
    TARN__TRY(tarn__rows_view_indices(call->user.place, &call->rows, first + i,
                                      some, call->room, &indices));
    for (size_t k = 0; k < some; k++) {
      int64_t index = tarn__rows_index_at(TARN_DTYPE_I64, indices, k);
      bool has = tarn__rows_has(&call->rows, index);
      keys[i + k] = has ? (uint64_t)index : UINT64_MAX;
    }
  }
  return TARN_OK;
}

static tarn_status scatter_some(tarn__cache_call *call, size_t first,
                                size_t count, tarn_status status) {
  uint64_t *keys = NULL;
  tarn__cache_part part = {
      .call = call, .count = count, .flags = TARN__SIEVE_MAKE_ROOM};
  tarn__cache_rows user = call->user;
  user.address += first * user.stride;
  user.count = count;
  if (status == TARN_OK && count > 0) {
    part.keys = keys = tarn__host_array(count, sizeof *keys);
    status = keys != NULL ? load_keys(call, first, count, keys) : TARN_E_NOMEM;
  }
  if (status == TARN_OK) status = tarn__cache_part_begin(&part);
  status = tarn__cache_part_find_room(&part, status);
  if (status == TARN_OK) {
    status = put_all(&part, &user);
  } else if (part.found != NULL) {
    tarn__cache_part_filled(&part, false);
  }
  status = write_rest(&part, &user, status);
  tarn__cache_part_end(&part, true);
  tarn__host_free_array(keys, count, sizeof *keys);
  return status;
}

static tarn_status scatter_all(tarn__cache_call *call, tarn_status status) {
  size_t most = tarn__cache_part_rows(call->cache);
  size_t count = call->user.count;
  if (!tarn__cache_is_alone(call->cache))
    return scatter_some(call, 0, status == TARN_OK ? count : 0, status);
  for (size_t i = 0; i < count && status == TARN_OK; i += most)
    status = scatter_some(call, i, tarn__lesser(count - i, most), status);
  return status;
}

tarn_status tarn_cache_scatter(tarn_cache *cache, const tarn_whole_rows *rows,
                               tarn_stream *stream) {
  TARN__TRY(tarn__cache_check(cache));
  if (cache->mode == TARN_CACHE_READ_ONLY)
    return tarn__fail(TARN_E_STATE, "cache: it is read only");
  tarn__cache_call call = {.cache = cache, .action = TARN__ROWS_SCATTER};
  tarn_status status = tarn__cache_call_read(&call, rows, stream);
  if (status == TARN_OK) status = tarn__cache_call_check(&call);
  return scatter_all(&call, status);
}
