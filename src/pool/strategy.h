// strategy.h - what a strategy is, and what it may ask of the front.
//
// A strategy is called with the front's lock held, so it needs none of its
// own. Only the source's functions released the lock, while they call the
// device: what a strategy reads before such a call it must not trust after it.
#ifndef TARN_POOL_STRATEGY_H_
#define TARN_POOL_STRATEGY_H_

#include "pool/extents.h"
#include "pool/options.h"
#include "pool/piece.h"
#include "pool/step_layout.h"
#include "tarn/pool.h"
#include "tarn/strategy.h"

typedef struct tarn__pool_strategy_type tarn__pool_strategy_type;
typedef struct tarn__pool_request tarn__pool_request;

// The first member of every strategy.
struct tarn__pool_strategy {
  const tarn__pool_strategy_type *type;
  tarn_pool *pool;
  tarn_list node;  // in the front's list of strategies that were replaced
  size_t live;     // live blocks
  size_t inside;   // calls that have released the lock and will come back
  size_t held;     // bytes of the device that it has besides its pieces'
  size_t steps;    // blocks of the largest step that is learned; 0: none
  bool ordered;    // the source takes and gives in the order of streams
  bool started;    // memory that is cut up was asked for
};

struct tarn__pool_request {
  size_t size;
  size_t align;     // a power of two, at least the device's min_chunk
  uint64_t serial;  // of the stream of its use; 0: the host
  bool asked;       // the device was asked
  bool lacks;       // of a resize: refused for want of memory, not of a place
  bool beyond;      // refused by room.c: idle memory is not enough
  bool charge;      // for no memory of the pool: only its limit counts
  bool no_wait;     // the host waits for no stream, as are the next two of
  bool no_grow;     // tarn/alloc.h: the device is asked for no memory, and gets
                    // none back
  bool no_callback;
  bool keeps_layout;  // a layout stays as it is
  size_t guard;       // bytes of |size| that the block does not get
  bool whole;     // of the source: blocks that are cut out of the memory have
                  // the padding inside, so that it has none itself
  bool own_only;  // memory that another stream used last will not do
  bool captured;  // it comes in a capture
  bool zero;      // it is to be cleared
  bool imports;   // memory that another process has exported: share.c
};

// How memory is trimmed: bits.
enum {
  TARN__TRIM_NO_WAIT = 1 << 0,      // not what streams may still be at work in
  TARN__TRIM_KEEP_LAYOUT = 1 << 1,  // a layout stays
  TARN__TRIM_KEPT = 1 << 2,         // also of what the pool is to keep
};

// As |request| wants it.
static inline unsigned tarn__trim_for(const tarn__pool_request *request) {
  return (request->no_wait ? TARN__TRIM_NO_WAIT : 0u) |
         (request->keeps_layout ? TARN__TRIM_KEEP_LAYOUT : 0u);
}

// What a strategy has idle.
typedef struct tarn__pool_survey {
  size_t idle;               // bytes of the device that no block has
  size_t largest;            // of the largest hole among them
  tarn__pool_waits streams;  // whose work may still be under way in them
} tarn__pool_survey;

// Takes one piece of memory of the device; |address| 0: it has none.
typedef void tarn__pool_memory_fn(void *context, tarn_addr address,
                                  size_t size);

// The table of a strategy. Its beginning is the public table: a registered
// strategy is copied there by struct_size, and the functions behind it are
// those of registered.c. The strategies of this room have only name and size
// there.
struct tarn__pool_strategy_type {
  tarn_strategy table;  // |size|: of the struct that begins with the base

  // Reads the options into the zero-filled struct, type and pool set.
  tarn_status (*init)(tarn__pool_strategy *strategy,
                      tarn__pool_strategy_options *options);

  // Frees what it has on the host. All pieces have left it.
  void (*deinit)(tarn__pool_strategy *strategy);

