// pool.h - blocks of memory at a place, for use on streams.
//
// Each place has one shared pool; programs can create more (tarn_pool_create).
// The front of a pool checks requests and frees, keeps the limit, the tags and
// the statistics. The strategy behind it decides how memory of the device is
// kept and reused. It can be changed while blocks are live.
//
//     tarn_pool_alloc ─► front ─► strategy ─► source ─► device
//                        │        arena_pool            cudaMalloc, mmap, ...
//                        │        page_unit_pool, ...
//                        limits, tags, peaks, misuse
//
// Related headers: tarn/alloc.h (requests with options), tarn/account.h
// (counters, events, charges), tarn/capture.h (captured graphs), tarn/share.h
// (memory shared between processes), tarn/sleep.h (blocks that give their
// memory up for a while), tarn/misuse.h (debugging), tarn/snapshot.h,
// tarn/strategy.h (strategies of programs). docs/pools.md is the guide.
//
//   tarn_pool *pool;
//   tarn_pool_of(tarn_place_on(gpu), &pool);
//   tarn_block block;
//   tarn_pool_alloc(pool, 1 << 20, 0, stream, &block);
//   ... kernels on |stream| use block.address ...
//   tarn_pool_free(&block, stream);
//
// Stream order. A block is allocated for a stream and freed on the stream on
// which its last use was queued. The same stream can reuse the memory at once.
// If another stream gets it, that stream waits for the work that the first had
// queued at the free; the host does not wait. A stream of NULL is the host,
// whose uses have ended when the call is made. Further streams that use a block
// are named with tarn_block_use_on. Blocks in a device's own memory are for
// streams of that device: any other is TARN_E_INVALID, and the text names both
// devices. Pinned, unified and plain host memory takes streams of any device.
//
// Sizes. A block takes the requested size plus the padding that the device
// wants, rounded up to the device's smallest chunk or to the strategy's unit.
// block.size is the result without the padding. The chunk sizes that a plug-in
// states (tarn_device_info, see tarn_device_query) bind the strategies: the
// smallest and the largest chunk bind all of them; the sizes of the first and
// of later allocations bind those that cut memory up, where the device has no
// ranges, so not no_pool and async_pool. Without such sizes a strategy takes
// what suits it within the available memory.
//
// Strategies, by name (as given to tarn_pool_set_strategy, TARN_POOL and the
// tool):
//   arena_pool[:page=BYTES,small=BYTES,slack=BYTES|N%,steps=COUNT,lanes=COUNT,
//              range=BYTES,move=NS]
//                   The default. Blocks are cut out of large pieces of memory
//                   and merged when freed. Where the device has ranges
//                   (tarn/range.h), memory comes and goes in pages (256K, or
//                   the device's own), and idle pages move to where they are
//                   needed, to keep the pool within 2% of the live peak (at
//                   least 2M); where moves would cost more than serving, it
//                   gets up to half the peak instead. A |slack| that is named
//                   is a bound that is kept. Elsewhere memory comes in
//                   segments, and idle segments go back within the slack.
//                   Blocks of up to |small| bytes (64K) are kept apart
//                   from larger ones. A program that repeats the same requests
//                   in the same order, such as the steps of a training, is
//                   recognized: its blocks are laid out once, and requests that
//                   come as expected are served without a search. |steps| is
//                   the largest step in blocks (65536); 0: none is learned.
//                   Threads that take turns keep blocks for themselves, |lanes|
//                   of them at most (255); 0: none does.
//   page_unit_pool[:page=BYTES]
//                   Sizes are rounded up to a page unit (4096). A free buffer
//                   of the rounded size is reused; idle memory goes back only
//                   on request. Sizes that grow a little each time reuse
//                   nothing.
//   no_pool         Every request and every free goes to the device; in stream
//                   order where the driver caches freed memory.
//   async_pool      The same in stream order, where the driver supports it: the
//                   host never waits.
//   buddy_pool[:min=BYTES,max=BYTES,init=BYTES,realloc=BYTES,padding=BYTES]
//                   Blocks are halves of halves of large chunks; free halves
//                   merge. The sizes default to the device's own. Blocks larger
//                   than |max| are allocated by the device. Where no chunk size
//                   is given, chunks grow with the size of the pool.
// and those that programs register (tarn/strategy.h).
//
// Threads:  all functions may be called from any thread at any time, except
//           from a stream's callback (TARN_E_STATE).
// Fork:     in a child, a pool of the parent answers TARN_E_STATE.
// Errors:   besides what each function lists: TARN_E_INVALID for a NULL pool or
//           block, a struct_size that is too small, or a stream of another
//           device at a device's own memory; TARN_E_STATE as above, and for a
//           stream of the parent; TARN_E_NOMEM if the host has no memory for
//           metadata. Then nothing has changed.
#ifndef TARN_POOL_H_
#define TARN_POOL_H_

