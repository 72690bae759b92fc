// Finds out how long a tick is and what reading the clock costs; sorts ticks.
#include "stopwatch.h"

#include <stdlib.h>

#include "tool.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum { CALIBRATION_NS = 20000000, EMPTY_SAMPLES = 2001 };

// Whether the counter runs at one rate, whatever the processor is doing
// ("invariant TSC").
static bool has_steady_counter(void) {
#if defined(__x86_64__)
  unsigned a, b, c, d;
  if (!__get_cpuid(0x80000007u, &a, &b, &c, &d)) return false;
  return (d >> 8 & 1) != 0;
#else
  return false;
#endif
}

static double calibrate(const stopwatch *watch) {
  uint64_t begin_ns = stopwatch_clock_ns();
  uint64_t begin = stopwatch_now(watch);
  uint64_t elapsed_ns = 0;
  while (elapsed_ns < CALIBRATION_NS) {
    elapsed_ns = stopwatch_clock_ns() - begin_ns;
  }
  uint64_t ticks = stopwatch_now(watch) - begin;
  return ticks > 0 ? (double)elapsed_ns / (double)ticks : 0;
}

void stopwatch_sort(uint64_t *ticks, size_t count) {
  qsort(ticks, count, sizeof ticks[0], tool_compare_uint64);
}

uint64_t stopwatch_percentile(const uint64_t *sorted, size_t count,
                              size_t percent) {
  size_t rank = (count * percent + 99) / 100;
  return count > 0 ? sorted[rank > 0 ? rank - 1 : 0] : 0;
}

static uint64_t median_empty(const stopwatch *watch) {
  uint64_t samples[EMPTY_SAMPLES];
  for (size_t i = 0; i < EMPTY_SAMPLES; i++) {
    uint64_t begin = stopwatch_now(watch);
    samples[i] = stopwatch_now(watch) - begin;
  }
  stopwatch_sort(samples, EMPTY_SAMPLES);
  return stopwatch_percentile(samples, EMPTY_SAMPLES, 50);
}

stopwatch stopwatch_start(void) {
  stopwatch watch = {.counts_cycles = has_steady_counter(), .ns_per_tick = 1};
  if (watch.counts_cycles) watch.ns_per_tick = calibrate(&watch);
  if (!(watch.ns_per_tick > 0)) {
    watch = (stopwatch){.ns_per_tick = 1};
  }
  watch.empty_ticks = median_empty(&watch);
  return watch;
}
