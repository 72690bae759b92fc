// Misuse: every free that is wrong is refused, says what stands there, and
// changes nothing.
#include "kit.h"
#include "support/strategy.h"

// |block| is refused, and the text contains |says|.
static void assert_refused(tarn_block block, const char *says) {
  tarn_pool_stats before = stats_of(block.pool);
  assert_status(tarn_pool_free(&block, NULL), TARN_E_INVALID);
  assert_error_says(says);
  assert_same_stats(before, stats_of(block.pool));
  assert_ok(tarn__front_check(block.pool));
}

// Neither to be freed nor to be found at |address|.
static void assert_none_at(tarn_pool *pool, tarn_addr address,
                           const char *says) {
  tarn_pool_stats before = stats_of(pool);
  assert_status(tarn_pool_free_address(pool, address, NULL), TARN_E_INVALID);
  assert_error_says(says);
  tarn_block found;
  memset(&found, 0xff, sizeof found);
  assert_status(tarn_pool_block_of(pool, address, &found, NULL),
                TARN_E_INVALID);
  assert_error_says(says);
  assert_zero_block(found);
  assert_same_stats(before, stats_of(pool));
  assert_ok(tarn__front_check(pool));
}

// --- twice -----------------------------------------------------------------

TEST_LOOP(a_second_free_names_the_tag, ALL_STRATEGIES) {
  tarn_pool *pool = host_pool(any_strategy(_i));
  tarn_block block = take_tagged(pool, 100, tag_of("gradients"));
  give(block);
  assert_refused(block, "freed before");
  assert_refused(block, "gradients");
  block = take(pool, 100);
  give(block);
  assert_refused(block, "untagged");
}

TEST(a_second_free_does_not_hit_who_has_the_memory_now) {
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_block old = take_tagged(pool, 100, tag_of("old"));
  give(old);
  tarn_block young = take_tagged(pool, 100, tag_of("young"));
  ck_assert_uint_eq(young.address, old.address);
  ck_assert_uint_eq(young.id, old.id);
  ck_assert_uint_ne(young.generation, old.generation);
  assert_refused(old, "what stands there now is young");
  tarn_block found;
  assert_ok(tarn_pool_block_of(pool, young.address, &found, NULL));
  assert_same_block(found, young);
  give(young);
  assert_refused(old, "young");
  assert_refused(young, "young");
}

// The device may have given the id's next memory at another address, of which
// nothing is told.
TEST(a_second_free_tells_of_no_other_address) {
  tarn_pool *pool = host_pool("no_pool");
  tarn_block old = take_tagged(pool, 4 * MIB, tag_of("old"));
  tarn_block keep = take(pool, 100);
  give(old);
  tarn_block young = take_tagged(pool, 64, tag_of("young"));
  ck_assert_uint_eq(young.id, old.id);
  ck_assert_uint_ne(young.address, old.address);
  assert_refused(old, "freed before; what stood there last was old");
  ck_assert_ptr_null(strstr(tarn_last_error(), "young"));
  give(young);
  give(keep);
}

TEST(a_second_free_by_address_is_refused) {
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_block block = take_tagged(pool, 100, tag_of("cache"));
  assert_ok(tarn_pool_free_address(pool, block.address, NULL));
  assert_none_at(pool, block.address, "it was cache");
  assert_refused(block, "cache");
  assert_ok(tarn_pool_trim(pool, 0));
  assert_none_at(pool, block.address, "it was cache");
  assert_refused(block, "freed before");
}

TEST(a_second_free_after_a_switch_is_refused) {
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_block block = take_tagged(pool, 100, tag_of("weights"));
  assert_ok(use_strategy(TARN_HOST, "no_pool"));
  give(block);
  assert_refused(block, "weights");
  assert_none_at(pool, block.address, "it was weights");
}

// --- foreign ---------------------------------------------------------------

// What is found by it is not freed by it.
static void assert_inside(tarn_block block, size_t offset) {
  tarn_block found;
  tarn_pool_stats before = stats_of(block.pool);
  tarn_addr address = block.address + offset;
  assert_status(tarn_pool_free_address(block.pool, address, NULL),
                TARN_E_INVALID);
  assert_error_says("no block");
  assert_ok(tarn_pool_block_of(block.pool, address, &found, NULL));
  assert_same_block(found, block);
  assert_same_stats(before, stats_of(block.pool));
  assert_ok(tarn__front_check(block.pool));
}

TEST_LOOP(addresses_inside_a_block_are_refused, ALL_STRATEGIES) {
  tarn_pool *pool = host_pool(any_strategy(_i));
  tarn_block block = take(pool, 10000);
  assert_inside(block, 1);
  assert_inside(block, 256);
  assert_inside(block, 9999);
  assert_none_at(pool, block.address - 1, "no block");
  give(block);
}