#include "tarn/base.h"
#include "tarn/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_pool tarn_pool;

// The number of a name, such as "activations", which says what memory is for. 0
// is "untagged". See tarn_pool_tag.
typedef uint32_t tarn_tag;

// A block, as a value: copy it freely, free one copy once.
//
// |pointer| is |address| as a pointer, and NULL in an empty block. The host may
// dereference it at TARN_HOST, in pinned and unified memory, and in a device's
// own memory where tarn_device_host_accessible says so, but not in a dry pool.
// Elsewhere only work on the device can use it.
//
//   float *weights = block.pointer;
typedef struct tarn_block {
  tarn_pool *pool;
  union {
    tarn_addr address;
    void *pointer;
  };
  size_t size;  // usable bytes: at least the requested size, rounded as above
  uint32_t id;
  uint32_t generation;  // distinguishes blocks that had the same id
} tarn_block;

// ---------------------------------------------------------------------------
// Pools and their strategies
// ---------------------------------------------------------------------------

// The pool of |place|, created at first use with the default strategy. It lives
// until the device closes; pools of the host live as long as the process.
//
// The default is arena_pool, or the value of the environment variable
// TARN_POOL. TARN_POOL_DEBUG starts it with debugging (tarn/misuse.h),
// TARN_SNAPSHOT_ON_FULL has it write a snapshot when there is no room
// (tarn/snapshot.h).
//
// Cost:               O(1) once the pool exists.
// TARN_E_INVALID      no such place, or one of these variables is wrong.
// TARN_E_UNSUPPORTED  the device has no memory of that kind.
// TARN_E_DEVICE       the driver failed; see tarn_last_error().
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_of(tarn_place place,
                                                  tarn_pool **out_pool);

// Gives |pool| a fresh strategy: "name" or "name:key=value,..."; NULL: the
// default, as above. Live blocks stay valid and are freed as before. The old
// strategy gives its idle memory back at once and ends with its last block.
// Statistics, limit, counters and debugging go on.
//
// RAF's InitPool(device, name) is tarn_pool_of and this function, RemovePool
// the same with NULL:
//
//   tarn_pool_of(tarn_place_on(gpu), &pool);
//   tarn_pool_set_strategy(pool, "page_unit_pool");
//   ...
//   tarn_pool_set_strategy(pool, NULL);
//
// Until it ends, an arena_pool keeps addresses of twice the device's memory.
// After many changes with old blocks still live the device may run out of
// addresses for a new strategy, whose requests are then TARN_FULL.
//
// Cost:               giving the idle memory back, and waiting for the streams
//                     that may still use it.
// TARN_E_INVALID      no such strategy or option: nothing has changed.
// TARN_E_UNSUPPORTED  a pool made with TARN_POOL_DEFER (a graph may use memory
//                     of the strategy), with TARN_POOL_SHAREABLE, or over
//                     memory of the caller.
// TARN_E_DEVICE       the strategy is set, but the device refused to take back
//                     some idle memory.
TARN_API TARN_MUST_CHECK tarn_status
tarn_pool_set_strategy(tarn_pool *pool, const char *strategy);

// The name of strategy number |index|, in order of registration; NULL beyond
// the last. Names live as long as the process.
TARN_API const char *tarn_pool_strategy_name(size_t index);

// Where the memory of |pool| is.
TARN_API tarn_place tarn_pool_place(const tarn_pool *pool);

// ---------------------------------------------------------------------------
// Pools created by programs
// ---------------------------------------------------------------------------

// For the capture of graphs: tarn/capture.h. The strategy must be
// page_unit_pool or arena_pool, since others may give memory back at any time.
#define TARN_POOL_DEFER (1u << 0)

// A dry run: blocks have addresses and are counted as usual, but there is no
// memory behind them, and the device is never asked for any. |limit| is the
// memory that the device pretends to have (0: 1 TiB, or the device's memory if
// that is more). No process can have memory at these addresses, and two dry
// pools may use the same ones.
#define TARN_POOL_DRY (1u << 1)

