// Room that a pool keeps: taken at once, and left alone by whatever trims.
//
//   held  [ live | idle ...........]
//         |──── kept ────|              trimming stops here
//
// The strategy is told beforehand what is to be kept, so that it gives back
// nothing of it while it asks for the rest. One call at a time: a failure puts
// back what was kept before, and that must not be what another is about to
// keep.
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

// More than there can be is refused before the device is asked for any of it.
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

// What came goes back. A strategy that was exchanged gives all back. It may be
// exchanged also while this goes on: the new one keeps nothing.
static void undo(tarn_pool *pool, tarn__pool_strategy *strategy, size_t kept,
                 size_t reserved) {
  if (strategy == pool->current) {
    pool->kept =
        reserved > kept ? reserved : kept;  // and no more goes than came
    (void)tarn__front_trim(pool, reserved);
    if (strategy == pool->current) pool->kept = kept;
  } else {
    strategy->inside++;
    (void)tarn__front_end_call(pool, strategy);
  }
}

static tarn_status reserve(tarn_pool *pool, size_t bytes) {
  tarn__pool_strategy *strategy = pool->current;
  const tarn__pool_sizes *sizes = &pool->sizes;
  size_t kept = pool->kept;
  size_t reserved = pool->stats.reserved_bytes;
  tarn_status status = tarn__capture_admit_trim(pool);
  if (status != TARN_OK) return status;
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
  tarn_status status = tarn__front_check_pool(pool);
  if (status != TARN_OK) return status;
  tarn__front_enter(pool);
  while (pool->reserving)
    tarn__front_wait(pool);
  pool->reserving = true;
  status = reserve(pool, bytes);
  pool->reserving = false;
  pthread_cond_broadcast(&pool->returned);
  tarn__front_leave(pool);
  return status;
}