  // Finds a piece that serves |request|, preferably one last used on its
  // stream or on none; the front makes the stream wait where that is needed.
  // TARN_FULL: not without more memory than there is.
  tarn_status (*take)(tarn__pool_strategy *strategy,
                      tarn__pool_request *request,
                      tarn__pool_piece **out_piece);

  // Takes a piece back whose block was freed.
  tarn_status (*give)(tarn__pool_strategy *strategy, tarn__pool_piece *piece);

  // The same once the strategy was replaced: it keeps nothing that it can give
  // back to the device.
  tarn_status (*let_go)(tarn__pool_strategy *strategy, tarn__pool_piece *piece);

  // Room on the host for what give needs of it when the block is freed by the
  // stream with |serial|: give then keeps the memory and asks nobody. False:
  // there is none. NULL: it may give memory back before it is asked to, or
  // disregards |own_only|, and can serve no capture.
  bool (*expect)(tarn__pool_strategy *strategy, tarn__pool_piece *piece,
                 uint64_t serial);

  // Extends or cuts a piece that is out at its end, where it stands, so that it
  // has |request->size| bytes and little more. What is cut off was used last by
  // the request's stream; added bytes must be unused or that stream's.
  // NULL: a piece has what it has. TARN_FULL: there is no room behind it.
  // Nothing has changed then.
  tarn_status (*resize)(tarn__pool_strategy *strategy,
                        tarn__pool_request *request, tarn__pool_piece *piece);

  // Gives the memory of all blocks of |tag| that are awake back to the device;
  // it may stay where a block that is awake shares it. What they hold is to be
  // kept if |saves|. The front has seen that no thread is at one of them, and
  // that all are this strategy's; each is marked as |resizing| meanwhile, and
  // has a |sleeper| afterwards. NULL: they cannot sleep.
  // Fails with all as it was, but for TARN_E_DEVICE where |*out_asleep|.
  tarn_status (*sleep)(tarn__pool_strategy *strategy, tarn_tag tag, bool saves,
                       bool *out_asleep);

  // Gives the sleeping blocks of |tag|, which are marked as |resizing|, memory
  // and what they held. TARN_FULL: it may be called again when there is room.
  tarn_status (*wake)(tarn__pool_strategy *strategy, tarn_tag tag);

  // After it, whatever it answered: if |keep|, which it must not be after a
  // failure, they are awake; else they lose again what they have got. The marks
  // are taken away.
  tarn_status (*end_wake)(tarn__pool_strategy *strategy, tarn_tag tag,
                          bool keep);

  // Gives idle memory back to the source until the pool holds at most |target|
  // bytes, or there is none; nothing that would leave the pool less than it is
  // to keep (tarn__front_may_return). |how|: TARN__TRIM_... bits.
  tarn_status (*trim)(tarn__pool_strategy *strategy, size_t target,
                      unsigned how);

  // Takes memory of the source, idle at first and for blocks of any size, until
  // the pool holds |size| bytes. After a failure what came is there. NULL: it
  // keeps nothing idle.
  tarn_status (*reserve)(tarn__pool_strategy *strategy, size_t size);

  // NULL unless |steps| is set: see step_layout.h. Finds room for a layout, as
  // long as |request| says, and sets its home and address. Only what the
  // stream of the request, or nobody, used last.
  tarn_status (*install_layout)(tarn__pool_strategy *strategy,
                                const tarn__pool_request *request,
                                tarn__pool_step_layout *layout);

  // The end of that: pieces of the layout that are out become its own, all else
  // is free. Cannot fail.
  void (*drop_layout)(tarn__pool_strategy *strategy,
                      const tarn__pool_step_layout *layout);

  // What the sizes of pieces are multiples of.
  size_t (*granule)(const tarn__pool_strategy *strategy);
  // Says what is idle. A walk. NULL: it cannot say.
  void (*survey)(tarn__pool_strategy *strategy, tarn__pool_survey *out);

