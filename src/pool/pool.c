// A pool as a whole: limits, trimming, statistics.
//
// Invariants (tarn__front_check walks them):
//   * a piece is live, or idle with its owner, or in the quarantine, or on its
//     way to the device
//   * live_bytes and live_blocks are sums over the live pieces, and those of
//     every tag over the live pieces that were counted under it
//   * reserved_bytes is the sum over all pieces
//   * a strategy's |live| counts its pieces that are live or in the quarantine
#include <string.h>

#include "base/status.h"
#include "pool/capture.h"

tarn_status tarn__front_trim_as(tarn_pool *pool, size_t target, unsigned how) {
  if (tarn__front_keeps(pool)) return TARN_OK;
  tarn__pool_strategy *strategy = pool->current;
  strategy->inside++;
  tarn_status status = strategy->type->trim(strategy, target, how);
  strategy->inside--;
  tarn__front_retire(pool, strategy);
  return status;
}

tarn_status tarn__front_trim(tarn_pool *pool, size_t target) {
  return tarn__front_trim_as(pool, tarn__front_target(pool, target), 0);
}

// --- limits, trimming, statistics ------------------------------------------

tarn_place tarn_pool_place(const tarn_pool *pool) {
  return pool->place;
}

tarn_status tarn_pool_limit(tarn_pool *pool, size_t bytes) {
  tarn_status status = tarn__front_check_pool(pool);
  if (status != TARN_OK) return status;
  if (bytes != 0 && tarn__front_has_own(pool)) {
    return tarn__fail(TARN_E_UNSUPPORTED,
                      "pool: limit of %zu bytes: one over memory of the "
                      "caller's has that, and no other",
                      bytes);
  }
  tarn__front_enter(pool);
  pool->stats.limit_bytes = bytes;
  tarn__front_leave(pool);
  return TARN_OK;
}

tarn_status tarn_pool_trim(tarn_pool *pool, size_t target) {
  tarn_status status = tarn__front_check_pool(pool);
  if (status != TARN_OK) return status;
  tarn__front_enter(pool);
  status = tarn__capture_admit_trim(pool);
  if (status == TARN_OK) {
    if (pool->stats.reserved_bytes > target) (void)tarn__debug_flush(pool);
    status = tarn__front_trim(pool, target);
  }
  tarn__front_leave(pool);
  return status;
}

tarn_status tarn_pool_query(tarn_pool *pool, tarn_pool_stats *out_stats) {
  size_t size = 0;
  if (out_stats == NULL ||
      !tarn__struct_size(out_stats->struct_size,
                         TARN__SIZE_UP_TO(tarn_pool_stats, reserved),
                         sizeof *out_stats, &size)) {
    return tarn__fail(TARN_E_INVALID, "pool statistics: NULL or struct_size");
  }
  memset(out_stats, 0, size);
  out_stats->struct_size = size;
  tarn_status status = tarn__front_check_pool(pool);
  if (status != TARN_OK) return status;
  tarn__front_enter(pool);
  pool->stats.strategy = pool->current->type->name;
  tarn__raise_peak(pool->stats.live_bytes, &pool->stats.live_peak_bytes);
  memcpy(out_stats, &pool->stats, size);
  out_stats->struct_size = size;
  tarn__front_leave(pool);
  return TARN_OK;
}

tarn_status tarn_pool_reset_peaks(tarn_pool *pool) {
  tarn_status status = tarn__front_check_pool(pool);
  if (status != TARN_OK) return status;
  tarn__front_enter(pool);
  pool->stats.live_peak_bytes = pool->stats.live_bytes;
  pool->stats.reserved_peak_bytes = pool->stats.reserved_bytes;
  pool->stats.charged_peak_bytes = pool->stats.charged_bytes;
  for (size_t tag = 0; tag < pool->tag_count; tag++) {
    pool->tags[tag].live_peak_bytes = pool->tags[tag].live_bytes;
  }
  tarn__front_leave(pool);
  return TARN_OK;
}

tarn_status tarn_pool_query_tag(tarn_pool *pool, tarn_tag tag,
                                tarn_pool_tag_stats *out_stats) {
  size_t size = 0;
  if (out_stats == NULL ||
      !tarn__struct_size(out_stats->struct_size,
                         TARN__SIZE_UP_TO(tarn_pool_tag_stats, live_blocks),
                         sizeof *out_stats, &size)) {
    return tarn__fail(TARN_E_INVALID, "tag statistics: NULL or struct_size");
  }
  memset(out_stats, 0, size);
  out_stats->struct_size = size;
  tarn_status status = tarn__front_check_pool(pool);
  if (status != TARN_OK) return status;
  tarn_pool_tag_stats stats = {.struct_size = size};
  tarn__front_enter(pool);
  if (tag < pool->tag_count) {
    stats.live_bytes = pool->tags[tag].live_bytes;
    stats.live_peak_bytes = pool->tags[tag].live_peak_bytes;
    stats.live_blocks = pool->tags[tag].live_blocks;
    stats.asleep_blocks = pool->tags[tag].asleep_blocks;
    stats.asleep_bytes = pool->tags[tag].asleep_bytes;
    stats.saved_bytes = pool->tags[tag].saved_bytes;
    stats.charged_bytes = pool->tags[tag].charged_bytes;
  }
  tarn__front_leave(pool);
  memcpy(out_stats, &stats, size);
  return TARN_OK;
}
