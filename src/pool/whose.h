// whose.h - whose memory it is that a wrong free was meant for.
//
// All pools of the process, so that an address that is none of the one can be
// looked for in the others. Only for texts of errors: nothing depends on it.
#ifndef TARN_POOL_WHOSE_H_
#define TARN_POOL_WHOSE_H_

#include "tarn/pool.h"

// Makes |pool| known; takes it out again, if it is in. Its lock is not held.
void tarn__whose_enter(tarn_pool *pool);
void tarn__whose_forget(tarn_pool *pool);

// Calls |visit| with the first of this process's pools that became known after
// number |*number|, 0 at first, which becomes its own; |*status| is what came
// of it. The pool stays meanwhile. False: there is none.
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

#endif  // TARN_POOL_WHOSE_H_
