// state.h - the state of a pool, and its lock.
#ifndef TARN_POOL_STATE_H_
#define TARN_POOL_STATE_H_

#include <stdatomic.h>

#include "base/biased_lock.h"
#include "base/os.h"
#include "device/memory.h"
#include "pool/debug.h"
#include "pool/decay.h"
#include "pool/events.h"
#include "pool/lanes.h"
#include "pool/on_full.h"
#include "pool/piece.h"
#include "pool/snapshot.h"
#include "pool/step_threads.h"
#include "pool/steps.h"
#include "pool/strategy.h"
#include "pool/supply.h"
#include "tarn/pool.h"

// Whether a graph is captured with a pool's memory, or uses it (capture.c).
typedef enum tarn__pool_capture_state {
  TARN__CAPTURE_OPEN,
  TARN__CAPTURE_NOTICED,
  TARN__CAPTURE_RUNNING,
  TARN__CAPTURE_HELD,
} tarn__pool_capture_state;

// What the plug-in asks of pools, as in tarn_device_info. It asks nothing for
// memory that is not the device's own.
typedef struct tarn__pool_sizes {
  size_t chunk;    // each allocation of the device is a multiple of it
  size_t most;     // larger blocks are allocated from the device one by one
  size_t largest;  // that takes no more: without the padding
  size_t first;    // of the first memory that is to be cut up, and of what is
  size_t later;    // asked for after that; 0: the strategy decides
} tarn__pool_sizes;

struct tarn_pool {
  tarn_place place;
  tarn__pool_supply supply;
  uint32_t flags;      // TARN_POOL_...
  bool own;            // created by a program; else the place's, shared
  tarn_list own_node;  // among the device's of that kind, guarded by their lock
  bool watches;        // it may capture, and the device tells which streams do
  uint32_t generation;   // of the process that made it
  size_t natural_align;  // the device's min_chunk
  size_t padding;        // unused bytes at the end of each block
  tarn__pool_sizes sizes;
  uint32_t extensions;    // the device's extensions for memory of the
                          // place's kind: its own, which the host's is too
  tarn_list known;        // guarded by the registry of pools.c
  uint64_t known_number;  // likewise: counts up with each pool
  // Set once, under the lock, by the first that switches debugging on.
  _Atomic(tarn__pool_debug *) debug;

  tarn__biased_lock lock;  // guards all below, and every strategy behind it
  tarn__pool_steps steps;  // of all threads together
  tarn__pool_step_threads threads;
  tarn__pool_strategy *current;
  tarn_list replaced;  // strategies with blocks still out, or calls inside
  tarn__pool_pieces pieces;
  size_t aligns;     // the alignment of all allocations so far
  size_t pending;    // bytes that are on their way from or to the device
  size_t credit;     // bytes to grow by before the free memory is queried again
  size_t returning;  // pieces that are on their way to the device
  tarn__news returned;  // one of them has arrived, or a thread has finished
                        // which others wait
  tarn_pool_stats stats;
  tarn__pool_events events;
  tarn__pool_capture_state capture;
  uint64_t capturing;  // NOTICED: serial of a stream that captured when it was
                       // last asked
  tarn__pool_piece
      *deferred;              // linked by |next|: their frees take effect later
  tarn_pool_tag_stats *tags;  // by tag
  size_t tag_count;
  uint64_t cuts;   // blocks that were resized without growing: like frees, they
                   // add to what a stream used last
  uint64_t joins;  // pieces that have gone back to a stock (segments.h): that
                   // is room, too, and no call of the device
  tarn__pool_lanes lanes;
  tarn__pool_decay decay;
  tarn__pool_on_full on_full;  // has a lock of its own
  tarn__pool_full_shots full_shots;
  tarn__pool_freed freed;
  tarn__pool_users users;
  size_t kept;     // bytes that trimming leaves the pool (tarn_pool_reserve)
  bool reserving;  // a thread is in that call, and may have released the lock
};

// Whether the pool was made over memory of the caller's: it has all that it
// will ever have.
static inline bool tarn__front_has_own(const tarn_pool *pool) {
  return pool->supply.own.size != 0;
}

// Bytes that the pool holds beyond |target| and may give back.
static inline size_t tarn__front_surplus(const tarn_pool *pool, size_t target) {
  size_t held = pool->stats.reserved_bytes;
  return held > target && !tarn__front_has_own(pool) ? held - target : 0;
}

// Whether the device asks that a block of |size| bytes is an allocation of its
// own, which is given back when the block is freed.
static inline bool tarn__front_is_direct(const tarn_pool *pool, size_t size) {
  return size > pool->sizes.largest;
}

// Takes the lock. The statistics lack what lanes have counted.
static inline void tarn__front_reenter(tarn_pool *pool) {
  tarn__biased_lock_enter(&pool->lock);
  if (!tarn__steps_are_settled(&pool->steps)) {
    tarn__steps_settle(pool, &pool->steps);
  }
}

// The same with up-to-date statistics, and all lanes closed: they stay so until
// the lock is released.
static inline void tarn__front_enter(tarn_pool *pool) {
  tarn__front_reenter(pool);
  tarn__lanes_close(pool);
}

static inline void tarn__front_leave(tarn_pool *pool) {
  tarn__biased_lock_leave(&pool->lock);
}

