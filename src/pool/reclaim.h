// reclaim.h - what is tried before a request is refused, and what is said then.
//
//   status = ask the strategy;
//   tarn__reclaim_begin(&reclaim, pool, request, tag);
//   while (status == TARN_FULL && tarn__reclaim_next(&reclaim))
//     status = ask the strategy;
//   return status == TARN_FULL ? tarn__reclaim_fail(&reclaim) : status;
#ifndef TARN_POOL_RECLAIM_H_
#define TARN_POOL_RECLAIM_H_

#include "pool/strategy.h"
#include "tarn/pool.h"

enum { TARN__REASON_SIZE = 224 };

// The reclaim of one request.
typedef struct tarn__pool_reclaim {
  tarn_pool *pool;
  const tarn__pool_request *request;
  tarn_tag tag;
  size_t step;                     // the next
  unsigned rounds;                 // that have begun
  bool helped;                     // a step of this round has made room
  bool refused;                    // the program's function wants no other try
  char reason[TARN__REASON_SIZE];  // why the strategy refused last
} tarn__pool_reclaim;

void tarn__reclaim_begin(tarn__pool_reclaim *reclaim, tarn_pool *pool,
                         const tarn__pool_request *request, tarn_tag tag);

// Goes up until a step has made room, and the strategy is to be asked again.
// False: there is none to be made. The pool's lock is held, and let go
// meanwhile.
TARN_MUST_CHECK bool tarn__reclaim_next(tarn__pool_reclaim *reclaim);

// Writes the thread's last error; returns TARN_FULL. The lock is held.
tarn_status tarn__reclaim_fail(const tarn__pool_reclaim *reclaim);

#endif  // TARN_POOL_RECLAIM_H_