  // Tells of each piece of memory that it has besides its pieces': |held| bytes
  // in all. A walk. NULL: it has none.
  void (*visit_memory)(const tarn__pool_strategy *strategy,
                       tarn__pool_memory_fn *visit, void *context);

  // What the stream with |serial| used last is no longer used, and so it may
  // be joined with what is beside it. NULL: it would make no difference.
  void (*settle)(tarn__pool_strategy *strategy, uint64_t serial);

  // Counts the idle pieces that it holds, and checks them.
  tarn_status (*check)(tarn__pool_strategy *strategy, size_t *out_idle);
};

// --- the source: memory of the device --------------------------------------

// What a block of |size| bytes takes of the device: with the padding, rounded
// up to the device's chunk. False: it overflows.
TARN_MUST_CHECK bool tarn__source_round(const tarn_pool *pool, size_t size,
                                        size_t *out_size);

// A new piece of at least |size| bytes for |request|: with the padding, it is
// what the device was asked for. The lock is released meanwhile.
//
// TARN_FULL  the limit or the device is used up, or the pool is not to grow.
TARN_MUST_CHECK tarn_status tarn__source_grow(tarn__pool_strategy *strategy,
                                              tarn__pool_request *request,
                                              size_t size,
                                              tarn__pool_piece **out_piece);

// The memory of the caller's that the pool was made over, as a piece to be cut
// up: it begins at a multiple of |unit|, a power of two, and is a multiple of
// it long. The lock is kept.
//
// TARN_FULL  it was adopted before, or it has no whole unit.
TARN_MUST_CHECK tarn_status tarn__source_adopt(tarn__pool_strategy *strategy,
                                               size_t unit,
                                               tarn__pool_piece **out_piece);

// TARN_FULL, with a text: such a pool never gets more than it was made over.
tarn_status tarn__source_refuse_own(void);

// Gives pieces, a list linked by |next| that ends with NULL, back to the
// device, each when the stream of its last use is done with it. The lock is let
// go meanwhile. The pieces are gone in any case; the first failure is returned.
tarn_status tarn__source_shrink(tarn__pool_strategy *strategy,
                                tarn__pool_piece *pieces);

// Around |count| calls that give |size| bytes back: uncounts them
// and releases the lock; takes it again, and tells who waits for room. Their
// events (tarn__front_note_memory) are the caller's to write, before.
void tarn__source_begin_return(tarn__pool_strategy *strategy, size_t size,
                               size_t count);
void tarn__source_end_return(tarn__pool_strategy *strategy, size_t size);

// The same around |count| calls that ask for |size| bytes, which a limit counts
// meanwhile; 0: calls that ask for none. Memory that came is charged after, and
// what was lost is written off. Their events are the caller's, too.
void tarn__source_begin_ask(tarn__pool_strategy *strategy, size_t size,
                            size_t count);
void tarn__source_end_ask(tarn__pool_strategy *strategy, size_t size);
void tarn__source_charge(tarn__pool_strategy *strategy, size_t size);
void tarn__source_write_off(tarn__pool_strategy *strategy, size_t size);

// Waits, in such a call, for the stream with |serial|.
tarn_status tarn__source_wait(tarn__pool_strategy *strategy, uint64_t serial);

// TARN_E_CORRUPT unless the strategy says that it holds |held| bytes.
TARN_MUST_CHECK tarn_status
tarn__strategy_check_held(const tarn__pool_strategy *strategy, size_t held);

// TARN_FULL, with a text, if |size| bytes more would exceed the pool's limit.
TARN_MUST_CHECK tarn_status tarn__source_check_limit(const tarn_pool *pool,
                                                     size_t size);

// TARN_FULL, with a text: |request| is not to make the pool grow.
tarn_status tarn__source_refuse_growth(const tarn__pool_request *request);

// A piece for bytes that the strategy has carved out of memory of its own.
// NULL: no host memory.
tarn__pool_piece *tarn__source_carve(tarn__pool_strategy *strategy,
                                     tarn_addr address, size_t size);

