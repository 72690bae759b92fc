// events_kit.h - reading all events that a pool has.
#ifndef TARN_TESTS_POOL_EVENTS_KIT_H_
#define TARN_TESTS_POOL_EVENTS_KIT_H_

#include "kit.h"
#include "tarn/account.h"

enum { MOST_EVENTS = 1 << 16 };

static tarn_pool_event seen[MOST_EVENTS];

// All that is there from |from| on, into |seen|.
static inline size_t read_from(tarn_pool *pool, uint64_t from,
                               uint64_t *out_next) {
  size_t count = 0;
  assert_ok(tarn_pool_events(pool, from, seen, MOST_EVENTS, &count, out_next));
  return count;
}

static inline size_t read_all(tarn_pool *pool) {
  uint64_t next = 0;
  return read_from(pool, 0, &next);
}

#endif  // TARN_TESTS_POOL_EVENTS_KIT_H_
