// snapshot_full.h - a snapshot of a pool that has just refused a request.
//
//   fail ─► take, with the lock ─► unlock ─► write ─► the request's TARN_FULL
#ifndef TARN_POOL_SNAPSHOT_FULL_H_
#define TARN_POOL_SNAPSHOT_FULL_H_

#include "pool/picture.h"

// When a pool was last taken, guarded by its lock.
typedef struct tarn__pool_full_shots {
  uint64_t setting;  // under which of tarn_pool_snapshot_on_full's
  uint64_t time_ns;
} tarn__pool_full_shots;

// A picture on its way into a file.
typedef struct tarn__pool_full_shot tarn__pool_full_shot;

// For the first pool that is made: what the environment says.
//
// TARN_E_INVALID  TARN_SNAPSHOT_ON_FULL is no path as there can be.
TARN_MUST_CHECK tarn_status tarn__full_shots_begin(void);

// Copies what |pool| holds now that something was refused with TARN_FULL. NULL:
// no snapshot is wanted of it, or not yet again, or it failed, which the log
// was told. The lock is held; the last error stays as it is.
__attribute__((cold)) tarn__pool_full_shot *tarn__full_shot_take(
    tarn_pool *pool, const tarn__pool_refusal *refusal);

// Writes and frees it; NULL is allowed. No lock is held; the last error stays
// as it is.
__attribute__((cold)) void tarn__full_shot_write(tarn__pool_full_shot *shot);

// Nanoseconds from one shot of a pool to the next, for tests to change.
extern uint64_t tarn__full_shot_period_ns;

#endif  // TARN_POOL_SNAPSHOT_FULL_H_
