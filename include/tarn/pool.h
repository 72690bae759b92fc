// pool.h - blocks of memory at a place, for use on streams.
//
// Each place has one pool, which all share, and besides those that somebody
// has made of his own (tarn_pool_create). In front stands what callers see:
// limits, accounting, tags, statistics, and the check of every free. Behind it
// works a strategy, which decides how memory of the device is kept and reused,
// and which can be exchanged while blocks are out.
//
//     tarn_pool_alloc ─► front ─► strategy ─► source ─► device
//                        │        arena_pool            cudaMalloc, mmap, ...
//                        │        page_unit_pool, ...
//                        limits, tags, peaks, misuse
//
// Beside this header: tarn/alloc.h, requests with options; tarn/account.h, what
// is counted, and events; tarn/capture.h, pools for captured graphs;
// tarn/share.h, blocks that several processes have; tarn/sleep.h, memory that
// is given back and returns;
// tarn/misuse.h, pools that debug; tarn/strategy.h, strategies of one's own.
// docs/pools.md tells all of it at length.
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
// streams that use it meanwhile are named by tarn_block_use_on. Blocks of a
// device's own memory are for streams of that device: one of another device is
// TARN_E_INVALID, and the text names both. Pinned, unified and plain host
// memory takes streams of any device.
//
// Sizes. A block takes its size and the padding that the device wants of each
// block, rounded up to the device's smallest chunk or to more, as its strategy
// rounds; block.size is that, less the padding. What the device's plug-in says
// of chunks (tarn_device_info) binds all strategies, and what it says of the
// largest chunk, and, where the device has no ranges, of the first allocation
// and later ones, all but no_pool and async_pool: see tarn_device_query. Where
// it says nothing, a strategy takes as much as suits what it holds, and no more
// than is available.
//
// Strategies, by name (as given to tarn_pool_set_strategy, TARN_POOL and the
// tool):
//   arena_pool[:page=BYTES,small=BYTES,slack=BYTES,steps=COUNT]
//                   the default: blocks are cut out of large pieces of memory
//                   and joined again when freed. Where the device has ranges
//                   (tarn/range.h) memory comes and goes by pages (256K by
//                   default, or the device's own), and idle pages move to where
//                   they are needed, but only to keep what is held within
//                   |slack| of the live peak (2% of it, but at least 2M, by
//                   default); elsewhere it comes in segments, of which idle
//                   ones go back within the same bound. Blocks of up to
//                   |small| bytes, 64K by default, stay apart from larger ones.
//                   A program that asks for the same blocks in the same order
//                   again and again, as in each step of training, is noticed:
//                   the places of its blocks are laid out once, and what then
//                   comes as expected is served without a search. Steps of up
//                   to |steps| blocks, 4096 by default; 0: none is learned.
//   page_unit_pool[:page=BYTES]  sizes rounded up to a page unit, 4096 by
//                   default; a free buffer of the rounded size is reused, and
//                   nothing is given back before it is asked for. Sizes that
//                   grow a little each time reuse nothing.
//   no_pool         every request goes to the device, every free too; as
//                   async_pool where the driver keeps what is given back.
//   async_pool      the same in the order of streams, where the driver has
//                   that: nobody waits.
//   buddy_pool[:min=BYTES,max=BYTES,init=BYTES,realloc=BYTES,padding=BYTES]
//                   blocks are cut out of large chunks by halves, and halves
//                   join again. The sizes are the device's own unless given;
//                   blocks of more than |max| go to the device one by one.
//                   Chunks whose size neither says grow with what is held.
// and those that programs register: strategy.h.
//
// Threads:  everything here may be called from any thread at any time, but not
//           from a stream's callback: there it answers TARN_E_STATE.
// Fork:     in a child of the process that made it, a pool answers
//           TARN_E_STATE.
// Errors:   besides what each function lists: TARN_E_INVALID for NULL where a
//           pool or block is wanted, a struct_size that is too small, or a
//           stream of another device at a device's own memory;
//           TARN_E_STATE as above, and for a stream of the parent;
//           TARN_E_NOMEM if the host has no memory for the books. Then nothing
//           has changed.
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

