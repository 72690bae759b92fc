// buddy_pool: chunks of the device and their sizes, halves that join again.
#include "device/plugin.h"
#include "pool/buddies.h"
#include "streams_kit.h"
#include "support/strategy.h"

// --- sizes -----------------------------------------------------------------

TEST(a_block_is_padded_and_rounded_up) {
  fake.padding = 40;
  open_fake("buddy_pool");
  static const size_t sizes[] = {1, 215, 216, 217, 1000, 4096 - 40, 100000};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    tarn_block block = take(pool, sizes[i]);
    ck_assert_uint_eq(block.size, (sizes[i] + 40 + 255) / 256 * 256 - 40);
    ck_assert_uint_eq(block.address % 256, 0);
    give(block);
  }
  ck_assert_uint_eq(reserved(), MIB);  // the padding is inside
}

TEST(the_first_chunk_and_later_ones) {
  open_fake("buddy_pool:init=512K,realloc=128K,max=256K");
  tarn_block first = take(pool, 256 * KIB);
  ck_assert_uint_eq(reserved(), 512 * KIB);
  tarn_block second = take(pool, 256 * KIB);
  ck_assert_uint_eq(reserved(), 512 * KIB);
  tarn_block third = take(pool, 100 * KIB);
  ck_assert_uint_eq(reserved(), 640 * KIB);
  tarn_block fourth = take(pool, 200 * KIB);  // what it needs, if that is more
  ck_assert_uint_eq(reserved(), 896 * KIB);
  tarn_pool_stats stats = stats_of(pool);
  ck_assert_uint_eq(stats.device_allocs, 3);
  ck_assert_uint_eq(stats.misses, 3);
  ck_assert_uint_eq(stats.hits, 1);
  give(first);
  give(second);
  give(third);
  give(fourth);
}

TEST(sizes_are_the_devices_own) {
  fake.init_size = fake.realloc_size = fake.max_chunk = MIB;
  open_fake("buddy_pool");
  tarn_block small = take(pool, 1);
  ck_assert_uint_eq(small.size, 256);
  ck_assert_uint_eq(reserved(), MIB);
  tarn_block large = take(pool, MIB + 1);  // more than max_chunk
  ck_assert_uint_eq(reserved(), 2 * MIB + 256);
  give(large);
  ck_assert_uint_eq(reserved(), MIB);
  give(small);
  ck_assert_uint_eq(reserved(), MIB);
}

TEST(without_a_largest_chunk_nothing_is_kept) {
  fake.size_answer = C_ERROR;
  fake.capacity = 64 * MIB;
  open_fake("buddy_pool");
  tarn_block block = take(pool, 1000);
  ck_assert_uint_eq(reserved(), 1024);
  give(block);
  ck_assert_uint_eq(reserved(), 0);
  ck_assert_uint_eq(stats_of(pool).device_frees, 1);
}

TEST(a_refused_chunk_is_halved) {
  fake.capacity = 1400 * KIB;
  open_fake("buddy_pool:init=1M,realloc=1M");
  tarn_block whole = take(pool, MIB);
  tarn_block more = take(pool, 100 * KIB);  // 1M, 512K, then 256K
  ck_assert_uint_eq(reserved(), MIB + 256 * KIB);
  ck_assert_uint_eq(stats_of(pool).device_allocs, 4);
  ck_assert_uint_eq(stats_of(pool).misses, 2);
  give(whole);
  give(more);
}

TEST(a_limit_halves_as_well) {
  open_fake("buddy_pool:init=1M,realloc=1M");
  assert_ok(tarn_pool_limit(pool, 300 * KIB));
  tarn_block block = take(pool, 100 * KIB);
  ck_assert_uint_eq(reserved(), 256 * KIB);
  ck_assert_uint_eq(stats_of(pool).device_allocs, 1);
  give(block);
}

TEST(what_is_not_there_is_refused) {
  fake.capacity = 600 * KIB;
  open_fake("buddy_pool:init=1M,realloc=1M,max=1M");
  refuse(pool, 700 * KIB, 0, TARN_FULL);
  ck_assert_uint_eq(reserved(), 0);
  // Its power of two is not there, but it is itself.
  tarn_block block = take(pool, 550 * KIB);
  ck_assert_uint_eq(reserved(), 550 * KIB);
  give(block);
  ck_assert_uint_eq(reserved(), 0);
  // The first chunk has not been had yet.
  give(take(pool, 1));
  ck_assert_uint_eq(reserved(), 512 * KIB);
}

