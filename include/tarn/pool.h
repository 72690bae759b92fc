// pool.h - blocks of memory at a place, for use on streams.
//
// Each place has one pool, which all share, and besides those that somebody
// has made for himself (tarn_pool_create). In front stands what callers see:
// limits, accounting, tags, statistics, and the check of every free. Behind it
// works a strategy, which decides how memory of the device is kept and reused,
// and which can be exchanged at any time without any block noticing.
//
//     tarn_pool_alloc ─► front ─► strategy ─► source ─► device
//                        │        arena_pool            cudaMalloc, mmap, ...
//                        │        page_unit_pool, ...
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
//   arena_pool[:page=BYTES,small=BYTES,slack=BYTES,steps=COUNT]
//                   the default: blocks are cut out of large pieces of memory
//                   and joined again when freed. Where the device has ranges
//                   (tarn/range.h) memory comes and goes by pages (256K by
//                   default, or the device's own), and idle pages move to where
//                   they are needed, but only to keep what is held within
//                   |slack| of the live peak (2% of it, but at least 2M, by
//                   default); elsewhere it comes in segments. Blocks of up to
//                   |small| bytes, 64K by default, stay apart from larger ones.
//                   Where a program asks for the same blocks in the same order
//                   again and again, as each step of training does, their
//                   places are laid out once, and what comes as expected is
//                   served without a search: steps of up to |steps| blocks,
//                   4096 by default; 0: none.
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
// The default is arena_pool, or what the environment variable TARN_POOL names.
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

// Lets a thread of the library trim the pool when it needs less than before;
// 0, as at the start: nothing is given back by itself. Time is cut into periods
// of |idle_ns| nanoseconds, and the need of a period is the most that was live
// at once in it. If that has fallen by more than an eighth, in the first period
// from |live_peak_bytes|, the pool is trimmed to as large a part of what it
// holds; if nothing was live, to nothing. A program whose steps repeat within
// |idle_ns| loses nothing by it. What streams may still be at work in that
// thread waits for.
//
// There is one such thread in a process, while a pool wants it. A call begins a
// new period; one with 0 waits until the thread is done with the pool.
//
// Lifetime: until the pool ends. A child of fork has no such thread before it
//           calls this for a pool of its own.
// TARN_E_NOMEM  the system has no thread for it: nothing decays.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_decay(tarn_pool *pool,
                                                     uint64_t idle_ns);

// ---------------------------------------------------------------------------
// When there is no room
// ---------------------------------------------------------------------------
// A request that finds no room makes some: idle memory goes back to the device,
// streams that were at work in it are waited for. If that is not enough, the
// program is asked.

// A number of bytes that the strategy cannot tell.
#define TARN_POOL_UNKNOWN SIZE_MAX

// What a request wants, and what the pool was like just now.
typedef struct tarn_pool_need {
  size_t struct_size;
  size_t size;            // as asked for
  size_t align;           // at least the device's own
  tarn_tag tag;           // 0: untagged
  unsigned attempt;       // 1 at first, then more, up to 16
  size_t reserved_bytes;  // as in tarn_pool_stats, as are the next two
  size_t live_bytes;
  size_t limit_bytes;
  size_t idle_bytes;    // held, and in no block; or TARN_POOL_UNKNOWN
  size_t largest_hole;  // of them in one piece; likewise
} tarn_pool_need;

// Makes room for a request: frees blocks, trims, raises the limit. True: the
// request is to be tried again, and if there is still no room all of this
// begins anew. False: it is TARN_FULL.
//
// Called on the thread of the request, with no lock held, so several threads
// may be in it at once. It may use the pool as any other code. Requests of its
// own that find no room are refused without calling it, whatever pool they are
// for. |need| is good for the call.
typedef bool tarn_pool_full_fn(tarn_pool *pool, const tarn_pool_need *need,
                               void *context);

// Sets the function that is called when there is no room, in place of the one
// before; NULL: none, as at the start. When it returns no thread is in the
// former one any more.
//
// Lifetime: |context| is the caller's, until another is set or the pool ends.
// TARN_E_STATE  called from within such a function, which it would wait for.
TARN_API TARN_MUST_CHECK tarn_status
tarn_pool_on_full(tarn_pool *pool, tarn_pool_full_fn *function, void *context);

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
// TARN_FULL       the limit or the device is used up, and no room could be
// made:
//                 free, or ask for less. The text says what the strategy or
//                 the device said, what is idle and how large the largest hole
//                 is, and which tags hold most.
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
//                 the tag of what is there, be it in another pool. Nothing has
//                 changed.
// TARN_E_STATE    another thread is resizing or freeing it. Nothing has
// changed. TARN_E_DEVICE   the block is freed, but the device refused its
// memory. TARN_E_CORRUPT  the block is freed, but something was written behind
// it: only
//                 of pools that debug.
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
// TARN_E_STATE    another thread is resizing or freeing it; in a capture: the
//                 block is not |stream|'s; or as tarn_pool_alloc.
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

