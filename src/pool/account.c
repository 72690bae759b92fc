// What a pool counts besides its sums: which counters are on, and its last
// events.
#include <string.h>

#include "base/status.h"
#include "pool/front.h"

enum {
  ALL_COUNTERS =
      TARN_COUNT_TAGS | TARN_COUNT_PEAKS | TARN_COUNT_EVENTS | TARN_COUNT_TIMES,
  DEFAULT_EVENTS = 4096,
};

// --- switches --------------------------------------------------------------

static tarn_status account_locked(tarn_pool *pool, uint32_t counters) {
  bool needs_ring =
      (counters & TARN_COUNT_EVENTS) != 0 && pool->events.room == 0;
  if (needs_ring) {
    TARN__TRY(tarn__events_make_room(&pool->events, DEFAULT_EVENTS));
  }
  if (!tarn__front_counts(pool, TARN_COUNT_EVENTS)) {
    pool->events.since = pool->events.next;
  }
  pool->stats.counters = counters;
  tarn__raise_peak(pool->stats.live_bytes, &pool->stats.live_peak_bytes);
  return TARN_OK;
}

tarn_status tarn_pool_account(tarn_pool *pool, uint32_t counters) {
  TARN__TRY(tarn__front_check_pool(pool));
  if ((counters & ~(uint32_t)ALL_COUNTERS) != 0) {
    return tarn__fail(TARN_E_INVALID, "pool: no counters 0x%x", counters);
  }
  tarn__front_enter(pool);
  if (pool->stats.counters != counters) {
    tarn__steps_forget(pool);
    (void)tarn__lanes_empty(pool);  // they may have to stay so
  }
  tarn_status status = account_locked(pool, counters);
  tarn__front_leave(pool);
  return status;
}

// Without a ring there is nothing to be written to.
tarn_status tarn_pool_account_ring(tarn_pool *pool, size_t count) {
  TARN__TRY(tarn__front_check_pool(pool));
  tarn__front_enter(pool);
  tarn_status status = tarn__events_make_room(&pool->events, count);
  if (count == 0) pool->stats.counters &= ~(uint32_t)TARN_COUNT_EVENTS;
  tarn__front_leave(pool);
  return status;
}

tarn_status tarn_pool_events(tarn_pool *pool, uint64_t from,
                             tarn_pool_event *out, size_t room,
                             size_t *out_count, uint64_t *out_next) {
  *out_count = 0;
  *out_next = 0;
  TARN__TRY(tarn__front_check_pool(pool));
  if (out == NULL && room != 0) {
    return tarn__fail(TARN_E_INVALID, "pool events: NULL");
  }
  tarn__front_enter(pool);
  *out_count = tarn__events_read(&pool->events, from, out, room, out_next);
  tarn__front_leave(pool);
  return TARN_OK;
}

// --- statistics ------------------------------------------------------------

tarn_status tarn_pool_query(tarn_pool *pool, tarn_pool_stats *out_stats) {
  size_t size = 0;
  TARN__TRY(tarn__clear_struct("pool statistics", out_stats,
                               TARN__SIZE_UP_TO(tarn_pool_stats, reserved),
                               sizeof *out_stats, &size));
  TARN__TRY(tarn__front_check_pool(pool));
  tarn__front_enter(pool);
  pool->stats.strategy = pool->current->type->table.name;
  pool->stats.leased_peak_bytes = pool->lanes.leased_most;
  tarn__raise_peak(pool->stats.live_bytes, &pool->stats.live_peak_bytes);
  memcpy(out_stats, &pool->stats, size);
  out_stats->struct_size = size;
  tarn__front_leave(pool);
  return TARN_OK;
}

tarn_status tarn_pool_reset_peaks(tarn_pool *pool) {
  TARN__TRY(tarn__front_check_pool(pool));
  tarn__front_enter(pool);
  pool->stats.live_peak_bytes = pool->stats.live_bytes;
  pool->lanes.leased_most = 0;
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
  TARN__TRY(
      tarn__clear_struct("tag statistics", out_stats,
                         TARN__SIZE_UP_TO(tarn_pool_tag_stats, live_blocks),
                         sizeof *out_stats, &size));
  TARN__TRY(tarn__front_check_pool(pool));
  tarn__front_enter(pool);
  tarn_pool_tag_stats stats = tarn__tag_stats_of(pool, tag);
  tarn__front_leave(pool);
  stats.struct_size = size;
  memcpy(out_stats, &stats, size);
  return TARN_OK;
}
