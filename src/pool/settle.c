// Settling: streams are queried or waited for without the lock. Memory that
// they used last is unused then, unless frees have added to it since.
#include "pool/strategy.h"

#include "device/memory.h"
#include "pool/front.h"

// Counts up with all that is added to what streams used last.
static uint64_t added_so_far(const tarn_pool *pool) {
  return pool->stats.frees + pool->cuts;
}

static bool is_done(uint64_t serial, bool waits) {
  return waits ? tarn_stream_join(NULL, serial) == TARN_OK
               : tarn__stream_is_idle(serial);
}

static tarn__pool_waits done_among(const tarn__pool_waits *streams,
                                   bool waits) {
  tarn__pool_waits done = {.count = 0};
  for (size_t i = 0; i < streams->count && i < TARN__WAITS; i++) {
    uint64_t serial = streams->serials[i];
    if (is_done(serial, waits)) tarn__waits_add(&done, serial);
  }
  return done;
}

static bool settle(tarn__pool_strategy *strategy,
                   const tarn__pool_waits *streams, bool waits) {
  const tarn_pool *pool = strategy->pool;
  uint64_t before = added_so_far(pool);
  tarn__source_begin_ask(strategy, 0, 0);
  tarn__pool_waits done = done_among(streams, waits);
  tarn__source_end_ask(strategy, 0);
  bool unchanged = added_so_far(pool) == before;
  for (size_t i = 0; unchanged && i < done.count; i++)
    strategy->type->settle(strategy, done.serials[i]);
  return done.count > 0 || !unchanged;
}

bool tarn__settle_streams(tarn__pool_strategy *strategy, size_t least,
                          bool waits) {
  tarn_pool *pool = strategy->pool;
  tarn__pool_survey found = {.idle = 0};
  if (strategy->type->survey == NULL || strategy->type->settle == NULL) {
    return false;
  }
  strategy->type->survey(strategy, &found);
  if (found.streams.count == 0 || found.idle < least) return false;
  bool settled = settle(strategy, &found.streams, waits);
  if (strategy != pool->current) tarn__front_retire(pool, strategy);
  return settled;
}
