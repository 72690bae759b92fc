// Segments of an arena_pool and chunks of a buddy_pool, where the device names
// no sizes: which of them go back to the device, and when.
#include <time.h>

#include "sizes_kit.h"

TEST(idle_segments_go_before_more_come) {
  name_nothing();
  open_fake();
  tarn_pool *pool = device_pool("arena_pool");
  give(take(pool, 20 * MIB));
  ck_assert_uint_eq(reserved(pool), 20 * MIB);
  tarn_block block = take(pool, 24 * MIB);
  ck_assert_uint_eq(reserved(pool), 24 * MIB);
  ck_assert_uint_eq(stats_of(pool).reserved_peak_bytes, 24 * MIB);
  ck_assert_uint_eq(stats_of(pool).device_frees, 1);
  give(block);
}

// Of those that are idle no more than it takes, and as few as can be.
TEST(as_little_as_possible_goes) {
  name_nothing();
  open_fake();
  tarn_pool *pool = device_pool("arena_pool");
  static const size_t sizes[] = {10, 40, 20, 30};
  tarn_block blocks[4];
  for (size_t i = 0; i < 4; i++)
    blocks[i] = take(pool, sizes[i] * MIB);
  give_many(blocks, 4);
  tarn_block block = take(pool, 50 * MIB);
  // 100 are held, and may stay: 50 go for the 50 that come.
  ck_assert_uint_eq(reserved(pool), 100 * MIB);
  ck_assert_uint_eq(stats_of(pool).device_frees, 2);
  give(block);
}

TEST(nobody_waits_for_a_segment_to_go) {
  name_nothing();
  open_fake();
  tarn_stream *a = stream_of(device);
  tarn_stream *b = stream_of(device);
  static char out[8];
  tarn_pool *pool = device_pool("arena_pool");
  tarn_block first = take_on(pool, 20 * MIB, a);
  assert_ok(tarn_copy_d2h(device, out, first.address, sizeof out, a));
  give_on(first, a);
  size_t waits = fake_seen.waits;
  size_t copies = fake_seen.copies;
  tarn_block second = take_on(pool, 24 * MIB, b);
  ck_assert_uint_eq(fake_seen.waits, waits);
  ck_assert_uint_eq(fake_seen.copies, copies);
  ck_assert_uint_eq(reserved(pool), 44 * MIB);
  // When the stream is done, what it used last can go.
  assert_ok(tarn_stream_synchronize(a));
  tarn_block third = take_on(pool, 30 * MIB, b);
  ck_assert_uint_eq(reserved(pool), 54 * MIB);
  give_on(second, b);
  give_on(third, b);
}

TEST(a_segment_of_its_own_goes_when_its_block_is_freed) {
  name_nothing();
  open_fake();
  tarn_pool *pool = device_pool("arena_pool");
  tarn_block small = take(pool, 100 * KIB);
  ck_assert_uint_eq(reserved(pool), MIB);
  tarn_block large = take(pool, 600 * KIB + 512);
  tarn_block larger = take(pool, 700 * KIB);
  ck_assert_uint_eq(reserved(pool), MIB + 700 * KIB);
  give(larger);
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_eq(reserved(pool), MIB);
  give(small);
  give(large);
}

// Segments that are shared grow with what is in use, up to 8 MiB: few calls of
// the device for many blocks, and little of it for few.
TEST(shared_segments_grow) {
  name_nothing();
  open_fake();
  tarn_pool *pool = device_pool("arena_pool");
  enum { MANY = 1024 };
  tarn_block blocks[MANY];
  for (size_t i = 0; i < MANY; i++) {
    blocks[i] = take(pool, 100 * KIB);
    size_t live = stats_of(pool).live_bytes;
    ck_assert_uint_le(reserved(pool), live + live / 4 + 2 * MIB);
  }
  ck_assert_uint_le(stats_of(pool).device_allocs, 30);
  give_many(blocks, MANY);
}

TEST(buddies_give_idle_chunks_back_before_more_come) {
  name_nothing();
  open_fake();
  tarn_pool *pool = device_pool("buddy_pool");
  give(take(pool, 20 * MIB));
  ck_assert_uint_eq(reserved(pool), 32 * MIB);
  tarn_block block = take(pool, 40 * MIB);
  ck_assert_uint_eq(reserved(pool), 64 * MIB);
  give(block);
}

// Each has a segment of its own. To give one back takes a look at each, and to
// give all of them back no more: with the third power this took 15 s.
TEST(many_segments_go_at_once) {
  enum { MANY = 3000 };
  static tarn_block blocks[MANY];
  name_nothing();
  open_fake();
  for (int i = 0; i < 3; i++) {
    tarn_pool *pool =
        own_pool_with(tarn_place_on(device), "arena_pool", 0, TARN_POOL_DRY);
    for (size_t j = 0; j < MANY; j++)
      blocks[j] = take(pool, 9 * MIB);
    clock_t begin = clock();
    if (i == 2) assert_ok(tarn_pool_set_strategy(pool, "no_pool"));
    for (size_t j = 0; j < MANY; j++)
      give(blocks[j]);
    if (i == 1) assert_ok(tarn_pool_trim(pool, (size_t)MANY / 2 * 9 * MIB));
    size_t left = i == 1 ? MANY / 2 : 0;
    if (i == 0) assert_ok(tarn_pool_trim(pool, 0));
    ck_assert_uint_eq(stats_of(pool).reserved_bytes, left * 9 * MIB);
    ck_assert_int_lt((clock() - begin) / CLOCKS_PER_SEC, 3);
    end_own(pool);
  }
}