TEST(foreign_addresses_are_refused) {
  char mine[64];
  tarn_pool *pool = host_pool("page_unit_pool");
  assert_none_at(pool, 0, "no block");
  assert_none_at(pool, (tarn_addr)(uintptr_t)mine, "no block");
  tarn_block block = take(pool, 10000);
  assert_none_at(pool, (tarn_addr)(uintptr_t)mine, "pool of host");
  assert_none_at(pool, UINT64_MAX, "0xffffffffffffffff");
  assert_none_at(pool, 0, "no block");
  tarn_addr straight = 0;
  assert_ok(tarn_device_allocate(TARN_HOST, 4096, &straight));
  assert_none_at(pool, straight, "no block");
  assert_ok(tarn_device_deallocate(TARN_HOST, straight, 4096));
  give(block);
}

// --- forged ----------------------------------------------------------------

TEST(a_zero_block_is_refused) {
  tarn_block zero = {0};
  assert_status(tarn_pool_free(&zero, NULL), TARN_E_INVALID);
  zero.pool = host_pool("page_unit_pool");
  assert_refused(zero, "no block");
  tarn_block block = take(zero.pool, 1);
  assert_refused(zero, "no block");
  give(block);
}

TEST(forged_ids_are_refused) {
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_block a = take_tagged(pool, 100, tag_of("first"));
  tarn_block b = take_tagged(pool, 200, tag_of("second"));
  tarn_block forged = a;
  forged.id = b.id;
  assert_refused(forged, "first");  // it names what stands at the address
  forged.id = UINT32_MAX;
  assert_refused(forged, "no block");
  forged.id = (uint32_t)tarn__pieces_count(&pool->pieces);
  assert_refused(forged, "no block");
  forged.id = (uint32_t)tarn__pieces_count(&pool->pieces) - 1;
  assert_refused(forged, "no block");
  give(a);
  give(b);
}

TEST(forged_generations_are_refused) {
  tarn_pool *pool = host_pool("page_unit_pool");
  give(take(pool, 100));
  tarn_block block = take_tagged(pool, 100, tag_of("logits"));
  ck_assert_uint_ge(block.generation, 2);
  tarn_block forged = block;
  forged.generation = block.generation + 1;
  assert_refused(forged, "logits");
  forged.generation = UINT32_MAX;
  assert_refused(forged, "logits");
  forged.generation = block.generation - 1;
  assert_refused(forged, "logits");
  forged.generation = 0;
  assert_refused(forged, "logits");
  give(block);
}

TEST(forged_addresses_are_refused) {
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_block a = take_tagged(pool, 100, tag_of("first"));
  tarn_block b = take_tagged(pool, 200, tag_of("second"));
  tarn_block forged = a;
  forged.address = b.address;
  assert_refused(forged, "second");
  forged.address = a.address + 1;
  assert_refused(forged, "no block");
  forged.address = 0;
  assert_refused(forged, "no block");
  give(a);
  give(b);
}

TEST(what_a_block_says_of_its_size_is_not_believed) {
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_block block = take(pool, 100);
  tarn_block forged = block;
  forged.size = SIZE_MAX;
  give(forged);
  ck_assert_uint_eq(stats_of(pool).live_bytes, 0);
  assert_ok(tarn__front_check(pool));
  assert_refused(block, "freed before");
}

TEST(a_stale_block_never_frees_however_often_its_memory_is_used) {
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_block old[100];
  for (int i = 0; i < 100; i++) {
    old[i] = take(pool, 100);
    give(old[i]);
  }
  tarn_block last = take(pool, 100);
  for (int i = 0; i < 100; i++) {
    ck_assert_uint_eq(old[i].address, last.address);
    assert_refused(old[i], "freed before");
  }
  give(last);
}

TEST(a_generation_that_wraps_is_never_that_of_no_block) {
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_block first = take(pool, 100);
  give(first);
  tarn__pieces_at(&pool->pieces, first.id)->generation = UINT32_MAX;
  tarn_block wrapped = take(pool, 100);
  ck_assert_uint_eq(wrapped.id, first.id);
  ck_assert_uint_eq(wrapped.generation, 1);
  give(wrapped);
  assert_status(tarn_pool_free(&wrapped, NULL), TARN_E_INVALID);
}

TEST(a_query_that_fails_keeps_struct_size) {
  tarn_pool_stats stats = {.struct_size = sizeof stats};
  tarn_pool_tag_stats tag = {.struct_size = sizeof tag};
  assert_status(tarn_pool_query(NULL, &stats), TARN_E_INVALID);
  ck_assert_uint_eq(stats.struct_size, sizeof stats);
  assert_status(tarn_pool_query_tag(NULL, 0, &tag), TARN_E_INVALID);
  ck_assert_uint_eq(tag.struct_size, sizeof tag);
}
