// What a pool does where a device names no sizes: how much it asks for, and how
// often it asks what there is.
#include "sizes_kit.h"

// --- without sizes ---------------------------------------------------------

TEST_LOOP(without_sizes_little_is_taken_for_little,
          TEST_DEVICES *ALL_STRATEGIES) {
  const char *strategy = any_strategy(_i / TEST_DEVICES);
  name_nothing();
  device = open_device_with(_i % TEST_DEVICES, TEST_NEEDS_FREE_GROWTH);
  if (device == NULL) return;
  tarn_pool *pool = device_pool(strategy);
  tarn_block block = take(pool, 1000);
  ck_assert_msg(reserved(pool) <= 2 * MIB, "%s: %zu", strategy, reserved(pool));
  give(block);
}

// Nothing more than there is, is asked for: some drivers end the process then.
TEST_LOOP(growth_ends_at_what_is_available, ALL_STRATEGIES) {
  name_nothing();
  fake.capacity = 65536;
  open_fake();
  tarn_pool *pool = device_pool(any_strategy(_i));
  tarn_block block = take(pool, 40000);
  ck_assert_uint_le(stats_of(pool).device_allocs, 1);
  give(block);
}

// For a chunk of its own choice a pool asks for one size, and for no other.
TEST_LOOP(growth_asks_for_one_size, ALL_STRATEGIES) {
  const char *strategy = any_strategy(_i);
  if (strcmp(strategy, "arena_pool") != 0 &&
      strcmp(strategy, "buddy_pool") != 0) {
    return;
  }
  fake.max_alloc = fake.max_chunk = 16 * MIB;
  fake.missing =
      FAKE_MISSES(device_init_alloc_size) | FAKE_MISSES(device_realloc_size);
  open_fake();
  tarn_pool *pool = device_pool(strategy);
  size_t before = fake_seen.size_queries;
  tarn_block block = take(pool, 1000);
  ck_assert_uint_eq(fake_seen.size_queries, before + 1);
  give(block);
}

TEST_LOOP(the_first_request_is_served_with_padding, ALL_STRATEGIES) {
  name_nothing();
  fake.missing &= ~FAKE_MISSES(device_extra_padding_size);
  fake.padding = 100;
  fake.capacity = 16 * MIB;
  open_fake();
  tarn_pool *pool = device_pool(any_strategy(_i));
  tarn_block block = take(pool, 1000);
  give(block);
}

TEST_LOOP(what_is_available_is_asked_for_anew, ALL_STRATEGIES) {
  name_nothing();
  fake.capacity = 4 * MIB;
  open_fake();
  fake.capacity = 4 * MIB;
  tarn_pool *pool = device_pool(any_strategy(_i));
  tarn_block block;
  refuse(pool, 20 * MIB, 0, TARN_FULL);
  fake.capacity = 64 * MIB;
  block = take(pool, 20 * MIB);
  give(block);
}

TEST(a_largest_allocation_that_changes_is_asked_for_anew) {
  open_fake();
  tarn_device_info info = {.struct_size = sizeof info};
  fake.max_alloc = 3 * MIB;
  assert_ok(tarn_device_query(device, &info));
  ck_assert_uint_eq(info.max_alloc, 3 * MIB);
  ck_assert_uint_eq(info.init_size, 3 * MIB);
}
