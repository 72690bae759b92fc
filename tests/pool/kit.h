// kit.h - what the tests of the pool room have in common.
#ifndef TARN_TESTS_POOL_KIT_H_
#define TARN_TESTS_POOL_KIT_H_

#include <stdlib.h>
#include <string.h>

#include "pool/front.h"
#include "support/driver.h"
#include "support/places.h"
#include "support/run.h"
#include "support/strategy.h"
#include "support/tagged.h"
#include "tarn/pool.h"
#include "tarn/sleep.h"
#include "tarn/strategy.h"

enum { KIB = 1 << 10, MIB = 1 << 20 };

// The library's strategies, however many there are, and the example of one
// that a program registers: a test of each is
//
//   TEST_LOOP(blocks_are_aligned, ALL_STRATEGIES) {
//     tarn_pool *pool = host_pool(any_strategy(_i));
static inline int own_strategies(void) {
  int count = 0;
  const char *name = NULL;
  while ((name = tarn_pool_strategy_name((size_t)count)) != NULL &&
         strcmp(name, TarnPoolStrategy()->name) != 0)
    count++;
  return count;
}

#define ALL_STRATEGIES (own_strategies() + 1)

static inline const char *any_strategy(int i) {
  if (i < own_strategies()) return tarn_pool_strategy_name((size_t)i);
  tarn_status status = tarn_pool_register(TarnPoolStrategy());
  ck_assert(status == TARN_OK || status == TARN_E_STATE);
  return TarnPoolStrategy()->name;
}

// Whether it keeps what is freed.
static inline bool keeps_idle(const char *strategy) {
  return strcmp(strategy, "async_pool") != 0 &&
         strcmp(strategy, "no_pool") != 0;
}

// How much of |all| a test of many steps does on test_devices[i].
static inline size_t effort_on(int i, size_t all) {
  if (driver_wanted() != NULL) return all / 16;
  return i < LIBRARY_DEVICES ? all : all / 4;
}

static inline tarn_pool *pool_at(tarn_place place) {
  tarn_pool *pool = NULL;
  assert_ok(tarn_pool_of(place, &pool));
  return pool;
}

static inline void check_and_destroy(void *pool) {
  assert_ok(tarn__front_check(pool));
  assert_ok(tarn_pool_destroy(pool));
}

// Another pool there, until the end of the test or end_own.
static inline tarn_pool *own_pool(tarn_place place, tarn_pool_options options) {
  tarn_pool *pool = NULL;
  options.struct_size = sizeof options;
  assert_ok(tarn_pool_create(place, &options, &pool));
  after_test(check_and_destroy, pool);
  return pool;
}

static inline tarn_pool *own_pool_with(tarn_place place, const char *strategy,
                                       size_t limit, uint32_t flags) {
  return own_pool(place,
                  (tarn_pool_options){
                      .strategy = strategy, .limit = limit, .flags = flags});
}

static inline void end_own(tarn_pool *pool) {
  forget(pool);
  check_and_destroy(pool);
}

// The host's pool with a fresh |strategy|.
static inline tarn_pool *host_pool(const char *strategy) {
  assert_ok(use_strategy(TARN_HOST, strategy));
  return pool_at(TARN_HOST);
}

static inline void destroy_stream(void *stream) {
  assert_ok(tarn_stream_destroy(stream));
}

// Is destroyed at the end of the test, or by end_stream.
static inline tarn_stream *stream_of(tarn_device *device) {
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_create(device, &stream));
  after_test(destroy_stream, stream);
  return stream;
}

static inline void end_stream(tarn_stream *stream) {
  forget(stream);
  destroy_stream(stream);
}

static inline tarn_pool_stats stats_of(tarn_pool *pool) {
  tarn_pool_stats stats = {.struct_size = sizeof stats};
  assert_ok(tarn_pool_query(pool, &stats));
  return stats;
}

static inline tarn_pool_tag_stats tag_stats_of(tarn_pool *pool, tarn_tag tag) {
  tarn_pool_tag_stats stats = {.struct_size = sizeof stats};
  assert_ok(tarn_pool_query_tag(pool, tag, &stats));
  return stats;
}

static inline tarn_tag tag_of(const char *name) {
  tarn_tag tag = 0;
  assert_ok(tarn_pool_tag(name, &tag));
  return tag;
}

static inline tarn_block take_on(tarn_pool *pool, size_t size,
                                 tarn_stream *stream) {
  tarn_block block;
  assert_ok(tarn_pool_alloc(pool, size, 0, stream, &block));
  return block;
}

