// hold.h - a pool that a child of fork goes on with.
//
// For a copy of the library whose objects live on in children
// (tarn__os_live_on). The one held pool is at rest at each fork: no thread is
// inside its lock, and none is between two looks at it, in a call of the
// device. So the child, which has only the thread that forked, has a whole
// pool. Its memory is private, so that the child has a copy of that, too.
#ifndef TARN_POOL_HOLD_H_
#define TARN_POOL_HOLD_H_

#include "tarn/pool.h"

// Holds |pool| at each fork from now on; it is never destroyed, serves no
// streams, and does not decay. At most one of a process.
void tarn__pool_hold(tarn_pool *pool);

#endif  // TARN_POOL_HOLD_H_