// Its end.
void tarn__source_join(tarn__pool_strategy *strategy, tarn__pool_piece *piece);

// --- the strategies --------------------------------------------------------

extern const tarn__pool_strategy_type tarn__page_unit_pool;
extern const tarn__pool_strategy_type tarn__no_pool;
extern const tarn__pool_strategy_type tarn__async_pool;
extern const tarn__pool_strategy_type tarn__buddy_pool;
extern const tarn__pool_strategy_type tarn__arena_pool;

// Of pools made with TARN_POOL_SHAREABLE, which have no other; it cannot be
// named.
extern const tarn__pool_strategy_type tarn__share_pool;

// Fills in the functions behind |type->table|, which is a registered
// strategy's, and the size of the base that stands before its state.
void tarn__registered_fill(tarn__pool_strategy_type *type);
size_t tarn__registered_size(void);

// A new strategy for |pool| as |text| asks, "name" or "name:key=value,...".
//
// TARN_E_INVALID  no such strategy or option; the text lists what there is.
TARN_MUST_CHECK tarn_status tarn__strategy_create(tarn_pool *pool,
                                                  const char *text,
                                                  tarn__pool_strategy **out);

// A new strategy of |type|, which reads |options|.
TARN_MUST_CHECK tarn_status tarn__strategy_make(
    tarn_pool *pool, const tarn__pool_strategy_type *type,
    tarn__pool_strategy_options *options, tarn__pool_strategy **out);
void tarn__strategy_destroy(tarn__pool_strategy *strategy);

// --- a strategy in its pool ------------------------------------------------
// The lock is held.

// Ends a replaced strategy that nothing needs any more. The lock is held.
void tarn__front_retire(tarn_pool *pool, tarn__pool_strategy *strategy);

// Ends a call of |strategy|, which was counted in |inside|: one that has been
// replaced gives all idle memory back, and is retired.
tarn_status tarn__front_end_call(tarn_pool *pool,
                                 tarn__pool_strategy *strategy);

// Tells of all that the pool holds of the device: reserved_bytes in all, but
// for what is on its way. The lock is held.
void tarn__front_visit_memory(const tarn_pool *pool,
                              tarn__pool_memory_fn *visit, void *context);

// Uncounts a piece and gives it to its owner. |serial|: of the
// stream of its last use.
tarn_status tarn__front_give(tarn_pool *pool, tarn__pool_piece *piece,
                             uint64_t serial);

// Both steps of that, for what happens in between: the block is gone, but its
// owner still counts the piece; the owner gets it.
void tarn__front_set_aside(tarn_pool *pool, tarn__pool_piece *piece,
                           uint64_t serial);
tarn_status tarn__front_send_home(tarn_pool *pool, tarn__pool_piece *piece);

// Gives idle memory of the present strategy back until the pool holds at most
// |target| bytes, but none of what it is to keep.
tarn_status tarn__front_trim(tarn_pool *pool, size_t target);

// The same with TARN__TRIM_... bits.
tarn_status tarn__front_trim_as(tarn_pool *pool, size_t target, unsigned how);

// What TARN_POOL says, or arena_pool.
const char *tarn__strategy_default(void);

// --- settle -----------------------------------------------------------------
//
// Memory that streams used last becomes unused when their work is done.

// Of |streams|, as the strategy's survey has just told: those that are done,
// or, if |waits|, all, when they are. If there are more than are known by
// serial the rest is for another call. The lock is released meanwhile; what
// others free then may be behind newer work of the same stream, so that nothing
// changes. True: something has changed, be it by others.
bool tarn__settle_streams(tarn__pool_strategy *strategy,
                          const tarn__pool_waits *streams, bool waits);

// The same of all streams that the strategy's survey knows by serial, if they
// are done: nobody waits.
bool tarn__settle_done(tarn__pool_strategy *strategy);

#endif  // TARN_POOL_STRATEGY_H_
