// snapshot.h - who holds a pool's memory, written to a file that `tarn why`,
// `tarn view` and PyTorch's viewers read.
//
// A snapshot holds the blocks that are out, under their tags; what the pool
// has of the device; and, where TARN_COUNT_EVENTS is on (account.h), the last
// events, of which the trace is then made. Three ways to get one: by call, by
// a signal, and when a request is refused for want of memory.
#ifndef TARN_SNAPSHOT_H_
#define TARN_SNAPSHOT_H_

#include "tarn/pool.h"
#include "tarn/trace.h"
#include "tarn/trace_write.h"

#ifdef __cplusplus
extern "C" {
#endif

// Makes the trace of |pool| as of one moment. Its tags are the pool's. Blocks
// that were out before the oldest event that is kept are the baseline; events
// that the ring no longer holds are counted in lost_count. A refused request
// is a TARN_TRACE_OOM event.
//
// Lifetime: free it with tarn_trace_destroy; it does not need the pool.
// Threads:  others wait for the pool while its blocks and events are copied.
// Cost:     linear in blocks and events.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_trace(tarn_pool *pool,
                                                     tarn_trace **out_trace);

// The same into the file at |path|, which is replaced by a whole file or not
// at all. In |path|, %p becomes the process's number, %n a number that counts
// up from 0 with each snapshot, %d the device's name and %% a %.
//
// TARN_E_IO       the file cannot be written.
// TARN_E_INVALID  |path| is NULL or has another %; no such format.
TARN_API TARN_MUST_CHECK tarn_status
tarn_pool_snapshot(tarn_pool *pool, tarn_trace_format format, const char *path);

// One file of each pool that there is; |path| is to have a %n or %d.
// The status is that of the first that failed; the others are written.
TARN_API TARN_MUST_CHECK tarn_status
tarn_pool_snapshot_all(tarn_trace_format format, const char *path);

// From now on |signal| writes a snapshot of each pool, as above; a thread of
// the library's waits for it, so nothing is done within the handler. NULL: no
// more, and what the signal did before is restored.
//
// TARN_E_INVALID  no such signal, or one that cannot be caught.
// TARN_E_STATE    another signal does this already.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_snapshot_on_signal(
    int signal, tarn_trace_format format, const char *path);

// From now on the first request of each pool that is refused with TARN_FULL,
// after all that the pool can do about it, writes a snapshot of it; of later
// ones those that come a second or more after the one before. NULL: no more.
// The environment's TARN_SNAPSHOT_ON_FULL=PATH says the same, of format
// TARN_TRACE_FORMAT_TARN, from the start.
//
// A snapshot that cannot be written is told by the log (tarn_log_set), and
// changes no status.
TARN_API TARN_MUST_CHECK tarn_status
tarn_pool_snapshot_on_full(tarn_trace_format format, const char *path);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_SNAPSHOT_H_
