// ladder.h - what is tried before a request is refused, and what is said then.
//
//   status = ask the strategy;
//   tarn__ladder_begin(&ladder, pool, request, tag);
//   while (status == TARN_FULL && tarn__ladder_climb(&ladder))
//     status = ask the strategy;
//   return status == TARN_FULL ? tarn__ladder_fail(&ladder) : status;
#ifndef TARN_POOL_LADDER_H_
#define TARN_POOL_LADDER_H_

#include "pool/strategy.h"
#include "tarn/pool.h"

enum { TARN__REASON_SIZE = 224 };

// One request's climb.
typedef struct tarn__ladder {
  tarn_pool *pool;
  const tarn__request *request;
  tarn_tag tag;
  size_t rung;                     // the next
  unsigned rounds;                 // that have begun
  bool helped;                     // a rung of this round has made room
  bool refused;                    // the program's function wants no other try
  char reason[TARN__REASON_SIZE];  // why the strategy refused last
} tarn__ladder;

void tarn__ladder_begin(tarn__ladder *ladder, tarn_pool *pool,
                        const tarn__request *request, tarn_tag tag);

// Goes up until a rung has made room, and the strategy is to be asked again.
// False: there is none to be made. The pool's lock is held, and let go
// meanwhile.
TARN_MUST_CHECK bool tarn__ladder_climb(tarn__ladder *ladder);

// Writes the thread's last error; returns TARN_FULL. The lock is held.
tarn_status tarn__ladder_fail(const tarn__ladder *ladder);

#endif  // TARN_POOL_LADDER_H_
