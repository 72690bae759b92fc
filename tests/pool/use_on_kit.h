// use_on_kit.h - blocks that several streams use.
#ifndef TARN_TESTS_POOL_USE_ON_KIT_H_
#define TARN_TESTS_POOL_USE_ON_KIT_H_

#include "streams_kit.h"

enum { SIZE = 4096, TWICE = 2 * SIZE, ALL = STREAMS * SIZE };

static inline void use_on(tarn_block block, tarn_stream *stream) {
  assert_ok(tarn_block_use_on(&block, stream));
}

static const char *const strategies[] = {"page_unit_pool", "arena_pool",
                                         "buddy_pool"};
enum { STRATEGIES = sizeof strategies / sizeof strategies[0] };

#endif  // TARN_TESTS_POOL_USE_ON_KIT_H_
