// strategy.h - what a strategy is, and what it may ask of the pool.
//
// A strategy is called with the pool's lock held, so it needs no lock of its
// own. Only the source's functions release the lock, while they call the
// device: state that a strategy read before such a call may have changed.
#ifndef TARN_POOL_STRATEGY_H_
#define TARN_POOL_STRATEGY_H_

#include "pool/extents.h"
#include "pool/piece.h"
#include "pool/step_layout.h"
#include "tarn/pool.h"
#include "tarn/strategy.h"

typedef struct tarn__pool_strategy_type tarn__pool_strategy_type;
typedef struct tarn__pool_request tarn__pool_request;

// Options: "name:key=value,key=value".
enum { TARN__OPTIONS_TEXT = 255, TARN__OPTIONS = 8 };

typedef struct tarn__pool_option {
  const char *key;
  const char *value;
  bool used;
} tarn__pool_option;

typedef struct tarn__pool_strategy_options {
  // The name, then keys and values, each with a NUL.
  char text[TARN__OPTIONS_TEXT + 1];
  const char *strategy;
  tarn__pool_option list[TARN__OPTIONS];
  size_t count;
} tarn__pool_strategy_options;

// The first member of every strategy.
struct tarn__pool_strategy {
  const tarn__pool_strategy_type *type;
  tarn_pool *pool;
  tarn_list node;  // in the front's list of strategies that were replaced
  size_t live;     // live blocks
  size_t inside;   // calls that have released the lock and will return
  size_t held;     // bytes of the device that it has besides its pieces'
  size_t steps;    // blocks of the largest step that is learned; 0: none
  size_t lanes;    // threads that may have lanes; of others than 0, pieces may
                   // be kept by threads, and serve smaller requests, and |give|
                   // keeps the lock for those of no stream
  bool ordered;    // the source takes and gives in the order of streams
  bool started;    // memory that is cut up was asked for
};

struct tarn__pool_request {
  size_t size;
  size_t align;     // a power of two, at least the device's min_chunk
  uint64_t serial;  // of the stream of its use; 0: the host
  tarn_tag tag;
  bool counted;  // under |tag|
  bool asked;    // the device was asked
  bool lacks;    // of a resize: refused for want of memory, not of a place
  bool beyond;   // refused by room.c: idle memory is not enough
  bool charge;   // for no memory of the pool: only its limit counts
  // As the flags of tarn/alloc.h: the host waits for no stream; the device is
  // asked for no memory, and gets none back; the program is not called.
  bool no_wait;
  bool no_grow;
  bool no_callback;
  bool keeps_layout;  // a layout stays as it is
  size_t guard;       // bytes of |size| that the block does not get
  bool whole;     // of the source: blocks that are cut out of the memory have
                  // the padding inside, so that the piece has none
  bool own_only;  // memory that another stream used last will not do
  bool captured;  // it was made in a capture
  bool noticed;   // of which nobody told the pool
  bool zero;      // it must be cleared
  bool imports;   // memory that another process has exported: share.c
  uint8_t lane;   // the home of the block, by number; 0: none
};

// How memory is trimmed: bits.
enum {
  TARN__TRIM_NO_WAIT = 1 << 0,      // not what streams may still be at work in
  TARN__TRIM_KEEP_LAYOUT = 1 << 1,  // a layout stays
  TARN__TRIM_KEPT = 1 << 2,         // also of the reserved memory
};

// As |request| wants it.
static inline unsigned tarn__trim_for(const tarn__pool_request *request) {
  return (request->no_wait ? TARN__TRIM_NO_WAIT : 0u) |
         (request->keeps_layout ? TARN__TRIM_KEEP_LAYOUT : 0u);
}

// The idle memory of a strategy.
typedef struct tarn__pool_survey {
  size_t idle;               // bytes of the device that no block has
  size_t largest;            // of the largest hole among them
  tarn__pool_waits streams;  // whose work may still be under way in them
} tarn__pool_survey;

