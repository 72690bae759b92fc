// Pools of a device that refuses, misaligns, and is closed.
#include "kit.h"
#include "support/fake_plugin.h"
#include "support/faults.h"
#include "support/strategy.h"

static tarn_pool *open_pool(const char *strategy) {
  tarn_device *device = open_device("fake:0");
  assert_ok(use_strategy(tarn_place_on(device), strategy));
  return pool_at(tarn_place_on(device));
}

// --- a device without room -------------------------------------------------

// With 1 MiB on the device, of which it says that all is free, so that it is
// asked. It refuses with an error, or with no memory
// and a success.
TEST_LOOP(a_full_device_is_full, 2) {
  fake.capacity = MIB;
  fake.boasts = true;
  fake.full_is_null = _i != 0;
  tarn_pool *pool = open_pool("page_unit_pool");
  tarn_block kept = take(pool, MIB / 2);
  tarn_pool_stats before = stats_of(pool);
  refuse(pool, MIB, 0, TARN_FULL);
  assert_error_says("fake:0: out of memory: 1048576 bytes");
  tarn_pool_stats after = stats_of(pool);
  ck_assert_uint_eq(after.failures, before.failures + 1);
  ck_assert_uint_eq(after.misses, before.misses + 1);
  ck_assert_uint_eq(after.device_allocs, before.device_allocs + 1);
  after.misses = before.misses;
  after.device_allocs = before.device_allocs;
  assert_same_stats(before, after);
  assert_ok(tarn__front_check(pool));
  give(kept);
}

TEST(idle_memory_makes_room_on_the_device) {
  fake.capacity = MIB;
  tarn_pool *pool = open_pool("page_unit_pool");
  tarn_block kept = take(pool, 4096);
  give(take(pool, MIB / 2));
  give(take(pool, MIB / 4));
  tarn_block block = take(pool, MIB - 8192);
  tarn_pool_stats stats = stats_of(pool);
  ck_assert_uint_eq(stats.reserved_bytes, MIB - 4096);
  ck_assert_uint_eq(stats.device_allocs, 5);  // asked, refused, asked again
  ck_assert_uint_eq(stats.device_frees, 2);
  ck_assert_uint_eq(stats.misses, 4);
  ck_assert_uint_eq(stats.failures, 0);
  ck_assert_uint_eq(fake_seen.live_bytes, MIB - 4096);
  give(block);
  give(kept);
}

// --- a driver that fails ---------------------------------------------------

TEST(a_driver_s_failure_is_no_full_pool) {
  tarn_pool *pool = open_pool("page_unit_pool");
  tarn_block idle = take(pool, 8192);
  give(idle);
  give(take(pool, 4096));
  give(take(pool, 4096));
  tarn_block block;
  tarn_pool_stats before = stats_of(pool);
  fake.strikes = true;
  faults_arm(1, FAULTS_FROM_NOW);
  assert_status(tarn_pool_alloc(pool, 65536, 0, NULL, &block), TARN_E_DEVICE);
  fake.strikes = false;
  ck_assert(faults_disarm());
  assert_error_says("set_device");
  assert_zero_block(block);
  tarn_pool_stats after = stats_of(pool);
  ck_assert_uint_eq(after.failures, before.failures + 1);
  ck_assert_uint_eq(after.reserved_bytes, before.reserved_bytes);
  ck_assert_uint_eq(after.device_frees, before.device_frees);  // no trim
  ck_assert_uint_eq(after.hits, before.hits);
  assert_ok(tarn__front_check(pool));
  ck_assert_uint_eq(take(pool, 8192).address, idle.address);
  assert_ok(tarn_pool_free_address(pool, idle.address, NULL));
}

// The second call of the driver from now, the deallocation, fails.
TEST(a_block_is_freed_even_if_the_driver_objects) {
  tarn_pool *pool = open_pool("no_pool");
  tarn_block block = take(pool, 4096);
  fake.strikes = true;
  faults_arm(2, FAULTS_ONCE);
  assert_status(tarn_pool_free(&block, NULL), TARN_E_DEVICE);
  fake.strikes = false;
  assert_error_says("device_memory_deallocate");
  ck_assert_uint_eq(stats_of(pool).live_blocks, 0);
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
  ck_assert_uint_eq(stats_of(pool).frees, 1);
  ck_assert_uint_eq(stats_of(pool).device_frees, 1);
  assert_status(tarn_pool_free(&block, NULL), TARN_E_INVALID);
}

