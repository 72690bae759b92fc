// alloc.h - requests with options, several blocks at once, and reserved memory.
//
//   tarn_alloc_options options = {
//       .struct_size = sizeof options,
//       .size = 1 << 20,
//       .stream = stream,
//       .flags = TARN_ALLOC_NO_WAIT | TARN_ALLOC_NO_GROW,
//       .user = &my_tensor,
//   };
//   tarn_block block;
//   tarn_status status = tarn_pool_alloc_with(pool, &options, &block);
//   if (status == TARN_FULL) {
//     // nothing is available at once: compute something smaller
//   }
//
// tarn_pool_alloc (pool.h) is the short form: no tag, no flags, no pointer.
#ifndef TARN_ALLOC_H_
#define TARN_ALLOC_H_

#include "tarn/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

// The host waits for no stream, neither for its work nor on behalf of a stream
// that cannot wait for another. The block gets memory of one of these kinds:
//   * memory last used by its own stream, or unused by any stream
//   * memory of a stream whose work is done, but not in a capture
//   * memory of another stream, if an event can order its own stream behind it
//   * new memory of the device, for which idle memory may go back that no
//   stream
//     may still use
// Adjacent idle pieces are one hole, which counts as used by a stream if any
// part is. Otherwise the request is TARN_FULL. The host may still wait if the
// pool debugs (tarn/misuse.h), if another thread changes the strategy
// meanwhile, and if the host has no memory to record the last user of returned
// memory.
#define TARN_ALLOC_NO_WAIT (1u << 0)

// The device is neither asked for memory nor given any: the block comes out of
// what the pool holds, or the request is TARN_FULL. Idle pages may move to
// where the block needs them (arena_pool, where the device has ranges).
// no_pool, async_pool and pools made with TARN_POOL_SHAREABLE hold nothing idle
// and refuse every such request.
#define TARN_ALLOC_NO_GROW (1u << 1)

// The function of tarn_pool_on_full is not called.
#define TARN_ALLOC_NO_CALLBACK (1u << 2)

// The first |size| bytes of the block are 0 for work queued on its stream from
// now on. The plug-in ABI has no queued fill, so the host waits for the stream
// and for the fill. In a dry pool there is nothing to clear.
#define TARN_ALLOC_ZERO (1u << 3)

// The options of one request.
typedef struct tarn_alloc_options {
  size_t struct_size;
  size_t size;          // bytes, at least 1
  size_t align;         // a power of two; 0: the device's own minimum
  tarn_stream *stream;  // of its use; NULL: the host
  tarn_tag tag;         // under which it is accounted; 0: untagged
  uint32_t flags;       // TARN_ALLOC_... bits; 0: none
  void *user;           // of the caller; tarn_block_user returns it
} tarn_alloc_options;

// Allocates a block with options.
//
// Without flags and |user| it costs as much as tarn_pool_alloc plus a few
// comparisons. A learned step of arena_pool serves it like any other request; a
// request with NO_WAIT or NO_GROW never triggers the layout of a new step.
//
// Lifetime:           as tarn_pool_alloc. |options| is read during the call;
//                     |user| is never dereferenced.
// Cost:               as tarn_pool_alloc. ZERO: a wait for the stream and a
//                     write of |size| bytes. |user|: 16 bytes of host memory
//                     for each block that is live at once, kept until the pool
//                     ends; other pools pay nothing.
// TARN_FULL           as tarn_pool_alloc, within what the flags allow; the text
//                     names the flag.
// TARN_E_INVALID      as tarn_pool_alloc; a tag that tarn_pool_tag has not
//                     returned; an unknown flag, which the text shows;
//                     |options| NULL, or struct_size too small.
// TARN_E_UNSUPPORTED  NO_WAIT with ZERO, except in dry pools and for blocks
//                     with |stream| NULL in memory that the host can access.
// TARN_E_STATE        as tarn_pool_alloc; ZERO during a capture, since a graph
//                     would not clear the block again.
// TARN_E_DEVICE       as tarn_pool_alloc; or clearing failed, and the block was
//                     freed again.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_alloc_with(
    tarn_pool *pool, const tarn_alloc_options *options, tarn_block *out_block);

