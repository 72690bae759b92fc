// Decay: a thread gives idle memory back that pools did not need for a while.
//
//   live    __/~~\_/~~\_/~~\_______/~\__     what blocks have
//   held    ------------------+    +----
//                             +----+         follows the peak of a period
//           |   period   |   period  |
//
// Time is cut into periods of |idle_ns|. The need of a period is its peak of
// live bytes. While the need is as high as before, the pool's idle memory may
// serve each step, and stays: a program whose steps repeat, within a period,
// loses nothing. When the need falls by more than an eighth, the pool is
// trimmed in proportion. Memory that could not be given back then, because of
// live blocks in it, goes at the end of a later period, unless the pool has
// called the device since, or needs more: then it needs all that it holds.
//
// One thread serves all pools of the process. It exists while a pool decays,
// and in a child of fork only after the child asks for decay anew.
#include "pool/decay.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "base/os.h"
#include "base/status.h"
#include "pool/front.h"

enum { PARTS = 8 };  // a need that changes by at most one part is the same

static struct {
  pthread_mutex_t lock;    // guards all below; taken around a fork; no lock of
                           // a pool is taken under it
  pthread_cond_t changed;  // on the monotonic clock
  bool ready;              // |changed| and |pools| are made
  tarn_list pools;         // that decay
  tarn_pool *busy;         // the thread is at it, without the lock
  bool running;            // there is a thread
  bool stopping;           // and some other waits for its end
  pthread_t thread;
} housekeeping = {.lock = PTHREAD_MUTEX_INITIALIZER};

// --- periods ---------------------------------------------------------------

static void begin_period(tarn_pool *pool) {
  pool->decay.peak = pool->stats.live_bytes;
  pool->decay.asked = pool->stats.device_allocs;
}

// The part of |held| that |need| is of |high|, which is more.
static size_t part_of(size_t held, size_t need, size_t high) {
  return (size_t)((double)held * ((double)need / (double)high));
}

static void end_period(tarn_pool *pool) {
  tarn__pool_decay *decay = &pool->decay;
  size_t held = pool->stats.reserved_bytes;
  size_t need = decay->peak;
  bool asked = pool->stats.device_allocs != decay->asked;
  size_t part = decay->high / PARTS;
  if (need == 0) {
    decay->target = decay->high = 0;
  } else if (need < decay->high - part) {
    decay->target = part_of(held, need, decay->high);
    decay->high = need;
  } else if (asked || need - part > decay->high) {
    decay->target = SIZE_MAX;
    if (need > decay->high) decay->high = need;
  }
  begin_period(pool);
}

void tarn__decay_tend(tarn_pool *pool) {
  tarn__front_enter(pool);
  end_period(pool);
  if (tarn__front_surplus(pool, pool->decay.target) != 0) {
    (void)tarn__lanes_empty(pool);
    (void)tarn__front_trim(pool, pool->decay.target);
  }
  tarn__front_leave(pool);
}

// --- the thread ------------------------------------------------------------

static tarn_pool *pool_at(tarn_list *node) {
  return tarn_list_entry(node, tarn_pool, decay.node);
}

// The pool whose period ends first; NULL if no pool decays.
static tarn_pool *find_next(void) {
  tarn_pool *next = NULL;
  tarn_list *node = NULL;
  tarn_list_for_each (node, &housekeeping.pools) {
    tarn_pool *pool = pool_at(node);
    if (next == NULL || pool->decay.due < next->decay.due) next = pool;
  }
  return next;
}

static uint64_t later(uint64_t ns) {
  uint64_t now = tarn__os_now_ns();
  return ns < UINT64_MAX - now ? now + ns : UINT64_MAX;
}

static void wait_until(uint64_t ns) {
  struct timespec end = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
  pthread_cond_timedwait(&housekeeping.changed, &housekeeping.lock, &end);
}

// Without the lock; the pool stays until it is done.
static void tend(tarn_pool *pool) {
  housekeeping.busy = pool;
  pthread_mutex_unlock(&housekeeping.lock);
  tarn__decay_tend(pool);
  pthread_mutex_lock(&housekeeping.lock);
  housekeeping.busy = NULL;
  if (pool->decay.idle_ns != 0) pool->decay.due = later(pool->decay.idle_ns);
  pthread_cond_broadcast(&housekeeping.changed);
}