// Memory of a pool, as a value: copy it freely, free one copy once.
//
// |pointer| is |address| as a pointer, NULL in a block that is none. The host
// may follow it where it can touch the memory: at TARN_HOST, in pinned and
// unified memory, and in a device's own where tarn_device_host_accessible says
// so, but in no dry pool. Elsewhere it is of use only to what runs on the
// device.
//
//   float *weights = block.pointer;
typedef struct tarn_block {
  tarn_pool *pool;
  union {
    tarn_addr address;
    void *pointer;
  };
  size_t size;  // bytes that may be used: at least what was asked for, rounded
                // up as above
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
// TARN_POOL_DEBUG makes it debug from the start (tarn/misuse.h), and
// TARN_SNAPSHOT_ON_FULL asks for a file when there is no room
// (tarn/snapshot.h).
//
// Cost:               O(1) once the pool was made.
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
// Pools of one's own
// ---------------------------------------------------------------------------

// For the capture of graphs: tarn/capture.h. The strategy must be
// page_unit_pool or arena_pool; others may give memory back when they like.
#define TARN_POOL_DEFER (1u << 0)

// A dry run: blocks have addresses and are counted as ever, but there is no
// memory, and nothing may touch them. The device is asked for no memory;
// |limit| is what it pretends to have (0: 1 TiB, or what the device has if that
// is more). The addresses are none that a process can have, and those of two
// dry pools may be the same.
#define TARN_POOL_DRY (1u << 1)

// For blocks that other processes can have as well: tarn/share.h. It goes with
// no other flag, no strategy, and no memory of the caller's. TARN_E_UNSUPPORTED
// where the device has no TARN_EXTENSION_SHARING, or for other than its own
// memory.
//
// With any of these flags a pool cannot debug, nor its blocks sleep:
// TARN_E_UNSUPPORTED, and TARN_POOL_DEBUG is not looked at.
#define TARN_POOL_SHAREABLE (1u << 2)

// Memory that the caller has already, for a pool to cut into blocks: a slab of
// another library, a mapped file, a block of another pool. It is at the place
// of the pool, and may begin at any address. Both 0: the device is asked.
//
//   tarn_pool_options options = {.struct_size = sizeof options,
//                                .memory = {tarn_addr_of(slab), slab_size}};
//   status = tarn_pool_create(TARN_HOST, &options, &pool);
//
// The pool holds all of it from its beginning to its end, and that is its
// limit: |limit| must be 0. The device is asked for nothing and given nothing;
// trimming gives nothing back. The bytes are neither read nor written, but
// where the pool debugs. Blocks begin at multiples of what the strategy cuts
// by, so that a few bytes at either end may serve none.
//
// no_pool and async_pool cannot cut up memory, sizes of the device and options
// about them do not count, and the strategy cannot be exchanged. Such a block
// may lie inside of a block of another pool, so that tarn_block_of and
// tarn_free pass these pools over: ask by the pool.
//
// Lifetime: the memory stays the caller's, who keeps it and leaves it alone
//           until tarn_pool_destroy has returned. That waits for streams that
//           may still be at work in it, and leaves the bytes as they are. Two
//           pools over the same bytes give them out twice; this is not checked.
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

// A pool at |place| that is nobody else's: tarn_pool_of does not find it, and
// its memory is apart from that of the place's pool. |options| NULL: all of
// them 0.
//
// Lifetime:           until tarn_pool_destroy; the device cannot be closed
//                     before.
// TARN_E_INVALID      no such strategy, option, flag or place, or one of the
//                     environment's variables is wrong; |memory| of 0 bytes, at
//                     0, beyond all addresses, too small for a block, with a
//                     |limit| or with TARN_POOL_DRY.
// TARN_E_UNSUPPORTED  the device has no memory of that kind, or the strategy
//                     cannot do what a flag or |memory| asks for.
// TARN_E_DEVICE       the driver failed; see tarn_last_error().
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_create(
    tarn_place place, const tarn_pool_options *options, tarn_pool **out_pool);

// Ends such a pool; its memory goes back when streams that may still be at work
// there are done. NULL is allowed. No other thread may use it any more, nor, if
// it was captured with, a graph. In a child of fork it frees host memory only,
// and is TARN_OK.
//
// TARN_E_STATE   blocks are out or bytes are charged, and the text names their
//                tags; a capture is under way; or it is the place's pool.
//                Nothing has changed.
// TARN_E_DEVICE  it has ended, but the device refused some of its memory.
TARN_API tarn_status tarn_pool_destroy(tarn_pool *pool);

// ---------------------------------------------------------------------------
// Blocks
// ---------------------------------------------------------------------------

// Takes a block of at least |size| bytes for use on |stream|. With a tag, and
// with a say in what may happen for it: tarn_pool_alloc_with (tarn/alloc.h).
//
// The address is a multiple of |align| (a power of two; 0: the device's own
// minimum). Bytes are not cleared.
//
// Lifetime:       give it back with tarn_pool_free before the device closes.
// Cost:           O(1); calls of the device when the pool grows or moves pages
//                 (among them, now and then, what it has free), an event when
//                 the block comes from another stream.
// TARN_FULL       no room, and none could be made: free, or ask for less. The
//                 text says what the strategy or the device said, what is idle,
//                 how large the largest hole is, and which tags hold most. What
//                 is more than the limit less charges, or than what the device
//                 has free together with the pool's idle memory, is refused at
//                 once: nothing is reserved, mapped or given back for it.
// TARN_E_INVALID  size 0, bad align, or the rounded size overflows; or a stream
//                 of another device, as above.
// TARN_E_STATE    a captured graph uses the pool (tarn/capture.h).
// TARN_E_DEVICE   the driver failed; see tarn_last_error().
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_alloc(tarn_pool *pool,
                                                     size_t size, size_t align,
                                                     tarn_stream *stream,
                                                     tarn_block *out_block);

// Gives a block back; |stream| is where its last use was queued (NULL: the
// host has seen its end). One that was not used may be freed on any stream.
//
// Cost:           O(1), and the host waits for nothing, but where the memory
//                 goes back to the device at once: see the strategies.
// TARN_E_INVALID  freed before, or not a block of that pool: the text names
//                 the tag of what is there, be it in another pool. Or a stream
//                 of another device, as above.
// TARN_E_STATE    another thread is resizing or freeing it, puts it to sleep or
//                 wakes it. Nothing has changed, nor after the one before.
// TARN_E_DEVICE   the block is freed, but the device refused its memory, or a
//                 stream that had to be waited for failed.
// TARN_E_CORRUPT  the block is freed, but something was written behind it: only
//                 of pools that debug.
TARN_API tarn_status tarn_pool_free(const tarn_block *block,
                                    tarn_stream *stream);

// The same for callers who keep only the address and the pool. |address| is
// that of the block's start. A second free is found as long as the address has
// not been given out again.
TARN_API tarn_status tarn_pool_free_address(tarn_pool *pool, tarn_addr address,
                                            tarn_stream *stream);

// The same for callers who keep only the address and the place, as free() of C.
// The block may be of the place's pool or of one of tarn_pool_create, but of
// none made with TARN_POOL_DRY, whose addresses are not the place's own, nor of
// one over memory of the caller's.
// |address| is that of a block's start; the text says which block one inside
// belongs to (tarn_block_of finds it).
//
//   tarn_addr a = block.address;  // all that is kept
//   status = tarn_free(place, a, stream);
//
// Cost:           as of tarn_pool_free, and O(pools of the place).
// TARN_E_INVALID  no such place, or it has no pool; else as of tarn_pool_free.
// Others as of tarn_pool_free.
TARN_API tarn_status tarn_free(tarn_place place, tarn_addr address,
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
// stream that is gone has done its work. tarn_pool_resize, where it cuts, does
// the same.
//
// Cost:           O(streams named so far); an event for each that is at work
//                 when the block is freed.
// TARN_E_INVALID  freed before, or not a block of its pool; or a stream of
//                 another device, as above.
// TARN_E_STATE    another thread is resizing or freeing it.
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
// Cost:           O(1), plus calls of the device where memory is mapped.
// TARN_FULL       no room behind it, or the limit or the device is used up.
//                 Nothing has changed: take another, copy, free.
// TARN_E_INVALID  size 0, or it overflows; no block, or a stream of another
//                 device, as in tarn_pool_free.
// TARN_E_STATE    another thread is resizing or freeing it; it is asleep; in a
//                 capture it is not |stream|'s; or as of tarn_pool_alloc.
// TARN_E_DEVICE   the driver failed; see tarn_last_error().
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_resize(tarn_block *block,
                                                      size_t size,
                                                      tarn_stream *stream);

// The block that is out now and has |address| in it, be it its start or any
// other of its |size| bytes, and how many bytes |address| is behind the start:
// 0 at the start. |out_offset| may be NULL.
//
//   tarn_block block;
//   size_t offset;
//   status = tarn_block_of(place, address, &block, &offset);
//   // address == block.address + offset, offset < block.size
//
// All pools of the place are searched, the place's own first, but for those
// made with TARN_POOL_DRY, two of which may have the same address, and those
// over memory of the caller's, whose blocks may lie in others. Of such a pool
// tarn_pool_block_of finds blocks, as of any that is known.
//
// Lifetime:       of the block, which stays its owner's: what is found is one
//                 more copy, and only one copy is freed. The caller sees to it
//                 that no other thread frees it meanwhile.
// Cost:           O(pools of the place, log of the blocks of each); within a
//                 step that arena_pool has learned, up to O(blocks of the
//                 step). Blocks that were taken since the last call are put in
//                 order first, each in O(log of the blocks): a program that
//                 never asks pays nothing for it. If nothing is found the text
//                 says so without a further search.
// TARN_E_INVALID  no such place, or no block there has |address| in it; both
//                 outputs are 0.
// TARN_E_NOMEM    the host has no memory for the order of the blocks, which is
//                 made when it is asked for; ask again.
TARN_API TARN_MUST_CHECK tarn_status tarn_block_of(tarn_place place,
                                                   tarn_addr address,
                                                   tarn_block *out_block,
                                                   size_t *out_offset);

// The same among the blocks of one pool, be it a dry one or over memory of the
// caller's.
//
// Cost:           O(log of its blocks), and as above; of a start also O(1)
//                 where blocks were taken since the last call.
// TARN_E_INVALID  no block of |pool| has |address| in it; if one did start
//                 there the text names its tag.
// TARN_E_NOMEM    as above.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_block_of(tarn_pool *pool,
                                                        tarn_addr address,
                                                        tarn_block *out_block,
                                                        size_t *out_offset);

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
// What a pool holds
// ---------------------------------------------------------------------------

// Bytes that the pool may hold of its device at most, idle memory and what is
// charged to it (tarn/account.h) included; 0: no limit. Below what it holds now
// it only keeps it from growing.
//
// TARN_E_UNSUPPORTED  not 0, for a pool over memory of the caller's: it has all
//                     that it will ever have.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_limit(tarn_pool *pool,
                                                     size_t bytes);

