// capture.h - pools for the capture of graphs: tarn_pool_create with
// TARN_POOL_DEFER.
//
// What is queued on streams while a graph is captured runs later, as often as
// the graph is launched, and at the same addresses. So in a capture nothing may
// be waited for, and what was used in it must stay the graph's.
//
//   begin_capture ─► alloc, free, ... ─► end_capture ─► launches ─► release
//
// From begin to end:
//   * a request gets memory of its own stream, of nobody, or new one of the
//     device; never another stream's, which it would have to wait for
//   * a block taken in it and freed on the stream that it was taken for is
//     there for that stream again at once
//   * any other free, and that of a block which other streams use
//     (tarn_block_use_on), is put off: it makes nobody wait, calls no driver,
//     and takes effect at the end. Until then the block counts as live; a
//     second free is refused all the same.
//   * a block is resized on its own stream only
// From begin to release no memory goes back to the device, moves, or reaches
// anybody else; between end and release there are no requests. Frees are
// allowed at any time, of what the capture left, for one.
//
// A pool may be captured with again, for another graph that is launched after
// the first, never at the same time: it uses the same memory. Both must be
// launched behind what was queued on their streams before.
//
// No driver is called, and no thread waits, but for a request that the pool's
// memory does not suffice for, which asks the device. Where the driver refuses
// that in a capture, take and free as much before it begins. No steps are
// learned.
#ifndef TARN_CAPTURE_H_
#define TARN_CAPTURE_H_

#include "tarn/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

// Begins a capture.
//
// TARN_E_STATE        a capture is under way.
// TARN_E_UNSUPPORTED  a pool made without TARN_POOL_DEFER, as of the two below.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_begin_capture(tarn_pool *pool);

// Ends it, and lets the frees take effect that were put off. The host may wait
// for a stream if a block among them was taken before the capture, for another
// stream than it was freed on.
//
// TARN_E_STATE   none is under way.
// TARN_E_NOMEM   it has ended, but some frees wait for tarn_pool_end_graphs.
// TARN_E_DEVICE  it has ended, but a stream that had to be waited for failed.
TARN_API tarn_status tarn_pool_end_capture(tarn_pool *pool);

// The graphs are gone and their last launch is over: the pool is an ordinary
// one again, with all its memory, which can be trimmed. Nothing happens if
// there was no capture.
//
// TARN_E_STATE   a capture is under way.
// TARN_E_DEVICE  done, but a stream that had to be waited for failed.
TARN_API tarn_status tarn_pool_end_graphs(tarn_pool *pool);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_CAPTURE_H_
