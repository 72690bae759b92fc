// async_pool, and no_pool on drivers that keep what is given back: memory in
// the order of streams. The fake device runs a stream only when a caller waits
// for it, so a test sees that queued work has not run.
#include "streams_kit.h"

enum { SIZE = 5120 };  // a multiple of the chunk

static const uint64_t ASYNC =
    FAKE_SLOT(allocate_async) | FAKE_SLOT(deallocate_async);

static void open_async(const char *strategy) {
  fake_ext.there = true;
  open_fake(strategy);
}

static uint64_t called(void) {
  uint64_t slots = fake_ext_seen.called & ASYNC;
  fake_ext_seen.called = 0;
  return slots;
}

TEST(both_are_queued) {
  open_async("async_pool");
  tarn_block block = take_on(pool, SIZE, a);
  ck_assert_uint_eq(called(), FAKE_SLOT(allocate_async));
  ck_assert_uint_eq(block.size, SIZE);
  give_on(block, a);
  ck_assert_uint_eq(called(), FAKE_SLOT(deallocate_async));
  ck_assert_uint_eq(fake_seen.live_blocks, 1);
  ck_assert_uint_eq(fake_seen.waits, 0);
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
  assert_ok(tarn_stream_synchronize(a));
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
}

TEST(without_a_stream_nothing_is) {
  open_async("async_pool");
  tarn_block block = take(pool, SIZE);
  give(block);
  ck_assert_uint_eq(called(), 0);
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
}

// The host has used it last, but it came in the stream's order: it goes back in
// that order too.
TEST(what_the_host_frees_goes_back_behind_the_stream) {
  open_async("async_pool");
  give(take_on(pool, SIZE, a));
  ck_assert_uint_eq(called(), ASYNC);
  ck_assert_uint_eq(fake_seen.live_blocks, 1);
  assert_ok(tarn_stream_synchronize(a));
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
}

TEST(another_stream_frees_behind_the_first) {
  static char out[8];
  open_async("async_pool");
  tarn_block block = take_on(pool, SIZE, a);
  assert_ok(tarn_copy_h2d(device, block.address, "first  ", 8, a));
  assert_ok(tarn_copy_d2h(device, out, block.address, 8, a));
  give_on(block, b);
  ck_assert_uint_eq(called(), ASYNC);
  ck_assert_uint_eq(fake_seen.live_blocks, 1);
  assert_ok(tarn_stream_synchronize(b));
  ck_assert_str_eq(out, "first  ");
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
}

TEST(a_stream_that_is_gone_has_nothing_to_queue) {
  open_async("async_pool");
  tarn_stream *gone = stream_of(device);
  tarn_block block = take_on(pool, SIZE, gone);
  end_stream(gone);
  called();
  give(block);
  ck_assert_uint_eq(called(), 0);
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
}

TEST(a_stream_of_another_device_is_waited_for) {
  open_async("async_pool");
  tarn_device *other = open_device("fake:1");
  tarn_stream *theirs = stream_of(other);
  tarn_place place = {device, TARN_PLACE_HOST};
  assert_ok(use_strategy(place, "async_pool"));
  tarn_block block = take_on(pool_at(place), SIZE, theirs);
  give_on(block, theirs);
  ck_assert_uint_eq(called(), 0);
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
  ck_assert_uint_eq(fake_seen.waits, 1);
}

TEST(larger_alignment_is_found_within) {
  fake_ext.misalign = 256;
  open_async("async_pool");
  tarn_block block;
  assert_ok(tarn_pool_alloc(pool, SIZE, 8192, a, &block));
  ck_assert_uint_eq(block.address % 8192, 0);
  ck_assert_uint_eq(called(), ASYNC);  // it did not fit at first
  give_on(block, a);
  ck_assert_uint_eq(called(), FAKE_SLOT(deallocate_async));
}

TEST(a_driver_that_cannot_is_asked_at_once) {
  fake_ext.refusing = ASYNC;
  fake_ext.answer = TARN_E_UNSUPPORTED;
  open_async("async_pool");
  tarn_block block = take_on(pool, SIZE, a);
  give_on(block, a);
  ck_assert_uint_eq(called(), ASYNC);
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
  ck_assert_uint_eq(fake_seen.waits, 1);
}

TEST(what_cannot_be_queued_goes_back_all_the_same) {
  open_async("async_pool");
  tarn_block block = take_on(pool, SIZE, a);
  fake_ext.refusing = FAKE_SLOT(deallocate_async);
  fake_ext.answer = TARN_E_NOMEM;
  give_on(block, a);
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
}