static inline tarn_block take(tarn_pool *pool, size_t size) {
  return take_on(pool, size, NULL);
}

static inline tarn_block take_tagged(tarn_pool *pool, size_t size,
                                     tarn_tag tag) {
  tarn_block block;
  assert_ok(alloc_tagged(pool, size, 0, NULL, tag, &block));
  return block;
}

static inline void give_on(tarn_block block, tarn_stream *stream) {
  assert_ok(tarn_pool_free(&block, stream));
}

static inline void give(tarn_block block) {
  give_on(block, NULL);
}

// Where the host touches a block of a host pool.
static inline unsigned char *bytes_of(tarn_block block) {
  void *ptr = NULL;
  assert_ok(tarn_device_host_view(tarn_pool_place(block.pool), block.address,
                                  block.size, &ptr));
  return ptr;
}

static inline void give_many(const tarn_block *blocks, size_t count) {
  for (size_t i = 0; i < count; i++)
    give(blocks[i]);
}

static inline void take_many(tarn_pool *pool, size_t size, tarn_block *blocks,
                             size_t count) {
  for (size_t i = 0; i < count; i++)
    blocks[i] = take(pool, size);
}

static inline void assert_zero_block(tarn_block block) {
  ck_assert_ptr_null(block.pool);
  ck_assert_uint_eq(block.address, 0);
  ck_assert_uint_eq(block.size, 0);
  ck_assert_uint_eq(block.id, 0);
  ck_assert_uint_eq(block.generation, 0);
}

static inline void assert_same_block(tarn_block a, tarn_block b) {
  ck_assert_ptr_eq(a.pool, b.pool);
  ck_assert_uint_eq(a.address, b.address);
  ck_assert_uint_eq(a.size, b.size);
  ck_assert_uint_eq(a.id, b.id);
  ck_assert_uint_eq(a.generation, b.generation);
}

static inline void assert_tag(tarn_pool *pool, tarn_tag tag, size_t bytes,
                              size_t peak, size_t blocks) {
  tarn_pool_tag_stats stats = tag_stats_of(pool, tag);
  ck_assert_uint_eq(stats.live_bytes, bytes);
  ck_assert_uint_eq(stats.live_peak_bytes, peak);
  ck_assert_uint_eq(stats.live_blocks, blocks);
  assert_ok(tarn__front_check(pool));
}

// The request is answered with |expected|, and nothing comes of it.
static inline void refuse_on(tarn_pool *pool, size_t size, size_t align,
                             tarn_stream *stream, tarn_status expected) {
  tarn_block block;
  memset(&block, 0xff, sizeof block);
  assert_status(tarn_pool_alloc(pool, size, align, stream, &block), expected);
  assert_zero_block(block);
  if (pool != NULL) assert_ok(tarn__front_check(pool));
}

static inline void refuse(tarn_pool *pool, size_t size, size_t align,
                          tarn_status expected) {
  refuse_on(pool, size, align, NULL, expected);
}

// All statistics but |failures|.
static inline void assert_same_stats(tarn_pool_stats a, tarn_pool_stats b) {
  ck_assert_str_eq(a.strategy, b.strategy);
  ck_assert_uint_eq(a.live_bytes, b.live_bytes);
  ck_assert_uint_eq(a.live_peak_bytes, b.live_peak_bytes);
  ck_assert_uint_eq(a.live_blocks, b.live_blocks);
  ck_assert_uint_eq(a.reserved_bytes, b.reserved_bytes);
  ck_assert_uint_eq(a.reserved_peak_bytes, b.reserved_peak_bytes);
  ck_assert_uint_eq(a.limit_bytes, b.limit_bytes);
  ck_assert_uint_eq(a.allocs, b.allocs);
  ck_assert_uint_eq(a.frees, b.frees);
  ck_assert_uint_eq(a.hits, b.hits);
  ck_assert_uint_eq(a.misses, b.misses);
  ck_assert_uint_eq(a.device_allocs, b.device_allocs);
  ck_assert_uint_eq(a.device_frees, b.device_frees);
  ck_assert_uint_eq(a.stream_crossings, b.stream_crossings);
  ck_assert_uint_eq(a.charged_bytes, b.charged_bytes);
  ck_assert_uint_eq(a.charged_peak_bytes, b.charged_peak_bytes);
}

#endif  // TARN_TESTS_POOL_KIT_H_
