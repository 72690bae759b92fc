// no_threads.h - counts the threads that the library starts, and has it start
// none. For programs that replace pthread_create (tarn_wrapped).
#ifndef TARN_TESTS_POOL_NO_THREADS_H_
#define TARN_TESTS_POOL_NO_THREADS_H_

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

static atomic_int threads_made;
static atomic_bool no_threads;

// NOLINTBEGIN(bugprone-reserved-identifier): --wrap makes these names.
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument);
// NOLINTEND(bugprone-reserved-identifier)

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument) {
  if (atomic_load(&no_threads)) return EAGAIN;
  atomic_fetch_add(&threads_made, 1);
  return __real_pthread_create(thread, attributes, start, argument);
}

#endif  // TARN_TESTS_POOL_NO_THREADS_H_