TEST(a_failure_of_the_driver) {
  open_async("async_pool");
  fake_ext.refusing = FAKE_SLOT(allocate_async);
  fake_ext.answer = TARN_E_DEVICE;
  refuse_on(pool, SIZE, 0, a, TARN_E_DEVICE);
  ck_assert_uint_eq(stats_of(pool).failures, 1);
  fake_ext.refusing = 0;
  // It sticks to that stream, on which nothing is queued any more.
  called();
  tarn_block block = take_on(pool, SIZE, a);
  give_on(block, a);
  ck_assert_uint_eq(called(), 0);
  assert_ok(tarn__front_check(pool));
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
  end_failed_stream(0);
}

// What is on its way back is waited for before a request fails.
TEST(a_device_that_is_used_up_is_waited_for) {
  fake.capacity = 3 * SIZE;
  open_async("async_pool");
  give_on(take_on(pool, 2 * SIZE, a), a);
  ck_assert_uint_eq(fake_seen.live_blocks, 1);
  tarn_block block = take_on(pool, 2 * SIZE, b);
  refuse_on(pool, 2 * SIZE, 0, b, TARN_FULL);
  give_on(block, b);
}

TEST(a_limit_is_kept) {
  open_async("async_pool");
  assert_ok(tarn_pool_limit(pool, SIZE));
  tarn_block block = take_on(pool, SIZE, a);
  refuse_on(pool, 1, 0, a, TARN_FULL);
  give_on(block, a);
  give_on(take_on(pool, SIZE, a), a);
}

TEST(replaced_it_still_queues) {
  open_async("async_pool");
  tarn_block block = take_on(pool, SIZE, a);
  assert_ok(use_strategy(tarn_place_on(device), "page_unit_pool"));
  called();
  give_on(block, a);
  ck_assert_uint_eq(called(), FAKE_SLOT(deallocate_async));
  ck_assert(tarn_list_empty(&pool->replaced));
}

TEST(it_has_no_options) {
  open_async("async_pool");
  assert_status(use_strategy(tarn_place_on(device), "async_pool:page=4K"),
                TARN_E_INVALID);
  assert_error_says("async_pool");
}

// --- no_pool ---------------------------------------------------------------

TEST(no_pool_leaves_it_to_a_driver_that_retains) {
  fake_ext.flags = TARN_EXT_RETAINS;
  open_async("no_pool");
  give_on(take_on(pool, SIZE, a), a);
  ck_assert_uint_eq(called(), ASYNC);
  ck_assert_str_eq(stats_of(pool).strategy, "no_pool");
}

TEST(no_pool_gives_back_at_once_elsewhere) {
  open_async("no_pool");
  give_on(take_on(pool, SIZE, a), a);
  ck_assert_uint_eq(called(), 0);
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
  ck_assert_uint_eq(fake_seen.waits, 1);
}

// Its pinned host memory is not what the driver gives in a stream's order.
TEST(other_places_are_asked_at_once) {
  open_async("async_pool");
  tarn_place place = {device, TARN_PLACE_HOST};
  assert_ok(use_strategy(place, "async_pool"));
  give_on(take_on(pool_at(place), SIZE, a), a);
  ck_assert_uint_eq(called(), 0);
}

// --- on every device -------------------------------------------------------

TEST_LOOP(contents_are_kept_on_every_device, TEST_DEVICES) {
  enum { ROUNDS = 100, BLOCKS = 8, BYTES = 3000 };
  unsigned char in[BYTES];
  unsigned char out[BLOCKS][BYTES];
  fake_ext.there = true;
  open_on(test_devices[_i], "async_pool");
  for (int round = 0; round < ROUNDS; round++) {
    tarn_stream *stream = round % 2 ? a : b;
    memset(in, round, BYTES);
    memset(out, 0xff, sizeof out);
    for (int i = 0; i < BLOCKS; i++) {
      tarn_block block = take_on(pool, BYTES, stream);
      assert_ok(tarn_copy_h2d(device, block.address, in, BYTES, stream));
      assert_ok(tarn_copy_d2h(device, out[i], block.address, BYTES, stream));
      // On the other stream only behind its last use.
      assert_ok(tarn_stream_join(a, tarn_stream_serial(stream)));
      give_on(block, i % 3 ? stream : a);
    }
    assert_ok(tarn_stream_synchronize(stream));
    for (int i = 0; i < BLOCKS; i++)
      require(memcmp(in, out[i], BYTES) == 0);
  }
  ck_assert_uint_eq(stats_of(pool).misses, ROUNDS * BLOCKS);
}