// Gives idle memory back to the device until the pool holds at most |target|
// bytes of it; 0: all that can be. Blocks that are out are not touched. A pool
// whose memory comes in large pieces may give back more than asked. The host
// waits for streams that may still be at work there.
//
// TARN_OK        also where what is out keeps it above |target|.
// TARN_E_STATE   from tarn_pool_begin_capture until tarn_pool_end_graphs.
// TARN_E_DEVICE  the device refused some of it.
TARN_API tarn_status tarn_pool_trim(tarn_pool *pool, size_t target);

// Lets a thread of the library trim the pool when it needs less than before;
// 0, as at the start: nothing is given back by itself. Time is cut into periods
// of |idle_ns| nanoseconds, and the need of a period is the most that was live
// at once in it. If that has fallen by more than an eighth, in the first period
// from |live_peak_bytes|, the pool is trimmed to as large a part of what it
// holds; if nothing was live, to nothing. A program whose steps repeat within
// |idle_ns| loses nothing by it. The thread waits for streams that may still be
// at work there, and leaves a pool alone that a captured graph uses.
//
// There is one such thread in a process, while a pool wants it. A call begins a
// new period; one with 0 waits until the thread is done with the pool.
//
// Lifetime:      until the pool ends. A child of fork has no such thread before
//                it calls this for a pool of its own.
// TARN_E_NOMEM   the system has no thread for it: nothing decays.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_decay(tarn_pool *pool,
                                                     uint64_t idle_ns);

