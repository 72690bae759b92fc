// threads.h - threads of a test, and what they see. Check's assertions are for
// the thread of the test: other threads count what is not as it should be.
#ifndef TARN_TESTS_SUPPORT_THREADS_H_
#define TARN_TESTS_SUPPORT_THREADS_H_

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// For any thread: counts |condition| if it does not hold.
void expect(bool condition);

// Fails the test if something that a thread expected did not hold.
void assert_as_expected(void);

pthread_t start_thread(void *(*worker)(void *context), void *context);

// Runs |worker| in |count| threads until all have returned: with the numbers
// from 1 on as (void *); or with the same |context|; or with the elements of
// |size| bytes of an array.
void run_threads(void *(*worker)(void *number), size_t count);
void run_threads_on(void *(*worker)(void *context), size_t count,
                    void *context);
void run_threads_each(void *(*worker)(void *element), size_t count,
                      void *elements, size_t size);

// A number of 31 bits that looks random, and the next |state|, which is not 0.
static inline uint64_t next_random(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state * 0x2545f4914f6cdd1du >> 33;
}

#endif  // TARN_TESTS_SUPPORT_THREADS_H_
