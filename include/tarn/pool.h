// pool.h - blocks of memory at a place, for use on streams.
//
// Each place has one pool. In front stands what callers see: limits,
// accounting, tags, statistics, and the check of every free. Behind it works a
// strategy, which decides how memory of the device is kept and reused, and
// which can be exchanged at any time without any block noticing.
//
//     tarn_pool_alloc ─► front ─► strategy ─► source ─► device
//                        │        page_unit_pool        cudaMalloc, mmap, ...
//                        │        arena_pool, ...
//                        limits, tags, peaks, misuse
//
//   tarn_pool *pool;
//   tarn_pool_of(tarn_place_on(gpu), &pool);
//   tarn_block block;
//   tarn_pool_alloc(pool, 1 << 20, 0, stream, &block);
//   ... kernels on |stream| use block.address ...
//   tarn_pool_free(&block, stream);
//
// Stream order. A block is taken for use on a stream and freed on a stream:
// where its last use was queued. Taken again for the same stream it is there
// at once. Taken for another, that stream is made to wait for what the first
// has queued by then; the host never waits, unless |stream| is NULL, which
// means the host itself, whose uses are over when the call is made.
//
// Strategies, by name (as given to tarn_pool_use, TARN_POOL and the tool):
//   page_unit_pool[:page=BYTES]  sizes rounded up to a page unit, 4096 by
//                   default; a free buffer of the rounded size is reused, and
//                   nothing is given back before it is asked for. Its worst
//                   case is known: sizes that grow a little each time reuse
//                   nothing.
//   no_pool         every request goes to the device, every free too; as
//                   async_pool where the driver keeps what is given back.
//   async_pool      the same in the order of streams, where the driver has
//                   that: nobody waits.
//   buddy_pool[:min=BYTES,max=BYTES,init=BYTES,realloc=BYTES,padding=BYTES]
//                   blocks are cut out of large chunks by halves, and halves
//                   join again. The sizes are the device's own unless given;
//                   blocks of more than |max| go to the device one by one.
//   arena_pool[:page=BYTES,small=BYTES,slack=BYTES]  blocks are cut out of
//                   large pieces of memory and joined again when freed. Where
//                   the device has ranges (tarn/range.h) memory comes and goes
//                   by pages (256K by default, or the device's own), and idle
//                   pages move to where they are needed, but only to keep what
//                   is held within |slack| of the live peak (2% of it, but at
//                   least 2M, by default); elsewhere it comes in segments.
//                   Blocks of up to |small| bytes, 64K by default, stay apart
//                   from larger ones.
// and those that programs register: strategy.h.
//
// Threads:  everything here may be called from any thread at any time, but not
//           from a stream's callback: there it answers TARN_E_STATE.
// Fork:     in a child of the process that made it, a pool answers
//           TARN_E_STATE.
#ifndef TARN_POOL_H_
#define TARN_POOL_H_

#include "tarn/base.h"
#include "tarn/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_pool tarn_pool;

// A small number that stands for a name, such as "activations": whoever asks
// for memory says what for. 0 is "untagged".
typedef uint32_t tarn_tag;

// A piece of memory, as a value: copy it freely, free one copy once.
typedef struct tarn_block {
  tarn_pool *pool;
  tarn_addr address;
  size_t size;  // bytes that may be used: at least what was asked for
  uint32_t id;
  uint32_t generation;  // tells this block from earlier ones at the same id
} tarn_block;

// ---------------------------------------------------------------------------
// Pools and their strategies
// ---------------------------------------------------------------------------

// The pool of |place|, made at first use with the default strategy. It lives
// until the device closes; pools of the host live as long as the process.
//
// The default is page_unit_pool, or what the environment variable TARN_POOL
// names.
//
// TARN_E_INVALID      TARN_POOL names no strategy; or a kind that is none.
// TARN_E_UNSUPPORTED  the device has no memory of that kind.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_of(tarn_place place,
                                                  tarn_pool **out_pool);