// A chunk in which it could be aligned is not there, but it alone is.
TEST(an_aligned_block_alone) {
  fake.capacity = 300 * KIB;
  open_fake("buddy_pool:max=1M");
  tarn_block block;
  assert_ok(tarn_pool_alloc(pool, 256 * KIB, 8 * KIB, NULL, &block));
  ck_assert_uint_eq(block.address % (8 * KIB), 0);
  ck_assert_uint_le(reserved(), 264 * KIB);
  give(block);
  ck_assert_uint_eq(reserved(), 0);
}

// A chunk that is sure to have one would be twice the alignment.
TEST(a_block_at_a_large_alignment_is_alone) {
  fake.capacity = (size_t)4 << 30;
  fake.missing =
      FAKE_MISSES(device_max_alloc_size) | FAKE_MISSES(device_max_chunk_size) |
      FAKE_MISSES(device_init_alloc_size) | FAKE_MISSES(device_realloc_size);
  open_fake("buddy_pool");
  for (int bits = 26; bits <= 30; bits++) {
    size_t align = (size_t)1 << bits;
    tarn_block block;
    assert_ok(tarn_pool_alloc(pool, 4096, align, NULL, &block));
    ck_assert_uint_eq(block.address % align, 0);
    ck_assert_uint_le(reserved(), align + 4096);
    give(block);
    ck_assert_uint_eq(reserved(), 0);
  }
}

// However large, also where the sum is more than any power of two.
TEST(an_alignment_that_nobody_has_is_refused) {
  fake_add();
  static const char *const places[] = {"fake:0", "cpu:0"};
  for (size_t i = 0; i < 4; i++) {
    tarn_pool_options options = {.struct_size = sizeof options,
                                 .strategy = "buddy_pool",
                                 .flags = i % 2 != 0 ? TARN_POOL_DRY : 0};
    assert_ok(tarn_device_open(places[i / 2], &device));
    assert_ok(tarn_pool_create(tarn_place_on(device), &options, &pool));
    for (int bits = 62; bits <= 63; bits++) {
      refuse(pool, 5000, (size_t)1 << bits, TARN_FULL);
    }
    ck_assert_uint_eq(reserved(), 0);
    assert_ok(tarn_pool_destroy(pool));
    assert_ok(tarn_device_close(device));
  }
}

TEST(memory_that_is_free_goes_back_before_a_request_fails) {
  fake.capacity = MIB;
  open_fake("buddy_pool:init=512K,realloc=512K,max=1M");
  tarn_block first = take(pool, 512 * KIB);
  tarn_block second = take(pool, 512 * KIB);
  give(first);
  give(second);
  give(take(pool, MIB));
  ck_assert_uint_eq(reserved(), MIB);
}

TEST(sizes_that_overflow) {
  open_fake("buddy_pool:padding=1K");
  refuse(pool, SIZE_MAX, 0, TARN_E_INVALID);
  assert_error_says("buddy_pool");
  refuse(pool, SIZE_MAX / 2, 0, TARN_E_INVALID);
}

TEST(options_that_are_wrong) {
  static const char *const wrong[] = {
      "buddy_pool:min=300",        "buddy_pool:min=128", "buddy_pool:min=0",
      "buddy_pool:max=much",       "buddy_pool:page=4K", "buddy_pool:init",
      "buddy_pool:init=1M,init=2M"};
  open_fake("page_unit_pool");
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_status(use_strategy(tarn_place_on(device), wrong[i]),
                  TARN_E_INVALID);
    assert_error_says("buddy_pool");
    ck_assert_str_eq(stats_of(pool).strategy, "page_unit_pool");
  }
}

// --- halves ----------------------------------------------------------------

enum { PARTS = 64 };

TEST(what_is_free_is_one_again) {
  open_fake("buddy_pool");
  tarn_block blocks[PARTS];
  for (size_t i = 0; i < PARTS; i++)
    blocks[i] = take(pool, i % 7 * 1500 + 100);
  for (size_t i = 0; i < PARTS; i++) {
    give(blocks[i * 37 % PARTS]);
    assert_ok(tarn__front_check(pool));
  }
  uint64_t asked = stats_of(pool).device_allocs;
  ck_assert_uint_eq(asked, 1);
  give(take(pool, MIB));
  ck_assert_uint_eq(stats_of(pool).device_allocs, asked);
}

// Of a block of 64K, what 33K do not need can be had.
TEST(what_a_block_does_not_need_stays_free) {
  open_fake("buddy_pool:init=64K,realloc=64K");
  tarn_block first = take(pool, 33 * KIB);
  tarn_block second = take(pool, 16 * KIB);
  tarn_block third = take(pool, 8 * KIB);
  ck_assert_uint_eq(reserved(), 64 * KIB);
  give(second);
  give(first);
  give(third);
  give(take(pool, 64 * KIB));
  ck_assert_uint_eq(reserved(), 64 * KIB);
}

