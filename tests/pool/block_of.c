// Blocks by an address inside of them, and frees by an address at a place.
#include "arena_kit.h"
#include "support/effort.h"
#include "support/faults.h"
#include "support/mix.h"
#include "tarn/misuse.h"

static const char *const strategies[] = {"arena_pool", "arena_pool:steps=0",
                                         "page_unit_pool", "no_pool",
                                         "buddy_pool"};
enum { STRATEGIES = sizeof strategies / sizeof strategies[0] };

// --- what is found ---------------------------------------------------------

static void assert_in(tarn_block block, size_t offset) {
  tarn_block found;
  size_t at = SIZE_MAX;
  assert_ok(
      tarn_pool_block_of(block.pool, block.address + offset, &found, &at));
  assert_same_block(found, block);
  ck_assert_uint_eq(at, offset);
  assert_ok(
      tarn_pool_block_of(block.pool, block.address + offset, &found, NULL));
  assert_same_block(found, block);
}

static void assert_all_in(tarn_block block) {
  assert_in(block, 0);
  assert_in(block, block.size / 2);
  assert_in(block, block.size - 1);
}

static void assert_not_in(tarn_block block, tarn_addr address) {
  tarn_block found;
  size_t offset = 7;
  memset(&found, 0xff, sizeof found);
  tarn_status status = tarn_pool_block_of(block.pool, address, &found, &offset);
  if (status == TARN_OK) {
    ck_assert(found.id != block.id || found.generation != block.generation);
    return;
  }
  ck_assert_int_eq(status, TARN_E_INVALID);
  ck_assert_str_ne(tarn_last_error(), "");
  assert_zero_block(found);
  ck_assert_uint_eq(offset, 0);
}

TEST(every_byte_of_a_block_is_in_it) {
  enum { BLOCKS = 300 };
  for (int s = 0; s < STRATEGIES; s++) {
    tarn_pool *pool = host_pool(strategies[s]);
    tarn_block blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++)
      blocks[i] = take(pool, i * i * 7 + 1);
    for (size_t i = 0; i < BLOCKS; i++) {
      assert_all_in(blocks[i]);
      assert_not_in(blocks[i], blocks[i].address - 1);
      assert_not_in(blocks[i], blocks[i].address + blocks[i].size);
    }
    for (size_t i = 0; i < BLOCKS; i += 2)
      give(blocks[i]);
    for (size_t i = 0; i < BLOCKS; i++) {
      if (i % 2 == 0) {
        assert_not_in(blocks[i], blocks[i].address + blocks[i].size / 2);
      } else {
        assert_all_in(blocks[i]);
        give(blocks[i]);
      }
    }
    assert_not_in(blocks[1], 0);
    assert_not_in(blocks[1], UINT64_MAX);
    assert_ok(tarn__front_check(pool));
  }
}

// Blocks come and go between the questions, few of them or more than there are.
static void run_random(tarn_pool *pool, uint64_t seed) {
  enum { BLOCKS = 400, ROUNDS = EFFORT(20000, 4000) };
  static tarn_block blocks[BLOCKS];
  memset(blocks, 0, sizeof blocks);
  for (uint64_t i = 0; i < ROUNDS; i++) {
    uint64_t r = mix(seed, i);
    tarn_block *b = &blocks[r % BLOCKS];
    bool asks = i / 1000 % 3 != 0 || r >> 60 == 0;
    if (b->pool == NULL) {
      *b = take(pool, (r >> 20) % 20000 + 1);
    } else if (asks && (r >> 16) % 4 != 0) {
      assert_in(*b, (size_t)(r >> 24) % b->size);
    } else {
      tarn_block gone = *b;
      give(gone);
      *b = (tarn_block){0};
      if (asks) assert_not_in(gone, gone.address + gone.size / 2);
    }
  }
  for (size_t i = 0; i < BLOCKS; i++) {
    if (blocks[i].pool == NULL) continue;
    assert_all_in(blocks[i]);
    give(blocks[i]);
  }
  assert_ok(tarn__front_check(pool));
}

TEST_LOOP(blocks_that_come_and_go_are_found, TEST_DEVICES) {
  arena_place p = open_arena_with(_i, 0, "arena_pool");
  for (int s = 0; s < STRATEGIES; s++) {
    assert_ok(use_strategy(p.place, strategies[s]));
    run_random(p.pool, (uint64_t)s);
  }
  abandon(&p);
}

