// Some rows of a call: their lines, and what moves between the table and
// staging. Each step leaves entries in one of a few states, so that the end can
// undo what was begun.
//
//   ABSENT ──find──► THERE, AWAITED, TO_FILL, TO_WRITE
//   TO_WRITE ──written──► ABSENT      TO_FILL ──given up──► ABSENT
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "cache/cache.h"

enum { PART_BYTES = 4 << 20, BATCH = TARN__SIEVE_BATCH };

// --- begin and end ---------------------------------------------------------

size_t tarn__cache_part_rows(const tarn_cache *cache) {
  size_t rows = PART_BYTES / (cache->row_bytes > 0 ? cache->row_bytes : 1);
  return rows < BATCH ? BATCH : rows;
}

static tarn_status take_staging(tarn__cache_part *part) {
  const tarn_cache *cache = part->call->cache;
  tarn_pool *pool = NULL;
  size_t size = 0;
  if (!tarn_size_mul(part->count, cache->row_bytes, &size))
    return tarn__fail(TARN_E_INVALID, "cache: %zu rows of %zu bytes",
                      part->count, cache->row_bytes);
  part->staging = tarn__cache_lines(cache);
  part->staging.count = 0;
  if (size == 0) return TARN_OK;
  TARN__TRY(tarn_pool_of(cache->place, &pool));
  TARN__TRY(tarn_pool_alloc(pool, size, 0, NULL, &part->block));
  part->staging.address = part->block.address;
  return TARN_OK;
}

tarn_status tarn__cache_part_begin(tarn__cache_part *part) {
  size_t count = part->count;
  if (count == 0) return take_staging(part);
  part->lines = tarn__host_array(count, sizeof *part->lines);
  part->found = tarn__host_array(count, sizeof *part->found);
  part->rows = tarn__host_array(count, sizeof *part->rows);
  part->slots = tarn__host_array(count, sizeof *part->slots);
  bool all = part->lines != NULL && part->found != NULL && part->rows != NULL &&
             part->slots != NULL;
  if (!all) return TARN_E_NOMEM;
  return take_staging(part);
}

void tarn__cache_part_end(tarn__cache_part *part, bool dirty) {
  tarn__cache_sieve *sieve = part->call->cache->sieve;
  size_t count = part->count;
  for (size_t i = 0; part->found != NULL && i < count; i++)
    if (part->found[i] != TARN__SIEVE_ABSENT)
      tarn__sieve_let_go(sieve, part->lines[i], dirty);
  tarn__host_free_array(part->lines, count, sizeof *part->lines);
  tarn__host_free_array(part->found, count, sizeof *part->found);
  tarn__host_free_array(part->rows, count, sizeof *part->rows);
  tarn__host_free_array(part->slots, count, sizeof *part->slots);
  // The pool's own memory: nothing is to be done about a failure.
  if (part->block.pool != NULL) (void)!tarn_pool_free(&part->block, NULL);
}

// --- lines -----------------------------------------------------------------

// Up to BATCH entries that are ABSENT, from |*io_at| on: their numbers.
static size_t collect(tarn__cache_part *part, size_t *io_at, size_t *out) {
  tarn__cache_sieve_batch *batch = &part->call->batch;
  size_t count = 0;
  size_t i = *io_at;
  for (; i < part->count && count < BATCH; i++) {
    if (part->found[i] != TARN__SIEVE_ABSENT || part->keys[i] == UINT64_MAX)
      continue;
    out[count] = i;
    batch->keys[count++] = part->keys[i];
  }
  *io_at = i;
  return batch->count = count;
}

void tarn__cache_part_find(tarn__cache_part *part) {
  tarn__cache_sieve_batch *batch = &part->call->batch;
  size_t entries[BATCH] = {0};
  for (size_t at = 0; collect(part, &at, entries) > 0;) {
    tarn__sieve_find(part->call->cache->sieve, batch, part->flags);
    for (size_t i = 0; i < batch->count; i++) {
      part->lines[entries[i]] = batch->lines[i];
      part->found[entries[i]] = batch->found[i];
    }
  }
}

