// Room that a pool keeps: taken at once, and left alone by whatever trims.
//
//   held  [ live | idle ...........]
//         |──── kept ────|              trimming stops here
//
// The strategy learns the reserved size beforehand, so that it gives back none
// of it while it asks for the rest. One call at a time: after a failure the
// former size is restored, and must not be another call's new one.
#include "base/status.h"
#include "pool/capture.h"
#include "pool/reclaim.h"
#include "tarn/alloc.h"

static tarn_status refuse(const tarn_pool *pool) {
  return tarn__fail(TARN_E_UNSUPPORTED,
                    "pool: reserve: %s keeps no idle memory on request, or "
                    "none on this device",
                    pool->current->type->table.name);
}

// A size above all there can be is refused before the device is called.
static tarn_status take(tarn_pool *pool, tarn__pool_strategy *strategy,
                        size_t bytes) {
  size_t awake = tarn__room_awake(pool);
  if (bytes > tarn__front_limit(pool)) {
    return tarn__source_check_limit(pool, bytes);
  }
  if (bytes > SIZE_MAX / 4) {
    return tarn__fail(
        TARN_FULL, "pool: reserve: %zu bytes exceed the address space", bytes);
  }
  strategy->inside++;
  tarn_status status =
      tarn__room_check(pool, bytes > awake ? bytes - awake : 0);
  if (status == TARN_OK && strategy == pool->current) {
    status = strategy->type->reserve(strategy, bytes);
  }
  strategy->inside--;
  return status;
}

// Gives the new memory back. A strategy that was exchanged gives all back. It
// may also be exchanged during the call: the new one keeps nothing.
static void undo(tarn_pool *pool, tarn__pool_strategy *strategy, size_t kept,
                 size_t reserved) {
  if (strategy == pool->current) {
    pool->kept =
        reserved > kept ? reserved : kept;  // and no more goes than came
    (void)tarn__front_trim(pool, reserved);
    if (strategy == pool->current) pool->kept = kept;
  } else {
    (void)tarn__strategy_trim(strategy, 0, 0);
  }
}

static tarn_status reserve(tarn_pool *pool, size_t bytes) {
  tarn__pool_strategy *strategy = pool->current;
  const tarn__pool_sizes *sizes = &pool->sizes;
  size_t kept = pool->kept;
  size_t reserved = pool->stats.reserved_bytes;
  tarn_status status = TARN_OK;
  TARN__TRY(tarn__capture_admit_trim(pool));
  bool can = strategy->type->reserve != NULL && sizes->largest != 0;
  if (bytes != 0 && !can) return refuse(pool);
  pool->kept = bytes;
  if (bytes > reserved) status = take(pool, strategy, bytes);
  if (status == TARN_OK && strategy == pool->current) return status;
  if (status == TARN_OK) {
    status = tarn__fail(
        TARN_E_STATE,
        "pool: reserve: another thread changed the strategy meanwhile");
  }
  tarn__failure failure = tarn__failure_of(status);
  undo(pool, strategy, kept, reserved);
  return tarn__failure_tell(&failure);
}

tarn_status tarn_pool_reserve(tarn_pool *pool, size_t bytes) {
  TARN__TRY(tarn__front_check_pool(pool));
  tarn__front_enter(pool);
  while (pool->reserving)
    tarn__front_wait(pool);
  pool->reserving = true;
  tarn_status status = reserve(pool, bytes);
  pool->reserving = false;
  tarn__news_tell(&pool->returned);
  tarn__front_leave(pool);
  return status;
}
