// The program's function for pools that are full: set, called, exchanged.
//
// Invariants:
//   * a thread that calls the function counts as running
//   * one thread at a time exchanges it: from then on calls count with the new
//     one, and the exchange is over when no call of the former is left
//   * a thread is in one such function at a time
#include "pool/on_full.h"

#include <pthread.h>

#include "base/status.h"
#include "pool/front.h"

// Whether this thread is in such a function, of whatever pool.
static _Thread_local bool is_inside;

void tarn__on_full_init(tarn__pool_on_full *on_full) {
  pthread_mutex_init(&on_full->lock, NULL);
  pthread_cond_init(&on_full->changed, NULL);
}

void tarn__on_full_deinit(tarn__pool_on_full *on_full, bool waited) {
  if (!waited) return;
  pthread_cond_destroy(&on_full->changed);
  pthread_mutex_destroy(&on_full->lock);
}

// --- calling ---------------------------------------------------------------

// NULL: there is none. Otherwise end must follow.
static tarn_pool_full_fn *begin(tarn__pool_on_full *on_full, void **out_context,
                                unsigned *out_which) {
  pthread_mutex_lock(&on_full->lock);
  tarn_pool_full_fn *function = on_full->function;
  *out_context = on_full->context;
  *out_which = on_full->now;
  if (function != NULL) on_full->running[on_full->now]++;
  pthread_mutex_unlock(&on_full->lock);
  return function;
}

static void end(tarn__pool_on_full *on_full, unsigned which) {
  pthread_mutex_lock(&on_full->lock);
  if (--on_full->running[which] == 0) {
    pthread_cond_broadcast(&on_full->changed);
  }
  pthread_mutex_unlock(&on_full->lock);
}

bool tarn__on_full_is_set(tarn_pool *pool) {
  pthread_mutex_lock(&pool->on_full.lock);
  bool set = pool->on_full.function != NULL;
  pthread_mutex_unlock(&pool->on_full.lock);
  return set && !is_inside;
}

bool tarn__on_full_call(tarn_pool *pool, const tarn_pool_need *need) {
  void *context = NULL;
  unsigned which = 0;
  if (is_inside) return false;
  tarn_pool_full_fn *function = begin(&pool->on_full, &context, &which);
  if (function == NULL) return false;
  is_inside = true;
  bool again = function(pool, need, context);
  is_inside = false;
  end(&pool->on_full, which);
  return again;
}

// --- setting ---------------------------------------------------------------

static void exchange(tarn__pool_on_full *on_full, tarn_pool_full_fn *function,
                     void *context) {
  pthread_mutex_lock(&on_full->lock);
  while (on_full->exchanging)
    pthread_cond_wait(&on_full->changed, &on_full->lock);
  unsigned former = on_full->now;
  on_full->exchanging = true;
  on_full->now = 1 - former;
  on_full->function = function;
  on_full->context = context;
  while (on_full->running[former] > 0)
    pthread_cond_wait(&on_full->changed, &on_full->lock);
  on_full->exchanging = false;
  pthread_cond_broadcast(&on_full->changed);
  pthread_mutex_unlock(&on_full->lock);
}

tarn_status tarn_pool_on_full(tarn_pool *pool, tarn_pool_full_fn *function,
                              void *context) {
  TARN__TRY(tarn__front_check_pool(pool));
  if (is_inside) {
    return tarn__fail(TARN_E_STATE,
                      "pool: on_full is called from within such a function, "
                      "which it would wait for");
  }
  exchange(&pool->on_full, function, context);
  return TARN_OK;
}