// For blocks that other processes can map: tarn/share.h. Excludes other flags,
// a strategy and caller's memory. TARN_E_UNSUPPORTED where the device has no
// TARN_EXTENSION_SHARING, or for memory other than its own.
//
// A pool with any of these flags cannot debug, and its blocks cannot sleep
// (TARN_E_UNSUPPORTED); TARN_POOL_DEBUG is ignored.
#define TARN_POOL_SHAREABLE (1u << 2)

// Memory of the caller for a pool to cut into blocks: a slab of another
// library, a mapped file, a block of another pool. It is at the pool's place
// and may begin at any address. Both 0: memory comes from the device.
//
//   tarn_pool_options options = {.struct_size = sizeof options,
//                                .memory = {tarn_addr_of(slab), slab_size}};
//   status = tarn_pool_create(TARN_HOST, &options, &pool);
//
// The pool holds all of it for its whole life, and that is its limit: |limit|
// must be 0. The device is asked for nothing and given nothing; trimming gives
// nothing back. The bytes are read and written only if the pool debugs. Blocks
// begin at multiples of the strategy's granule, so a few bytes at either end
// may stay unused.
//
// no_pool and async_pool cannot cut memory up. Chunk sizes of the device and
// options about them are ignored, and the strategy cannot be changed. A block
// may lie inside a block of another pool, so tarn_block_of and tarn_free skip
// these pools: use the functions that name the pool.
//
// Lifetime: the memory belongs to the caller, which keeps it and does not touch
//           it until tarn_pool_destroy has returned. That call waits for
//           streams that may still use it and leaves the bytes as they are. Two
//           pools over the same bytes hand them out twice; this is not checked.
typedef struct tarn_pool_memory {
  tarn_addr address;
  size_t size;  // bytes
} tarn_pool_memory;

typedef struct tarn_pool_options {
  size_t struct_size;
  const char *strategy;     // as for tarn_pool_set_strategy
  size_t limit;             // as for tarn_pool_limit; 0: none
  uint32_t flags;           // TARN_POOL_...
  tarn_pool_memory memory;  // 0: the device's
} tarn_pool_options;

// Creates a pool at |place| with memory of its own. tarn_pool_of never returns
// it. |options| NULL: all fields 0.
//
// Lifetime:           until tarn_pool_destroy, before which the device cannot
//                     be closed.
// TARN_E_INVALID      no such strategy, option, flag or place; a wrong
//                     environment variable; |memory| with a size or an address
//                     of 0, beyond the last address, too small for a block,
//                     with a |limit|, or with TARN_POOL_DRY.
// TARN_E_UNSUPPORTED  the device has no memory of that kind, or the strategy
//                     does not support a flag or |memory|.
// TARN_E_DEVICE       the driver failed; see tarn_last_error().
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_create(
    tarn_place place, const tarn_pool_options *options, tarn_pool **out_pool);

// Destroys a pool of tarn_pool_create; NULL is allowed. Its memory goes back
// when the streams that may use it are done. No other thread and no captured
// graph may use the pool any more. In a child of fork only host memory is freed
// (TARN_OK).
//
// TARN_E_STATE   blocks are live or bytes are charged (the text names their
//                tags), a capture is under way, or the pool is a place's shared
//                pool. Nothing has changed.
// TARN_E_DEVICE  destroyed, but the device refused to take back some memory.
TARN_API tarn_status tarn_pool_destroy(tarn_pool *pool);

// ---------------------------------------------------------------------------
// Blocks
// ---------------------------------------------------------------------------

// Allocates a block of at least |size| bytes for use on |stream|. For tags and
// other options see tarn_pool_alloc_with (tarn/alloc.h).
//
// The address is a multiple of |align| (a power of two; 0: the device's
// minimum). Bytes are not cleared.
//
// Lifetime:       free it with tarn_pool_free before the device closes.
// Cost:           O(1); device calls when the pool grows or moves pages (now
//                 and then also a query of the free memory); an event when the
//                 memory comes from another stream.
// TARN_FULL       no room, and none could be made: free memory, or ask for
//                 less. The text contains the reason of the strategy or the
//                 device, the idle bytes, the largest hole, and the tags that
//                 hold most. A request that exceeds the limit less charges, or
//                 the free memory of the device plus the idle memory of the
//                 pool, is refused at once: nothing is reserved, mapped or
//                 given back for it.
// TARN_E_INVALID  size 0, a wrong alignment, a rounded size that overflows, or
//                 a stream of another device.
// TARN_E_STATE    a captured graph uses the pool (tarn/capture.h).
// TARN_E_DEVICE   the driver failed; see tarn_last_error().
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_alloc(tarn_pool *pool,
                                                     size_t size, size_t align,
                                                     tarn_stream *stream,
                                                     tarn_block *out_block);

