// snapshot.h - who holds a pool's memory, written to a file that `tarn why`,
// `tarn view` and PyTorch's viewers read.
//
// A snapshot holds the blocks that are out, under their tags; what the pool
// has of the device; and, where TARN_COUNT_EVENTS is on (account.h), the last
// events, of which the trace is then made. Three ways to get one: by call, by
// a signal, and when a request is refused for want of memory.
//
//   tarn_pool_snapshot_on_full(TARN_TRACE_FORMAT_TARN, "full-%p-%n.tarn");
//   ... the program runs out of memory ...
//   $ tarn why full-4711-0.tarn
//
// Errors: besides what each function lists TARN_E_NOMEM, if the host has no
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

// Makes the trace of |pool| as of one moment. Its tags are the pool's. Blocks
// that were out before the oldest event that is kept are the baseline; events
// that are not there are counted in lost_count: those that the ring no longer
// holds, and those from before events were last switched on, since what
// happened between is not known.
//
//   alloc, free       TARN_TRACE_ALLOC, _FREE, of the size that was asked for
//   resize            the one and the other, at the same address
//   refused, FULL     TARN_TRACE_OOM
//   memory came       TARN_TRACE_SEGMENT_ALLOC; pages of ranges
//                     TARN_TRACE_SEGMENT_MAP
//   ... and went      TARN_TRACE_SEGMENT_FREE, TARN_TRACE_SEGMENT_UNMAP
//   at the end        TARN_TRACE_SNAPSHOT
//
// Segments are what the pool holds of the device: reserved_bytes in all, but
// for what other threads are just taking or giving back. Idle pages that stand
// nowhere are one at address 0, and in events they lie there one behind the
// other. A block that sleeps is held, and may stand
// where no segment is. A block of the baseline that is still out has the stream
// for whose end it waits, and 0 if there is none; nothing has a stack.
//
// Lifetime: free it with tarn_trace_destroy; it does not need the pool.
// Threads:  others wait for the pool while its blocks and events are copied.
// Cost:     linear in blocks, in what is held, and in events. Others waited for
//           40 to 130 ms with 100,000 blocks, on a machine that was busy.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_trace(tarn_pool *pool,
                                                     tarn_trace **out_trace);

// The same into the file at |path|, which is replaced by a whole file or not
// at all. In |path|, %p becomes the process's number, %n a number that counts
// up from 0 with each snapshot of the process, %d the device's name (with _ for
// each /) and %% a %.
//
// TARN_E_IO       the file cannot be written; the text says why.
// TARN_E_INVALID  |path| is NULL or empty, or has another %; no such format.
TARN_API TARN_MUST_CHECK tarn_status
tarn_pool_snapshot(tarn_pool *pool, tarn_trace_format format, const char *path);

// One file of each pool that there is, one after the other: each is as of one
// moment, all of them are not. The status is that of the first that failed; the
// others are written. Pools of a device may be several, so |path| must have a
// %n, or it is TARN_E_INVALID.
TARN_API TARN_MUST_CHECK tarn_status
tarn_pool_snapshot_all(tarn_trace_format format, const char *path);

// From now on |signal| writes a snapshot of each pool, as above; a thread of
// the library's waits for it, so nothing is done within the handler. Signals
// that come while it writes make one more of each pool. The same signal again:
// another format or path. NULL: no more, whatever |signal| is; the thread ends,
// and what the signal did before is restored, unless the program has changed
// that since. What cannot be written is told by the log (tarn_log_set).
//
// Fork: in a child the signal does nothing until the child calls this.
//
// TARN_E_INVALID  no such signal, one that cannot be caught, or one that says
//                 that the program is broken, as SIGSEGV; or as above.
// TARN_E_STATE    another signal does this already.
// TARN_E_NOMEM    also if the system has no thread for it.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_snapshot_on_signal(
    int signal, tarn_trace_format format, const char *path);

// From now on the first request of each pool that is refused with TARN_FULL for
// want of memory, after all that the pool can do about it, writes a snapshot of
// it, as of that moment; of later ones those that come a second or more after
// the snapshot before. It ends with the refused request, be events on or not:
//
//   tarn_pool_alloc    what was asked for, and its tag
//   tarn_pool_resize   what the block lacks, and its tag; not if the place
//                      behind it is taken, for which memory is no remedy
//   tarn_pool_wake     what the tag's blocks lack, and the tag
//
// NULL: no more. The environment's TARN_SNAPSHOT_ON_FULL=PATH says the
// same, of format TARN_TRACE_FORMAT_TARN, when the first pool is made, but not
// in programs that run with rights beyond their user's; a wrong PATH is
// TARN_E_INVALID there.
//
// The refusal is returned when the file is written; no lock of the pool is held
// meanwhile. A snapshot that cannot be written is told by the log, and changes
// neither status nor text.
//
// TARN_E_INVALID  as of tarn_pool_snapshot. Nothing has changed.
TARN_API TARN_MUST_CHECK tarn_status
tarn_pool_snapshot_on_full(tarn_trace_format format, const char *path);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_SNAPSHOT_H_
