// sleep.h - blocks that leave their memory to others, and get it back where
// they are.
//
// Weights and caches that are not needed while something else has the device:
// their memory goes back to it, their addresses stay theirs.
//
//   tarn_pool_sleep(pool, weights, TARN_SLEEP_SAVE);  // a tag
//   ... something else uses the device ...
//   tarn_pool_wake(pool, weights);  // pointers into the blocks are good again
//
// Threads, fork and errors are as tarn/pool.h says. examples/sleeping.c is a
// whole program.
#ifndef TARN_SLEEP_H_
#define TARN_SLEEP_H_

#include "tarn/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tarn_sleep_mode {
  TARN_SLEEP_DROP = 0,  // contents are undefined after waking
  TARN_SLEEP_SAVE = 1,  // they are copied to the host's memory first
} tarn_sleep_mode;

// Puts all blocks of |tag| that are out and awake to sleep. Until they are
// woken nobody may touch them: on most devices that is a fault. They count as
// live; they may be freed, and then what was saved of them is dropped, but not
// be resized. Blocks of the tag that are taken later are awake.
//
// Memory goes back by pages: those that contain nothing but blocks that fall
// asleep now, and holes. A page that also has something of another block stays
// where it is, contents and all: asleep_bytes tells what was given back.
//
// The caller sees to it that no work on the blocks is under way. The host waits
// for streams that used their memory before.
//
// Only arena_pool can, and where the device has ranges (tarn/range.h), and not
// for blocks that were taken while the pool debugged (tarn/misuse.h), nor for
// those that exceed the device's largest chunk: they were asked for by
// themselves. One such block under the tag keeps all of it awake.
//
// Threads:            who frees or resizes one of the blocks meanwhile, or
//                     wakes them, gets TARN_E_STATE.
// Cost:               a walk over all blocks, calls of the device for each 64
//                     pages and each run of them, and the copies.
// TARN_OK             also where nothing was awake.
// TARN_E_UNSUPPORTED  the present strategy cannot, or not on this device; a
//                     block is of one that was replaced, was taken while the
//                     pool debugged, or exceeds the device's largest chunk;
//                     or a pool with a flag, or over memory of the caller's.
//                     The text says which. Nothing has changed, nor after the
//                     next three.
// TARN_E_NOMEM        the host has not enough for what is to be saved.
// TARN_E_INVALID      a tag that tarn_pool_tag has not given, or no such mode.
// TARN_E_STATE        another thread is at one of the blocks.
// TARN_E_DEVICE       waiting or copying failed: nothing has changed. Or the
//                     device refused memory that it was given back: they are
//                     asleep, as tarn_pool_query_tag tells.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_sleep(tarn_pool *pool,
                                                     tarn_tag tag,
                                                     tarn_sleep_mode mode);

// Wakes all blocks of |tag| that sleep: they have memory at their addresses
// again, and what was saved is there. All of them or none: after a failure they
// sleep as before, and what was saved is kept. Also when the strategy was
// replaced since. Idle memory goes back first where there is no room.
//
// Cost:           as of tarn_pool_sleep.
// TARN_OK         also where nothing slept.
// TARN_FULL       the limit or the device is used up: free, or let others
//                 sleep, and try again.
// TARN_E_INVALID  a tag that tarn_pool_tag has not given.
// TARN_E_STATE    another thread is at one of the blocks.
// TARN_E_DEVICE   the driver failed; see tarn_last_error().
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_wake(tarn_pool *pool,
                                                    tarn_tag tag);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_SLEEP_H_