// Frees a block. |stream| is the stream on which its last use was queued (NULL:
// the host has seen its end). A block that was never used may be freed on any
// stream.
//
// Cost:           O(1) without waiting, unless the strategy returns the memory
//                 to the device at once.
// TARN_E_INVALID  the block was freed before, or does not belong to the pool:
//                 the text names the tag of the memory at that address, in any
//                 pool. Or a stream of another device.
// TARN_E_STATE    another thread is resizing or freeing the block, or putting
//                 it to sleep or waking it. Nothing has changed, as after the
//                 one before.
// TARN_E_DEVICE   freed, but the device refused to take back its memory, or a
//                 stream that had to be waited for failed.
// TARN_E_CORRUPT  freed, but something was written behind it (pools that
//                 debug).
TARN_API tarn_status tarn_pool_free(const tarn_block *block,
                                    tarn_stream *stream);

// tarn_pool_free by the host, as the end of a tarn_counted (tarn/counted.h)
// around a copy of the tarn_block at |block|. A failure goes to the log.
TARN_API void tarn_pool_free_counted(void *block);

// tarn_pool_free for programs that keep only the pool and the address of the
// block's start. A second free is detected until the address is handed out
// again.
TARN_API tarn_status tarn_pool_free_address(tarn_pool *pool, tarn_addr address,
                                            tarn_stream *stream);

// tarn_pool_free for programs that keep only the place and the address, as with
// free() of C. The block belongs to the place's shared pool or to one of
// tarn_pool_create, but not to a dry pool, whose addresses are not the place's,
// nor to one over memory of the caller. |address| is the start of a block; for
// an address inside a block the error text names that block (tarn_block_of
// finds it).
//
//   tarn_addr a = block.address;
//   status = tarn_free(place, a, stream);
//
// Cost:           as tarn_pool_free, and O(pools of the place).
// TARN_E_INVALID  no such place, or it has no pool; else as tarn_pool_free.
// Others as tarn_pool_free.
TARN_API tarn_status tarn_free(tarn_place place, tarn_addr address,
                               tarn_stream *stream);

// Declares that work on |stream| uses the block too, besides the stream on
// which it is freed. The next user of the memory is ordered behind the work
// that |stream| has queued when the block is freed; the host does not wait. The
// caller orders |stream| behind the work whose results it needs. For NULL, the
// host, whose uses have ended when the call is made, nothing is recorded.
//
// At tarn_pool_free, streams with unfinished work are joined: the freeing
// stream waits for them, or for a free with NULL one of them waits for the
// others. A destroyed stream has no unfinished work. tarn_pool_resize does the
// same when it shrinks a block.
//
// Cost:           O(streams named so far); at the free, an event for each
//                 stream with unfinished work.
// TARN_E_INVALID  the block was freed before, or does not belong to its pool;
//                 or a stream of another device.
// TARN_E_STATE    another thread is resizing or freeing it.
TARN_API TARN_MUST_CHECK tarn_status tarn_block_use_on(const tarn_block *block,
                                                       tarn_stream *stream);

// Grows or shrinks a block in place: its address and the contents of the
// remaining bytes stay. |block->size| becomes its new size; other copies of the
// block stay valid. |stream| is where the last use of removed bytes was queued,
// as in tarn_pool_free, and where added bytes will be used. One thread at a
// time for one block.
//
// arena_pool takes the memory behind the block if it is unused or was last used
// by |stream|, and maps memory behind it where the device has ranges. Other
// strategies, and those that were replaced, only offer the bytes that the block
// has already.
//
// Cost:           O(1), plus device calls where memory is mapped.
// TARN_FULL       no room behind it, or the limit or the device is used up.
//                 Nothing has changed: allocate another, copy, free.
// TARN_E_INVALID  size 0, or it overflows; no block, or a stream of another
//                 device, as in tarn_pool_free.
// TARN_E_STATE    another thread is resizing or freeing the block; it is
//                 asleep; in a capture it belongs to another stream; or as
//                 tarn_pool_alloc.
// TARN_E_DEVICE   the driver failed; see tarn_last_error().
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_resize(tarn_block *block,
                                                      size_t size,
                                                      tarn_stream *stream);

