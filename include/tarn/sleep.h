// sleep.h - blocks that give up their memory for a while and keep their
// addresses.
//
// For weights and caches that are unused while something else needs the device:
//
//   tarn_pool_sleep(pool, weights, TARN_SLEEP_SAVE);  // a tag
//   ... something else uses the device ...
//   tarn_pool_wake(pool, weights);  // pointers into the blocks are valid again
//
// Threads, fork and errors are as in tarn/pool.h. examples/sleeping.c is a
// complete program.
#ifndef TARN_SLEEP_H_
#define TARN_SLEEP_H_

#include "tarn/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tarn_sleep_mode {
  TARN_SLEEP_DROP = 0,  // contents are undefined after waking
  TARN_SLEEP_SAVE = 1,  // contents are saved in host memory
} tarn_sleep_mode;

// Puts all live blocks of |tag| that are awake to sleep. Until they are woken
// nothing may access them: on most devices that is a fault. They count as live.
// They can be freed, which drops the saved contents, but not resized. Blocks of
// the tag that are allocated later are awake.
//
// Memory goes back in pages that contain only blocks falling asleep and holes.
// A page that is shared with another block stays with its contents:
// asleep_bytes says how much went back.
//
// The caller ensures that no work on the blocks is under way. The host waits
// for streams that used their memory before.
//
// This needs arena_pool on a device with ranges (tarn/range.h). Blocks that
// were allocated while the pool debugged (tarn/misuse.h), or that exceed the
// device's largest chunk and are memory of their own, cannot sleep: one of them
// under the tag keeps all of the tag awake.
//
// Threads:            a thread that frees, resizes or wakes one of the blocks
//                     meanwhile gets TARN_E_STATE.
// Cost:               a walk over all blocks, device calls for each 64 pages
//                     and each run of pages, and the copies.
// TARN_OK             also where nothing was awake.
// TARN_E_UNSUPPORTED  not supported by the strategy or the device; a block
//                     belongs to a replaced strategy, was allocated while the
//                     pool debugged, or exceeds the device's largest chunk; or
//                     a pool with a flag, or over memory of the caller. The
//                     text says which. Nothing has changed, as after the next
//                     three.
// TARN_E_NOMEM        the host has no memory for the saved contents.
// TARN_E_INVALID      a tag that tarn_pool_tag has not returned, or a wrong
//                     mode.
// TARN_E_STATE        another thread is working on one of the blocks.
// TARN_E_DEVICE       waiting or copying failed, and nothing has changed; or
//                     the device refused to take back memory, and the blocks
//                     are asleep, as tarn_pool_query_tag says.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_sleep(tarn_pool *pool,
                                                     tarn_tag tag,
                                                     tarn_sleep_mode mode);

// Wakes all sleeping blocks of |tag|: they have memory at their addresses
// again, with the saved contents. All of them or none: after a failure they are
// asleep as before, and the saved contents are kept. It works also after the
// strategy was replaced. Where there is no room, idle memory is reclaimed
// first.
//
// Cost:           as tarn_pool_sleep.
// TARN_OK         also where nothing was asleep.
// TARN_FULL       the limit or the device is used up: free blocks or put others
//                 to sleep, and try again.
// TARN_E_INVALID  a tag that tarn_pool_tag has not returned.
// TARN_E_STATE    another thread is working on one of the blocks.
// TARN_E_DEVICE   the driver failed; see tarn_last_error().
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_wake(tarn_pool *pool,
                                                    tarn_tag tag);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_SLEEP_H_
