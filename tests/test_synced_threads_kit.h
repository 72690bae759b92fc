// test_synced_threads_kit.h - threads that use ranges of synced buffers, each
// with bytes of its own that it knows.
#ifndef TARN_TESTS_TEST_SYNCED_THREADS_KIT_H_
#define TARN_TESTS_TEST_SYNCED_THREADS_KIT_H_

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

// ---------------------------------------------------------------------------
// Bytes of an access
// ---------------------------------------------------------------------------

static void get(const tarn_access *a, tarn_place place, unsigned char *out) {
  if (a->size == 0) return;
  if (a->pointer != NULL) {
    memcpy(out, a->pointer, a->size);
    return;
  }
  expect(tarn_copy_d2h(place.device, out, a->address, a->size, a->stream) ==
         TARN_OK);
  if (a->stream != NULL) expect(tarn_stream_synchronize(a->stream) == TARN_OK);
}

static void set(const tarn_access *a, tarn_place place,
                const unsigned char *bytes) {
  if (a->size == 0) return;
  if (a->pointer != NULL) {
    memcpy(a->pointer, bytes, a->size);
    return;
  }
  expect(tarn_copy_h2d(place.device, a->address, bytes, a->size, a->stream) ==
         TARN_OK);
  if (a->stream != NULL) expect(tarn_stream_synchronize(a->stream) == TARN_OK);
}

static bool begin(tarn_synced *buffer, size_t at, size_t size, tarn_place place,
                  uint32_t mode, tarn_stream *stream, tarn_access *a) {
  tarn_status status =
      tarn_synced_begin(buffer, at, size, place, mode, stream, a);
  expect(status == TARN_OK);
  return status == TARN_OK;
}

// A thread's own bytes, and what they must be.
typedef struct own {
  tarn_synced *buffer;
  size_t at;  // in the buffer
  uint64_t random;
  tarn_stream *streams[2];
  unsigned char value[RANGE];
} own;

static void step(own *o) {
  unsigned char bytes[RANGE];
  size_t place = next_random(&o->random) % PLACES;
  size_t start = next_random(&o->random) % RANGE;
  size_t size = next_random(&o->random) % (RANGE - start + 1);
  uint32_t mode = 1 + (uint32_t)(next_random(&o->random) % 3);
  tarn_stream *stream = NULL;
  if (place > 0 && next_random(&o->random) % 2 == 0) {
    stream = o->streams[place - 1];
  }
  tarn_access a;
  if (!begin(o->buffer, o->at + start, size, places[place],
             mode | (uint32_t)(next_random(&o->random) % 2 * TARN_ACCESS_WAIT),
             stream, &a)) {
    return;
  }
  if (mode != TARN_WRITE_DISCARD) {
    get(&a, places[place], bytes);
    expect(memcmp(bytes, o->value + start, size) == 0);
  }
  if (mode != TARN_READ) {
    memset(bytes, (int)(next_random(&o->random) & 255), size);
    set(&a, places[place], bytes);
    memcpy(o->value + start, bytes, size);
  }
  expect(tarn_synced_end(&a) == TARN_OK);
}

static void make_streams(own *o) {
  for (int i = 0; i < 2; i++) {
    expect(tarn_stream_create(devices[i], &o->streams[i]) == TARN_OK);
  }
}

static void end_streams(own *o) {
  for (int i = 0; i < 2; i++) {
    expect(tarn_stream_destroy(o->streams[i]) == TARN_OK);
  }
}

#endif  // TARN_TESTS_TEST_SYNCED_THREADS_KIT_H_
