// What a pool remembers of blocks whose address starts nothing any more, so
// that a second free by address still names what it was.
#include <stdio.h>

#include "kit.h"

// |address| is refused and the error contains |says|; nothing changes.
static void assert_freed(tarn_pool *pool, tarn_addr address, const char *says) {
  tarn_pool_stats before = stats_of(pool);
  tarn_block found;
  memset(&found, 0xff, sizeof found);
  assert_status(tarn_pool_free_address(pool, address, NULL), TARN_E_INVALID);
  assert_error_says(says);
  // It may be inside of another by now.
  if (tarn_pool_block_of(pool, address, &found, NULL) == TARN_OK) {
    ck_assert_uint_lt(found.address, address);
    ck_assert_uint_lt(address - found.address, found.size);
  } else {
    assert_error_says(says);
    assert_zero_block(found);
  }
  assert_same_stats(before, stats_of(pool));
  assert_ok(tarn__front_check(pool));
}

TEST_LOOP(a_second_free_by_address_names_the_tag, ALL_STRATEGIES) {
  tarn_pool *pool = host_pool(any_strategy(_i));
  tarn_block before = take(pool, 4096);
  tarn_block block = take_tagged(pool, 4096, tag_of("gradients"));
  tarn_block behind = take(pool, 4096);
  give(before);
  give(behind);
  assert_ok(tarn_pool_free_address(pool, block.address, NULL));
  assert_freed(pool, block.address, "was freed before; it was gradients");
  assert_ok(tarn_pool_trim(pool, 0));
  assert_freed(pool, block.address, "was freed before; it was gradients");
}

TEST(the_newest_that_stood_there_is_named) {
  tarn_pool *pool = host_pool("arena_pool");
  tarn_block old = take_tagged(pool, 4096, tag_of("old"));
  give(old);
  tarn_block young = take_tagged(pool, 4096, tag_of("young"));
  ck_assert_uint_eq(young.address, old.address);
  assert_status(tarn_pool_free(&old, NULL), TARN_E_INVALID);
  assert_error_says("freed before; what stands there now is young");
  give(young);
  assert_freed(pool, young.address, "it was young");
  assert_status(tarn_pool_free(&young, NULL), TARN_E_INVALID);
  assert_error_says("freed before; it was young");
}

// The id went to a block at another address: of the old one, what its own
// address is remembered for.
TEST(a_block_is_named_though_its_id_went_elsewhere) {
  tarn_pool *pool = host_pool("arena_pool");
  tarn_block old = take_tagged(pool, 4096, tag_of("old"));
  give(old);
  tarn_block young = take_tagged(pool, MIB, tag_of("young"));
  ck_assert_uint_eq(young.id, old.id);
  ck_assert_uint_ne(young.address, old.address);
  assert_status(tarn_pool_free(&old, NULL), TARN_E_INVALID);
  assert_error_says("freed before; what stood there last was old");
  give(young);
}

// In the middle of one that is out nothing is freed.
TEST(memory_of_a_larger_block_is_not_freed_by_an_old_address) {
  tarn_pool *pool = host_pool("arena_pool");
  tarn_block first = take_tagged(pool, 4096, tag_of("first"));
  tarn_block second = take_tagged(pool, 4096, tag_of("second"));
  give(first);
  give(second);
  tarn_block both = take(pool, 8192);
  tarn_addr inside =
      first.address < second.address ? second.address : first.address;
  ck_assert_uint_gt(inside, both.address);
  ck_assert_uint_lt(inside, both.address + both.size);
  assert_freed(pool, inside, "was freed before; it was ");
  give(both);
}

TEST(what_was_never_a_block_is_not_remembered) {
  tarn_pool *pool = host_pool("buddy_pool:init=1M");
  tarn_block block = take(pool, 4096);
  assert_freed(pool, block.address + 64, "no block of the pool of host");
  assert_freed(pool, 0, "no block of the pool of host");
  give(block);
  assert_ok(tarn_pool_trim(pool, 0));
  assert_freed(pool, 0, "no block of the pool of host");
  assert_freed(pool, block.address + 64, "no block of the pool of host");
}

// The memory is bounded: the oldest is forgotten, and nothing else. Others are
// of the zone of large blocks, so that none of them starts there.
TEST(the_oldest_is_forgotten) {
  tarn_pool *pool = host_pool("arena_pool:steps=0");
  tarn_block oldest = take_tagged(pool, 512, tag_of("oldest"));
  tarn_block second = take_tagged(pool, 512, tag_of("second"));
  give(oldest);
  give(second);
  for (int i = 0; i < TARN__FREED - 2; i++)
    give(take(pool, MIB));
  assert_freed(pool, oldest.address, "it was oldest");
  give(take(pool, MIB));
  assert_freed(pool, oldest.address, "no block of the pool of host");
  assert_freed(pool, second.address, "it was second");
  give(take(pool, MIB));
  assert_freed(pool, second.address, "no block of the pool of host");
}
