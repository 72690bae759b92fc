// pool.h - blocks of memory at a place, for use on streams.
//
// Each place has one pool, which all share, and besides those that somebody
// has made for himself (tarn_pool_create). In front stands what callers see:
// limits, accounting, tags, statistics, and the check of every free. Behind it
// works a strategy, which decides how memory of the device is kept and reused,
// and which can be exchanged at any time without any block noticing.
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

// Exchanges the strategy of one pool, be it a place's or one's own, as
// tarn_pool_use does.
//
// TARN_E_INVALID      no such strategy or option, or no pool.
// TARN_E_UNSUPPORTED  a pool made with TARN_POOL_DEFER: a graph may use what
//                     the strategy holds.
// TARN_E_DEVICE       exchanged, but the device refused some idle memory.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_exchange(tarn_pool *pool,
                                                        const char *strategy);

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
// TARN_E_STATE   from tarn_pool_begin_capture until tarn_pool_release.
// TARN_E_DEVICE  the device refused some of it.
TARN_API tarn_status tarn_pool_trim(tarn_pool *pool, size_t target);

// ---------------------------------------------------------------------------
// Pools of one's own
// ---------------------------------------------------------------------------

// For the capture of graphs: see tarn_pool_begin_capture. The strategy must be
// page_unit_pool or arena_pool; others may give memory back when they like.
#define TARN_POOL_DEFER (1u << 0)

// A dry run: blocks have addresses and are counted as ever, but there is no
// memory, and nothing may touch them. The device is asked for nothing; |limit|
// is what it pretends to have. The addresses are none that a process can have,
// and those of two dry pools may be the same.
#define TARN_POOL_DRY (1u << 1)

typedef struct tarn_pool_options {
  size_t struct_size;
  const char *strategy;  // as for tarn_pool_use; NULL: the default
  size_t limit;          // as for tarn_pool_limit; 0: none
  uint32_t flags;        // TARN_POOL_...
} tarn_pool_options;

// A pool at |place| that is nobody else's: tarn_pool_of does not find it, and
// its memory is apart from that of the place's pool. |options| NULL: all of
// them 0.
//
// Lifetime: until tarn_pool_destroy; a device cannot be closed before.
// TARN_E_INVALID      no such strategy, option, flag, struct_size or kind.
// TARN_E_UNSUPPORTED  the device has no memory of that kind, or the strategy
//                     cannot do what a flag asks for.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_create(
    tarn_place place, const tarn_pool_options *options, tarn_pool **out_pool);

// Ends such a pool; its memory goes back when streams that may still be at work
// there are done. NULL is allowed. No other thread may use it any more, nor, if
// it was captured with, a graph. In a child of fork it frees host memory only.
//
// TARN_E_STATE    blocks are out, and the text names their tags; a capture is
//                 under way; or it is the place's pool. Nothing has changed.
// TARN_E_DEVICE   it has ended, but the device refused some of its memory.
TARN_API tarn_status tarn_pool_destroy(tarn_pool *pool);

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
//   * any other free is put off: it makes nobody wait and calls no driver, and
//     takes effect at the end. Until then the block counts as live; a second
//     free is refused all the same.
//   * a block is resized on its own stream only
// From begin to release no memory goes back to the device, moves, or reaches
// anybody else; from end to release there are no requests. Frees are allowed at
// any time, of what the capture left, for one.
//
// A pool may be captured with again, for another graph that is launched after
// the first, never at the same time: it uses the same memory. Both must be
// launched behind what was queued on their streams before.
//
// No driver is called, and no thread waits, but for a request that the pool's
// memory does not suffice for, which asks the device. Where the driver refuses
// that in a capture, take and free as much before it begins.
//
// begin_capture:
// TARN_E_STATE        a capture is under way.
// TARN_E_UNSUPPORTED  a pool made without TARN_POOL_DEFER; so for all three.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_begin_capture(tarn_pool *pool);

// Ends it, and lets the frees take effect that were put off. The host may wait
// for a stream if a block among them was taken before the capture, for another
// stream than it was freed on.
//
// TARN_E_STATE   none is under way.
// TARN_E_NOMEM   it has ended, but some frees wait for tarn_pool_release.
// TARN_E_DEVICE  it has ended, but a stream that had to be waited for failed.
TARN_API tarn_status tarn_pool_end_capture(tarn_pool *pool);

// The graphs are gone and their last launch is over: the pool is an ordinary
// one again, with all its memory, which can be trimmed. Nothing happens if
// there was no capture.
//
// TARN_E_STATE   a capture is under way.
// TARN_E_DEVICE  done, but a stream that had to be waited for failed.
TARN_API tarn_status tarn_pool_release(tarn_pool *pool);

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
// TARN_E_STATE    from tarn_pool_end_capture until tarn_pool_release.
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
// TARN_E_STATE    another thread is resizing it; in a capture: the block is not
//                 |stream|'s; or as tarn_pool_alloc.
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
} tarn_pool_tag_stats;

// What is out in |pool| under |tag|; zeros if it never had any.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_query_tag(
    tarn_pool *pool, tarn_tag tag, tarn_pool_tag_stats *out_stats);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_POOL_H_
