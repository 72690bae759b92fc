// Threads that have lanes: what becomes of those when a thread ends, or forks.
#include <pthread.h>

#include "base/os.h"
#include "pool/front.h"

static struct {
  pthread_once_t once;
  pthread_key_t key;  // its destructor retires the thread's lanes
  bool usable;
} at_exit = {.once = PTHREAD_ONCE_INIT};

_Thread_local bool tarn__seats_watched
    __attribute__((tls_model("initial-exec")));
static _Thread_local bool ends;  // this thread gets no more lanes

static tarn_status retire(void *context, tarn_pool *pool) {
  tarn__front_reenter(pool);
  tarn__lanes_retire(pool, context);
  tarn__front_leave(pool);
  return TARN_OK;
}

// Pools that the thread has no lane of are passed by as well: it is found by
// nothing but its pool.
static void end_thread(void *seats) {
  uint64_t number = 0;
  tarn_status unused = TARN_OK;
  ends = true;
  tarn__seats_watched = false;
  // A free in a later destructor must not find a lane that is another's by
  // then.
  for (int i = 0; i < TARN__SEATS; i++)
    tarn__seats[i] = (tarn__pool_seat){.pool = NULL};
  while (tarn__pools_next(&number, retire, seats, &unused))
    continue;
}

static void make_key(void) {
  at_exit.usable = pthread_key_create(&at_exit.key, end_thread) == 0;
}

bool tarn__seats_watch(void) {
  pthread_once(&at_exit.once, make_key);
  tarn__seats_watched = at_exit.usable && !ends &&
                        pthread_setspecific(at_exit.key, tarn__seats) == 0;
  return tarn__seats_watched;
}

// Threads of the parent that were inside a lane are not there any more.
static void void_seats(void) {
  atomic_fetch_add_explicit(&tarn__seats_epoch, 1, memory_order_relaxed);
}

TARN__WATCH_FORKS_LAST static void watch_forks(void) {
  pthread_atfork(NULL, NULL, void_seats);
}
