// Blocks and buffers behind a count: they end with their last view.
#include "tarn/counted.h"

#include <stdio.h>
#include <string.h>

#include "support/run.h"
#include "tarn/pool.h"
#include "tarn/synced.h"

static size_t live_bytes(void) {
  tarn_pool *pool = NULL;
  tarn_pool_stats stats = {.struct_size = sizeof stats};
  assert_ok(tarn_pool_of(TARN_HOST, &pool));
  assert_ok(tarn_pool_query(pool, &stats));
  return stats.live_bytes;
}

static char logged[512];

static void keep_line(void *context, tarn_log_level level, const char *text) {
  (void)context;
  (void)level;
  snprintf(logged, sizeof logged, "%s", text);
}

static tarn_counted *make_block(tarn_block *out) {
  tarn_pool *pool = NULL;
  tarn_counted *counted = NULL;
  assert_ok(tarn_pool_of(TARN_HOST, &pool));
  assert_ok(tarn_pool_alloc(pool, 4096, 0, NULL, out));
  assert_ok(
      tarn_counted_create(out, sizeof *out, tarn_pool_free_counted, &counted));
  return counted;
}

TEST(a_block_goes_back_with_its_last_view) {
  size_t before = live_bytes();
  tarn_block block;
  tarn_counted *counted = make_block(&block);
  memset(&block, 0, sizeof block);
  tarn_counted_hold(counted);
  tarn_counted_release(counted);
  ck_assert_uint_gt(live_bytes(), before);
  tarn_counted_release(counted);
  ck_assert_uint_eq(live_bytes(), before);
}

TEST(a_block_that_was_freed_is_told_to_the_log) {
  tarn_block block;
  tarn_counted *counted = make_block(&block);
  assert_ok(tarn_pool_free(&block, NULL));
  tarn_log_set(keep_line, NULL, TARN_LOG_WARN);
  tarn_counted_release(counted);
  tarn_log_set(NULL, NULL, TARN_LOG_WARN);
  ck_assert_ptr_nonnull(strstr(logged, "a block whose last view is gone"));
}

TEST(a_buffer_ends_with_its_last_view) {
  size_t before = live_bytes();
  tarn_synced *buffer = NULL;
  tarn_access access;
  tarn_counted *counted = NULL;
  assert_ok(tarn_synced_create(4096, NULL, &buffer));
  assert_ok(
      tarn_counted_create(buffer, 0, tarn_synced_destroy_counted, &counted));
  assert_ok(tarn_synced_begin(buffer, 0, TARN_ALL, TARN_HOST,
                              TARN_WRITE_DISCARD, NULL, &access));
  tarn_counted_hold(counted);
  assert_ok(tarn_synced_end(&access));
  tarn_counted_release(counted);
  ck_assert_uint_gt(live_bytes(), before);
  tarn_counted_release(counted);
  ck_assert_uint_eq(live_bytes(), before);
}

TEST(a_buffer_in_use_is_told_to_the_log) {
  tarn_synced *buffer = NULL;
  tarn_access access;
  assert_ok(tarn_synced_create(4096, NULL, &buffer));
  assert_ok(tarn_synced_begin(buffer, 0, TARN_ALL, TARN_HOST,
                              TARN_WRITE_DISCARD, NULL, &access));
  tarn_log_set(keep_line, NULL, TARN_LOG_WARN);
  tarn_synced_destroy_counted(buffer);
  tarn_log_set(NULL, NULL, TARN_LOG_WARN);
  ck_assert_ptr_nonnull(strstr(logged, "a buffer whose last view is gone"));
  assert_ok(tarn_synced_end(&access));
  assert_ok(tarn_synced_destroy(buffer));
}
