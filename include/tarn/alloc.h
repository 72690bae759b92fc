// alloc.h - requests with options: what may happen for a block, several blocks
// at once, and room that a pool keeps.
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
//     // nothing could be had at once: compute something smaller
//   }
//
// tarn_pool_alloc (pool.h) is the short form: no tag, no flags, no pointer.
#ifndef TARN_ALLOC_H_
#define TARN_ALLOC_H_

#include "tarn/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

// The host waits for no stream, neither for its work nor in the place of a
// stream that cannot wait for another. The block gets memory of one of these
// kinds:
//   * memory that its own stream used last, or no stream
//   * memory of a stream whose work is done, but not in a capture
//   * memory of another stream, if an event can make its own stream wait
//   * new memory of the device; to make room for it, idle memory that no stream
//     may be at work in goes back
// Idle pieces of memory that touch are one hole, which counts as a stream's if
// a part of it does. A request that cannot be served so is TARN_FULL. The host
// may wait all the same where the pool debugs (tarn/misuse.h), where another
// thread exchanges the strategy meanwhile, and where memory is handed back and
// the host has no memory to note whose it was.
#define TARN_ALLOC_NO_WAIT (1u << 0)

// No memory of the device is asked for, and none goes back to it: the block
// comes out of what the pool holds. Idle pages may move to where it needs them
// (arena_pool, where the device has ranges). What cannot be served so is
// TARN_FULL. no_pool, async_pool and pools made with TARN_POOL_SHAREABLE hold
// nothing idle, and serve no such request.
#define TARN_ALLOC_NO_GROW (1u << 1)

// The function of tarn_pool_on_full is not called.
#define TARN_ALLOC_NO_CALLBACK (1u << 2)

// The first |size| bytes of the block are 0, in the order of its stream: what
// is queued on the stream from now on sees them so. The ABI of plug-ins has no
// queued fill, so that the host waits for the stream, and for the fill. In a
// dry pool there is nothing to clear.
#define TARN_ALLOC_ZERO (1u << 3)

// What one block is to be. A field that is 0 or NULL is as said there.
typedef struct tarn_alloc_options {
  size_t struct_size;
  size_t size;          // bytes, at least 1
  size_t align;         // a power of two; 0: the device's own minimum
  tarn_stream *stream;  // of its use; NULL: the host
  tarn_tag tag;         // under which it is accounted; 0: untagged
  uint32_t flags;       // TARN_ALLOC_... bits; 0: none
  void *user;           // the caller's; tarn_block_user reads it
} tarn_alloc_options;

// Takes a block as |options| say.
//
// Without flags and |user| it costs what tarn_pool_alloc costs and a few
// comparisons. A step that arena_pool has learned serves it as any other; a
// request with NO_WAIT or NO_GROW is not one at which a new step is laid out.
//
// Lifetime:           as of tarn_pool_alloc. |options| is read during the call;
//                     what |user| points to is never touched.
// Cost:               as of tarn_pool_alloc. ZERO: a wait for the stream, and a
//                     write of |size| bytes. |user|: 16 bytes of host memory
//                     for each block that the pool has at once, kept until the
//                     pool ends; pools without one pay nothing.
// TARN_FULL           as of tarn_pool_alloc, with what the flags leave of the
//                     ways to make room; the text names the flag.
// TARN_E_INVALID      as of tarn_pool_alloc; a tag that tarn_pool_tag has not
//                     given; an unknown flag, which the text shows; |options|
//                     NULL, or struct_size too small.
// TARN_E_UNSUPPORTED  NO_WAIT with ZERO, but for blocks with |stream| NULL in
//                     memory that the host can touch, and in dry pools.
// TARN_E_STATE        as of tarn_pool_alloc; ZERO while a capture is under way,
//                     since a graph would not clear it again.
// TARN_E_DEVICE       as of tarn_pool_alloc; or clearing failed, and the block
//                     has been given back.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_alloc_with(
    tarn_pool *pool, const tarn_alloc_options *options, tarn_block *out_block);

