// test_pool_sizes_kit.h - a device that names sizes or none, and each strategy
// there.
#ifndef TARN_TESTS_TEST_POOL_SIZES_KIT_H_
#define TARN_TESTS_TEST_POOL_SIZES_KIT_H_

#include "kit.h"
#include "support/fake_plugin.h"
#include "tarn/strategy.h"

static tarn_device *device;

static inline void open_fake(void) {
  fake_add();
  assert_ok(tarn_device_open("fake:0", &device));
}

static inline void close_fake(void) {
  assert_ok(tarn_device_close(device));
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
  ck_assert_uint_eq(fake_seen.wrong_size, 0);
}

static inline tarn_pool *pool_with(tarn_place place, const char *strategy,
                                   uint32_t flags) {
  tarn_pool_options options = {
      .struct_size = sizeof options, .strategy = strategy, .flags = flags};
  tarn_pool *pool = NULL;
  assert_ok(tarn_pool_create(place, &options, &pool));
  return pool;
}

static inline tarn_pool *device_pool(const char *strategy) {
  return pool_with(tarn_place_on(device), strategy, 0);
}

static inline void end(tarn_pool *pool) {
  assert_ok(tarn__front_check(pool));
  assert_ok(tarn_pool_destroy(pool));
}

static inline size_t reserved(tarn_pool *pool) {
  assert_ok(tarn__front_check(pool));
  return stats_of(pool).reserved_bytes;
}

static inline bool manages(const char *strategy) {
  return strcmp(strategy, "no_pool") != 0 &&
         strcmp(strategy, "async_pool") != 0;
}

// Calls |test| with each strategy there is, a registered one among them.
static inline void with_each(void (*test)(const char *strategy)) {
  tarn_status status = tarn_pool_register(TarnPoolStrategy());
  ck_assert(status == TARN_OK || status == TARN_E_STATE);
  const char *name = NULL;
  for (size_t i = 0; (name = tarn_pool_strategy_name(i)) != NULL; i++)
    test(name);
}

// The plug-in has no word on sizes.
static inline void name_nothing(void) {
  fake.missing =
      FAKE_MISSES(device_max_alloc_size) | FAKE_MISSES(device_max_chunk_size) |
      FAKE_MISSES(device_extra_padding_size) |
      FAKE_MISSES(device_init_alloc_size) | FAKE_MISSES(device_realloc_size);
}

#endif  // TARN_TESTS_TEST_POOL_SIZES_KIT_H_