static void *keep_house(void *unused) {
  (void)unused;
  pthread_mutex_lock(&housekeeping.lock);
  while (!housekeeping.stopping) {
    tarn_pool *pool = find_next();
    if (pool == NULL) {
      pthread_cond_wait(&housekeeping.changed, &housekeeping.lock);
    } else if (pool->decay.due > tarn__os_now_ns()) {
      wait_until(pool->decay.due);
    } else {
      tend(pool);
    }
  }
  pthread_mutex_unlock(&housekeeping.lock);
  return NULL;
}

static void make_ready(void) {
  pthread_condattr_t attributes;
  if (housekeeping.ready) return;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&housekeeping.changed, &attributes);
  pthread_condattr_destroy(&attributes);
  tarn_list_init(&housekeeping.pools);
  housekeeping.ready = true;
}

// Signals are blocked in it: the program's handlers run on its own threads.
static tarn_status start(void) {
  sigset_t all;
  sigset_t before;
  if (housekeeping.running) return TARN_OK;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&housekeeping.thread, NULL, keep_house, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  housekeeping.running = error == 0;
  if (error == 0) return TARN_OK;
  return tarn__fail(TARN_E_NOMEM,
                    "pool: decay: the system has no thread: error %d", error);
}

// the lock is released while the thread ends.
static void stop(void) {
  pthread_t thread = housekeeping.thread;
  housekeeping.stopping = true;
  pthread_cond_broadcast(&housekeeping.changed);
  pthread_mutex_unlock(&housekeeping.lock);
  pthread_join(thread, NULL);
  pthread_mutex_lock(&housekeeping.lock);
  housekeeping.running = housekeeping.stopping = false;
  pthread_cond_broadcast(&housekeeping.changed);
}

// --- forks -----------------------------------------------------------------

// The thread and the pools are the parent's.
static void forget_housekeeping(void) {
  housekeeping.ready = false;
  housekeeping.running = housekeeping.stopping = false;
  housekeeping.busy = NULL;
  pthread_mutex_unlock(&housekeeping.lock);
}

TARN__LOCK_AROUND_FORKS(LAST, housekeeping, &housekeeping.lock,
                        forget_housekeeping)

// --- pools -----------------------------------------------------------------

static void wait_for_stop(void) {
  while (housekeeping.stopping)
    pthread_cond_wait(&housekeeping.changed, &housekeeping.lock);
}

static tarn_status enter(tarn_pool *pool, uint64_t idle_ns) {
  make_ready();
  wait_for_stop();
  TARN__TRY(start());
  if (pool->decay.idle_ns == 0) {
    tarn_list_add_tail(&housekeeping.pools, &pool->decay.node);
  }
  pool->decay.idle_ns = idle_ns;
  pool->decay.due = later(idle_ns);
  pthread_cond_broadcast(&housekeeping.changed);
  return TARN_OK;
}

// The thread ends with the last pool.
static void leave(tarn_pool *pool) {
  if (pool->decay.idle_ns != 0) {
    pool->decay.idle_ns = 0;
    tarn_list_del(&pool->decay.node);
  }
  while (housekeeping.busy == pool)
    pthread_cond_wait(&housekeeping.changed, &housekeeping.lock);
  bool last = housekeeping.running && !housekeeping.stopping &&
              tarn_list_empty(&housekeeping.pools);
  if (last) stop();
}

void tarn__decay_end(tarn_pool *pool) {
  if (pool->generation != tarn__os_generation()) return;
  lock_housekeeping();
  leave(pool);
  unlock_housekeeping();
}

tarn_status tarn_pool_decay(tarn_pool *pool, uint64_t idle_ns) {
  tarn_status status = TARN_OK;
  TARN__TRY(tarn__front_check_pool(pool));
  tarn__front_enter(pool);
  pool->decay.high = pool->stats.live_peak_bytes;
  pool->decay.target = SIZE_MAX;
  begin_period(pool);
  tarn__front_leave(pool);
  lock_housekeeping();
  if (idle_ns != 0) {
    status = enter(pool, idle_ns);
  } else {
    leave(pool);
  }
  unlock_housekeeping();
  return status;
}
