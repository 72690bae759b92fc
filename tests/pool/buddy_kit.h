// test_pool_buddy_kit.h - a buddy_pool on a device that counts, and two
// streams.
#ifndef TARN_TESTS_TEST_POOL_BUDDY_KIT_H_
#define TARN_TESTS_TEST_POOL_BUDDY_KIT_H_

#include "kit.h"
#include "support/fake_plugin.h"
#include "support/strategy.h"

static tarn_device *device;
static tarn_pool *pool;
static tarn_stream *a;
static tarn_stream *b;

static inline void open_fake(const char *strategy) {
  fake_add();
  assert_ok(tarn_device_open("fake:0", &device));
  assert_ok(use_strategy(tarn_place_on(device), strategy));
  pool = pool_at(tarn_place_on(device));
  assert_ok(tarn_stream_create(device, &a));
  assert_ok(tarn_stream_create(device, &b));
}

// All blocks have been freed: nothing may be left.
static inline void close_fake(void) {
  assert_ok(tarn__front_check(pool));
  assert_ok(tarn_stream_destroy(a));
  assert_ok(tarn_stream_destroy(b));
  assert_ok(tarn_device_close(device));
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
  ck_assert_uint_eq(fake_seen.wrong_size, 0);
  ck_assert_uint_eq(fake_seen.wrong_device, 0);
}

static inline size_t reserved(void) {
  assert_ok(tarn__front_check(pool));
  return stats_of(pool).reserved_bytes;
}

#endif  // TARN_TESTS_TEST_POOL_BUDDY_KIT_H_
