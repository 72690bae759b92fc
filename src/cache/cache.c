// Caches: create and destroy, drop, statistics.
#include "cache/cache.h"

#include <string.h>

#include "base/hostmem.h"
#include "base/os_pages.h"
#include "base/status.h"
#include "tarn/alloc.h"

enum { WAYS = TARN__SIEVE_WAYS, ALIGNMENT = 64 };

// --- options ---------------------------------------------------------------

static tarn_status check_options(const tarn_cache_options *options) {
  if (options->mode != TARN_CACHE_READ_ONLY &&
      options->mode != TARN_CACHE_WRITE_BACK) {
    return tarn__fail(TARN_E_INVALID, "cache: unknown mode %d",
                      (int)options->mode);
  }
  if ((options->rows == 0) == (options->bytes == 0)) {
    return tarn__fail(TARN_E_INVALID,
                      "cache: %zu rows and %zu bytes: one of them is expected",
                      options->rows, options->bytes);
  }
  return TARN_OK;
}

// More than twice as many lines as the table has rows are of no use.
static tarn_status count_lines(tarn_cache *cache,
                               const tarn_cache_options *options) {
  size_t most = tarn__lesser(cache->table.rows, INT32_MAX / 2) * 2 + WAYS;
  size_t lines = options->rows;
  size_t size = 0;
  if (options->bytes != 0) {
    size_t own = tarn__lesser(sizeof *cache, options->bytes);
    lines = tarn__sieve_fit(options->bytes - own, cache->row_bytes,
                            options->shards);
    if (lines == 0) {
      return tarn__fail(TARN_E_INVALID,
                        "cache: %d rows of %zu bytes do not fit into %zu bytes",
                        WAYS, cache->row_bytes, options->bytes);
    }
  }
  lines = tarn__divide_up(tarn__lesser(lines, most), WAYS) * WAYS;
  cache->lines = tarn__lesser(lines, (size_t)INT32_MAX / WAYS * WAYS);
  if (tarn_size_mul(cache->lines, cache->row_bytes, &size)) return TARN_OK;
  return tarn__fail(TARN_E_INVALID, "cache: %zu rows of %zu bytes",
                    cache->lines, cache->row_bytes);
}

static tarn_status check_table(tarn_cache *cache,
                               const tarn_whole_tensor *table) {
  tarn__whole_tensor checked;
  TARN__TRY(tarn__whole_check(table->whole));
  TARN__TRY(tarn__tensor_check(table, &checked));
  if (table->rows == 0)
    return tarn__fail(TARN_E_INVALID, "cache: the table has no rows");
  cache->table = *table;
  cache->row_bytes = checked.row_bytes;
  return TARN_OK;
}

// --- create and destroy ----------------------------------------------------

// Rows are read at random: on huge pages, where the host can have them.
static tarn_status prepare(const tarn_cache *cache, size_t size) {
  void *bytes = NULL;
  if (!tarn__rows_are_touchable(cache->place)) return TARN_OK;
  TARN__TRY(
      tarn_device_host_view(cache->place, cache->block.address, size, &bytes));
  tarn__os_collapse(bytes, size);
  memset(bytes, 0, size);
  return TARN_OK;
}

static tarn_status take_block(tarn_cache *cache, const char *name) {
  tarn_pool *pool = NULL;
  tarn_tag tag = 0;
  size_t size = cache->lines * cache->row_bytes;
  TARN__TRY(tarn_pool_of(cache->place, &pool));
  TARN__TRY(tarn_pool_tag(name != NULL ? name : "cache", &tag));
  tarn_alloc_options options = {
      .struct_size = sizeof options,
      .size = size,
      .align = size < TARN__OS_HUGE ? ALIGNMENT : TARN__OS_HUGE,
      .tag = tag};
  TARN__TRY(tarn_pool_alloc_with(pool, &options, &cache->block));
  tarn_status status = prepare(cache, size);
  if (status != TARN_OK) (void)!tarn_pool_free(&cache->block, NULL);
  return status;
}

