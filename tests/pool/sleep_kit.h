// sleep_kit.h - blocks that sleep, on the devices where they can.
#ifndef TARN_TESTS_POOL_SLEEP_KIT_H_
#define TARN_TESTS_POOL_SLEEP_KIT_H_

#include "arena_kit.h"

static inline size_t page_on(tarn_device *device) {
  size_t page = 0;
  assert_ok(tarn_range_granularity(device, &page));
  return page < 256 * KIBIBYTE ? 256 * KIBIBYTE : page;
}

// One in so many bytes is looked at: no page goes without.
enum { SLEEP_STRIDE = 1021 };

static inline unsigned char byte_at(unsigned seed, size_t at) {
  return (unsigned char)((at >> 9) * 31 + at + (size_t)seed * 7 + 1);
}

// Fills the block with bytes that |seed| tells.
static inline void fill(tarn_device *device, tarn_block block, unsigned seed) {
  unsigned char *bytes = calloc(block.size, 1);
  require(bytes != NULL);
  for (size_t i = 0; i < block.size; i += SLEEP_STRIDE)
    bytes[i] = byte_at(seed, i);
  require(tarn_copy_h2d(device, block.address, bytes, block.size, NULL) ==
          TARN_OK);
  free(bytes);
}

static inline void check_filled(tarn_device *device, tarn_block block,
                                unsigned seed) {
  unsigned char *bytes = malloc(block.size);
  require(bytes != NULL);
  require(tarn_copy_d2h(device, bytes, block.address, block.size, NULL) ==
          TARN_OK);
  for (size_t i = 0; i < block.size; i += SLEEP_STRIDE)
    require(bytes[i] == byte_at(seed, i));
  free(bytes);
}

#endif  // TARN_TESTS_POOL_SLEEP_KIT_H_