static void free_three(tarn_pool *pool) {
  give(take(pool, 4096));
  give(take(pool, 8192));
  give(take(pool, 12288));
}

TEST(trim_goes_on_when_the_driver_objects) {
  tarn_pool *pool = open_pool("page_unit_pool");
  free_three(pool);
  fake.strikes = true;
  faults_arm(2, FAULTS_ONCE);
  assert_status(tarn_pool_trim(pool, 0), TARN_E_DEVICE);
  fake.strikes = false;
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
  ck_assert_uint_eq(stats_of(pool).device_frees, 3);
  ck_assert_uint_eq(fake_seen.live_blocks, 0);

  free_three(pool);
  fake.strikes = true;
  faults_arm(2, FAULTS_ONCE);
  assert_status(tarn_pool_set_strategy(pool, "no_pool"), TARN_E_DEVICE);
  fake.strikes = false;
  ck_assert_str_eq(stats_of(pool).strategy,
                   "no_pool");  // exchanged all the same
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
}

// --- a driver that does not align ------------------------------------------

TEST(addresses_that_are_not_aligned_are_mended) {
  fake.misalign = 64;
  tarn_pool *pool = open_pool("page_unit_pool");
  tarn_block blocks[8];
  for (size_t i = 0; i < 8; i++) {
    size_t align = (size_t)256 << i;
    assert_ok(tarn_pool_alloc(pool, 5000, align, NULL, &blocks[i]));
    ck_assert_uint_eq(blocks[i].address % align, 0);
    ck_assert_uint_eq(blocks[i].size, 8192);
    memset((void *)(uintptr_t)blocks[i].address, 1, blocks[i].size);
  }
  // The first was asked for, given back, and asked for with room to align in;
  // the others with room at once.
  tarn_pool_stats stats = stats_of(pool);
  ck_assert_uint_eq(stats.misses, 8);
  ck_assert_uint_eq(stats.device_allocs, 9);
  ck_assert_uint_eq(stats.device_frees, 1);
  ck_assert_uint_eq(stats.reserved_bytes, fake_seen.live_bytes);
  assert_ok(tarn__front_check(pool));
  give_many(blocks, 8);
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
}

TEST(a_limit_holds_on_a_device_that_does_not_align) {
  fake.misalign = 64;
  tarn_pool *pool = open_pool("no_pool");
  assert_ok(tarn_pool_limit(pool, 4096));
  tarn_block block;
  refuse(pool, 4096, 256, TARN_FULL);
  assert_error_says("would exceed the limit of 4.00 KiB (4096 bytes)");
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
  assert_ok(tarn_pool_alloc(pool, 3840, 256, NULL, &block));
  ck_assert_uint_eq(stats_of(pool).reserved_peak_bytes, 4096);
  give(block);
}

// --- places of a device ----------------------------------------------------

TEST(every_kind_of_memory_has_its_own_pool) {
  tarn_device *device = open_device("fake:0");
  tarn_pool *pools[3];
  tarn_block blocks[3];
  for (int kind = 0; kind < 3; kind++) {
    tarn_place place = {device, (tarn_place_kind)kind};
    pools[kind] = pool_at(place);
    ck_assert(tarn_place_equal(tarn_pool_place(pools[kind]), place));
    blocks[kind] = take(pools[kind], 100);
    ck_assert_uint_eq(stats_of(pools[kind]).live_blocks, 1);
  }
  ck_assert_ptr_ne(pools[0], pools[1]);
  ck_assert_ptr_ne(pools[0], pools[2]);
  ck_assert_ptr_ne(pools[1], pools[2]);
  ck_assert_ptr_ne(pools[0], pool_at(TARN_HOST));
  for (int kind = 0; kind < 3; kind++)
    give(blocks[kind]);
}

TEST(memory_that_a_device_lacks_has_no_pool) {
  fake.missing = FAKE_MISSES(unified_memory_allocate) |
                 FAKE_MISSES(unified_memory_deallocate);
  tarn_device *device = open_device("fake:0");
  tarn_pool *pool = (tarn_pool *)(void *)"none";
  tarn_place unified = {device, TARN_PLACE_UNIFIED};
  assert_status(tarn_pool_of(unified, &pool), TARN_E_UNSUPPORTED);
  assert_error_says("fake:0: has no unified memory");
  ck_assert_ptr_null(pool);
  give(take(pool_at(tarn_place_on(device)), 100));
}