// So many that the order has hundreds of leaves, which split and end: no_pool
// gives what is freed back to the host, and takes other memory later.
TEST(many_blocks_are_found) {
  enum { MANY = EFFORT(10000, 4000), ROUNDS = 3 };
  static tarn_block blocks[MANY];
  tarn_pool *pool = host_pool("no_pool");
  for (size_t i = 0; i < MANY; i++)
    blocks[i] = take(pool, i * 7919 % 3000 + 1);
  for (uint64_t round = 0; round < ROUNDS; round++) {
    for (size_t i = 0; i < MANY; i++)
      assert_in(blocks[i], (size_t)mix(round, i) % blocks[i].size);
    assert_ok(tarn__front_check(pool));
    for (size_t i = 0; i < MANY; i++) {
      if (mix(round, i) % 3 == 0) give(blocks[i]);
    }
    for (size_t i = MANY; i-- > 0;) {
      if (mix(round, i) % 3 == 0)
        blocks[i] = take(pool, (i + round) * 6007 % 5000 + 1);
    }
  }
  give_many(blocks, MANY);
  assert_not_in(blocks[0], blocks[0].address);
  assert_ok(tarn__front_check(pool));
}

TEST(a_change_of_strategy_is_no_matter) {
  tarn_pool *pool = host_pool("arena_pool");
  tarn_block first = take(pool, 10000);
  assert_in(first, 9999);
  pool = host_pool("page_unit_pool");
  tarn_block second = take(pool, 10000);
  assert_in(first, 77);
  assert_in(second, 77);
  give(first);
  assert_not_in(first, first.address + 77);
  assert_in(second, 5000);
  give(second);
}

TEST(blocks_of_a_step_are_found) {
  enum { BLOCKS = 40, STEPS = 60 };
  tarn_block out[BLOCKS];
  tarn_pool *pool = host_pool("arena_pool");
  for (size_t step = 0; step < STEPS; step++) {
    for (size_t i = 0; i < BLOCKS; i++) {
      out[i] = take(pool, (i % 7 + 1) * 6000 + i);
      if (i % 3 == 0) give(out[i]);
    }
    for (size_t i = 0; i < BLOCKS && step > STEPS / 2; i++) {
      if (i % 3 != 0) assert_all_in(out[i]);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
      if (i % 3 != 0) give(out[i]);
    }
    assert_not_in(out[1], out[1].address + 5);
  }
  ck_assert_ptr_nonnull(pool->steps.cursor.layout);
}

TEST(a_guard_is_no_part_of_a_block) {
  tarn_pool *pool = host_pool("arena_pool");
  tarn_pool_debug_options options = {.struct_size = sizeof options,
                                     .flags = TARN_POOL_DEBUG_GUARDS};
  assert_ok(tarn_pool_debug(pool, &options));
  tarn_block block = take(pool, 1000);
  ck_assert_uint_eq(block.size, 1000);
  assert_all_in(block);
  assert_not_in(block, block.address + 1000);
  give(block);
  assert_ok(tarn_pool_debug(pool, NULL));
}

// --- at a place ------------------------------------------------------------

static void assert_at(tarn_place place, tarn_block block) {
  tarn_block found;
  size_t offset = 0;
  assert_ok(tarn_block_of(place, block.address + 99, &found, &offset));
  assert_same_block(found, block);
  ck_assert_uint_eq(offset, 99);
  assert_ok(tarn_block_of(place, block.address, &found, NULL));
  assert_same_block(found, block);
}

static void assert_not_at(tarn_place place, tarn_addr address) {
  tarn_block found;
  size_t offset = 7;
  memset(&found, 0xff, sizeof found);
  assert_status(tarn_block_of(place, address, &found, &offset), TARN_E_INVALID);
  assert_error_says("no block of the pools of");
  assert_zero_block(found);
  ck_assert_uint_eq(offset, 0);
}

TEST_LOOP(all_pools_of_a_place_are_searched, TEST_DEVICES) {
  arena_place p = open_arena_with(_i, 0, "arena_pool");
  tarn_place place = tarn_place_on(p.device);
  tarn_pool *own = own_pool_with(place, NULL, 0, 0);
  tarn_pool *dry = own_pool_with(place, NULL, 0, TARN_POOL_DRY);
  tarn_block a = take(p.pool, 1000);
  tarn_block b = take(own, 1000);
  tarn_block c = take(dry, 1000);
  assert_at(place, a);
  assert_at(place, b);
  assert_not_at(place, c.address);
  assert_all_in(c);
  if (!tarn_place_equal(place, TARN_HOST)) {
    assert_not_at(TARN_HOST, a.address);
  }
  assert_status(tarn_free(place, c.address, NULL), TARN_E_INVALID);
  assert_status(tarn_free(place, b.address + 99, NULL), TARN_E_INVALID);
  assert_error_says("99 bytes into a block of the pool of");
  assert_ok(tarn_free(place, b.address, NULL));
  assert_ok(tarn_free(place, a.address, NULL));
  give(c);
  assert_not_at(place, a.address);
  ck_assert_uint_eq(stats_of(own).live_blocks, 0);
  ck_assert_uint_eq(stats_of(p.pool).live_blocks, 0);
  end_own(own);
  end_own(dry);
  abandon(&p);
}