// Waits, holding the lock on both ends, until memory has been given back to the
// device or the caller is told to look again.
static inline void tarn__front_wait(tarn_pool *pool) {
  tarn__biased_lock_wait(&pool->lock, &pool->returned);
  tarn__steps_settle(pool, &pool->steps);
}

// The short way in: where nothing is wrong and the lock is this thread's own.
// Its end is tarn__biased_lock_leave_owned. NULL: the long way will tell why.
// In a child of fork no lock of the parent's is any thread's own.
static inline tarn__owner_slot *tarn__front_try(tarn_pool *pool) {
  bool usable = pool != NULL && tarn__callbacks_running == 0;
  return usable ? tarn__biased_lock_try(&pool->lock) : NULL;
}

// Whether a captured graph keeps the pool from giving back or moving memory.
// The caller holds the lock.
static inline bool tarn__front_keeps(const tarn_pool *pool) {
  return pool->capture != TARN__CAPTURE_OPEN;
}

// What this thread's requests and frees are followed with.
static inline tarn__pool_steps *tarn__steps_mine(tarn_pool *pool) {
  return pool->threads.apart ? tarn__steps_of_thread(pool) : &pool->steps;
}

// Not while threads have lanes: what they ask for at the same time makes no
// row, and steps of each would take longer, and more memory, than they save.
static inline bool tarn__steps_may_learn(const tarn_pool *pool) {
  return pool->current->steps != 0 && !pool->lanes.begun;
}

// Whether there is nothing to seek for a request: no step is followed, and none
// can begin or be learned here. Then steps need not be asked.
static inline bool tarn__steps_are_quiet(const tarn_pool *pool) {
  const tarn__pool_steps *steps = &pool->steps;
  const tarn__pool_recorder *recorder = &steps->recorder;
  if (steps->cursor.layout != NULL || pool->threads.apart) return false;
  if (!tarn__steps_may_learn(pool)) return true;
  if (pool->threads.count > 1 && tarn__steps_may_part(pool)) return false;
  size_t live = pool->stats.live_bytes;
  bool begins = live <= steps->base || live < steps->least ||
                steps->waited < TARN__STEPS_BETWEEN;
  bool looks = recorder->count - steps->window >= recorder->room &&
               steps->count == 0 && recorder->room != 0;
  return !begins && !looks && !tarn__recorder_is_due(recorder);
}

// Steps number |i| of the pool, the common ones first; NULL: there are no more,
// or none with that number.
static inline tarn__pool_steps *tarn__steps_number(const tarn_pool *pool,
                                                   size_t i) {
  if (i == 0) return (tarn__pool_steps *)(uintptr_t)&pool->steps;
  return i <= pool->threads.count ? pool->threads.of[i - 1].steps : NULL;
}

// What is live on the ground of all steps.
static inline size_t tarn__steps_live(const tarn_pool *pool) {
  size_t live = 0;
  for (size_t i = 0; i <= pool->threads.count; i++) {
    const tarn__pool_steps *steps = tarn__steps_number(pool, i);
    live += steps != NULL ? steps->ground.blocks : 0;
  }
  return live;
}

// What the limit leaves for the pool's own memory; SIZE_MAX: no limit.
static inline size_t tarn__front_limit(const tarn_pool *pool) {
  const tarn_pool_stats *stats = &pool->stats;
  if (stats->limit_bytes == 0) return SIZE_MAX;
  if (stats->limit_bytes < stats->charged_bytes) return 0;
  return stats->limit_bytes - stats->charged_bytes;
}

// Whether |size| bytes of |strategy| may be given back in addition to |parting|
// bytes that are about to be: the pool then still holds what it reserves, or
// need not. Memory of a replaced strategy does not count.
static inline bool tarn__front_may_return(const tarn__pool_strategy *strategy,
                                          size_t parting, size_t size,
                                          unsigned how) {
  const tarn_pool *pool = strategy->pool;
  bool any = (how & TARN__TRIM_KEPT) != 0 || strategy != pool->current;
  size_t kept = any ? 0 : pool->kept;
  return kept == 0 || pool->stats.reserved_bytes >= kept + parting + size;
}

// |target|, or the reserved size if that is larger.
static inline size_t tarn__front_target(const tarn_pool *pool, size_t target) {
  return pool->kept > target ? pool->kept : target;
}

// NULL: the pool has never debugged. Any thread may read the pointer; the lock
// guards the object.
static inline tarn__pool_debug *tarn__debug_of(const tarn_pool *pool) {
  return atomic_load_explicit(&pool->debug, memory_order_relaxed);
}

static inline void tarn__front_describe(tarn_pool *pool,
                                        const tarn__pool_piece *piece,
                                        tarn_block *out_block) {
  out_block->pool = pool;
  out_block->address = piece->address;
  out_block->size = piece->size;
  out_block->id = piece->id;
  out_block->generation = tarn__piece_generation(piece);
}

// For public calls. The lock is not held.
//
// The pool is this process's and can be used now.
TARN_MUST_CHECK tarn_status tarn__front_check_pool(const tarn_pool *pool);

// The same, and that the stream may work there; its serial is |*out_serial|; 0:
// the host's.
TARN_MUST_CHECK tarn_status tarn__front_check_call(const tarn_pool *pool,
                                                   const tarn_stream *stream,
                                                   uint64_t *out_serial);

#endif  // TARN_POOL_STATE_H_
