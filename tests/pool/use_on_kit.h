// test_pool_use_on_kit.h - a device with some streams, and blocks that several
// of them use.
#ifndef TARN_TESTS_TEST_POOL_USE_ON_KIT_H_
#define TARN_TESTS_TEST_POOL_USE_ON_KIT_H_

#include "kit.h"
#include "support/fake_plugin.h"
#include "support/strategy.h"

enum { SIZE = 4096, STREAMS = 4, TWICE = 2 * SIZE, ALL = STREAMS * SIZE };

static tarn_device *device;
static tarn_pool *pool;
static tarn_stream *streams[STREAMS];

static inline tarn_stream *stream_of(tarn_device *of) {
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_create(of, &stream));
  return stream;
}

static inline void open_on(const char *name, const char *strategy) {
  assert_ok(tarn_device_open(name, &device));
  assert_ok(use_strategy(tarn_place_on(device), strategy));
  pool = pool_at(tarn_place_on(device));
  for (int i = 0; i < STREAMS; i++)
    streams[i] = stream_of(device);
}

static inline void close_all(void) {
  assert_ok(tarn__front_check(pool));
  ck_assert_uint_eq(stats_of(pool).live_blocks, 0);
  for (int i = 0; i < STREAMS; i++)
    assert_ok(tarn_stream_destroy(streams[i]));
  assert_ok(tarn_device_close(device));
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
  ck_assert_uint_eq(fake_seen.wrong_size, 0);
  ck_assert_uint_eq(fake_seen.events, 0);
  ck_assert_uint_eq(fake_seen.streams, 0);
}

static inline void use_on(tarn_block block, tarn_stream *stream) {
  assert_ok(tarn_block_use_on(&block, stream));
}

static const char *const strategies[] = {"page_unit_pool", "arena_pool",
                                         "buddy_pool"};
enum { STRATEGIES = sizeof strategies / sizeof strategies[0] };

#endif  // TARN_TESTS_TEST_POOL_USE_ON_KIT_H_
