// on_full.h - the function of a program that is called when there is no room.
#ifndef TARN_POOL_ON_FULL_H_
#define TARN_POOL_ON_FULL_H_

#include <pthread.h>

#include "tarn/pool.h"

typedef struct tarn__pool_on_full {
  pthread_mutex_t lock;    // guards all below; nothing is taken under it
  pthread_cond_t changed;  // a call is over, or an exchange
  tarn_pool_full_fn *function;
  void *context;
  bool exchanging;    // a thread waits for the calls of the former function
  unsigned now;       // which of the two counts the calls that begin
  size_t running[2];  // calls of the present function and of the former
} tarn__pool_on_full;

void tarn__on_full_init(tarn__pool_on_full *on_full);

// |waited|: threads of this process may have waited there.
void tarn__on_full_deinit(tarn__pool_on_full *on_full, bool waited);

// Whether the pool has a function, and the thread is not in one.
bool tarn__on_full_is_set(tarn_pool *pool);

// Calls it, if so. True: the caller tries the request again. The caller holds
// no lock.
bool tarn__on_full_call(tarn_pool *pool, const tarn_pool_need *need);

#endif  // TARN_POOL_ON_FULL_H_