// Called for each piece of device memory; |address| 0: it has no address.
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

  // Frees its host memory. No piece is left in it.
  void (*deinit)(tarn__pool_strategy *strategy);

  // Finds a piece that serves |request|, preferably one last used on its stream
  // or on no stream; the pool orders the stream behind the last use where
  // needed. TARN_FULL: more device memory is needed.
  tarn_status (*take)(tarn__pool_strategy *strategy,
                      tarn__pool_request *request,
                      tarn__pool_piece **out_piece);

  // The same for a plain hit: |size| bytes for the host, aligned as the device
  // does, out of memory that no stream uses, without a call of the device and
  // without host memory. NULL as an answer, or here: take will tell.
  tarn__pool_piece *(*take_now)(tarn__pool_strategy *strategy, size_t size);

  // Takes a piece back whose block was freed.
  tarn_status (*give)(tarn__pool_strategy *strategy, tarn__pool_piece *piece);

  // The same for a block that no stream has used, without a call of the device
  // and without host memory. False: nothing has changed, and give is to be
  // called. NULL where take_now is.
  bool (*give_now)(tarn__pool_strategy *strategy, tarn__pool_piece *piece);

  // As give once the strategy was replaced: it keeps nothing that it can give
  // back to the device.
  tarn_status (*let_go)(tarn__pool_strategy *strategy, tarn__pool_piece *piece);

  // Makes room on the host for give, when the stream with |serial| frees the
  // block: give then keeps the memory, and needs neither the device nor host
  // memory. False: no host memory. NULL: the strategy may give memory back to
  // the device at once, or disregards |own_only|, and cannot serve a capture.
  bool (*expect)(tarn__pool_strategy *strategy, tarn__pool_piece *piece,
                 uint64_t serial);

  // Extends or cuts a live piece at its end, in place, so that it has
  // |request->size| bytes and little more. The bytes that are cut off were used
  // last by the request's stream; added bytes must be unused or that stream's.
  // NULL: pieces have a fixed size. TARN_FULL: there is no room behind it, and
  // nothing has changed.
  tarn_status (*resize)(tarn__pool_strategy *strategy,
                        tarn__pool_request *request, tarn__pool_piece *piece);

  // Gives the memory of all blocks of |tag| that are awake back to the device;
  // it may stay where a block that is awake shares it. Their contents are kept
  // if |saves|. The caller has checked that no thread works on one of them, and
  // that all are this strategy's; each is marked as |resizing| during the call,
  // and has a |sleeper| afterwards. NULL: they cannot sleep. A failure changes
  // nothing, except for TARN_E_DEVICE with |*out_asleep|.
  tarn_status (*sleep)(tarn__pool_strategy *strategy, tarn_tag tag, bool saves,
                       bool *out_asleep);

  // Gives the sleeping blocks of |tag|, which are marked as |resizing|, memory
  // and their saved contents. TARN_FULL: the call may be repeated when there is
  // room.
  tarn_status (*wake)(tarn__pool_strategy *strategy, tarn_tag tag);

  // Called after wake, whatever its status. If |keep|, which must be false
  // after a failure, the blocks are awake; else they lose the new memory again.
  // Removes the marks.
  tarn_status (*end_wake)(tarn__pool_strategy *strategy, tarn_tag tag,
                          bool keep);

  // Gives idle memory back to the source until the pool holds at most |target|
  // bytes or the strategy has no idle memory, but nothing that the pool
  // reserves (tarn__front_may_return). |how|: TARN__TRIM_... bits.
  tarn_status (*trim)(tarn__pool_strategy *strategy, size_t target,
                      unsigned how);

  // Takes memory of the source, idle and for blocks of any size, until the pool
  // holds |size| bytes. After a failure the memory that was added stays. NULL:
  // the strategy keeps no idle memory.
  tarn_status (*reserve)(tarn__pool_strategy *strategy, size_t size);

  // NULL unless |steps| is set: see step_layout.h. Finds room for layouts, of
  // the size of |request|, and sets home and address of |ground|. The memory
  // must be unused or the request's stream's.
  tarn_status (*raise_ground)(tarn__pool_strategy *strategy,
                              const tarn__pool_request *request,
                              tarn__pool_step_ground *ground);

  // The end of that: the strangers, which are all that is live there, become
  // its own, all else is free. Cannot fail.
  void (*drop_ground)(tarn__pool_strategy *strategy,
                      tarn__pool_step_ground *ground);

  // The unit of the sizes of pieces.
  size_t (*granule)(const tarn__pool_strategy *strategy);
  // Reports the idle memory, by a walk. NULL: the strategy cannot report it.
  void (*survey)(tarn__pool_strategy *strategy, tarn__pool_survey *out);

  // Reports the device memory that the strategy holds besides its pieces':
  // |held| bytes in all, by a walk. NULL: there is none.
  void (*visit_memory)(const tarn__pool_strategy *strategy,
                       tarn__pool_memory_fn *visit, void *context);

  // Memory that the stream with |serial| used last is unused now, and may be
  // joined with its neighbours. NULL: no effect.
  void (*settle)(tarn__pool_strategy *strategy, uint64_t serial);

  // Counts the idle pieces that it holds, and checks them.
  tarn_status (*check)(tarn__pool_strategy *strategy, size_t *out_idle);
};

// --- the source: memory of the device --------------------------------------

// The size of a block of |size| bytes on the device: with the padding, rounded
// up to the device's chunk. False: it overflows.
TARN_MUST_CHECK bool tarn__source_round(const tarn_pool *pool, size_t size,
                                        size_t *out_size);

// A new piece of at least |size| bytes for |request|; its size and the padding
// are the size of the allocation. Releases the lock.
//
// TARN_FULL  the limit or the device is used up, or the pool is not to grow.
TARN_MUST_CHECK tarn_status tarn__source_grow(tarn__pool_strategy *strategy,
                                              tarn__pool_request *request,
                                              size_t size,
                                              tarn__pool_piece **out_piece);