// What is out in |pool| under |tag|; zeros if it never had any. Blocks that
// were taken while TARN_COUNT_TAGS was off are not in it.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_query_tag(
    tarn_pool *pool, tarn_tag tag, tarn_pool_tag_stats *out_stats);

// ---------------------------------------------------------------------------
// Finding misuse
// ---------------------------------------------------------------------------
// Wrong frees are refused by every pool. What is written where nothing may be
// is found by a pool that debugs: of a block that it gives out
//
//   [ fresh: what was asked for | guard ]  nothing is written into the guard,
//   [ freed .......................... ]  nothing anywhere once it is freed
//
// each part is filled with a byte of its own, in the order of the block's
// stream, and verified later. Memory that the host can touch is also marked for
// AddressSanitizer and valgrind: guards and blocks in quarantine may not be
// touched, so that the faulty instruction itself is caught.

// What is done with each block. GUARDS: the block is exactly as large as was
// asked for, and all behind it, at least 64 bytes, is verified when it is freed
// or resized. POISON: a block that is taken is filled, and again when it is
// freed, so that reading it shows. QUARANTINE: freed blocks are filled and stay
// aside, first in, first out, and are verified when they leave: when there are
// too many of them, before a request fails for want of room, and when the pool
// is trimmed, or its strategy or its debugging switched.
#define TARN_POOL_DEBUG_GUARDS (1u << 0)
#define TARN_POOL_DEBUG_POISON (1u << 1)
#define TARN_POOL_DEBUG_QUARANTINE (1u << 2)

enum {
  TARN_POOL_FRESH_BYTE = 0xff,  // floats of it are NaN
  TARN_POOL_FREED_BYTE = 0xdd,
  TARN_POOL_GUARD_BYTE = 0xbd,
};

typedef enum tarn_pool_finding_kind {
  TARN_POOL_FINDING_NONE = 0,
  TARN_POOL_OVERRUN = 1,      // something was written behind a block
  TARN_POOL_STALE_WRITE = 2,  // something was written into a freed block
} tarn_pool_finding_kind;

typedef struct tarn_pool_finding {
  size_t struct_size;
  tarn_pool_finding_kind kind;
  tarn_addr address;   // of the block
  size_t size;         // as it was asked for
  tarn_tag tag;        // of the block
  size_t offset;       // from the address to the first byte that is wrong
  unsigned char byte;  // what is there
} tarn_pool_finding;

// Told of each finding as it is made. Called with locks of the library held,
// from any thread that uses the pool: it must not call the library, but for
// tarn_pool_tag_name.
typedef void tarn_pool_debug_fn(void *context, tarn_pool *pool,
                                const tarn_pool_finding *finding);

typedef struct tarn_pool_debug_options {
  size_t struct_size;
  uint32_t flags;             // TARN_POOL_DEBUG_... bits; 0: all
  size_t quarantine_bytes;    // held in quarantine at most; 0: 64 MiB
  tarn_pool_debug_fn *found;  // NULL: nobody is told
  void *context;              // of |found|
} tarn_pool_debug_options;

// Lets |pool| debug from now on, as |options| say; NULL: no more. Blocks that
// are out keep what they were taken with. A pool that is made while the
// environment variable TARN_POOL_DEBUG is set begins so: "all", or some of
// "guards,poison,quarantine=BYTES"; "" or "off": it does not.
//
// Each finding goes to |found| and, as an error, to the log (tarn_log_set), and
// is counted; no other block is touched, and the damage is made good. The free
// of a block with a damaged guard answers TARN_E_CORRUPT; what other calls come
// across tarn_pool_debug_check answers.
//
// Cost:  requests and frees wait for the block's stream and write or read all
//        of its bytes; none for a pool that does not debug.
// TARN_E_UNSUPPORTED  a pool made with TARN_POOL_DRY or TARN_POOL_DEFER.
// TARN_E_INVALID  an unknown flag or struct_size: nothing has changed.
// TARN_E_DEVICE   done, but the device refused memory that left the quarantine.
TARN_API TARN_MUST_CHECK tarn_status
tarn_pool_debug(tarn_pool *pool, const tarn_pool_debug_options *options);

// Verifies the guards of all blocks that are out and all blocks in quarantine.
//
// Cost: reads all of that.
// TARN_E_CORRUPT  it found something, or another call has since the last check
//                 that could not say so: the text names the first.
// TARN_E_DEVICE   the device would not show all of it.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_debug_check(tarn_pool *pool);

typedef struct tarn_pool_debug_stats {
  size_t struct_size;
  uint32_t flags;  // 0: the pool does not debug
  size_t quarantine_bytes;
  size_t quarantine_blocks;
  uint64_t verified;    // guards and blocks that were read
  uint64_t unverified;  // those that the device would not fill or show, for
                        // one since the block's stream has failed
  uint64_t overruns;    // findings of either kind
  uint64_t stale_writes;
} tarn_pool_debug_stats;

// What debugging has come to so far; zeros if the pool never did.
TARN_API TARN_MUST_CHECK tarn_status
tarn_pool_debug_report(tarn_pool *pool, tarn_pool_debug_stats *out_stats);

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