// Takes |count| blocks, block i as options[i] says, or none of them. Each is
// one of its own: they may be freed one by one, in any order.
//
//   tarn_alloc_options wanted[2] = {
//       {.struct_size = sizeof *wanted, .size = rows * width * 4},
//       {.struct_size = sizeof *wanted, .size = rows * 8},
//   };
//   tarn_block blocks[2];
//   status = tarn_pool_alloc_many(pool, wanted, 2, blocks);
//
// A call that fails leaves |out_blocks| 0. What the pool tells of blocks stays
// as it was: live bytes, their peaks, those of the tags, the events of blocks
// and refusals, hits and misses, and the steps that arena_pool has learned;
// |failures| goes up by one. If the sum of the sizes is more than can be had
// beside the blocks that are out, the device is asked for none of it. If the
// device was asked, it gets back what came, but not from the beginning of a
// capture to the release of its graph. Idle memory may have gone to make room,
// as for any request. What the device has given and got is in device_allocs,
// device_frees, reserved_peak_bytes and the events of memory, since it has
// happened.
//
// The memory of a step that arena_pool has learned is not taken for it: where
// that keeps a call from being served, tarn_pool_trim gives it up. Blocks of a
// call that is served are heard by arena_pool as if each were taken by itself.
//
// Cost:     of |count| requests, and host memory for them during the call.
// TARN_OK   also for a |count| of 0.
// Errors:   as of tarn_pool_alloc_with, for the first block with one; the text
//           tells which where there are several. TARN_E_INVALID also if
//           options[i].struct_size differs from that of the first.
TARN_API TARN_MUST_CHECK tarn_status
tarn_pool_alloc_many(tarn_pool *pool, const tarn_alloc_options *options,
                     size_t count, tarn_block *out_blocks);

// What |user| was at the request of the block: of any copy of it, and of one
// that tarn_block_of found. NULL: nothing.
//
//   void *user;
//   if (tarn_block_of(place, address, &block, NULL) == TARN_OK &&
//       tarn_block_user(&block, &user) == TARN_OK) {
//     struct tensor *tensor = user;
//   }
//
// Cost:           O(1).
// TARN_E_INVALID  freed before, or not a block of its pool; as tarn_pool_free
//                 says it.
// TARN_E_STATE    another thread is resizing or freeing it, puts it to sleep or
//                 wakes it.
TARN_API TARN_MUST_CHECK tarn_status tarn_block_user(const tarn_block *block,
                                                     void **out_user);

// Lets the pool hold at least |bytes| of its device, live and idle memory
// together, until it is called again: what it lacks of that is taken now, and
// tarn_pool_trim, tarn_pool_decay and the slack of arena_pool leave it so much.
// 0, as at the start: nothing is kept; what is idle stays until it is trimmed.
// Requests that fit in the idle memory are then served without the device.
//
//   status = tarn_pool_reserve(pool, (size_t)8 << 30);  // at the start
//   ... steps ...
//   (void)tarn_pool_reserve(pool, 0);
//   tarn_pool_trim(pool, 0);
//
// Where there is no room for a request it may be exchanged for other memory of
// the device: idle memory goes back, but no more of what is kept than the
// request asks for. Memory that sleeping blocks have given back does not count.
// Memory that goes back as soon as its block is freed counts until then: of
// blocks that the device was asked for one by one, and of blocks of a strategy
// that was exchanged.
//
// arena_pool takes it for blocks larger than its |small|; where the device has
// ranges pages of it move to small ones, elsewhere those have memory of their
// own first. page_unit_pool cuts blocks of all sizes out of it, each of which
// keeps its size until it is trimmed. buddy_pool takes it in powers of two.
// After tarn_pool_set_strategy nothing is kept: ask again, of the new strategy.
//
// Threads:            one call at a time; another waits for its end.
// Cost:               calls of the device, if something is lacking.
// TARN_FULL           the limit or the device has not as much. What came has
//                     gone back; a piece may have stayed in the place of a
//                     smaller one. What was kept before is still kept.
// TARN_E_UNSUPPORTED  no_pool, async_pool, a strategy of a program
//                     (strategy.h), a pool made with TARN_POOL_SHAREABLE, or a
//                     device that wants each block to be asked for by itself:
//                     nothing idle is kept there. But 0 is TARN_OK.
// TARN_E_STATE        from tarn_pool_begin_capture until tarn_pool_end_graphs;
// or
//                     another thread exchanged the strategy meanwhile, and
//                     nothing is kept.
// TARN_E_DEVICE       the driver failed; see tarn_last_error(). As after
//                     TARN_FULL.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_reserve(tarn_pool *pool,
                                                       size_t bytes);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_ALLOC_H_
