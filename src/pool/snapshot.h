// snapshot.h - snapshots of pools, for the files that take them by call, by
// signal, and when there is no room.
#ifndef TARN_POOL_SNAPSHOT_H_
#define TARN_POOL_SNAPSHOT_H_

#include "tarn/account.h"
#include "tarn/snapshot.h"
#include "tarn/trace.h"

// --- picture ----------------------------------------------------------------
//
// The state of a pool at one moment, and the trace made of it.
//
//   lock │ take: live blocks, memory of the device, last events │
//   unlock
//   ──────────────────────────────────────────────────────────────────────────
//   trace: events in their order ─► what is held at the end ─► tarn_trace
//
// A picture has nothing of the pool's: that may go on, and end.

// A request that was refused just now.
typedef struct tarn__pool_refusal {
  size_t size;  // the requested bytes; of blocks that grow or wake, the missing
                // ones
  uint64_t serial;
  tarn_tag tag;
  bool noted;  // where events are recorded, one reports it
} tarn__pool_refusal;

// In the taker's struct.
typedef struct tarn__pool_picture {
  char name[96];             // of the trace
  char device[64];           // the name of the pool's
  uint64_t time_ns;          // 0: the pool's events have no times
  uint32_t thread;           // that has taken it
  tarn_trace_block *blocks;  // with the tags of the pool
  size_t block_count;
  tarn_trace_segment *segments;
  size_t segment_count;
  tarn_pool_event *events;
  size_t event_count;
  uint64_t lost;     // events from before |events|
  bool has_refusal;  // which no event tells of
  tarn__pool_refusal refusal;
} tarn__pool_picture;

// Copies the state. The caller holds the pool's lock. |refusal|: the request
// that has just been refused; NULL: none. Free it with tarn__picture_deinit
// whatever the status.
//
// Memory that is on its way to or from the device at this moment may be missing
// or still be there.
//
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status
tarn__picture_take(tarn_pool *pool, const tarn__pool_refusal *refusal,
                   tarn__pool_picture *out);

void tarn__picture_deinit(tarn__pool_picture *picture);

// Checks the format and the path of snapshots. A |numbered| path needs a %n, so
// that each pool has a file of its own.
//
// TARN_E_INVALID.
TARN_MUST_CHECK tarn_status tarn__snapshot_check(tarn_trace_format format,
                                                 const char *path,
                                                 bool numbered);

// Writes what |picture| shows, once; format and path were checked. No lock is
// held.
TARN_MUST_CHECK tarn_status tarn__snapshot_write_picture(
    tarn__pool_picture *picture, tarn_trace_format format, const char *path);

// --- snapshot full ----------------------------------------------------------
//
// A snapshot of a pool that has just refused a request.
//
//   fail ─► take, with the lock ─► unlock ─► write ─► the request's TARN_FULL

// When a pool was last taken, guarded by its lock.
typedef struct tarn__pool_full_shots {
  uint64_t setting;  // under which of tarn_pool_snapshot_on_full's
  uint64_t time_ns;
} tarn__pool_full_shots;

// A picture on its way into a file.
typedef struct tarn__pool_full_shot tarn__pool_full_shot;

// Reads the environment when the first pool is made.
//
// TARN_E_INVALID  TARN_SNAPSHOT_ON_FULL is no path as there can be.
TARN_MUST_CHECK tarn_status tarn__full_shots_begin(void);

// Copies the state of |pool| after a refusal with TARN_FULL. NULL: no snapshot
// is wanted, or it is too soon for another, or it failed, which goes to the
// log. The caller holds the lock; the last error is kept.
__attribute__((cold)) tarn__pool_full_shot *tarn__full_shot_take(
    tarn_pool *pool, const tarn__pool_refusal *refusal);

// Writes and frees it; NULL is allowed. No lock is held; the last error stays
// as it is.
__attribute__((cold)) void tarn__full_shot_write(tarn__pool_full_shot *shot);

// The least nanoseconds between two snapshots of a pool; tests change it.
extern uint64_t tarn__full_shot_period_ns;

#endif  // TARN_POOL_SNAPSHOT_H_
