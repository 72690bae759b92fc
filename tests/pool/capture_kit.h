// capture_kit.h - a pool that graphs are captured with, and two streams.
#ifndef TARN_TESTS_POOL_CAPTURE_KIT_H_
#define TARN_TESTS_POOL_CAPTURE_KIT_H_

#include "arena_kit.h"
#include "tarn/capture.h"

static const char *const strategies[] = {"page_unit_pool", "arena_pool"};
enum { STRATEGIES = sizeof strategies / sizeof *strategies };

static arena_place p;
static tarn_pool *pool;
static tarn_stream *a;
static tarn_stream *b;

// At |at|, a pool of |strategy| that defers.
static inline void open_at(arena_place at, const char *strategy,
                           uint32_t flags) {
  p = at;
  a = stream_on(&p);
  b = stream_on(&p);
  pool = own_pool_with(p.place, strategy, 0, TARN_POOL_DEFER | flags);
}

static inline void open_with(int device, const char *strategy) {
  open_at(open_arena_with(device, 0, "page_unit_pool"), strategy, 0);
}

// Case |i| of each strategy on each device.
#define CASES_ON_DEVICES (STRATEGIES * TEST_DEVICES)

static inline void open_case(int i) {
  open_with(i / STRATEGIES, strategies[i % STRATEGIES]);
}

// What has gone back to the device before anything is captured: where its own
// alignment does not suffice, a pool's first piece of memory does.
static inline uint64_t frees_at_first(void) {
  give(take(pool, 1));
  assert_ok(tarn_pool_trim(pool, 0));
  return stats_of(pool).device_frees;
}

// Where calls can be made to fail.
static inline void open_watched(const char *strategy) {
  open_at(open_faulty(ARENA_CAPACITY, "page_unit_pool"), strategy, 0);
}

// Before the end of the test.
static inline void close_all(void) {
  end_own(pool);
  end_stream(a);
  end_stream(b);
  close_arena(&p);
}

static inline void begin(void) {
  assert_ok(tarn_pool_begin_capture(pool));
}

static inline void end(void) {
  assert_ok(tarn_pool_end_capture(pool));
}

static inline void release(void) {
  assert_ok(tarn_pool_end_graphs(pool));
}

#endif  // TARN_TESTS_POOL_CAPTURE_KIT_H_
