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

// Makes |strategy| the current one.
tarn_status tarn__front_switch(tarn_pool *pool, tarn__pool_strategy *strategy);

// Walks all that the pool keeps and sums it up anew. Only at rest: no other
// thread may be inside.
//
// TARN_E_CORRUPT  something does not agree; the text says what.
TARN_MUST_CHECK tarn_status tarn__front_check(tarn_pool *pool);

// Shared by the public functions. The lock is held.
//
// The piece of a live block that no other thread works on; |what| begins the
// texts about other blocks.
TARN_MUST_CHECK tarn_status
tarn__front_find_block(tarn_pool *pool, const char *what,
                       const tarn_block *block, tarn__pool_piece **out_piece);

// The piece of the live block that starts at |address|.
TARN_MUST_CHECK tarn_status tarn__front_find_address(
    tarn_pool *pool, tarn_addr address, tarn__pool_piece **out_piece);

// TARN_E_STATE if another thread is resizing or freeing |piece|.
TARN_MUST_CHECK tarn_status
tarn__front_check_rest(const char *what, const tarn__pool_piece *piece);

// The live block that contains |address|, and the offset in it.
// |out_block->pool| NULL: no block. The caller does not hold the lock, neither
// here nor in the next call.
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

// |remembers|: also blocks that the index has forgotten, by a walk.
tarn__pool_start tarn__front_start_at(tarn_pool *pool, tarn_addr address,
                                      bool remembers);

// Writes why no block of |pool| at |address| can be freed on |stream|: none
// starts there. A block that starts there by now is not the block that was
// meant.
tarn_status tarn__front_refuse_free(tarn_pool *pool, tarn_addr address,
                                    const tarn_stream *stream);

// Gives all idle memory back, and if another thread is about to give some back
// waits for that. False if there was neither: no room can be made.
bool tarn__front_make_room(tarn_pool *pool);

// Orders |stream|, or at least the host, behind the stream |first|. Releases
// the lock.
TARN_MUST_CHECK tarn_status tarn__front_follow(tarn_pool *pool,
                                               tarn_stream *stream,
                                               uint64_t first);

// --- all pools ---------------------------------------------------------------
//
// The registry of the process's pools. The error text of a wrong free names the
// block of any pool at that address.

// Makes |pool| known; takes it out again, if it is in. Its lock is not held.
void tarn__pools_enter(tarn_pool *pool);
void tarn__pools_forget(tarn_pool *pool);

// Calls |visit| with the first pool of this process whose number is above
// |*number|, 0 at first, and sets |*number| to its number; |*status| is the
// result. The pool stays during the call. False: there is no such pool.
typedef tarn_status tarn__pool_visit_fn(void *context, tarn_pool *pool);
bool tarn__pools_next(uint64_t *number, tarn__pool_visit_fn *visit,
                      void *context, tarn_status *status);

// For a call that |pool| has refused because no block of it starts at
// |address|: adds to the thread's last error which block contains the address,
// in this pool or in any. The caller holds no lock. TARN_E_INVALID.
//
// Cost: a walk over all blocks of all pools.
__attribute__((cold)) tarn_status tarn__pools_explain(tarn_pool *pool,
                                                      tarn_addr address);

#endif  // TARN_POOL_FRONT_H_
