// Snapshots of pools that have no memory for blocks that are to grow or to
// wake.
#include "snapshot_kit.h"

static tarn_pool *pool;
static tarn_tag weights;

// An arena of ranges, which can grow up to |limit|. False: the device has none.
static bool open_pool(int i, bool events) {
  tarn_device *device = open_device_with(i, TEST_NEEDS_RANGES);
  if (device == NULL) return false;
  pool = own_pool_with(tarn_place_on(device), "arena_pool", 0, 0);
  uint32_t more = events ? TARN_COUNT_EVENTS : 0;
  assert_ok(tarn_pool_account(pool, TARN_COUNT_DEFAULT | more));
  return true;
}

static void install(void) {
  make_folder();
  listen_to_log();
  tarn__full_shot_period_ns = UINT64_MAX;
  weights = tag_of("weights");
  assert_ok(tarn_pool_snapshot_on_full(TARN, path_of("%n")));
}

static void tear_down(void) {
  ck_assert_uint_eq(told.count, 0);
  remove_folder();
}

static void check_refusal(size_t least, size_t most, size_t live) {
  ck_assert_uint_eq(count_files(), 1);
  tarn_trace *trace = read_snapshot("0");
  const tarn_trace_event *refused = refusal_in(trace);
  ck_assert_ptr_nonnull(refused);
  ck_assert_uint_ge(refused->size, least);
  ck_assert_uint_le(refused->size, most);
  ck_assert_str_eq(trace->tags[refused->tag], "weights");
  ck_assert_uint_eq(live_bytes_in(trace), live);
  tarn_trace_destroy(trace);
}

TEST_LOOP(a_block_that_cannot_grow, 2 * TEST_DEVICES) {
  if (!open_pool(_i / 2, _i % 2 == 1)) return;
  tarn_block block = take_tagged(pool, (size_t)8 * MIB, weights);
  assert_ok(tarn_pool_limit(pool, (size_t)12 * MIB));
  assert_status(tarn_pool_resize(&block, (size_t)20 * MIB, NULL), TARN_FULL);
  assert_error_says("limit");
  check_refusal((size_t)12 * MIB, (size_t)12 * MIB, (size_t)8 * MIB);
  give(block);
}

// There is memory, and it is not where it would have to be.
TEST_LOOP(a_place_that_is_taken_is_no_want_of_memory, TEST_DEVICES) {
  if (!open_pool(_i, false)) return;
  tarn_block block = take_tagged(pool, (size_t)8 * MIB, weights);
  tarn_block behind = take_tagged(pool, (size_t)8 * MIB, weights);
  tarn_block *first = block.address < behind.address ? &block : &behind;
  assert_status(tarn_pool_resize(first, (size_t)20 * MIB, NULL), TARN_FULL);
  ck_assert_uint_eq(count_files(), 0);
  give(block);
  give(behind);
}

TEST_LOOP(blocks_that_cannot_wake, 2 * TEST_DEVICES) {
  if (!open_pool(_i / 2, _i % 2 == 1)) return;
  tarn_block block = take_tagged(pool, (size_t)8 * MIB, weights);
  assert_ok(tarn_pool_sleep(pool, weights, TARN_SLEEP_DROP));
  size_t asleep = stats_of(pool).asleep_bytes;
  ck_assert_uint_gt(asleep, 0);
  tarn_block other = take(pool, (size_t)8 * MIB);
  assert_ok(tarn_pool_limit(pool, (size_t)10 * MIB));
  assert_status(tarn_pool_wake(pool, weights), TARN_FULL);
  assert_error_says("limit");
  check_refusal(asleep, asleep, (size_t)16 * MIB);
  assert_ok(tarn_pool_limit(pool, 0));
  assert_ok(tarn_pool_wake(pool, weights));
  ck_assert_uint_eq(count_files(), 1);
  give(block);
  give(other);
}

FIXTURE(install, tear_down);
