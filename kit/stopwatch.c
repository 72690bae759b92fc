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

// The first of those equal to sorted[at], or the first beyond them.
static size_t edge_of(const uint64_t *sorted, size_t count, size_t at,
                      bool beyond) {
  size_t low = 0, high = count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    bool is_before =
        beyond ? sorted[middle] <= sorted[at] : sorted[middle] < sorted[at];
    if (is_before) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

double stopwatch_spread(const stopwatch *watch, const uint64_t *sorted,
                        size_t count, size_t percent) {
  size_t rank = (count * percent + 99) / 100;
  if (count == 0) return 0;
  if (rank > 0) rank--;
  size_t first = edge_of(sorted, count, rank, false);
  size_t beyond = edge_of(sorted, count, rank, true);
  double within = ((double)(rank - first) + 0.5) / (double)(beyond - first);
  double ticks = (double)sorted[rank] + (within - 0.5) * (double)watch->step;
  return stopwatch_ns(watch, ticks - watch->empty_mean);
}

// ---------------------------------------------------------------------------
// Calibration
// ---------------------------------------------------------------------------

static uint64_t common_divisor(uint64_t a, uint64_t b) {
  while (b != 0) {
    uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

// Samples that are clearly above twice the median were disturbed.
static double undisturbed_mean(const uint64_t *sorted, uint64_t most) {
  uint64_t sum = 0;
  size_t count = 0;
  while (count < EMPTY_SAMPLES && sorted[count] <= most)
    sum += sorted[count++];
  return count > 0 ? (double)sum / (double)count : 0;
}

static uint64_t next_difference(const stopwatch *watch) {
  uint64_t begin = stopwatch_now(watch), next = begin;
  while (next == begin)
    next = stopwatch_now(watch);
  return next - begin;
}

static void time_nothing(stopwatch *watch) {
  uint64_t samples[EMPTY_SAMPLES];
  watch->step = 0;
  for (size_t i = 0; i < EMPTY_SAMPLES; i++) {
    uint64_t begin = stopwatch_now(watch);
    samples[i] = stopwatch_now(watch) - begin;
    watch->step = common_divisor(watch->step, samples[i]);
  }
  watch->step = common_divisor(watch->step, next_difference(watch));
  stopwatch_sort(samples, EMPTY_SAMPLES);
  watch->empty_ticks = stopwatch_percentile(samples, EMPTY_SAMPLES, 50);
  watch->empty_mean =
      undisturbed_mean(samples, 2 * watch->empty_ticks + watch->step);
}

stopwatch stopwatch_start(void) {
  stopwatch watch = {.counts_cycles = has_steady_counter(), .ns_per_tick = 1};
  if (watch.counts_cycles) watch.ns_per_tick = calibrate(&watch);
  if (!(watch.ns_per_tick > 0)) {
    watch = (stopwatch){.ns_per_tick = 1};
  }
  time_nothing(&watch);
  return watch;
}

stopwatch stopwatch_coarse(uint64_t step_ns) {
  stopwatch watch = {.ns_per_tick = 1, .coarse_ns = step_ns};
  time_nothing(&watch);
  return watch;
}
