// settle.h - what streams used last becomes nobody's when their work is done.
#ifndef TARN_POOL_SETTLE_H_
#define TARN_POOL_SETTLE_H_

#include "pool/strategy.h"

// Of |streams|, as the strategy's survey has just told: those that are done,
// or, if |waits|, all, when they are. If there are more than are known by
// serial the rest is for another call. The lock is let go meanwhile; what
// others free then may be behind newer work of the same stream, so that nothing
// changes. True: something has changed, be it by others.
bool tarn__settle_streams(tarn__pool_strategy *strategy,
                          const tarn__pool_waits *streams, bool waits);

// The same of all streams that the strategy's survey knows by serial, if they
// are done: nobody waits.
bool tarn__settle_done(tarn__pool_strategy *strategy);

#endif  // TARN_POOL_SETTLE_H_
