// Short locks: spinning, sleeping and waking.
#include "base/short_lock.h"

#include "base/os.h"

// Some microseconds: as long as a sleep and a wake-up take. A holder that has
// lost its processor does not come back within them.
enum { SPINS = 100 };

static bool spin(tarn__short_lock *lock) {
  for (unsigned i = 0; i < SPINS; i++) {
    bool free = atomic_load_explicit(&lock->state, memory_order_relaxed) ==
                TARN__SHORT_LOCK_FREE;
    if (free && tarn__short_lock_try(lock)) return true;
    tarn__os_pause();
  }
  return false;
}

// A thread that has slept cannot tell whether others still do, so it enters as
// if they did: its leaving wakes one, perhaps in vain.
static bool enter_from_sleep(tarn__short_lock *lock) {
  return atomic_exchange_explicit(&lock->state, TARN__SHORT_LOCK_SLEEPERS,
                                  memory_order_acquire) ==
         TARN__SHORT_LOCK_FREE;
}

void tarn__short_lock_wait(tarn__short_lock *lock) {
  if (spin(lock)) return;
  while (!enter_from_sleep(lock))
    tarn__os_park(&lock->state, TARN__SHORT_LOCK_SLEEPERS);
}

void tarn__short_lock_wake(tarn__short_lock *lock) {
  tarn__os_unpark(&lock->state, 1);
}

void tarn__news_await(tarn__news *news, uint32_t number) {
  tarn__os_park(&news->number, number);
}

void tarn__news_tell(tarn__news *news) {
  atomic_fetch_add_explicit(&news->number, 1, memory_order_relaxed);
  tarn__os_unpark(&news->number, INT32_MAX);
}