// The caller's memory that the pool was made over, as one piece to cut up: its
// address and size are multiples of |unit|, a power of two. The lock is kept.
//
// TARN_FULL  it was adopted before, or it has no whole unit.
TARN_MUST_CHECK tarn_status tarn__source_adopt(tarn__pool_strategy *strategy,
                                               size_t unit,
                                               tarn__pool_piece **out_piece);

// TARN_FULL, with a text: such a pool never gets more than it was made over.
tarn_status tarn__source_refuse_own(void);

// Gives pieces, a list linked by |next| that ends with NULL, back to the
// device, each when the stream of its last use has finished with it. Releases
// the lock. The pieces are gone in any case; returns the first failure.
tarn_status tarn__source_shrink(tarn__pool_strategy *strategy,
                                tarn__pool_piece *pieces);

// Brackets |count| calls that give |size| bytes back: the first uncounts them
// and releases the lock; the second takes it again, and wakes requests that
// wait for room. The caller writes their events (tarn__front_note_memory)
// before.
void tarn__source_begin_return(tarn__pool_strategy *strategy, size_t size,
                               size_t count);
void tarn__source_end_return(tarn__pool_strategy *strategy, size_t size);

// The same for |count| calls that allocate |size| bytes, which the limit counts
// during the calls; 0: calls that allocate nothing. New memory is charged
// afterwards, and lost memory is written off. The caller writes their events.
void tarn__source_begin_ask(tarn__pool_strategy *strategy, size_t size,
                            size_t count);
void tarn__source_end_ask(tarn__pool_strategy *strategy, size_t size);
void tarn__source_charge(tarn__pool_strategy *strategy, size_t size);
void tarn__source_write_off(tarn__pool_strategy *strategy, size_t size);

// Waits, in such a call, for the stream with |serial|.
tarn_status tarn__source_wait(tarn__pool_strategy *strategy, uint64_t serial);

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

// The functions behind the table of each registered strategy; |table.size| is
// that of the base that stands before its state.
extern const tarn__pool_strategy_type tarn__registered_pool;

// The value of |key|, as it was given, while |options| exist; NULL: it is not
// among them.
const char *tarn__options_text(tarn__pool_strategy_options *options,
                               const char *key);

// The value of |key|, which is a number of bytes, or |fallback| if it is not
// among the options. TARN_E_INVALID: not a number.
TARN_MUST_CHECK tarn_status
tarn__options_size(tarn__pool_strategy_options *options, const char *key,
                   size_t fallback, size_t *out_value);

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

// Ends a call of |strategy|, which |inside| counted. A strategy that was
// replaced gives all idle memory back, and is retired.
tarn_status tarn__front_end_call(tarn_pool *pool,
                                 tarn__pool_strategy *strategy);

// Reports all device memory that the pool holds: reserved_bytes in all, except
// for memory that is being allocated or given back. The caller holds the lock.
void tarn__front_visit_memory(const tarn_pool *pool,
                              tarn__pool_memory_fn *visit, void *context);

// Uncounts a piece and gives it to its owner. |serial|: of the stream of its
// last use.
tarn_status tarn__front_give(tarn_pool *pool, tarn__pool_piece *piece,
                             uint64_t serial);

// Both steps of that, for what happens in between: the block is gone, but its
// owner still counts the piece; the owner gets it.
void tarn__front_set_aside(tarn_pool *pool, tarn__pool_piece *piece,
                           uint64_t serial);
tarn_status tarn__front_send_home(tarn_pool *pool, tarn__pool_piece *piece);

// Trims |strategy|, and counts the call in |inside|. A strategy that was
// replaced and is not needed any more is retired.
tarn_status tarn__strategy_trim(tarn__pool_strategy *strategy, size_t target,
                                unsigned how);

// Gives idle memory of the present strategy back until the pool holds at most
// |target| bytes, but nothing that it reserves.
tarn_status tarn__front_trim(tarn_pool *pool, size_t target);

// The same with TARN__TRIM_... bits.
tarn_status tarn__front_trim_as(tarn_pool *pool, size_t target, unsigned how);

// What TARN_POOL says, or arena_pool.
const char *tarn__strategy_default(void);

// --- settle -----------------------------------------------------------------
//
// Memory that streams used last becomes unused when their work is done.

// Settles the streams of the strategy's survey, if |least| bytes are idle:
// those that have finished, or, if |waits|, all, after a wait. If the survey
// has more streams than serials, the rest is for another call. Releases the
// lock: memory that other threads free then may be behind newer work of the
// same stream, and nothing is settled. A replaced strategy that is not needed
// is retired. True: something has changed, perhaps by other threads.
bool tarn__settle_streams(tarn__pool_strategy *strategy, size_t least,
                          bool waits);

#endif  // TARN_POOL_STRATEGY_H_
