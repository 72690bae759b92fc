// making.h - the pool, from the first large request on, and who may go to it.
//
// A thread that is inside the pool, or that forks, does not go to it again:
// what it asks for then, for Tarn itself or in a signal handler, is the C
// library's, and blocks of the pool that it frees wait until it is outside.
#ifndef TARN_PRELOAD_MAKING_H_
#define TARN_PRELOAD_MAKING_H_

#include <stdbool.h>
#include <tarn/pool.h>

// False: this thread is inside. Else making_leave ends it; |errno| is then what
// it was. |*out_pool| NULL: there is no pool, and none can be made.
bool making_enter(tarn_pool **out_pool);
void making_leave(void);

// Whether there is a pool by now.
bool making_is_made(void);

// Frees a block of the pool when this thread is outside again.
void making_defer(void *block);

// Whether pages that the pool has not handed out yet hold what the kernel put
// there: a pool that debugs fills blocks.
bool making_fills(void);

#endif  // TARN_PRELOAD_MAKING_H_
