// Charges: device memory taken by others, counted in a pool.
//
// Invariants (tarn__front_check walks them):
//   * charged_bytes is the sum over all tags
//   * when it was counted, it was within the limit together with reserved bytes
//     and those on their way
#include "base/bytes.h"
#include "base/status.h"
#include "device/memory.h"
#include "pool/front.h"
#include "pool/reclaim.h"
#include "pool/take.h"

static tarn_status check(const tarn_pool *pool, tarn_tag tag) {
  tarn_status status = tarn__front_check_pool(pool);
  if (status != TARN_OK || tarn__tag_is_known(tag)) return status;
  return tarn__fail(TARN_E_INVALID, "pool: there is no tag %u", tag);
}

// Room is made as for a block, which needs no strategy once there is some.
static tarn_status find_room(tarn_pool *pool,
                             const tarn__pool_request *request) {
  tarn__pool_reclaim reclaim = tarn__reclaim_of(pool, request);
  tarn_status status = tarn__source_check_limit(pool, request->size);
  if (status == TARN_OK) return status;
  while (status != TARN_OK && tarn__reclaim_next(&reclaim))
    status = tarn__source_check_limit(pool, request->size);
  return status == TARN_OK ? status : tarn__reclaim_fail(&reclaim);
}

static tarn_status charge(tarn_pool *pool, const tarn__pool_request *request) {
  tarn_status status = tarn__front_prepare_tag(pool, request->tag);
  if (status == TARN_OK) status = find_room(pool, request);
  if (status != TARN_OK) {
    tarn__front_count_failure(pool, request, status);
    return status;
  }
  tarn_pool_stats *stats = &pool->stats;
  stats->charged_bytes += request->size;
  tarn__raise_peak(stats->charged_bytes, &stats->charged_peak_bytes);
  pool->tags[request->tag].charged_bytes += request->size;
  tarn__front_note_change(pool, TARN_POOL_EVENT_CHARGE, request->size,
                          request->tag);
  return TARN_OK;
}

tarn_status tarn_pool_charge(tarn_pool *pool, size_t size, tarn_tag tag) {
  tarn_status status = check(pool, tag);
  if (status != TARN_OK || size == 0) return status;
  tarn__pool_request request = {
      .size = size, .align = pool->natural_align, .tag = tag, .charge = true};
  tarn__front_enter(pool);
  status = charge(pool, &request);
  return tarn__take_end(pool, &request, true, status);
}

static tarn_status discharge(tarn_pool *pool, size_t size, tarn_tag tag) {
  size_t charged = tarn__tag_stats_of(pool, tag).charged_bytes;
  if (size > charged) {
    char wanted[TARN__BYTES_TEXT];
    char text[TARN__BYTES_TEXT];
    return tarn__fail(TARN_E_INVALID,
                      "pool: %s to discharge, and under '%s' %s are charged",
                      tarn__bytes_text(size, wanted), tarn_pool_tag_name(tag),
                      tarn__bytes_text(charged, text));
  }
  pool->tags[tag].charged_bytes -= size;
  pool->stats.charged_bytes -= size;
  tarn__front_note_change(pool, TARN_POOL_EVENT_DISCHARGE, size, tag);
  return TARN_OK;
}

tarn_status tarn_pool_discharge(tarn_pool *pool, size_t size, tarn_tag tag) {
  tarn_status status = check(pool, tag);
  if (status != TARN_OK || size == 0) return status;
  tarn__front_enter(pool);
  status = discharge(pool, size, tag);
  tarn__front_leave(pool);
  return status;
}