size_t tarn__cache_part_slots(tarn__cache_part *part,
                              tarn__cache_sieve_found found) {
  size_t count = 0;
  for (size_t i = 0; i < part->count; i++) {
    bool is = part->found[i] == found;
    part->slots[i] = is ? (int64_t)part->lines[i] : -1;
    count += is;
  }
  return count;
}

void tarn__cache_part_filled(tarn__cache_part *part, bool ok) {
  tarn__cache_sieve *sieve = part->call->cache->sieve;
  for (size_t i = 0; i < part->count; i++) {
    if (part->found[i] != TARN__SIEVE_TO_FILL) continue;
    tarn__sieve_filled(sieve, &part->lines[i], 1, ok);
    if (ok) continue;
    tarn__sieve_let_go(sieve, part->lines[i], false);
    part->found[i] = TARN__SIEVE_ABSENT;
  }
}

void tarn__cache_part_await(tarn__cache_part *part) {
  tarn__cache_sieve *sieve = part->call->cache->sieve;
  for (size_t i = 0; i < part->count; i++) {
    if (part->found[i] != TARN__SIEVE_AWAITED) continue;
    bool ok = tarn__sieve_await(sieve, part->lines[i]);
    part->found[i] = ok ? TARN__SIEVE_THERE : TARN__SIEVE_ABSENT;
    if (!ok) tarn__sieve_let_go(sieve, part->lines[i], false);
  }
}

// --- rows of the table -----------------------------------------------------

tarn_status tarn__cache_part_move(tarn__cache_part *part,
                                  tarn__rows_action action, size_t count,
                                  tarn_status status) {
  const tarn_cache *cache = part->call->cache;
  tarn__cache_numbers numbers = {.address = 0};
  bool alone = tarn__rows_are_alone(action, cache->table.whole);
  if (alone && (status != TARN_OK || count == 0)) return status;
  if (status == TARN_OK)
    status = tarn__cache_numbers_begin(cache->place, part->rows,
                                       count * sizeof *part->rows, &numbers);
  const tarn_whole_rows request = {.struct_size = sizeof request,
                                   .place = cache->place,
                                   .dense = part->staging.address,
                                   .indices = numbers.address,
                                   .index_dtype = TARN_DTYPE_I64,
                                   .index_count = count,
                                   .threads = part->call->rows.threads};
  status = tarn__whole_rows_run(action, &cache->table, &request, NULL, status);
  tarn__keep_first(&status, tarn__cache_numbers_end(&numbers));
  return status;
}

// A row that was dropped meanwhile is not written.
static size_t name_victims(tarn__cache_part *part) {
  size_t count = 0;
  for (size_t i = 0; i < part->count; i++) {
    uint64_t key = 0;
    if (part->found[i] != TARN__SIEVE_TO_WRITE ||
        !tarn__sieve_key(part->call->cache->sieve, part->lines[i], &key))
      continue;
    part->rows[count] = (int64_t)key;
    part->slots[count++] = part->lines[i];
  }
  return count;
}

static void end_victims(tarn__cache_part *part, bool ok) {
  for (size_t i = 0; part->found != NULL && i < part->count; i++) {
    if (part->found[i] != TARN__SIEVE_TO_WRITE) continue;
    tarn__sieve_written(part->call->cache->sieve, part->lines[i], ok);
    part->found[i] = TARN__SIEVE_ABSENT;
  }
}

static tarn_status write_victims(tarn__cache_part *part, tarn_status status) {
  const tarn__cache_rows lines = tarn__cache_lines(part->call->cache);
  size_t count = status == TARN_OK ? name_victims(part) : 0;
  part->staging.count = count;
  if (status == TARN_OK)
    status = tarn__cache_carry(part->call, TARN__ROWS_GATHER, &lines,
                               &part->staging, part->slots, TARN_DTYPE_I64);
  status = tarn__cache_part_move(part, TARN__ROWS_SCATTER, count, status);
  end_victims(part, status == TARN_OK);
  return status;
}

tarn_status tarn__cache_part_find_room(tarn__cache_part *part,
                                       tarn_status status) {
  if (status == TARN_OK) tarn__cache_part_find(part);
  if (part->call->cache->mode == TARN_CACHE_READ_ONLY) return status;
  TARN__TRY(write_victims(part, status));
  tarn__cache_part_find(part);
  // What has no room even now goes without.
  end_victims(part, false);
  return TARN_OK;
}
