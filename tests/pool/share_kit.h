// share_kit.h - shareable pools at the devices that can, and what is in their
// blocks.
#ifndef TARN_TESTS_POOL_SHARE_KIT_H_
#define TARN_TESTS_POOL_SHARE_KIT_H_

#include "arena_kit.h"
#include "tarn/share.h"

static const size_t STEP = (size_t)64 << 10;  // the granularity of all

static inline arena_place open_sharing(int i) {
  return open_arena_with(i, NEEDS_SHARING, "arena_pool");
}

static inline tarn_pool *shareable_at(tarn_place place, size_t limit) {
  return own_pool_with(place, NULL, limit, TARN_POOL_SHAREABLE);
}

static inline int export_of(tarn_block block) {
  int fd = -1;
  assert_ok(tarn_pool_export(&block, &fd));
  ck_assert_int_gt(fd, 2);
  return fd;
}

static inline void put_byte(tarn_device *device, tarn_block block, size_t at,
                            unsigned char byte) {
  require(tarn_copy_h2d(device, block.address + at, &byte, 1, NULL) == TARN_OK);
}

static inline unsigned char byte_at(tarn_device *device, tarn_block block,
                                    size_t at) {
  unsigned char byte = 0;
  require(tarn_copy_d2h(device, &byte, block.address + at, 1, NULL) == TARN_OK);
  return byte;
}

#endif  // TARN_TESTS_POOL_SHARE_KIT_H_