static tarn_status make(tarn_cache *cache, const tarn_whole_tensor *table,
                        const tarn_cache_options *given) {
  tarn_cache_options options;
  TARN__TRY(tarn__take_struct("cache", given,
                              TARN__SIZE_UP_TO(tarn_cache_options, tag),
                              &options, sizeof options));
  TARN__TRY(check_options(&options));
  TARN__TRY(check_table(cache, table));
  cache->mode = options.mode;
  cache->place = options.place;
  TARN__TRY(count_lines(cache, &options));
  tarn__cache_sieve_options sieve = {
      .keys = table->rows, .lines = cache->lines, .shards = options.shards};
  TARN__TRY(tarn__sieve_create(&sieve, &cache->sieve));
  TARN__TRY(take_block(cache, options.tag));
  cache->bytes = sizeof *cache + tarn__sieve_bytes(&sieve) +
                 cache->lines * cache->row_bytes;
  return TARN_OK;
}

tarn_status tarn_cache_create(const tarn_whole_tensor *table,
                              const tarn_cache_options *options,
                              tarn_cache **out_cache) {
  if (out_cache == NULL) return tarn__fail(TARN_E_INVALID, "cache: NULL");
  *out_cache = NULL;
  if (table == NULL) return tarn__fail(TARN_E_INVALID, "cache: no table");
  tarn_cache *cache = tarn__host_alloc(sizeof *cache);
  if (cache == NULL) return TARN_E_NOMEM;
  cache->generation = tarn__os_generation();
  tarn_status status = make(cache, table, options);
  if (status == TARN_OK) {
    *out_cache = cache;
    return TARN_OK;
  }
  tarn__sieve_destroy(cache->sieve);
  tarn__host_free(cache, sizeof *cache);
  return status;
}

// In a child the pool, and the memory in it, are the parent's.
tarn_status tarn_cache_destroy(tarn_cache *cache) {
  tarn_status status = TARN_OK;
  if (cache == NULL) return TARN_OK;
  if (cache->generation == tarn__os_generation())
    status = tarn_pool_free(&cache->block, NULL);
  tarn__sieve_destroy(cache->sieve);
  tarn__host_free(cache, sizeof *cache);
  return status;
}

tarn_status tarn__cache_check(const tarn_cache *cache) {
  if (cache == NULL) return tarn__fail(TARN_E_INVALID, "cache: NULL");
  if (cache->generation != tarn__os_generation())
    return tarn__fail(TARN_E_STATE, "cache: it was created before the fork");
  return tarn__not_in_callback();
}

// --- drop ------------------------------------------------------------------

tarn_status tarn_cache_drop(tarn_cache *cache, const int64_t *rows,
                            size_t count) {
  TARN__TRY(tarn__cache_check(cache));
  if (rows == NULL) {
    tarn__sieve_drop_all(cache->sieve);
    return TARN_OK;
  }
  for (size_t i = 0; i < count; i++) {
    if (rows[i] < 0 || (uint64_t)rows[i] >= cache->table.rows) {
      return tarn__fail(TARN_E_INVALID,
                        "cache: row %lld at position %zu is not in 0..%zu",
                        (long long)rows[i], i, cache->table.rows - 1);
    }
  }
  for (size_t i = 0; i < count; i++)
    tarn__sieve_drop(cache->sieve, (uint64_t)rows[i]);
  return TARN_OK;
}

// --- statistics ------------------------------------------------------------

static tarn_cache_stats count(tarn_cache *cache) {
  tarn__cache_sieve_tally tally;
  tarn__sieve_count(cache->sieve, &tally);
  uint64_t around = atomic_load(&cache->around);
  uint64_t misses = tally.fills + around;
  uint64_t written = tally.written + atomic_load(&cache->through);
  return (tarn_cache_stats){.rows = cache->lines,
                            .used = tally.used,
                            .dirty = tally.dirty,
                            .bytes = cache->bytes,
                            .hits = tally.hits,
                            .misses = misses,
                            .joined = tally.joined,
                            .around = around,
                            .evictions = tally.evictions,
                            .written = written,
                            .bytes_hit = tally.hits * cache->row_bytes,
                            .bytes_missed = misses * cache->row_bytes,
                            .bytes_written = written * cache->row_bytes};
}

tarn_status tarn_cache_query(tarn_cache *cache, tarn_cache_stats *out_stats) {
  size_t size = 0;
  TARN__TRY(tarn__cache_check(cache));
  TARN__TRY(tarn__clear_struct(
      "cache", out_stats, TARN__SIZE_UP_TO(tarn_cache_stats, bytes_written),
      sizeof *out_stats, &size));
  const tarn_cache_stats stats = count(cache);
  const size_t keep = offsetof(tarn_cache_stats, rows);
  memcpy((char *)out_stats + keep, (const char *)&stats + keep, size - keep);
  return TARN_OK;
}
