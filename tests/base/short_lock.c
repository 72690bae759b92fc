// Short locks: mutual exclusion, sleepers that are woken, news.
#include "base/short_lock.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "base/os.h"
#include "support/run.h"

enum { THREADS = 8, TIMES = 20000, NAPS = 20 };

static tarn__short_lock lock;
static size_t counter;  // plain: the lock guards it

static void set_up(void) {
  lock = (tarn__short_lock){0};
  counter = 0;
}

static void start_all(pthread_t *threads, void *(*run)(void *)) {
  for (int i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_create(&threads[i], NULL, run, NULL), 0);
}

static void join_all(const pthread_t *threads) {
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
}

static uint32_t state(void) {
  return atomic_load(&lock.state);
}

TEST(it_is_entered_left_and_tried) {
  set_up();
  tarn__short_lock_enter(&lock);
  ck_assert_uint_eq(state(), TARN__SHORT_LOCK_HELD);
  ck_assert(!tarn__short_lock_try(&lock));
  tarn__short_lock_leave(&lock);
  ck_assert_uint_eq(state(), TARN__SHORT_LOCK_FREE);
  ck_assert(tarn__short_lock_try(&lock));
  tarn__short_lock_leave(&lock);
}

static void *count(void *unused) {
  (void)unused;
  for (int i = 0; i < TIMES; i++) {
    tarn__short_lock_enter(&lock);
    counter++;
    tarn__short_lock_leave(&lock);
  }
  return NULL;
}

TEST(one_thread_at_a_time_is_inside) {
  pthread_t threads[THREADS];
  set_up();
  start_all(threads, count);
  join_all(threads);
  ck_assert_uint_eq(counter, (size_t)THREADS * TIMES);
  ck_assert_uint_eq(state(), TARN__SHORT_LOCK_FREE);
}

// The holder is away for much longer than others spin.
static void *nap(void *unused) {
  (void)unused;
  for (int i = 0; i < NAPS; i++) {
    tarn__short_lock_enter(&lock);
    counter++;
    usleep(500);
    tarn__short_lock_leave(&lock);
  }
  return NULL;
}

TEST(all_that_sleep_are_woken) {
  pthread_t threads[THREADS];
  set_up();
  start_all(threads, nap);
  join_all(threads);
  ck_assert_uint_eq(counter, (size_t)THREADS * NAPS);
  ck_assert_uint_eq(state(), TARN__SHORT_LOCK_FREE);
}

static void *enter_once(void *unused) {
  (void)unused;
  tarn__short_lock_enter(&lock);
  counter++;
  tarn__short_lock_leave(&lock);
  return NULL;
}

TEST(who_waits_long_goes_to_sleep) {
  pthread_t thread;
  set_up();
  tarn__short_lock_enter(&lock);
  ck_assert_int_eq(pthread_create(&thread, NULL, enter_once, NULL), 0);
  while (state() != TARN__SHORT_LOCK_SLEEPERS)
    sched_yield();
  ck_assert_uint_eq(counter, 0);
  tarn__short_lock_leave(&lock);
  pthread_join(thread, NULL);
  ck_assert_uint_eq(counter, 1);
}

// --- news ------------------------------------------------------------------

static tarn__news news;
static bool told;
static atomic_int waiting;

static void *wait_for_news(void *unused) {
  (void)unused;
  tarn__short_lock_enter(&lock);
  atomic_fetch_add(&waiting, 1);
  while (!told) {
    uint32_t number = tarn__news_number(&news);
    tarn__short_lock_leave(&lock);
    tarn__news_await(&news, number);
    tarn__short_lock_enter(&lock);
  }
  counter++;
  tarn__short_lock_leave(&lock);
  return NULL;
}

TEST(news_wake_all_that_wait) {
  pthread_t threads[THREADS];
  set_up();
  start_all(threads, wait_for_news);
  while (atomic_load(&waiting) < THREADS)
    sched_yield();
  tarn__short_lock_enter(&lock);
  ck_assert_uint_eq(counter, 0);
  told = true;
  tarn__news_tell(&news);
  tarn__short_lock_leave(&lock);
  join_all(threads);
  ck_assert_uint_eq(counter, THREADS);
}

TEST(old_news_are_not_waited_for) {
  uint32_t before = tarn__news_number(&news);
  tarn__news_tell(&news);
  tarn__news_await(&news, before);
  ck_assert_uint_eq(tarn__news_number(&news), before + 1);
}
