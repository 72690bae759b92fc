// snapshot.h - files that say what holds a pool's memory, for `tarn why`, `tarn
// view` and PyTorch's viewers.
//
// A snapshot contains the live blocks with their tags, the memory that the pool
// holds of the device, and, where TARN_COUNT_EVENTS is on (account.h), the last
// events. There are three ways to get one: by a call, by a signal, and when a
// request is refused for lack of memory.
//
//   tarn_pool_snapshot_on_full(TARN_TRACE_FORMAT_TARN, "full-%p-%n.tarn");
//   ... the program runs out of memory ...
//   $ tarn why full-4711-0.tarn
//
// Errors: besides those of each function: TARN_E_NOMEM if the host has no
//         memory, and TARN_E_STATE from a stream's callback. Then nothing has
//         changed.
#ifndef TARN_SNAPSHOT_H_
#define TARN_SNAPSHOT_H_

#include "tarn/pool.h"
#include "tarn/trace.h"
#include "tarn/trace_write.h"

#ifdef __cplusplus
extern "C" {
#endif

// Creates a consistent trace of |pool|, with the pool's tags. Blocks allocated
// before the oldest kept event are the baseline. lost_count counts the missing
// events: those that the ring no longer holds, and those from before events
// were last switched on, since the time between is unknown.
//
//   alloc, free       TARN_TRACE_ALLOC, _FREE, with the requested size
//   resize            both, at the same address
//   refused, FULL     TARN_TRACE_OOM
//   memory came       TARN_TRACE_SEGMENT_ALLOC; pages of ranges
//                     TARN_TRACE_SEGMENT_MAP
//   ... and went      TARN_TRACE_SEGMENT_FREE, TARN_TRACE_SEGMENT_UNMAP
//   at the end        TARN_TRACE_SNAPSHOT
//
// Segments are the memory that the pool holds of the device: reserved_bytes,
// except what other threads are just taking or giving back. Idle pages that are
// not mapped are one segment at address 0; in events they follow one another
// there. A sleeping block is live and may be outside all segments. A live block
// of the baseline has the stream whose work it waits for, 0 if there is none.
// There are no stacks.
//
// Lifetime: destroy it with tarn_trace_destroy; it does not refer to the pool.
// Threads:  others wait for the pool while its blocks and events are copied.
// Cost:     linear in blocks, held memory and events. With 100,000 blocks on a
//           busy machine, others waited for 40 to 130 ms.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_trace(tarn_pool *pool,
                                                     tarn_trace **out_trace);

// Writes that trace to the file at |path|, which is replaced completely or not
// at all. In |path|, %p becomes the process id, %n a number that counts the
// snapshots of the process from 0, %d the device's name (with _ for each /) and
// %% a %.
//
// TARN_E_IO       the file cannot be written; the text says why.
// TARN_E_INVALID  |path| is NULL or empty, or contains another %; no such
//                 format.
TARN_API TARN_MUST_CHECK tarn_status
tarn_pool_snapshot(tarn_pool *pool, tarn_trace_format format, const char *path);

// Writes one file for each pool of the process, one after the other: each file
// is consistent, the set of them is not. Returns the first failure; the other
// files are written. A device can have several pools, so |path| must contain
// %n, or it is TARN_E_INVALID.
TARN_API TARN_MUST_CHECK tarn_status
tarn_pool_snapshot_all(tarn_trace_format format, const char *path);

// Has |signal| write a snapshot of each pool, as above. A thread of the library
// writes it, and the signal handler does nothing else. Signals that arrive
// during the writing cause one more snapshot. The same signal again sets
// another format or path. NULL, with any |signal|: no more; the thread ends,
// and the previous handler is restored, unless the program has changed it
// since. Failures go to the log (tarn_log_set).
//
// Fork: in a child the signal has no effect until the child calls this
// function.
//
// TARN_E_INVALID  no such signal, one that cannot be caught, or one that
//                 reports a fault, such as SIGSEGV; or as above.
// TARN_E_STATE    another signal is set already.
// TARN_E_NOMEM    also if the system has no thread for it.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_snapshot_on_signal(
    int signal, tarn_trace_format format, const char *path);

// Has each pool write a snapshot of its state when a request is refused with
// TARN_FULL for lack of memory, after all reclaim steps: the first such
// request, and later ones that come a second or more after the last snapshot.
// The snapshot ends with the refused request, also where events are off:
//
//   tarn_pool_alloc    the requested size and its tag
//   tarn_pool_resize   the missing bytes and the block's tag; not if the place
//                      behind the block is taken, which memory does not cure
//   tarn_pool_wake     the missing bytes of the tag's blocks, and the tag
//
// NULL: no more. The environment variable TARN_SNAPSHOT_ON_FULL=PATH does the
// same, with TARN_TRACE_FORMAT_TARN, when the first pool is created, but not in
// programs that run with more rights than their user's; a wrong PATH is
// TARN_E_INVALID there.
//
// The refusal is returned after the file was written, without a lock of the
// pool meanwhile. A snapshot that cannot be written is reported to the log and
// changes neither status nor text.
//
// TARN_E_INVALID  as tarn_pool_snapshot. Nothing has changed.
TARN_API TARN_MUST_CHECK tarn_status
tarn_pool_snapshot_on_full(tarn_trace_format format, const char *path);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_SNAPSHOT_H_
