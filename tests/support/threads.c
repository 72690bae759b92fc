#include "support/threads.h"

#include <check.h>
#include <stdatomic.h>

static atomic_int wrong;

void expect(bool condition) {
  if (!condition) atomic_fetch_add(&wrong, 1);
}

void assert_as_expected(void) {
  ck_assert_int_eq(atomic_load(&wrong), 0);
}

pthread_t start_thread(void *(*worker)(void *context), void *context) {
  pthread_t thread;
  ck_assert_int_eq(pthread_create(&thread, NULL, worker, context), 0);
  return thread;
}

void run_threads_each(void *(*worker)(void *element), size_t count,
                      void *elements, size_t size) {
  enum { MOST = 64 };
  pthread_t threads[MOST];
  ck_assert_uint_le(count, MOST);
  for (size_t i = 0; i < count; i++) {
    void *element = size == 0 ? elements : (char *)elements + i * size;
    threads[i] = start_thread(worker, element);
  }
  for (size_t i = 0; i < count; i++)
    ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
}

void run_threads_on(void *(*worker)(void *context), size_t count,
                    void *context) {
  run_threads_each(worker, count, context, 0);
}

void run_threads(void *(*worker)(void *number), size_t count) {
  enum { FIRST = 1 };
  run_threads_each(worker, count, (void *)(uintptr_t)FIRST, 1);
}