// Exchanges the strategy of |place| for a fresh one: "name" or
// "name:key=value,...". Blocks that are out stay valid and are freed as ever;
// the old strategy gives its idle memory back at once, and ends when its last
// block has come home. Statistics go on.
//
// TARN_E_INVALID  no such strategy or option: nothing has changed.
// TARN_E_DEVICE   exchanged, but the device refused some idle memory.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_use(tarn_place place,
                                                   const char *strategy);

// Exchanges it for the default strategy.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_remove(tarn_place place);

// The names that tarn_pool_use knows, in order of registration; NULL from
// |index| on that is beyond the last.
TARN_API const char *tarn_pool_strategy_name(size_t index);

TARN_API tarn_place tarn_pool_place(const tarn_pool *pool);

// Bytes that the pool may hold of its device at most; 0: no limit. Below what
// it holds now it only keeps it from growing. Checked before the device is
// asked.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_limit(tarn_pool *pool,
                                                     size_t bytes);

// Gives idle memory back to the device until the pool holds at most |target|
// bytes of it; 0: all that can be. Blocks that are out are not touched. A pool
// whose memory comes in large pieces may give back more than asked.
//
// TARN_OK        also where what is out keeps it above |target|.
// TARN_E_DEVICE  the device refused some of it.
TARN_API tarn_status tarn_pool_trim(tarn_pool *pool, size_t target);

// ---------------------------------------------------------------------------
// Blocks
// ---------------------------------------------------------------------------

// Takes a block of at least |size| bytes for use on |stream|.
//
// The address is a multiple of |align| (a power of two; 0: the device's own
// minimum). Bytes are not cleared.
//
// Lifetime: give it back with tarn_pool_free before the device closes.
// Cost:     O(1), plus one call of the device when the pool grows.
// TARN_FULL       the limit or the device is used up: trim, free, or wait.
// TARN_E_INVALID  size 0, bad align, or the rounded size overflows.
// TARN_E_DEVICE   the driver failed; see tarn_last_error().
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_alloc(tarn_pool *pool,
                                                     size_t size, size_t align,
                                                     tarn_stream *stream,
                                                     tarn_block *out_block);

// The same, accounted under |tag|; TARN_E_INVALID also for one that
// tarn_pool_tag has not given.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_alloc_tagged(
    tarn_pool *pool, size_t size, size_t align, tarn_stream *stream,
    tarn_tag tag, tarn_block *out_block);

// Gives a block back; |stream| is where its last use was queued (NULL: the
// host has seen its end). One that was not used may be freed on any stream.
//
// TARN_E_INVALID  freed before, or not a block of that pool: the text names
//                 the tag of what is there. Nothing has changed.
// TARN_E_STATE    another thread is resizing it. Nothing has changed.
// TARN_E_DEVICE   the block is freed, but the device refused its memory.
TARN_API tarn_status tarn_pool_free(const tarn_block *block,
                                    tarn_stream *stream);

// The same for callers who keep only the address.
TARN_API tarn_status tarn_pool_free_address(tarn_pool *pool, tarn_addr address,
                                            tarn_stream *stream);

// Grows or shrinks a block where it stands: it never moves, and what it has
// until then keeps its contents. |block->size| is what it has afterwards; other
// copies of the block stay good. |stream| is where what is cut off was used
// last, as in tarn_pool_free, and where what is added will be used. One thread
// at a time for one block.
//
// arena_pool takes what is behind the block, if nobody or |stream| used it
// last, and where the device has ranges maps memory behind it. Other strategies
// give what the block has already, as do those that were replaced.
//
// Cost:           O(1), plus one call of the device where memory is mapped.
// TARN_FULL       no room behind it, or the limit or the device is used up.
//                 Nothing has changed: take another, copy, free.
// TARN_E_INVALID  size 0, or it overflows; no block, as in tarn_pool_free.
// TARN_E_STATE    another thread is resizing it.
// TARN_E_DEVICE   the driver failed; see tarn_last_error().
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_resize(tarn_block *block,
                                                      size_t size,
                                                      tarn_stream *stream);

