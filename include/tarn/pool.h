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
// means the host itself, whose uses are over when the call is made. Other
// streams that use it meanwhile are named by tarn_block_use_on.
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
// TARN_E_STATE    another thread is resizing or freeing it. Nothing has
// changed. TARN_E_DEVICE   the block is freed, but the device refused its
// memory.
TARN_API tarn_status tarn_pool_free(const tarn_block *block,
                                    tarn_stream *stream);

// The same for callers who keep only the address.
TARN_API tarn_status tarn_pool_free_address(tarn_pool *pool, tarn_addr address,
                                            tarn_stream *stream);

// Says that work on |stream| uses the block too, besides that of the stream on
// which it is freed. Whoever gets the memory next is behind what |stream| has
// queued when the block is freed, without the host waiting for it. |stream|
// must itself stand behind whatever it needs of the block, as ever where
// streams share memory. NULL is the host, whose uses are over when a call is
// made: then nothing is noted.
//
// At tarn_pool_free, streams that are still at work are joined: the freeing
// stream waits for them; for a free with NULL, one of them for the others. A
// stream that was destroyed has done its work. tarn_pool_resize, where it cuts,
// does the same.
//
// Cost:           O(1) for the first stream of a block, which is all that is
//                 noted in place; a look through the others for more. An event
//                 for each stream at work when the block is freed.
// TARN_E_INVALID  freed before, or not a block of its pool; NULL.
// TARN_E_STATE    another thread is resizing or freeing it; a parent's stream
//                 or pool; in a callback.
// TARN_E_NOMEM    no host memory. Nothing has changed, as after the others.
TARN_API TARN_MUST_CHECK tarn_status tarn_block_use_on(const tarn_block *block,
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
// TARN_E_STATE    another thread is resizing or freeing it.
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
  size_t live_peak_bytes;  // the most of that at once (TARN_COUNT_PEAKS)
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
  uint64_t stream_crossings;  // blocks that changed streams, and streams that
                              // a free was put behind (tarn_block_use_on)
  uint32_t counters;          // TARN_COUNT_...: what is counted besides
  uint32_t reserved;
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

// What is out in |pool| under |tag|; zeros if it never had any. Blocks that
// were taken while TARN_COUNT_TAGS was off are not in it.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_query_tag(
    tarn_pool *pool, tarn_tag tag, tarn_pool_tag_stats *out_stats);

// ---------------------------------------------------------------------------
// What is counted, and events
// ---------------------------------------------------------------------------

// What can be switched. All else in tarn_pool_stats is always counted. What
// each costs on a machine `tarn bench counters` tells.
enum {
  // By tag: live bytes, their peak, live blocks. A block counts from its alloc
  // to its free if this was on at its alloc.
  TARN_COUNT_TAGS = 1 << 0,
  // live_peak_bytes is exact. Off: it is looked at when the device is asked,
  // when blocks are resized, and by tarn_pool_query.
  TARN_COUNT_PEAKS = 1 << 1,
  // The last events are kept, for tarn_pool_events.
  TARN_COUNT_EVENTS = 1 << 2,
  // ... with the time of each.
  TARN_COUNT_TIMES = 1 << 3,

  TARN_COUNT_DEFAULT = TARN_COUNT_TAGS | TARN_COUNT_PEAKS,
};

// Switches exactly |counters| on. May be done at any time, with blocks out.
// Switching events off keeps those that were written.
//
// Cost:           O(1); events for the first time take the memory of the ring.
// TARN_E_INVALID  a bit that is none. Nothing has changed.
// TARN_E_NOMEM    no host memory for the ring. Nothing has changed.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_account(tarn_pool *pool,
                                                       uint32_t counters);

// Sets how many events are kept: |count|, rounded up to a power of two; 4096
// unless set. The newest of those that were written stay. 0 frees the ring, and
// switches events off.
//
// Cost:           64 bytes of host memory for each; those that stay are copied.
// TARN_E_INVALID  too many. Nothing has changed.
// TARN_E_NOMEM    no host memory. Nothing has changed.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_account_ring(tarn_pool *pool,
                                                            size_t count);

typedef enum tarn_pool_event_kind {
  TARN_POOL_EVENT_ALLOC = 1,   // a block was taken
  TARN_POOL_EVENT_FREE = 2,    // ... and has come back
  TARN_POOL_EVENT_RESIZE = 3,  // ... was |size_before| bytes
  TARN_POOL_EVENT_FAIL = 4,    // a request was not served; |status| says why
  TARN_POOL_EVENT_GROW = 5,    // memory of the device came
  TARN_POOL_EVENT_SHRINK = 6,  // ... and went
  TARN_POOL_EVENT_SWITCH = 7,  // the strategy was exchanged
} tarn_pool_event_kind;

// Numbers are a pool's own, count up by one and never come again. Blocks of two
// allocs at one address are told apart by the free between them. Sums over GROW
// less those over SHRINK are reserved_bytes.
typedef struct tarn_pool_event {
  uint64_t number;
  uint64_t time_ns;   // of a clock that only goes forward; 0: not asked for
  tarn_addr address;  // of the block, or of the device's memory; 0: it has none
                      // of its own, as pages that move
  size_t size;        // bytes: of blocks those that were asked for
  size_t size_before;  // RESIZE; else 0
  uint64_t stream;     // serial: of the request, or in whose order the memory
                       // is free; 0: the host
  uint32_t thread;     // a number of the process's, from 1 on
  tarn_tag tag;        // of the block, or of the request
  tarn_pool_event_kind kind;
  tarn_status status;  // FAIL: why; else TARN_OK
} tarn_pool_event;

// Copies events from number |from| on, oldest first, |room| at most, to |out|.
// What is no more there is passed over: out[0].number less |from| are lost.
// |*out_next| is the number to go on with. As of one moment; none is taken out,
// so that several may read.
//
//   uint64_t next = 0;
//   do {
//     tarn_pool_events(pool, next, events, 256, &count, &next);
//     ... events[0] to events[count - 1] ...
//   } while (count == 256);
//
// Cost:           a copy, with the pool locked meanwhile.
// TARN_E_INVALID  |out| is NULL, and |room| is not 0.
TARN_API TARN_MUST_CHECK tarn_status
tarn_pool_events(tarn_pool *pool, uint64_t from, tarn_pool_event *out,
                 size_t room, size_t *out_count, uint64_t *out_next);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_POOL_H_
