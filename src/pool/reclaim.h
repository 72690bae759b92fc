// reclaim.h - the steps before a request is refused, and the error text.
//
//   status = ask the strategy;
//   tarn__reclaim_begin(&reclaim, pool, request, tag);
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
  tarn_tag tag;
  size_t step;                     // the next
  unsigned rounds;                 // that have begun
  bool helped;                     // a step of this round has made room
  bool refused;                    // the program's function wants no other try
  char reason[TARN__REASON_SIZE];  // why the strategy refused last
} tarn__pool_reclaim;

void tarn__reclaim_begin(tarn__pool_reclaim *reclaim, tarn_pool *pool,
                         const tarn__pool_request *request, tarn_tag tag);

// Goes up until a step has made room, and the strategy is to be asked again.
// False: none to be made. The pool's lock is held, and released
// meanwhile.
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
// It is a filter, not a reservation: what passes may still be refused, because
// another thread was quicker or because idle memory is in pieces. What is
// refused could not have been served: idle memory counts as free, since it can
// be moved or given back.

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

// Those of them that no live block has.
static inline size_t tarn__room_idle(const tarn_pool *pool) {
  size_t held = tarn__room_held(pool);
  size_t awake = tarn__room_awake(pool);
  return held > awake ? held - awake : 0;
}

// As tarn__room_check, for more than the pool has idle.
TARN_MUST_CHECK tarn_status tarn__room_check_growth(tarn_pool *pool,
                                                    size_t size);

// Checks that |size| bytes for blocks can be had. The lock is held; it is let
// go while the device is asked what it has free, which happens only where the
// pool has to grow.
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

// Whether |request| could be served if all blocks of the pool were freed. The
// lock is let go meanwhile.
bool tarn__room_can_fit(tarn_pool *pool, const tarn__pool_request *request);

// TARN_FULL: there is no room to |do_what| with |size| bytes. The last error
// becomes the reason in the text.
tarn_status tarn__room_lacks(const tarn_pool *pool, const char *do_what,
                             size_t size);

#endif  // TARN_POOL_RECLAIM_H_
