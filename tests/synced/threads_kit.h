// threads_kit.h - threads that use synced buffers on two devices.
#ifndef TARN_TESTS_SYNCED_THREADS_KIT_H_
#define TARN_TESTS_SYNCED_THREADS_KIT_H_

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/effort.h"
#include "support/run.h"
#include "tarn/sim.h"
#include "tarn/synced.h"
#include "tarn/traffic.h"

enum { WORKERS = 4, PLACES = 3, RANGE = 512, SIZE = WORKERS * RANGE };

// Check's assertions are for the thread of the test: the others count here,
// and the first says what was wrong.
static atomic_int wrong;

static void expect_that(bool condition, const char *what, int line) {
  if (condition) return;
  if (atomic_fetch_add(&wrong, 1) == 0) {
    fprintf(stderr, "line %d: not %s: %s\n", line, what, tarn_last_error());
  }
}

#define expect(condition) expect_that(condition, #condition, __LINE__)

static tarn_device *devices[2];
static tarn_place places[PLACES];  // the host is the first

static uint64_t next_random(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state * 0x2545f4914f6cdd1du >> 33;
}

static void open_devices(uint64_t latency_ns) {
  tarn_sim_options options = {.struct_size = sizeof options,
                              .devices = 3,
                              .capacity = (size_t)32 << 20,
                              .latency_ns = latency_ns};
  assert_ok(tarn_sim_configure(&options));
  places[0] = TARN_HOST;
  for (int i = 0; i < 2; i++) {
    assert_ok(tarn_device_open(i == 0 ? "sim:0" : "sim:1", &devices[i]));
    places[1 + i] = tarn_place_on(devices[i]);
  }
}

static tarn_status count_open(void *context, const tarn_synced_open *open) {
  (void)open;
  ++*(size_t *)context;
  return TARN_OK;
}

// Everything ended, and the devices close, so that nothing was left in them.
static void close_devices(void) {
  ck_assert_int_eq(atomic_load(&wrong), 0);
  size_t open = 0;
  assert_ok(tarn_synced_each_open(count_open, &open));
  ck_assert_uint_eq(open, 0);
  char line[256];
  ck_assert_msg(tarn_sim_misuses(line, sizeof line) == 0, "%s", line);
  for (int i = 0; i < 2; i++)
    assert_ok(tarn_device_close(devices[i]));
}

static void run_threads(void *(*worker)(void *), int count) {
  pthread_t threads[2 * WORKERS];
  for (uintptr_t i = 0; i < (uintptr_t)count; i++) {
    ck_assert_int_eq(pthread_create(&threads[i], NULL, worker, (void *)i), 0);
  }
  for (int i = 0; i < count; i++)
    pthread_join(threads[i], NULL);
}

#endif  // TARN_TESTS_SYNCED_THREADS_KIT_H_
