// front.h - the front of a pool: what callers see of every strategy.
#ifndef TARN_POOL_FRONT_H_
#define TARN_POOL_FRONT_H_

#include "pool/statistics.h"
#include "tarn/pool.h"

// A pool for |place|; of |options| all fields are known.
TARN_MUST_CHECK tarn_status tarn__front_create(tarn_place place,
                                               const tarn_pool_options *options,
                                               tarn_pool **out_pool);

// Gives all memory back and frees the pool; no block may be out. The status is
// the device's.
tarn_status tarn__front_destroy(tarn_pool *pool);

// Puts |strategy| in the place of the current one.
tarn_status tarn__front_switch(tarn_pool *pool, tarn__pool_strategy *strategy);

// Walks all that the pool keeps and sums it up anew. Only at rest: no other
// thread may be inside.
//
// TARN_E_CORRUPT  something does not agree; the text says what.
TARN_MUST_CHECK tarn_status tarn__front_check(tarn_pool *pool);

// Shared by the public functions. The lock is held.
//
// The piece of a live block, and that no other thread is at;
// |what| stands before what is said about others.
TARN_MUST_CHECK tarn_status
tarn__front_find_block(tarn_pool *pool, const char *what,
                       const tarn_block *block, tarn__pool_piece **out_piece);

// The piece of the live block and starts at |address|.
TARN_MUST_CHECK tarn_status tarn__front_find_address(
    tarn_pool *pool, tarn_addr address, tarn__pool_piece **out_piece);

// TARN_E_STATE if another thread is resizing or freeing |piece|.
TARN_MUST_CHECK tarn_status
tarn__front_check_rest(const char *what, const tarn__pool_piece *piece);

// The live block and has |address| in it, and how far inside it is.
// |out_block->pool| NULL: none. The lock is not held, nor for the
// next.
//
// TARN_E_NOMEM  the host has no memory to put the blocks in order.
TARN_MUST_CHECK tarn_status tarn__front_around(tarn_pool *pool,
                                               tarn_addr address,
                                               tarn_block *out_block,
                                               size_t *out_offset);

// What there is to say of a block that starts at |address|.
typedef enum tarn__pool_start {
  TARN__START_NONE,
  TARN__START_GONE,  // there was one
  TARN__START_OUT,
} tarn__pool_start;

// |remembers|: also of what the index has forgotten, which is a walk.
tarn__pool_start tarn__front_start_at(tarn_pool *pool, tarn_addr address,
                                      bool remembers);

// Why no block of |pool| at |address| can be freed on |stream|: none starts
// there. Where one does by now, it is not the one that was meant.
tarn_status tarn__front_refuse_free(tarn_pool *pool, tarn_addr address,
                                    const tarn_stream *stream);

// What tarn_pool_alloc does once all has been checked; the lock is not
// held.
TARN_MUST_CHECK tarn_status tarn__front_take(tarn_pool *pool,
                                             tarn__pool_request *request,
                                             tarn_tag tag, tarn_stream *stream,
                                             tarn__pool_piece **out_piece,
                                             tarn_block *out_block);

// Gives all idle memory back, and if another thread is about to give some back
// waits for that. False if there was neither: no room can be made.
bool tarn__front_make_room(tarn_pool *pool);

// Makes |stream|, or at least the host, stand behind the stream |first|. The
// lock is let go meanwhile.
TARN_MUST_CHECK tarn_status tarn__front_follow(tarn_pool *pool,
                                               tarn_stream *stream,
                                               uint64_t first);

// --- whose ------------------------------------------------------------------
//
// Whose memory it is that a wrong free was meant for.
//
// All pools of the process. A wrong address is looked up in all of them, only
// for error texts.

// Makes |pool| known; takes it out again, if it is in. Its lock is not held.
void tarn__whose_enter(tarn_pool *pool);
void tarn__whose_forget(tarn_pool *pool);

// Calls |visit| with the first of this process's pools that became known after
// number |*number|, 0 at first, which becomes its own; |*status| is what came
// of it. The pool stays meanwhile. False: none.
typedef tarn_status tarn__pool_visit_fn(void *context, tarn_pool *pool);
bool tarn__whose_next(uint64_t *number, tarn__pool_visit_fn *visit,
                      void *context, tarn_status *status);

// For a call that |pool| has refused since no block of it starts at |address|:
// adds to the thread's last error which block the address lies in, in this pool
// or in any. No lock is held. TARN_E_INVALID.
//
// Cost: a walk over all blocks of all pools.
__attribute__((cold)) tarn_status tarn__whose_explain(tarn_pool *pool,
                                                      tarn_addr address);

#endif  // TARN_POOL_FRONT_H_
