// stopwatch.h - times requests that take a few nanoseconds.
//
//   stopwatch watch = stopwatch_start();            calibrates, some 20 ms
//   uint64_t begin = stopwatch_now(&watch);
//   ...
//   uint64_t ticks = stopwatch_since(&watch, begin);
//   double ns = stopwatch_ns(&watch, (double)ticks);
//
// A tick is a cycle of the time-stamp counter where it runs at a constant
// rate, and otherwise a nanosecond of CLOCK_MONOTONIC. Reading the clock twice
// costs time itself: the median of that is taken off every measurement, which
// is never below 0.
#ifndef TARN_KIT_STOPWATCH_H_
#define TARN_KIT_STOPWATCH_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

typedef struct stopwatch {
  bool counts_cycles;
  double ns_per_tick;
  uint64_t empty_ticks;  // what two readings cost by themselves
} stopwatch;

stopwatch stopwatch_start(void);

static inline uint64_t stopwatch_clock_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// The calling thread's time on a processor.
static inline double stopwatch_cpu_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

// Fenced, so that nothing that is timed slips out of the measurement.
static inline uint64_t stopwatch_now(const stopwatch *watch) {
#if defined(__x86_64__)
  if (watch->counts_cycles) {
    _mm_lfence();
    uint64_t cycles = __rdtsc();
    _mm_lfence();
    return cycles;
  }
#endif
  (void)watch;
  return stopwatch_clock_ns();
}

static inline uint64_t stopwatch_since(const stopwatch *watch, uint64_t begin) {
  uint64_t ticks = stopwatch_now(watch) - begin;
  return ticks > watch->empty_ticks ? ticks - watch->empty_ticks : 0;
}

static inline double stopwatch_ns(const stopwatch *watch, double ticks) {
  return ticks * watch->ns_per_tick;
}

// Sorts |count| measurements, the shortest first.
void stopwatch_sort(uint64_t *ticks, size_t count);

// The smallest of |count| sorted measurements that |percent| of them do not
// exceed; 0 if there are none.
uint64_t stopwatch_percentile(const uint64_t *sorted, size_t count,
                              size_t percent);

#endif  // TARN_KIT_STOPWATCH_H_
