// awnn_kit.h - a kit for tests of AWNN's names.
#ifndef TARN_TESTS_MODEL_AWNN_KIT_H_
#define TARN_TESTS_MODEL_AWNN_KIT_H_

#include "awnn_net.h"
#include "support/faults.h"
#include "support/run.h"

enum { SIZE = 64 };

static inline tarn_synced *buffer(void) {
  tarn_synced *made = NULL;
  assert_ok(tarn_synced_create(SIZE, NULL, &made));
  return made;
}

static inline size_t live_blocks(void) {
  tarn_pool *pool = NULL;
  tarn_pool_stats stats = {.struct_size = sizeof stats};
  assert_ok(tarn_pool_of(TARN_HOST, &pool));
  assert_ok(tarn_pool_query(pool, &stats));
  return stats.live_blocks;
}

#endif  // TARN_TESTS_MODEL_AWNN_KIT_H_