// Allocates |count| blocks, block i as options[i] says, or none of them. The
// blocks are independent: free them one by one, in any order.
//
//   tarn_alloc_options wanted[2] = {
//       {.struct_size = sizeof *wanted, .size = rows * width * 4},
//       {.struct_size = sizeof *wanted, .size = rows * 8},
//   };
//   tarn_block blocks[2];
//   status = tarn_pool_alloc_many(pool, wanted, 2, blocks);
//
// A failed call sets |out_blocks| to 0, adds 1 to |failures|, and leaves all
// other statistics of blocks unchanged: live bytes, peaks, tags, events, hits,
// misses and learned steps. If the sum of the sizes exceeds what is available
// beside the live blocks, the device is not asked. Otherwise new memory goes
// back to the device, except between the beginning of a capture and
// tarn_pool_end_graphs. As with any request, idle memory may have been
// reclaimed. Calls of the device that were made are counted: device_allocs,
// device_frees, reserved_peak_bytes, memory events.
//
// The memory of a learned step of arena_pool is not used for it; tarn_pool_trim
// releases that memory. arena_pool learns from the blocks of a served call as
// if each had been requested alone.
//
// Cost:     of |count| requests, and host memory for them during the call.
// TARN_OK   also for a |count| of 0.
// Errors:   as tarn_pool_alloc_with, for the first wrong block, which the text
//           names if there are several. TARN_E_INVALID also if
//           options[i].struct_size differs from that of the first.
TARN_API TARN_MUST_CHECK tarn_status
tarn_pool_alloc_many(tarn_pool *pool, const tarn_alloc_options *options,
                     size_t count, tarn_block *out_blocks);

// The |user| pointer of the request for the block, through any copy of the
// block and through one that tarn_block_of found. NULL: none.
//
//   void *user;
//   if (tarn_block_of(place, address, &block, NULL) == TARN_OK &&
//       tarn_block_user(&block, &user) == TARN_OK) {
//     struct tensor *tensor = user;
//   }
//
// Cost:           O(1).
// TARN_E_INVALID  freed before, or not a block of its pool; with the text of
//                 tarn_pool_free.
// TARN_E_STATE    another thread is resizing or freeing it, or putting it to
//                 sleep or waking it.
TARN_API TARN_MUST_CHECK tarn_status tarn_block_user(const tarn_block *block,
                                                     void **out_user);

// Has the pool hold at least |bytes| of its device, live and idle memory
// together, until the next call: missing memory is taken now, and
// tarn_pool_trim, tarn_pool_decay and the slack of arena_pool respect it. 0,
// the default: nothing is reserved; idle memory stays until it is trimmed.
// Requests that fit into the idle memory are then served without the device.
//
//   status = tarn_pool_reserve(pool, (size_t)8 << 30);  // at the start
//   ... steps ...
//   (void)tarn_pool_reserve(pool, 0);
//   tarn_pool_trim(pool, 0);
//
// A request without room may exchange reserved memory for other memory of the
// device, but no more of it than the request needs. Memory that sleeping blocks
// have given back does not count. Memory that returns to the device with its
// block counts while the block is live: blocks that the device allocated one by
// one, and blocks of a replaced strategy.
//
// arena_pool reserves it for blocks larger than its |small|; where the device
// has ranges, pages of it move to small blocks, elsewhere small blocks first
// get memory of their own. page_unit_pool cuts blocks of all sizes out of it;
// each part keeps its size until it is trimmed. buddy_pool reserves powers of
// two. tarn_pool_set_strategy ends the reservation.
//
// Threads:            one call at a time; another waits for its end.
// Cost:               device calls, if memory is missing.
// TARN_FULL           the limit or the device does not allow it. New memory has
//                     gone back, though a larger piece may have stayed in place
//                     of a smaller one. The previous reservation still holds.
// TARN_E_UNSUPPORTED  no_pool, async_pool, a strategy of a program
//                     (tarn/strategy.h), a pool made with TARN_POOL_SHAREABLE,
//                     or a device on which each block is allocated by itself. 0
//                     is TARN_OK for all of them.
// TARN_E_STATE        from tarn_pool_begin_capture until tarn_pool_end_graphs;
//                     or another thread changed the strategy meanwhile, and
//                     nothing is reserved.
// TARN_E_DEVICE       the driver failed, see tarn_last_error(); otherwise as
//                     TARN_FULL.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_reserve(tarn_pool *pool,
                                                       size_t bytes);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_ALLOC_H_
