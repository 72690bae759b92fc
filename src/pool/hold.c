// Holding a pool across forks.
//
//   before   the lock is taken; while a thread is in a call of the device,
//            for which it has released the lock, it is let in to end that
//   after    the lock is released, in the parent and in the child
//
// The lock is taken as a shared one, which ends the ownership of any thread,
// and all lanes are closed: a thread of the parent's owns nothing in the child,
// and the lanes of those that are not there are retired.
#include "pool/hold.h"

#include <pthread.h>

#include "base/os.h"
#include "pool/state.h"

// Set once; read at forks.
static _Atomic(tarn_pool *) held;

static tarn_pool *held_pool(void) {
  return atomic_load_explicit(&held, memory_order_acquire);
}

static bool is_at_rest(tarn_pool *pool) {
  if (pool->current->inside != 0 || pool->reserving) return false;
  tarn_list *node = NULL;
  tarn_list_for_each (node, &pool->replaced) {
    if (tarn_list_entry(node, tarn__pool_strategy, node)->inside != 0) {
      return false;
    }
  }
  return pool->pending == 0 && pool->returning == 0;
}

static void hold(void) {
  tarn_pool *pool = held_pool();
  if (pool == NULL) return;
  tarn__biased_lock_enter_shared(&pool->lock);
  while (!is_at_rest(pool)) {
    tarn__biased_lock_leave_shared(&pool->lock);
    tarn__os_yield();
    tarn__biased_lock_enter_shared(&pool->lock);
  }
  tarn__lanes_close(pool);
}

static void release(void) {
  tarn_pool *pool = held_pool();
  if (pool != NULL) tarn__biased_lock_leave_shared(&pool->lock);
}

static void release_in_child(void) {
  tarn_pool *pool = held_pool();
  if (pool != NULL) tarn__lanes_retire_others(pool, tarn__seats);
  release();
}

TARN__WATCH_FORKS_FRONT static void watch_forks(void) {
  pthread_atfork(hold, release, release_in_child);
}

void tarn__pool_hold(tarn_pool *pool) {
  atomic_store_explicit(&held, pool, memory_order_release);
}
