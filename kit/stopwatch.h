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
//
// Not every clock shows every tick: some advance by 10 ns at a time, and many
// requests are served in less. Whole passes are timed where a figure may not be
// 0 (stopwatch_pass_ns), and of what is shorter many measurements are taken
// together (stopwatch_spread).
#ifndef TARN_KIT_STOPWATCH_H_
#define TARN_KIT_STOPWATCH_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

typedef struct stopwatch {
  bool counts_cycles;
  double ns_per_tick;
  uint64_t empty_ticks;  // what two readings cost by themselves
  double empty_mean;     // the mean of that, finer than a step
  uint64_t step;         // ticks by which the clock advances; 0: unknown
  uint64_t coarse_ns;    // of a test double; 0: it is none
} stopwatch;

stopwatch stopwatch_start(void);

// A test double of a clock: CLOCK_MONOTONIC, which shows only every |step_ns|th
// nanosecond.
stopwatch stopwatch_coarse(uint64_t step_ns);

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

// Fenced, so that nothing that is timed slips out of the measurement. By what
// gcc and clang have built in: <x86intrin.h> would be most of what compilers
// read for a file that measures.
static inline uint64_t stopwatch_now(const stopwatch *watch) {
#if defined(__x86_64__)
  if (watch->counts_cycles) {
    __builtin_ia32_lfence();
    uint64_t cycles = __builtin_ia32_rdtsc();
    __builtin_ia32_lfence();
    return cycles;
  }
#endif
  uint64_t ns = stopwatch_clock_ns();
  return watch->coarse_ns == 0 ? ns : ns - ns % watch->coarse_ns;
}

static inline uint64_t stopwatch_since(const stopwatch *watch, uint64_t begin) {
  uint64_t ticks = stopwatch_now(watch) - begin;
  return ticks > watch->empty_ticks ? ticks - watch->empty_ticks : 0;
}

static inline double stopwatch_ns(const stopwatch *watch, double ticks) {
  return ticks * watch->ns_per_tick;
}

// The nanoseconds since |begin|, of a whole pass: what is over before the clock
// advances counts as one step of it.
static inline double stopwatch_pass_ns(const stopwatch *watch, uint64_t begin) {
  uint64_t least = watch->step > 0 ? watch->step : 1;
  double ticks = (double)(stopwatch_now(watch) - begin) - watch->empty_mean;
  return stopwatch_ns(watch, ticks > (double)least ? ticks : (double)least);
}

// Sorts |count| measurements, the shortest first.
void stopwatch_sort(uint64_t *ticks, size_t count);

// The smallest of |count| sorted measurements that |percent| of them do not
// exceed; 0 if there are none.
uint64_t stopwatch_percentile(const uint64_t *sorted, size_t count,
                              size_t percent);

// The same in nanoseconds, of differences of readings, with what reading costs
// taken off: those with the same value are taken as spread evenly over the step
// of the clock around it. It can be 0 or less where they are too few.
double stopwatch_spread(const stopwatch *watch, const uint64_t *sorted,
                        size_t count, size_t percent);

#endif  // TARN_KIT_STOPWATCH_H_
