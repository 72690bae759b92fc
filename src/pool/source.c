// The source: where strategies get memory of the device, and give it back.
//
// The lock is let go for the device's sake: its calls take microseconds to
// milliseconds, and other threads have hits to serve meanwhile. What is asked
// for is charged first, so that a limit holds whatever comes back when.
#include "base/status.h"
#include "device/memory.h"
#include "pool/front.h"

static tarn_status over_limit(const tarn_pool *pool, size_t size) {
  const tarn_pool_stats *stats = &pool->stats;
  if (stats->limit_bytes == 0) {
    return tarn__fail(TARN_FULL,
                      "pool: %zu bytes more than the %zu reserved are more "
                      "than can be addressed",
                      size, stats->reserved_bytes);
  }
  return tarn__fail(TARN_FULL,
                    "pool: %zu bytes more would exceed the limit of %zu: %zu "
                    "are reserved, %zu of them live",
                    size, stats->limit_bytes, stats->reserved_bytes,
                    stats->live_bytes);
}

static bool within_limit(const tarn_pool *pool, size_t size) {
  size_t limit = pool->stats.limit_bytes;
  size_t sum = 0;
  if (!tarn_size_add(pool->stats.reserved_bytes, pool->pending, &sum) ||
      !tarn_size_add(sum, size, &sum)) {
    return false;
  }
  return limit == 0 || sum <= limit;
}

static bool is_aligned(tarn_addr addr, size_t align) {
  return (addr & (align - 1)) == 0;
}

// One call of the device, charged to the pool while it lasts.
static tarn_status ask_device(tarn_pool *pool, size_t size,
                              tarn__piece *piece) {
  pool->pending += size;
  pool->stats.device_allocs++;
  pthread_mutex_unlock(&pool->lock);
  tarn_status status = tarn__device_take(pool->place, size, &piece->base);
  pthread_mutex_lock(&pool->lock);
  pool->pending -= size;
  piece->base_size = size;
  return status;
}

static tarn_status return_unfit(tarn_pool *pool, tarn__piece *piece) {
  tarn_addr base = piece->base;
  size_t size = piece->base_size;
  piece->base = 0;
  pool->pending += size;
  pool->stats.device_frees++;
  pthread_mutex_unlock(&pool->lock);
  tarn_status status = tarn__device_give(pool->place, base, size);
  pthread_mutex_lock(&pool->lock);
  pool->pending -= size;
  return status;
}

// The device's memory as it comes if that is aligned; else with |align| bytes
// more, so that an aligned part of the size fits in, if the limit allows it.
static tarn_status take_aligned(tarn_pool *pool, size_t size, size_t align,
                                tarn__piece *piece) {
  tarn_status status = ask_device(pool, size, piece);
  if (status != TARN_OK) return status;
  if (!is_aligned(piece->base, align)) {
    size_t enough = 0;
    status = return_unfit(pool, piece);
    if (status != TARN_OK) return status;
    if (!tarn_size_add(size, align, &enough)) return over_limit(pool, size);
    if (!within_limit(pool, enough)) return over_limit(pool, enough);
    status = ask_device(pool, enough, piece);
    if (status != TARN_OK) return status;
  }
  piece->address = (piece->base + align - 1) & ~(tarn_addr)(align - 1);
  return TARN_OK;
}

static void commit_grow(tarn_pool *pool, tarn__piece *piece) {
  tarn_pool_stats *stats = &pool->stats;
  stats->reserved_bytes += piece->base_size;
  if (stats->reserved_bytes > stats->reserved_peak_bytes) {
    stats->reserved_peak_bytes = stats->reserved_bytes;
  }
  tarn__pieces_enter(&pool->pieces, piece);
}

tarn_status tarn__source_grow(tarn__strategy *strategy, tarn__request *request,
                              size_t size, tarn__piece **out_piece) {
  tarn_pool *pool = strategy->pool;
  size_t padded = 0;
  *out_piece = NULL;
  if (!tarn_size_add(size, pool->padding, &padded)) {
    return over_limit(pool, size);
  }
  if (!within_limit(pool, padded)) return over_limit(pool, padded);
  tarn__piece *piece = tarn__pieces_take(&pool->pieces);
  if (piece == NULL) return TARN_E_NOMEM;
  piece->owner = strategy;
  piece->size = size;
  request->asked = true;

  strategy->inside++;
  tarn_status status = take_aligned(pool, padded, request->align, piece);
  strategy->inside--;
  if (status != TARN_OK) {
    piece->base = 0;
    tarn__pieces_leave(&pool->pieces, piece);
    return status;
  }
  commit_grow(pool, piece);
  *out_piece = piece;
  return TARN_OK;
}

tarn_status tarn__source_shrink(tarn__strategy *strategy, tarn__piece *piece) {
  tarn_pool *pool = strategy->pool;
  tarn_addr base = piece->base;
  size_t size = piece->base_size;
  uint64_t freed_on = piece->freed_on;
  // First out of the index: the device may give the address to somebody else
  // before this thread is back.
  tarn__pieces_leave(&pool->pieces, piece);
  pool->pending += size;
  pool->returning++;
  pool->stats.reserved_bytes -= size;
  pool->stats.device_frees++;
  strategy->inside++;

  pthread_mutex_unlock(&pool->lock);
  tarn_status waited =
      freed_on != 0 ? tarn_stream_join(NULL, freed_on) : TARN_OK;
  tarn_status status = tarn__device_give(pool->place, base, size);
  pthread_mutex_lock(&pool->lock);

  strategy->inside--;
  pool->pending -= size;
  pool->returning--;
  pthread_cond_broadcast(&pool->returned);
  return status != TARN_OK ? status : waited;
}
