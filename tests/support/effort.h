// effort.h - how much a test tries. A sanitizer makes each step 5 to 20 times
// as dear, and what it looks for shows after a part of what a test of numbers
// needs: there a test may do less of the same. The plain build does all of it.
#ifndef TARN_TESTS_SUPPORT_EFFORT_H_
#define TARN_TESTS_SUPPORT_EFFORT_H_

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TARN_TESTS_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define TARN_TESTS_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define TARN_TESTS_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define TARN_TESTS_TSAN 1
#endif

// |all| in a plain build, |some| under a sanitizer; a constant if both are.
#if defined(TARN_TESTS_ASAN) || defined(TARN_TESTS_TSAN)
#define EFFORT(all, some) (some)
#else
#define EFFORT(all, some) (all)
#endif

// Whether threads are watched: a test that is there for its threads may leave
// out its cases without any.
#if defined(TARN_TESTS_TSAN)
#define THREADS_ARE_WATCHED 1
#else
#define THREADS_ARE_WATCHED 0
#endif

#endif  // TARN_TESTS_SUPPORT_EFFORT_H_