TEST(a_block_of_another_pool_is_refused) {
  tarn_device *devices[2] = {open_device("fake:0"), open_device("fake:1")};
  tarn_pool *pools[2];
  tarn_block blocks[2];
  for (int i = 0; i < 2; i++) {
    pools[i] = pool_at(tarn_place_on(devices[i]));
    blocks[i] = take_tagged(pools[i], 100, tag_of(i ? "one" : "zero"));
  }
  tarn_block forged = blocks[0];
  forged.pool = pools[1];
  ck_assert_uint_eq(forged.id, blocks[1].id);
  tarn_pool_stats before = stats_of(pools[1]);
  assert_status(tarn_pool_free(&forged, NULL), TARN_E_INVALID);
  assert_error_says("no block of the pool of fake:1");
  assert_status(tarn_pool_free_address(pools[1], blocks[0].address, NULL),
                TARN_E_INVALID);
  assert_error_says("no block of the pool of fake:1");
  assert_same_stats(before, stats_of(pools[1]));
  for (int i = 0; i < 2; i++) {
    ck_assert_uint_eq(stats_of(pools[i]).live_blocks, 1);
    give(blocks[i]);
  }
}

// --- closing ---------------------------------------------------------------

TEST(a_device_with_blocks_out_stays_open) {
  tarn_pool *pool = open_pool("page_unit_pool");
  tarn_device *device = tarn_pool_place(pool).device;
  tarn_block weights = take_tagged(pool, 100, tag_of("weights"));
  tarn_block cache = take_tagged(pool, 200, tag_of("cache"));
  give(take(pool, 65536));
  assert_status(tarn_device_close(device), TARN_E_STATE);
  assert_error_says("fake:0");
  assert_error_says("2 blocks of 300 bytes");
  assert_error_says("100 bytes weights");
  assert_error_says("200 bytes cache");
  ck_assert_uint_eq(stats_of(pool).live_blocks, 2);
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 65536 + 2 * 4096);
  give(weights);
  assert_status(tarn_device_close(device), TARN_E_STATE);
  assert_error_says("1 blocks of 200 bytes");
  give(cache);
}

TEST(closing_returns_all_memory_of_all_strategies) {
  tarn_device *device = open_device("fake:0");
  close_device(device);  // what the plug-in needs stays
  (void)pool_at(TARN_HOST);
  size_t held = tarn_host_memory();
  for (int round = 0; round < 3; round++) {
    device = open_device("fake:0");
    tarn_pool *pool = pool_at(tarn_place_on(device));
    ck_assert_uint_eq(stats_of(pool).allocs, 0);
    tarn_block old = take(pool, 5000);
    give(take(pool, 100));
    assert_ok(use_strategy(tarn_place_on(device), "page_unit_pool:page=64K"));
    give(take(pool, 100));
    give(old);
    give(take(pool_at((tarn_place){device, TARN_PLACE_HOST}), 10));
    ck_assert_uint_eq(fake_seen.live_blocks, 2);
    close_device(device);
    ck_assert_uint_eq(tarn_host_memory(), held);
  }
}

TEST(closing_tells_what_the_driver_refused) {
  tarn_pool *pool = open_pool("page_unit_pool");
  tarn_device *device = tarn_pool_place(pool).device;
  forget(device);
  free_three(pool);
  fake.strikes = true;
  faults_arm(2, FAULTS_ONCE);
  assert_status(tarn_device_close(device), TARN_E_DEVICE);
  fake.strikes = false;
  assert_error_says("device_memory_deallocate");
}

// What a device wants behind each allocation is its own: no block has it.
TEST(padding_is_taken_of_the_device_and_not_given_out) {
  fake.padding = 1000;
  tarn_pool *pool = open_pool("page_unit_pool");
  tarn_block block = take(pool, 5000);
  ck_assert_uint_eq(block.size, 8192 - 1000);
  ck_assert_uint_eq(fake_seen.live_bytes, 8192);
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 8192);
  assert_ok(tarn_pool_limit(pool, 2 * 8192 - 1));
  refuse(pool, 5000, 0, TARN_FULL);
  assert_ok(tarn__front_check(pool));
  give(block);
}