// Finds the live block that contains |address|, and the offset of |address| in
// it. |out_offset| may be NULL.
//
//   tarn_block block;
//   size_t offset;
//   status = tarn_block_of(place, address, &block, &offset);
//   // address == block.address + offset, offset < block.size
//
// All pools of the place are searched, the shared one first, except dry pools,
// two of which may use the same address, and pools over memory of the caller,
// whose blocks may lie inside others. tarn_pool_block_of searches any one pool.
//
// Lifetime:       the result is one more copy of the block, which stays its
//                 owner's: only one copy is freed. The caller ensures that no
//                 other thread frees the block meanwhile.
// Cost:           O(pools of the place, log of the blocks of each); within a
//                 learned step of arena_pool up to O(blocks of the step).
//                 Blocks allocated since the last call are sorted first, each
//                 in O(log of the blocks): a program that never asks pays
//                 nothing. The text of a failure needs no further search.
// TARN_E_INVALID  no such place, or no block there contains |address|; both
//                 outputs are 0.
// TARN_E_NOMEM    the host has no memory to sort the blocks; call again.
TARN_API TARN_MUST_CHECK tarn_status tarn_block_of(tarn_place place,
                                                   tarn_addr address,
                                                   tarn_block *out_block,
                                                   size_t *out_offset);

// The same among the blocks of one pool of any kind.
//
// Cost:           O(log of its blocks), and as above; for the start of a block
//                 also O(1) where blocks were allocated since the last call.
// TARN_E_INVALID  no block of |pool| contains |address|; if a block started
//                 there before, the text names its tag.
// TARN_E_NOMEM    as above.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_block_of(tarn_pool *pool,
                                                        tarn_addr address,
                                                        tarn_block *out_block,
                                                        size_t *out_offset);

// ---------------------------------------------------------------------------
// Tags
// ---------------------------------------------------------------------------

// The tag of |name|, created if it is new. Tags belong to the process and are
// kept for its life; there can be 65535.
//
// TARN_E_INVALID  NULL, empty, or too many.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_tag(const char *name,
                                                   tarn_tag *out_tag);

// The name of a tag; "untagged" for 0 and for unknown tags.
TARN_API const char *tarn_pool_tag_name(tarn_tag tag);

// ---------------------------------------------------------------------------
// Limits and idle memory
// ---------------------------------------------------------------------------

// Sets the most bytes that the pool may hold of its device, including idle
// memory and charges (tarn/account.h); 0: no limit. A limit below the present
// size only prevents growth.
//
// TARN_E_UNSUPPORTED  a limit other than 0 for a pool over memory of the
//                     caller, which never grows.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_limit(tarn_pool *pool,
                                                     size_t bytes);

// Returns idle memory to the device until the pool holds at most |target|
// bytes; 0: all idle memory. Live blocks are not touched. A pool whose memory
// comes in large pieces may return more than asked. The host waits for streams
// that may still use the memory.
//
// TARN_OK        also where live blocks keep the pool above |target|.
// TARN_E_STATE   from tarn_pool_begin_capture until tarn_pool_end_graphs.
// TARN_E_DEVICE  the device refused to take back some of it.
TARN_API tarn_status tarn_pool_trim(tarn_pool *pool, size_t target);

// Has a thread of the library trim the pool when its need falls; 0, the
// default: idle memory stays. Time is divided into periods of |idle_ns|
// nanoseconds; the need of a period is its peak of live bytes. If the need
// falls by more than an eighth (in the first period: from |live_peak_bytes|),
// the pool is trimmed in the same proportion; if nothing was live, to 0. A
// program whose steps repeat within |idle_ns| loses nothing. The thread waits
// for streams that may still use the memory, and skips pools that a captured
// graph uses.
//
// The process has one such thread, while any pool needs it. Each call begins a
// new period; a call with 0 waits until the thread is done with the pool.
//
// Lifetime:      until the pool ends. A child of fork has no such thread until
//                it calls this for a pool of its own.
// TARN_E_NOMEM   the system has no thread for it: nothing decays.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_decay(tarn_pool *pool,
                                                     uint64_t idle_ns);

// ---------------------------------------------------------------------------
// When there is no room
// ---------------------------------------------------------------------------
// A request that finds no room reclaims idle memory: it goes back to the
// device, after waiting for streams that use it, except in a capture. If that
// is not enough, the program's function is called.

// The strategy does not know the number of bytes.
#define TARN_POOL_UNKNOWN SIZE_MAX

