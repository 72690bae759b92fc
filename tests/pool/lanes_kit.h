// lanes_kit.h - threads that come to have lanes of a pool, for the tests of
// lanes.
#ifndef TARN_TESTS_POOL_LANES_KIT_H_
#define TARN_TESTS_POOL_LANES_KIT_H_

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "kit.h"
#include "support/threads.h"

// Two threads take turns: the test's, and one that does what the test says.
typedef struct tarn_other {
  pthread_t thread;
  void (*work)(void *context);
  void *context;
  atomic_uint asked;
  atomic_uint done;
} tarn_other;

static inline void *other_thread(void *pointer) {
  tarn_other *other = pointer;
  for (unsigned turn = 1;; turn++) {
    while (atomic_load(&other->asked) != turn)
      sched_yield();
    if (other->work == NULL) return NULL;
    other->work(other->context);
    atomic_store(&other->done, turn);
  }
}

static inline void other_begin(tarn_other *other) {
  *other = (tarn_other){.work = NULL};
  other->thread = start_thread(other_thread, other);
}

// The other thread calls |work|; waits until it has returned.
static inline void other_does(tarn_other *other, void (*work)(void *),
                              void *context) {
  other->work = work;
  other->context = context;
  unsigned turn = atomic_fetch_add(&other->asked, 1) + 1;
  while (atomic_load(&other->done) != turn)
    sched_yield();
}

// The other thread ends.
static inline void other_ends(tarn_other *other) {
  other->work = NULL;
  atomic_fetch_add(&other->asked, 1);
  pthread_join(other->thread, NULL);
}

static inline void take_and_give(void *pool) {
  tarn_block block;
  expect(tarn_pool_alloc(pool, 1000, 0, NULL, &block) == TARN_OK);
  expect(tarn_pool_free(&block, NULL) == TARN_OK);
}

// Both threads have a lane of |pool| afterwards.
static inline void begin_lanes(tarn_pool *pool, tarn_other *other) {
  enum { TURNS = 40 };
  for (int i = 0; i < TURNS; i++) {
    other_does(other, take_and_give, pool);
    take_and_give(pool);
  }
  assert_as_expected();
}

#endif  // TARN_TESTS_POOL_LANES_KIT_H_
