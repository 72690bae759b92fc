// Streams of another device: memory that is a device's own is not for them, be
// it to take, to resize, to use or to free; any other memory is.
#include "device/device.h"
#include "kit.h"
#include "support/fake_plugin.h"
#include "support/strategy.h"

enum { SIZE = 4096 };

static tarn_device *own;
static tarn_device *other;
static tarn_stream *stream;          // of |own|
static tarn_stream *foreign_stream;  // of |other|
static tarn_stream *host_stream;     // of cpu:0

static tarn_stream *stream_at(const char *name, tarn_device **out_device) {
  tarn_stream *made = NULL;
  assert_ok(tarn_device_open(name, out_device));
  assert_ok(tarn_stream_create(*out_device, &made));
  return made;
}

// Puts |*value| into |*cell|, behind what is on |on|, which is of |other|.
static void queue_write(tarn_stream *on, int *cell, const int *value) {
  ck_assert_int_eq(
      other->abi->async_memory_copy_h2d(&other->handle, tarn_stream_native(on),
                                        cell, value, sizeof *value),
      C_SUCCESS);
}

static void check_and_close(void *unused) {
  (void)unused;
  assert_ok(tarn_stream_destroy(host_stream));
  assert_ok(tarn_stream_destroy(foreign_stream));
  assert_ok(tarn_stream_destroy(stream));
  assert_ok(tarn_device_close(other));
  assert_ok(tarn_device_close(own));
  ck_assert_uint_eq(fake_seen.live_bytes, 0);
}

static void open_both(void) {
  tarn_device *host = NULL;
  fake_add();
  stream = stream_at("fake:0", &own);
  foreign_stream = stream_at("fake:1", &other);
  host_stream = stream_at("cpu:0", &host);
  assert_ok(tarn_device_close(host));  // which stays open
  after_test(check_and_close, NULL);
}

static void assert_names(const char *name) {
  assert_error_says(name);
  assert_error_says("fake:0");
}

// Nothing changes but that a request counts as one.
static void assert_refused(tarn_pool *pool, tarn_block *block,
                           tarn_stream *wrong, const char *name) {
  tarn_block before = *block;
  tarn_pool_stats stats = stats_of(pool);
  refuse_on(pool, SIZE, 0, wrong, TARN_E_INVALID);
  assert_names(name);
  assert_status(tarn_block_use_on(block, wrong), TARN_E_INVALID);
  assert_names(name);
  assert_status(tarn_pool_resize(block, SIZE / 2, wrong), TARN_E_INVALID);
  assert_names(name);
  assert_status(tarn_pool_free(block, wrong), TARN_E_INVALID);
  assert_names(name);
  assert_status(tarn_pool_free_address(pool, block->address, wrong),
                TARN_E_INVALID);
  assert_names(name);
  assert_same_block(before, *block);
  assert_same_stats(stats, stats_of(pool));
  assert_ok(tarn__front_check(pool));
}

TEST(the_device_s_own_memory_is_for_its_streams) {
  open_both();
  for (int s = 0; s < ALL_STRATEGIES; s++) {
    assert_ok(use_strategy(tarn_place_on(own), any_strategy(s)));
    tarn_pool *pool = pool_at(tarn_place_on(own));
    tarn_block block = take_on(pool, SIZE, stream);
    assert_refused(pool, &block, foreign_stream, "fake:1");
    assert_refused(pool, &block, host_stream, "cpu:0");
    assert_ok(tarn_block_use_on(&block, stream));
    give_on(block, stream);
    block = take(pool, SIZE);
    assert_refused(pool, &block, foreign_stream, "fake:1");
    give(block);
  }
}

TEST(a_dry_pool_refuses_them_too) {
  open_both();
  tarn_pool *pool = own_pool_with(tarn_place_on(own), NULL, 0, TARN_POOL_DRY);
  tarn_block block = take_on(pool, SIZE, stream);
  assert_refused(pool, &block, foreign_stream, "fake:1");
  give_on(block, stream);
}

static void check_any(tarn_place place) {
  tarn_stream *const streams[] = {stream, foreign_stream, host_stream};
  tarn_pool *pool = pool_at(place);
  for (size_t i = 0; i < 3; i++) {
    tarn_block block = take_on(pool, SIZE, streams[i]);
    assert_ok(tarn_block_use_on(&block, streams[(i + 1) % 3]));
    assert_ok(tarn_pool_resize(&block, SIZE / 2, streams[i]));
    give_on(block, streams[(i + 2) % 3]);
  }
  assert_ok(tarn__front_check(pool));
}

TEST(memory_of_the_host_is_for_all) {
  open_both();
  check_any(TARN_HOST);
  check_any((tarn_place){own, TARN_PLACE_HOST});
  check_any((tarn_place){own, TARN_PLACE_UNIFIED});
}

// More streams than are remembered one by one: all of them are waited for, not
// only those of the memory's device.
static void trim_behind(tarn_place place, const char *strategy) {
  enum { MANY = 7 };
  static const int one = 1;
  int cells[MANY] = {0};
  tarn_stream *streams[MANY];
  tarn_block blocks[MANY];
  tarn_pool *pool = own_pool_with(place, strategy, 0, 0);
  for (size_t i = 0; i < MANY; i++) {
    assert_ok(tarn_stream_create(other, &streams[i]));
    blocks[i] = take_on(pool, SIZE, streams[i]);
    queue_write(streams[i], &cells[i], &one);
  }
  for (size_t i = 0; i < MANY; i++)
    give_on(blocks[i], streams[i]);
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
  for (size_t i = 0; i < MANY; i++) {
    ck_assert_int_eq(cells[i], 1);
    assert_ok(tarn_stream_destroy(streams[i]));
  }
  end_own(pool);
}

TEST(memory_goes_back_behind_all_streams) {
  open_both();
  for (int i = 0; i < ALL_STRATEGIES; i++) {
    trim_behind(TARN_HOST, any_strategy(i));
    trim_behind((tarn_place){own, TARN_PLACE_HOST}, any_strategy(i));
    trim_behind((tarn_place){own, TARN_PLACE_UNIFIED}, any_strategy(i));
  }
}
