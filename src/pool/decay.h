// decay.h - gives back idle memory that a pool did not need for a while.
#ifndef TARN_POOL_DECAY_H_
#define TARN_POOL_DECAY_H_

#include "tarn/pool.h"

typedef struct tarn__pool_decay {
  // Guarded by the pool's lock.
  size_t peak;     // the most that was live at once in this period
  size_t high;     // and in the period for which |target| was set
  size_t target;   // bytes that the pool may hold
  uint64_t asked;  // calls of the device at the period's beginning

  // Guarded by the lock of decay.c.
  tarn_list node;    // among the pools that decay
  uint64_t idle_ns;  // the length of a period; 0: no decay, and in no list
  uint64_t due;      // when this period ends
} tarn__pool_decay;

// The pool is about to end: it decays no more. No lock of the pool is held.
void tarn__decay_end(tarn_pool *pool);

// The work at the end of a period.
void tarn__decay_tend(tarn_pool *pool);

#endif  // TARN_POOL_DECAY_H_