// A request without room, and the present state of the pool.
typedef struct tarn_pool_need {
  size_t struct_size;
  size_t size;            // as requested
  size_t align;           // at least the device's own
  tarn_tag tag;           // of the request
  unsigned attempt;       // 1 to 16
  size_t reserved_bytes;  // as in tarn_pool_stats, as are the next two
  size_t live_bytes;
  size_t limit_bytes;
  size_t idle_bytes;     // held, but in no block; or TARN_POOL_UNKNOWN
  size_t largest_hole;   // the largest contiguous part of them; likewise
  size_t charged_bytes;  // as in tarn_pool_stats
  bool can_fit;  // the request could be served if all blocks of the pool
                 // were freed; false: no freeing helps
} tarn_pool_need;

// Makes room for a request: frees blocks, trims, raises the limit. True: try
// the request again, with all reclaim steps if there is still no room. False:
// the request is TARN_FULL.
//
// If |can_fit| is false, the request exceeds the limit less charges, or the
// free memory of the device plus all that the pool holds. Then the function is
// called once, and after true the request is tried again only if the limit less
// charges has risen or other memory of the device has become free; otherwise it
// is TARN_FULL.
//
// Called on the thread of the request without a lock, so by several threads at
// once if need be. It may use the pool like any other code. Requests of its own
// that find no room are refused without calling it, for any pool. |need| is
// valid during the call.
typedef bool tarn_pool_full_fn(tarn_pool *pool, const tarn_pool_need *need,
                               void *context);

// Sets the function that is called when there is no room, in place of the
// previous one; NULL, the default: none. On return no thread is inside the
// previous function.
//
// Lifetime: |context| is the caller's, until another is set or the pool ends.
// TARN_E_STATE  called from within such a function, which it would wait for.
TARN_API TARN_MUST_CHECK tarn_status
tarn_pool_on_full(tarn_pool *pool, tarn_pool_full_fn *function, void *context);

// ---------------------------------------------------------------------------
// Statistics
// ---------------------------------------------------------------------------

typedef struct tarn_pool_stats {
  size_t struct_size;
  const char *strategy;    // name of the current one
  size_t live_bytes;       // requested and not freed
  size_t live_peak_bytes;  // their peak (TARN_COUNT_PEAKS)
  size_t live_blocks;
  size_t reserved_bytes;  // held of the device, idle memory included
  size_t reserved_peak_bytes;
  size_t limit_bytes;  // 0: none
  uint64_t allocs;     // requests served
  uint64_t frees;
  uint64_t hits;           // served without asking the device
  uint64_t misses;         // the device was asked
  uint64_t failures;       // requests refused
  uint64_t device_allocs;  // calls of the device, refused ones included
  uint64_t device_frees;
  uint64_t stream_crossings;  // blocks that changed streams, and streams that a
                              // free was ordered behind (tarn_block_use_on)
  uint32_t counters;          // TARN_COUNT_... bits: tarn/account.h
  uint32_t reserved;
  size_t asleep_bytes;   // that sleeping blocks have given back to the device
  size_t saved_bytes;    // of them, saved in host memory
  size_t charged_bytes;  // taken of the device by others, not part of
                         // reserved_bytes: tarn_pool_charge
  size_t charged_peak_bytes;
  uint64_t moved_bytes;  // of idle memory, mapped to where it was needed
  uint64_t move_ns;      // the time that this took
  // Of a pool that several threads use: live_peak_bytes, and each tag's, may be
  // too high by up to this. 0: they are exact.
  size_t leased_peak_bytes;
} tarn_pool_stats;

// A consistent copy of the statistics.
//
// Cost: O(1); within a learned step O(events of the step), which are counted
//       when the statistics are read.
TARN_API TARN_MUST_CHECK tarn_status
tarn_pool_query(tarn_pool *pool, tarn_pool_stats *out_stats);

// Resets the peaks to the present values.
TARN_API tarn_status tarn_pool_reset_peaks(tarn_pool *pool);

typedef struct tarn_pool_tag_stats {
  size_t struct_size;
  size_t live_bytes;
  size_t live_peak_bytes;
  size_t live_blocks;
  size_t asleep_blocks;  // of them, asleep
  size_t asleep_bytes;   // as in tarn_pool_stats
  size_t saved_bytes;
  size_t charged_bytes;
} tarn_pool_tag_stats;

// The statistics of |tag| in |pool|. Blocks allocated while TARN_COUNT_TAGS was
// off are not counted.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_query_tag(
    tarn_pool *pool, tarn_tag tag, tarn_pool_tag_stats *out_stats);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_POOL_H_