TEST(a_chunk_need_not_be_a_power_of_two) {
  open_fake("buddy_pool:init=112K,realloc=64K");
  tarn_block first = take(pool, 64 * KIB);
  tarn_block second = take(pool, 32 * KIB);
  tarn_block third = take(pool, 16 * KIB);
  ck_assert_uint_eq(reserved(), 112 * KIB);
  give(second);
  give(third);
  give(first);
}

TEST(blocks_are_aligned_as_asked) {
  fake.misalign = 256;
  open_fake("buddy_pool:init=512K");
  for (size_t align = 1; align <= 64 * KIB; align *= 2) {
    tarn_block small;
    tarn_block large;
    assert_ok(tarn_pool_alloc(pool, 100, align, NULL, &small));
    assert_ok(tarn_pool_alloc(pool, 5000, align, NULL, &large));
    ck_assert_uint_eq(small.address % align, 0);
    ck_assert_uint_eq(large.address % align, 0);
    ck_assert_uint_eq(small.size, 256);
    ck_assert_uint_eq(large.size, 5120);
    give(small);
    assert_ok(tarn__front_check(pool));
    give(large);
  }
  ck_assert_uint_eq(stats_of(pool).misses, 1);
}

TEST(trimming_gives_whole_chunks_back) {
  open_fake("buddy_pool:init=64K,realloc=64K");
  tarn_block first = take(pool, 64 * KIB);
  tarn_block second = take(pool, 64 * KIB);
  tarn_block third = take(pool, 100);
  give(first);
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_eq(reserved(), 128 * KIB);
  give(third);
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_eq(reserved(), 64 * KIB);
  ck_assert_uint_eq(stats_of(pool).device_frees, 2);
  give(second);
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_eq(reserved(), 0);
}

TEST(it_ends_with_its_last_block) {
  open_fake("buddy_pool:init=64K,realloc=64K");
  tarn_block first = take_on(pool, 64 * KIB, a);
  tarn_block second = take(pool, 100);
  assert_ok(use_strategy(tarn_place_on(device), "no_pool"));
  ck_assert_uint_eq(reserved(), 128 * KIB);
  give_on(first, a);
  ck_assert_uint_eq(reserved(), 64 * KIB);
  give(second);
  ck_assert_uint_eq(reserved(), 0);
  ck_assert(tarn_list_empty(&pool->replaced));
}

// --- the walk --------------------------------------------------------------

static tarn__pool_buddies heap;
static tarn__pool_space space = {.address = 1 << 20, .size = 64 * KIB};

static tarn_status walk(void) {
  size_t is_free = 0;
  return tarn__buddies_check(&heap, &is_free);
}

// Each of what is checked is broken once, and mended.
TEST(the_walk_finds_what_is_wrong) {
  enum { ORDER = 15 };  // of the half that stays free
  tarn__pool_space *where = NULL;
  tarn__pool_waits waits = {.count = 0};
  uint64_t serial = 0;
  assert_ok(tarn__buddies_init(&heap, 256));
  ck_assert(tarn__buddies_reserve(&heap, 0));
  tarn__buddies_add(&heap, &space);
  tarn_addr address =
      tarn__buddies_take(&heap, 16 * KIB, 1, 0, false, &where, &serial);
  ck_assert_uint_eq(address, 1 << 20);
  assert_ok(walk());
  tarn__pool_buddy *half =
      tarn_list_entry(heap.streams->blocks[ORDER].next, tarn__pool_buddy, node);
  ck_assert_uint_eq(half->address, (1 << 20) + 32 * KIB);

  half->order--;
  assert_status(walk(), TARN_E_CORRUPT);
  half->order++;
  half->space->size = 48 * KIB;
  assert_status(walk(), TARN_E_CORRUPT);
  half->space->size = 64 * KIB;
  heap.streams->orders ^= 1u << ORDER;
  assert_status(walk(), TARN_E_CORRUPT);
  heap.streams->orders ^= 1u << ORDER;
  heap.promised += heap.spare;
  assert_status(walk(), TARN_E_CORRUPT);
  heap.promised -= heap.spare;
  half->address += 256;
  assert_status(walk(), TARN_E_CORRUPT);
  half->address -= 256;
  assert_ok(walk());
  tarn__buddies_give(&heap, &space, address, 16 * KIB, 0);
  assert_ok(walk());
  tarn__buddies_remove(&heap, &space, &waits);
  assert_ok(walk());
  tarn__buddies_deinit(&heap);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}
