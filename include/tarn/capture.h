// capture.h - pools for captured graphs: tarn_pool_create with TARN_POOL_DEFER.
//
// Work that is queued during the capture of a graph runs later, at each launch,
// at the same addresses. So during a capture nothing can be waited for, and
// memory that it used has to stay the graph's.
//
//   tarn_pool_options options = {.struct_size = sizeof options,
//                                .flags = TARN_POOL_DEFER};
//   tarn_pool_create(place, &options, &pool);
//   tarn_pool_begin_capture(pool);
//   ... capture on |stream|, with tarn_pool_alloc and tarn_pool_free ...
//   tarn_pool_end_capture(pool);
//   ... launches ...
//   tarn_pool_end_graphs(pool);  // the graph is destroyed
//
// From begin_capture to end_capture:
//   * A request gets memory last used by its own stream, unused memory, or new
//     memory of the device, but never memory of another stream, for which it
//     would have to wait.
//   * A block allocated in the capture and freed on its own stream is available
//     to that stream at once.
//   * Any other free, and the free of a block that other streams use
//     (tarn_block_use_on), is deferred: it waits for nothing, calls no driver,
//     and takes effect at the end. Until then the block counts as live; a
//     second free is refused as usual.
//   * A block can be resized on its own stream only.
// From begin_capture to end_graphs no memory goes back to the device, moves, or
// is given to other users. Between end_capture and end_graphs requests are
// refused. Frees are allowed at any time.
//
// A capture that begins elsewhere, as by torch.cuda.graph, is noticed where the
// device tells which streams capture (TARN_EXTENSION_STREAM_CAPTURING). From
// the first request or free on a stream that captures to the first request,
// resize or trim after none does:
//   * Requests are served as between begin_capture and end_capture, those on
//     other streams too.
//   * All frees are deferred, since the pool cannot know which work is the
//     graph's.
// What a stream got while it captured is the graph's until end_graphs, also
// when it has been freed: only the same stream gets it again, in this capture
// or a later one, for a block of about the same size. The rest of the pool is
// an ordinary one again when the capture is over. A program that can, calls
// begin_capture: then blocks of all sizes share the graph's memory.
//
// The same pool can capture another graph, launched after the first and never
// at the same time: both use the same memory. Each launch must be ordered
// behind the work queued on their streams before.
//
// No driver is called and no thread waits, except for a request that exceeds
// the pool's memory, which asks the device. If the driver refuses that during a
// capture, allocate and free as much before it begins. No steps are learned.
#ifndef TARN_CAPTURE_H_
#define TARN_CAPTURE_H_

#include "tarn/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

// Begins a capture.
//
// TARN_E_STATE        a capture is under way.
// TARN_E_UNSUPPORTED  the pool was made without TARN_POOL_DEFER; also of the
//                     two functions below.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_begin_capture(tarn_pool *pool);

// Ends the capture and performs the deferred frees. The host may wait for a
// stream if one of these blocks was allocated before the capture for another
// stream than it was freed on.
//
// TARN_E_STATE   no capture is under way.
// TARN_E_NOMEM   ended, but some frees stay deferred until
//                tarn_pool_end_graphs.
// TARN_E_DEVICE  ended, but a stream that had to be waited for failed.
TARN_API tarn_status tarn_pool_end_capture(tarn_pool *pool);

// Releases the memory of the captured graphs, which are destroyed and whose
// last launch is over: the pool is an ordinary one again and can be trimmed.
// Without a capture before, it does nothing.
//
// TARN_E_STATE   a capture is under way.
// TARN_E_DEVICE  done, but a stream that had to be waited for failed.
TARN_API tarn_status tarn_pool_end_graphs(tarn_pool *pool);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_CAPTURE_H_
