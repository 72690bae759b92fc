// sizes_kit.h - a device that names sizes or none.
#ifndef TARN_TESTS_POOL_SIZES_KIT_H_
#define TARN_TESTS_POOL_SIZES_KIT_H_

#include "kit.h"
#include "support/fake_plugin.h"
#include "tarn/strategy.h"

static tarn_device *device;

static inline void open_fake(void) {
  device = open_device("fake:0");
}

static inline tarn_pool *device_pool(const char *strategy) {
  return own_pool_with(tarn_place_on(device), strategy, 0, 0);
}

static inline size_t reserved(tarn_pool *pool) {
  assert_ok(tarn__front_check(pool));
  return stats_of(pool).reserved_bytes;
}

// The plug-in has no word on sizes.
static inline void name_nothing(void) {
  fake.missing =
      FAKE_MISSES(device_max_alloc_size) | FAKE_MISSES(device_max_chunk_size) |
      FAKE_MISSES(device_extra_padding_size) |
      FAKE_MISSES(device_init_alloc_size) | FAKE_MISSES(device_realloc_size);
}

#endif  // TARN_TESTS_POOL_SIZES_KIT_H_