// ---------------------------------------------------------------------------
// When there is no room
// ---------------------------------------------------------------------------
// A request that finds no room makes some: idle memory goes back to the device,
// and streams at work in it are waited for, except in a capture. If that is not
// enough, the program is asked.

// A number of bytes that the strategy cannot tell.
#define TARN_POOL_UNKNOWN SIZE_MAX

// What a request wants, and what the pool was like just now.
typedef struct tarn_pool_need {
  size_t struct_size;
  size_t size;            // as asked for
  size_t align;           // at least the device's own
  tarn_tag tag;           // of the request
  unsigned attempt;       // 1 at first, then more, up to 16
  size_t reserved_bytes;  // as in tarn_pool_stats, as are the next two
  size_t live_bytes;
  size_t limit_bytes;
  size_t idle_bytes;     // held, and in no block; or TARN_POOL_UNKNOWN
  size_t largest_hole;   // of them in one piece; likewise
  size_t charged_bytes;  // as in tarn_pool_stats
  bool can_fit;  // the request could be served if all blocks of the pool
                 // were freed; false: no freeing helps
} tarn_pool_need;

// Makes room for a request: frees blocks, trims, raises the limit. True: the
// request is to be tried again, and if there is still no room all of this
// begins anew. False: it is TARN_FULL.
//
// A request with |can_fit| false is larger than the limit less charges, or than
// what the device has free together with all that the pool holds. The function
// is called once for it. If it returns true, the request is tried again only if
// the limit less charges has risen, or the request can fit by then, since other
// memory of the device came free; otherwise it is TARN_FULL.
//
// Called on the thread of the request, with no lock held, so several threads
// may be in it at once. It may use the pool as any other code. Requests of its
// own that find no room are refused without calling it, whatever pool they are
// for. |need| is good for the length of the call.
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
  uint32_t counters;          // TARN_COUNT_... that are on: tarn/account.h
  uint32_t reserved;
  size_t asleep_bytes;   // that sleeping blocks have given back to the device,
                         // and want again when they are woken
  size_t saved_bytes;    // of them, kept in the host's memory
  size_t charged_bytes;  // that others took of the device, beside what is
                         // reserved: tarn_pool_charge of tarn/account.h
  size_t charged_peak_bytes;
} tarn_pool_stats;

// All of it as of one moment.
//
// Cost: O(1); while a step is played, O(events of a step), since what was
//       played is put on the books when somebody looks.
TARN_API TARN_MUST_CHECK tarn_status
tarn_pool_query(tarn_pool *pool, tarn_pool_stats *out_stats);

// Lets the peaks start again from what is out, held and charged now.
TARN_API tarn_status tarn_pool_reset_peaks(tarn_pool *pool);

typedef struct tarn_pool_tag_stats {
  size_t struct_size;
  size_t live_bytes;
  size_t live_peak_bytes;
  size_t live_blocks;
  size_t asleep_blocks;  // of them, asleep
  size_t asleep_bytes;   // as of the pool
  size_t saved_bytes;
  size_t charged_bytes;
} tarn_pool_tag_stats;

// What is out in |pool| under |tag|; zeros if it never had any. Blocks that
// were taken while TARN_COUNT_TAGS was off are not in it.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_query_tag(
    tarn_pool *pool, tarn_tag tag, tarn_pool_tag_stats *out_stats);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_POOL_H_
