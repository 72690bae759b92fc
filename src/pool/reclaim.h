// reclaim.h - the steps before a request is refused, and the error text.
//
//   status = ask the strategy;
//   tarn__pool_reclaim reclaim = tarn__reclaim_of(pool, request);
//   while (status == TARN_FULL && tarn__reclaim_next(&reclaim))
//     status = ask the strategy;
//   return status == TARN_FULL ? tarn__reclaim_fail(&reclaim) : status;
#ifndef TARN_POOL_RECLAIM_H_
#define TARN_POOL_RECLAIM_H_

#include "pool/front.h"
#include "pool/strategy.h"
#include "tarn/pool.h"

enum { TARN__REASON_SIZE = 224 };

// The reclaim of one request.
typedef struct tarn__pool_reclaim {
  tarn_pool *pool;
  const tarn__pool_request *request;
  size_t step;                     // the next
  unsigned rounds;                 // that have begun
  bool helped;                     // a step of this round has made room
  bool refused;                    // the program's function wants no other try
  char reason[TARN__REASON_SIZE];  // why the strategy refused last
} tarn__pool_reclaim;

static inline tarn__pool_reclaim tarn__reclaim_of(
    tarn_pool *pool, const tarn__pool_request *request) {
  return (tarn__pool_reclaim){.pool = pool, .request = request, .rounds = 1};
}

// Takes steps until one has made room; then the caller asks the strategy again.
// False: no step can make room. The caller holds the pool's lock; the call
// releases it.
TARN_MUST_CHECK bool tarn__reclaim_next(tarn__pool_reclaim *reclaim);

// Writes the thread's last error; returns TARN_FULL. The lock is held.
tarn_status tarn__reclaim_fail(const tarn__pool_reclaim *reclaim);

// --- room -------------------------------------------------------------------
//
// Whether there can be room for a request, before a strategy reserves,
// enters or maps anything for it.
//
//   the limit   |== charged ==|---------------- room -----------------|
//   the device  |== others' ==|===== live =====|-- idle --|-- free ---|
//                                              |-------- room --------|
//
// It is a filter, not a reservation: a request that passes may still be
// refused, because another thread was faster or because idle memory is in
// pieces. A request that does not pass could not have been served: idle memory
// counts as free, since it can be moved or given back.

// Bytes of live blocks that are not asleep.
static inline size_t tarn__room_awake(const tarn_pool *pool) {
  const tarn_pool_stats *stats = &pool->stats;
  return stats->live_bytes > stats->asleep_bytes
             ? stats->live_bytes - stats->asleep_bytes
             : 0;
}

// Bytes that the pool holds, or that are on their way from or to the device.
static inline size_t tarn__room_held(const tarn_pool *pool) {
  return pool->stats.reserved_bytes + pool->pending;
}

// The bytes without a live block.
static inline size_t tarn__room_idle(const tarn_pool *pool) {
  size_t held = tarn__room_held(pool);
  size_t awake = tarn__room_awake(pool);
  return held > awake ? held - awake : 0;
}

// As tarn__room_check, for more than the pool has idle.
TARN_MUST_CHECK tarn_status tarn__room_check_growth(tarn_pool *pool,
                                                    size_t size);

// Checks that there is room for |size| bytes of blocks. The caller holds the
// lock; it is released for the query of the device's free memory, which happens
// only when the pool has to grow.
//
// TARN_FULL  the limit forbids it, or idle and free memory together are less:
//            only the program can help.
// TARN_OK    also for a size of more than SIZE_MAX / 4, which rounding may
//            carry beyond SIZE_MAX: the strategy checks the invariants with it.
TARN_MUST_CHECK static inline tarn_status tarn__room_check(tarn_pool *pool,
                                                           size_t size) {
  return size <= tarn__room_idle(pool) ? TARN_OK
                                       : tarn__room_check_growth(pool, size);
}

// Whether |request| could be served if all blocks of the pool were freed.
// Releases the lock.
bool tarn__room_can_fit(tarn_pool *pool, const tarn__pool_request *request);

// TARN_FULL: there is no room to |do_what| with |size| bytes. The last error
// becomes the reason in the text.
tarn_status tarn__room_lacks(const tarn_pool *pool, const char *do_what,
                             size_t size);

#endif  // TARN_POOL_RECLAIM_H_
