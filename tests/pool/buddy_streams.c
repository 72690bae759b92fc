// buddy_pool and streams: which streams wait, and which halves stay apart.
#include "streams_kit.h"

// What a stream does not need of a block of another is still the other's.
TEST(the_rest_of_a_block_stays_behind_its_stream) {
  open_fake("buddy_pool:init=64K");
  static char out[8];
  tarn_block first = take_on(pool, 64 * KIB, a);
  queue_use(first, a, "first  ", out);
  give_on(first, a);
  tarn_block second = take_on(pool, 1000, b);
  ck_assert_uint_eq(second.address, first.address);
  ck_assert_uint_eq(stats_of(pool).stream_crossings, 1);
  tarn_block third = take_on(pool, 32 * KIB, a);
  ck_assert_uint_eq(stats_of(pool).stream_crossings, 1);
  give_on(second, b);
  give_on(third, a);
}

TEST(halves_of_two_streams_stay_apart) {
  open_fake("buddy_pool:init=64K,realloc=64K");
  tarn_block first = take_on(pool, 32 * KIB, a);
  tarn_block second = take_on(pool, 32 * KIB, b);
  give_on(first, a);
  give_on(second, b);
  tarn_block whole = take_on(pool, 64 * KIB, a);
  ck_assert_uint_eq(reserved(), 128 * KIB);
  give_on(whole, a);
  // Each half is preferred by its own stream.
  first = take_on(pool, 32 * KIB, b);
  ck_assert_uint_eq(first.address, second.address);
  ck_assert_uint_eq(stats_of(pool).stream_crossings, 0);
  give_on(first, b);
  // The host has seen the end of one: it joins the other's.
  first = take_on(pool, 32 * KIB, b);
  assert_ok(tarn_stream_synchronize(b));
  give(first);
}

// The host is done with one half, a stream is not with the other: a request for
// both waits for the stream.
TEST(a_half_that_is_nobodys_joins_a_streams) {
  open_fake("no_pool");
  for (int host_first = 0; host_first < 2; host_first++) {
    char out[8] = "";
    assert_ok(use_strategy(tarn_place_on(device), "buddy_pool:init=64K"));
    tarn_block first = take_on(pool, 32 * KIB, a);
    tarn_block second = take(pool, 32 * KIB);
    queue_use(first, a, "first  ", out);
    if (host_first) give(second);
    give_on(first, a);
    if (!host_first) give(second);
    uint64_t crossings = stats_of(pool).stream_crossings;
    tarn_block whole = take_on(pool, 64 * KIB, b);
    ck_assert_uint_eq(reserved(), 64 * KIB);
    ck_assert_uint_eq(stats_of(pool).stream_crossings, crossings + 1);
    assert_ok(tarn_stream_synchronize(b));
    ck_assert_str_eq(out, "first  ");
    give_on(whole, b);
  }
}

TEST(a_stream_that_is_gone_parts_nothing) {
  open_fake("buddy_pool:init=64K,realloc=64K");
  tarn_stream *c = stream_of(device);
  tarn_stream *d = stream_of(device);
  tarn_block first = take_on(pool, 32 * KIB, c);
  tarn_block second = take_on(pool, 32 * KIB, d);
  give_on(first, c);
  give_on(second, d);
  end_stream(c);
  end_stream(d);
  give_on(take_on(pool, 64 * KIB, a), a);
  ck_assert_uint_eq(reserved(), 64 * KIB);
  ck_assert_uint_eq(stats_of(pool).stream_crossings, 0);
}

TEST(memory_goes_back_when_its_streams_are_done) {
  open_fake("buddy_pool:init=64K,realloc=64K");
  static char out_a[8];
  static char out_b[8];
  tarn_block first = take_on(pool, 32 * KIB, a);
  tarn_block second = take_on(pool, 32 * KIB, b);
  queue_use(first, a, "first  ", out_a);
  queue_use(second, b, "second ", out_b);
  give_on(first, a);
  give_on(second, b);
  ck_assert_uint_eq(fake_seen.copies, 0);
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_str_eq(out_a, "first  ");
  ck_assert_str_eq(out_b, "second ");
  ck_assert_uint_eq(reserved(), 0);
}
