// front.h - the front of a pool: what callers see of every strategy.
#ifndef TARN_POOL_FRONT_H_
#define TARN_POOL_FRONT_H_

#include <pthread.h>

#include "pool/piece.h"
#include "pool/strategy.h"
#include "pool/supply.h"
#include "tarn/pool.h"

typedef struct tarn__tag_count {
  size_t live_bytes;
  size_t live_peak_bytes;
  size_t live_blocks;
} tarn__tag_count;

// Whether a graph is captured with a pool's memory, or uses it (capture.c).
typedef enum tarn__capture_state {
  TARN__CAPTURE_OPEN,
  TARN__CAPTURE_RUNNING,
  TARN__CAPTURE_HELD,
  TARN__CAPTURE_STATES,
} tarn__capture_state;

struct tarn_pool {
  tarn_place place;
  tarn__supply supply;
  uint32_t flags;      // TARN_POOL_...
  bool own;            // somebody's own; else the place's, which all share
  tarn_list own_node;  // among the device's of that kind, guarded by their lock
  uint32_t generation;   // of the process that made it
  size_t natural_align;  // the device's min_chunk
  size_t padding;        // what the device wants behind each allocation

  pthread_mutex_t lock;  // guards all below, and every strategy behind it
  tarn__strategy *current;
  tarn_list replaced;  // strategies with blocks still out, or calls inside
  tarn__pieces pieces;
  size_t aligns;     // to what the device has aligned all that it gave so far
  size_t pending;    // bytes that are on their way from or to the device
  size_t returning;  // pieces that are on their way to the device
  pthread_cond_t returned;  // one of them has arrived
  tarn_pool_stats stats;
  tarn__capture_state capture;
  tarn__piece *deferred;  // linked by |next|: their frees take effect later
  tarn__tag_count *tags;  // by tag
  size_t tag_count;
};

// A pool for |place|; of |options| all fields are known.
TARN_MUST_CHECK tarn_status tarn__front_create(tarn_place place,
                                               const tarn_pool_options *options,
                                               tarn_pool **out_pool);

// Gives all memory back and frees the pool; no block may be out. The status is
// the device's.
tarn_status tarn__front_destroy(tarn_pool *pool);

// Puts |strategy| in the place of the current one.
tarn_status tarn__front_switch(tarn_pool *pool, tarn__strategy *strategy);

// Ends a replaced strategy that nothing needs any more. The lock is held.
void tarn__front_retire(tarn_pool *pool, tarn__strategy *strategy);

// Walks all that the pool keeps and sums it up anew. Only at rest: no other
// thread may be inside.
//
// TARN_E_CORRUPT  something does not agree; the text says what.
TARN_MUST_CHECK tarn_status tarn__front_check(tarn_pool *pool);

// What the public functions share; the lock is held but for the first two.
//
// The pool is this process's and can be used now.
TARN_MUST_CHECK tarn_status tarn__front_check_pool(const tarn_pool *pool);

// The same, and of the stream, whose serial is |*out_serial|; 0: the host's.
TARN_MUST_CHECK tarn_status tarn__front_check_call(const tarn_pool *pool,
                                                   const tarn_stream *stream,
                                                   uint64_t *out_serial);

// The piece of a block that is out, and that no other thread is resizing;
// |what| stands before what is said about others.
TARN_MUST_CHECK tarn_status tarn__front_find_block(tarn_pool *pool,
                                                   const char *what,
                                                   const tarn_block *block,
                                                   tarn__piece **out_piece);

// The piece of the block that is out and starts at |address|.
TARN_MUST_CHECK tarn_status tarn__front_find_address(tarn_pool *pool,
                                                     tarn_addr address,
                                                     tarn__piece **out_piece);

// TARN_E_STATE if another thread is resizing |piece|.
TARN_MUST_CHECK tarn_status tarn__front_check_rest(const char *what,
                                                   const tarn__piece *piece);

void tarn__front_describe(tarn_pool *pool, const tarn__piece *piece,
                          tarn_block *out_block);

// Takes a piece off the books and gives it to its owner. |serial|: of the
// stream of its last use.
tarn_status tarn__front_give(tarn_pool *pool, tarn__piece *piece,
                             uint64_t serial);

// Gives idle memory of the present strategy back until the pool holds at most
// |target| bytes.
tarn_status tarn__front_trim(tarn_pool *pool, size_t target);

// Makes |stream|, or at least the host, stand behind the stream |first|. The
// lock is let go meanwhile.
TARN_MUST_CHECK tarn_status tarn__front_follow(tarn_pool *pool,
                                               tarn_stream *stream,
                                               uint64_t first);

// Whether the pool gives no memory back and moves none, for a graph's sake. The
// lock is held.
static inline bool tarn__front_keeps(const tarn_pool *pool) {
  return pool->capture != TARN__CAPTURE_OPEN;
}

static inline void tarn__raise_peak(size_t value, size_t *peak) {
  if (value > *peak) *peak = value;
}

// Whether tarn_pool_tag has given |tag|; 0 is always known.
bool tarn__tag_is_known(tarn_tag tag);

// One line about the blocks that are out, by tag, into |out|.
void tarn__front_holders(tarn_pool *pool, char *out, size_t out_size);

#endif  // TARN_POOL_FRONT_H_