// The block that starts at |address| and is out now.
//
// Cost:           O(1).
// TARN_E_INVALID  no block of |pool| starts there.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_find(tarn_pool *pool,
                                                    tarn_addr address,
                                                    tarn_block *out_block);

// ---------------------------------------------------------------------------
// Tags
// ---------------------------------------------------------------------------

// The tag of |name|, made if it is new. Tags are the process's, not a pool's,
// and are never forgotten; at most 65535 of them.
//
// TARN_E_INVALID  NULL, empty, or too many.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_tag(const char *name,
                                                   tarn_tag *out_tag);

// The name of a tag; "untagged" for 0 and for what is none.
TARN_API const char *tarn_pool_tag_name(tarn_tag tag);

// ---------------------------------------------------------------------------
// Sleep
// ---------------------------------------------------------------------------
// Weights and caches of a server that are not needed while something else has
// the device: their memory goes back to it, their addresses stay theirs, and
// pointers to them are good again after they are woken.

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
// Only arena_pool can, and where the device has ranges (tarn/range.h).
//
// Threads:  who frees or resizes one of the blocks meanwhile, or wakes them,
//           gets TARN_E_STATE.
// Cost:     a walk over all blocks, calls of the device for each 64 pages and
//           each run of them, and the copies.
// TARN_OK             also where nothing was awake.
// TARN_E_UNSUPPORTED  the present strategy cannot, or not on this device; or a
//                     block is of one that was replaced. The text says which.
//                     Nothing has changed, nor after the next four.
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
// sleep as before, and what was saved is kept.
//
// Also when the strategy was replaced since. Idle memory of the pool goes back
// first where the limit or the device leaves no room.
//
// Cost: as of tarn_pool_sleep.
// TARN_OK         also where nothing slept.
// TARN_FULL       the limit or the device is used up: free, or let others
//                 sleep, and try again.
// TARN_E_NOMEM    the host has not enough to keep books.
// TARN_E_INVALID  a tag that tarn_pool_tag has not given.
// TARN_E_STATE    another thread is at one of the blocks.
// TARN_E_DEVICE   the driver failed; see tarn_last_error().
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_wake(tarn_pool *pool,
                                                    tarn_tag tag);

// ---------------------------------------------------------------------------
// Statistics
// ---------------------------------------------------------------------------

typedef struct tarn_pool_stats {
  size_t struct_size;
  const char *strategy;    // the present one's name
  size_t live_bytes;       // asked for and not freed
  size_t live_peak_bytes;  // the most of that at once
  size_t live_blocks;
  size_t reserved_bytes;  // held of the device, idle memory included
  size_t reserved_peak_bytes;
  size_t limit_bytes;  // 0: none
  uint64_t allocs;     // requests that were served
  uint64_t frees;
  uint64_t hits;           // served without asking the device
  uint64_t misses;         // the device was asked
  uint64_t failures;       // requests that were not served
  uint64_t device_allocs;  // calls of the device, refused ones included
  uint64_t device_frees;
  uint64_t stream_crossings;  // blocks that changed streams
  size_t asleep_bytes;  // that sleeping blocks have given back to the device,
                        // and want again when they are woken
  size_t saved_bytes;   // of them, kept in the host's memory
} tarn_pool_stats;

// All of it as of one moment.
//
// Cost: O(1).
TARN_API TARN_MUST_CHECK tarn_status
tarn_pool_query(tarn_pool *pool, tarn_pool_stats *out_stats);

// Lets both peaks start again from what is out and held now.
TARN_API tarn_status tarn_pool_reset_peaks(tarn_pool *pool);

typedef struct tarn_pool_tag_stats {
  size_t struct_size;
  size_t live_bytes;
  size_t live_peak_bytes;
  size_t live_blocks;
  size_t asleep_blocks;  // of them, asleep
  size_t asleep_bytes;   // as of the pool
  size_t saved_bytes;
} tarn_pool_tag_stats;

// What is out in |pool| under |tag|; zeros if it never had any.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_query_tag(
    tarn_pool *pool, tarn_tag tag, tarn_pool_tag_stats *out_stats);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_POOL_H_