TEST(a_second_free_at_a_place_names_the_tag) {
  tarn_pool *pool = host_pool("arena_pool");
  tarn_pool *own = own_pool_with(TARN_HOST, NULL, 0, 0);
  tarn_block a = take_tagged(pool, 1000, tag_of("shared"));
  tarn_block b = take_tagged(own, 1000, tag_of("owned"));
  assert_ok(tarn_free(TARN_HOST, a.address, NULL));
  assert_ok(tarn_free(TARN_HOST, b.address, NULL));
  assert_status(tarn_free(TARN_HOST, a.address, NULL), TARN_E_INVALID);
  assert_error_says("it was shared");
  assert_status(tarn_free(TARN_HOST, b.address, NULL), TARN_E_INVALID);
  assert_error_says("it was owned");
  assert_status(tarn_free(TARN_HOST, 0, NULL), TARN_E_INVALID);
}

TEST(a_place_must_be_one) {
  tarn_place none = {.kind = (tarn_place_kind)9};
  tarn_block found;
  size_t offset = 7;
  assert_status(tarn_block_of(none, 1, &found, &offset), TARN_E_INVALID);
  assert_zero_block(found);
  ck_assert_uint_eq(offset, 0);
  assert_status(tarn_free(none, 1, NULL), TARN_E_INVALID);
  assert_status(tarn_pool_block_of(NULL, 1, &found, &offset), TARN_E_INVALID);
}

TEST_LOOP(a_place_without_pools_has_no_blocks, TEST_DEVICES) {
  tarn_device *device = open_device_with(_i, TEST_NEEDS_DISCRETE);
  if (device == NULL) return;
  assert_not_at(tarn_place_on(device), 4096);
  assert_status(tarn_free(tarn_place_on(device), 4096, NULL), TARN_E_INVALID);
  assert_error_says(test_devices[_i]);
  assert_error_says(" has no pools");
}

static tarn_status seen[3];

static void call_in_callback(void *context, tarn_status status) {
  tarn_block found;
  (void)status;
  tarn_block *block = context;
  seen[0] = tarn_block_of(TARN_HOST, block->address, &found, NULL);
  seen[1] = tarn_free(TARN_HOST, block->address, NULL);
  seen[2] = tarn_pool_block_of(block->pool, block->address, &found, NULL);
}

TEST(a_callback_may_not_ask) {
  tarn_device *host = open_device("cpu:0");
  tarn_stream *stream = stream_of(host);
  tarn_block block = take(host_pool("arena_pool"), 10);
  assert_ok(tarn_stream_add_callback(stream, call_in_callback, &block));
  assert_ok(tarn_stream_synchronize(stream));
  for (int i = 0; i < 3; i++)
    ck_assert_int_eq(seen[i], TARN_E_STATE);
  give(block);
}

// --- without host memory ---------------------------------------------------

// What is refused for want of it is found when there is some.
static void ask_for(tarn_block block, size_t offset, size_t *refused) {
  tarn_block found;
  size_t at = 7;
  memset(&found, 0xff, sizeof found);
  tarn_status status = tarn_block_of(tarn_pool_place(block.pool),
                                     block.address + offset, &found, &at);
  if (status == TARN_OK) {
    assert_same_block(found, block);
    ck_assert_uint_eq(at, offset);
    return;
  }
  ck_assert_int_eq(status, TARN_E_NOMEM);
  assert_zero_block(found);
  ck_assert_uint_eq(at, 0);
  ck_assert_uint_ne(offset, 0);
  ++*refused;
}

// A pool of one's own begins without any order.
static size_t run_without_memory(size_t n, faults_mode mode, bool *out_struck) {
  enum { BLOCKS = 700 };
  static tarn_block blocks[BLOCKS];
  size_t refused = 0;
  tarn_pool *own = own_pool_with(TARN_HOST, NULL, 0, 0);
  for (size_t i = 0; i < BLOCKS / 2; i++)
    blocks[i] = take(own, i + 600);
  ask_for(blocks[3], 5, &refused);
  for (size_t i = BLOCKS / 2; i < BLOCKS; i++)
    blocks[i] = take(own, i + 600);
  faults_arm(n, mode);
  for (size_t i = 0; i < BLOCKS; i += 41)
    ask_for(blocks[i], i, &refused);
  *out_struck = faults_disarm();
  for (size_t i = 0; i < BLOCKS; i++) {
    assert_all_in(blocks[i]);
    give(blocks[i]);
  }
  assert_ok(tarn__front_check(own));
  end_own(own);
  return refused;
}

TEST(without_host_memory_it_is_asked_again) {
  faults_install();
  host_pool("arena_pool");
  size_t held = 0;
  size_t refused = 0;
  for (int mode = FAULTS_ONCE; mode <= FAULTS_FROM_NOW; mode++) {
    bool struck = true;
    for (size_t n = 1; struck; n++) {
      refused += run_without_memory(n, (faults_mode)mode, &struck);
      if (held == 0) held = tarn_host_memory();
      ck_assert_uint_eq(tarn_host_memory(), held);
    }
  }
  ck_assert_uint_gt(refused, 5);
}
