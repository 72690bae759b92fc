// short_lock.h - a lock for sections that are shorter than a sleep and a
// wake-up, and a place to wait for what happens in them.
//
// A thread that finds the lock held spins for some microseconds, then sleeps
// until it is told that the lock was left. Whoever comes first gets it: a lock
// that was handed over would stand still until the thread that sleeps runs.
//
//   FREE ──enter──► HELD ──a thread goes to sleep──► SLEEPERS
//    ▲───────leave───┘                                  │
//    └───────────leave, and one of them wakes───────────┘
//
// tests/models/short_lock.pml models it. Not recursive, and not fair.
#ifndef TARN_BASE_SHORT_LOCK_H_
#define TARN_BASE_SHORT_LOCK_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
  TARN__SHORT_LOCK_FREE,
  TARN__SHORT_LOCK_HELD,
  TARN__SHORT_LOCK_SLEEPERS,  // held, and a thread may sleep
};

// Zero-filled: free. Needs no end.
typedef struct tarn__short_lock {
  _Atomic uint32_t state;
} tarn__short_lock;

static inline bool tarn__short_lock_try(tarn__short_lock *lock) {
  uint32_t state = TARN__SHORT_LOCK_FREE;
  return atomic_compare_exchange_strong_explicit(
      &lock->state, &state, TARN__SHORT_LOCK_HELD, memory_order_acquire,
      memory_order_relaxed);
}

// The long ways in and out.
void tarn__short_lock_wait(tarn__short_lock *lock);
void tarn__short_lock_wake(tarn__short_lock *lock);

static inline void tarn__short_lock_enter(tarn__short_lock *lock) {
  if (!tarn__short_lock_try(lock)) tarn__short_lock_wait(lock);
}

static inline void tarn__short_lock_leave(tarn__short_lock *lock) {
  uint32_t was = atomic_exchange_explicit(&lock->state, TARN__SHORT_LOCK_FREE,
                                          memory_order_release);
  if (was == TARN__SHORT_LOCK_SLEEPERS) tarn__short_lock_wake(lock);
}

// --- waiting for news -------------------------------------------------------
//
// As a condition variable. A thread notes the number of the news while it is
// inside the lock, leaves, sleeps until there is newer, and enters again.

// Zero-filled: no news yet. Needs no end.
typedef struct tarn__news {
  _Atomic uint32_t number;
} tarn__news;

static inline uint32_t tarn__news_number(const tarn__news *news) {
  return atomic_load_explicit(&news->number, memory_order_relaxed);
}

// Until there is news after |number|, or for no reason. Inside no lock.
void tarn__news_await(tarn__news *news, uint32_t number);

// Wakes all that wait. The caller is inside the lock.
void tarn__news_tell(tarn__news *news);

#endif  // TARN_BASE_SHORT_LOCK_H_
