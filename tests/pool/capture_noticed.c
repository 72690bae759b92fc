// Captures that nobody told the pool of: a stream captures, and the pool sees
// it. Sim calls it a misuse when anything would break the capture: a wait, a
// query, an allocation at an address, whichever thread makes it.
#include "capture_kit.h"
#include "support/fake_extension.h"
#include "support/hold.h"

enum { WARM = 64, SIZES = 3 };
static const size_t sizes[SIZES] = {4 << 10, 100 << 10, 1 << 20};

// Idle memory that no stream has used: in a capture, sim gives no blocks.
static void warm(void) {
  tarn_block blocks[WARM];
  for (size_t i = 0; i < WARM; i++)
    blocks[i] = take(pool, sizes[i % SIZES]);
  for (size_t i = 0; i < WARM; i++)
    give(blocks[i]);
}

static void open_warm(int i) {
  open_watched(strategies[i]);
  warm();
}

static void start_capture(tarn_stream *stream) {
  tarn_sim_capture(tarn_stream_native(stream));
}

static void stop_capture(void) {
  tarn_sim_capture(NULL);
}

static void assert_unbroken(void) {
  char line[256] = "";
  size_t misuses = tarn_sim_misuses(line, sizeof line);
  ck_assert_msg(misuses == 0, "%s", line);
}

// --- the watch sees what it is to see --------------------------------------

TEST(sim_calls_it_a_misuse) {
  open_warm(0);
  start_capture(a);
  ck_assert_int_ne(tarn_stream_query(b), TARN_OK);
  ck_assert_uint_ne(tarn_sim_misuses(NULL, 0), 0);
  stop_capture();
  forget(b);
  (void)tarn_stream_destroy(b);
  end_own(pool);
  end_stream(a);
  abandon(&p);
}

// --- requests and frees ----------------------------------------------------

// Of the capturing stream, of another and of the host, with blocks from before
// the capture among them, and streams that are busy.
static void play(tarn_block *blocks, size_t count) {
  tarn_stream *streams[] = {a, b, NULL};
  for (size_t i = 0; i < count; i++) {
    tarn_stream *stream = streams[i % 3];
    assert_ok(tarn_block_use_on(&blocks[i], streams[(i + 1) % 2]));
    assert_ok(tarn_pool_free(&blocks[i], streams[i / 3 % 3]));
    assert_status(tarn_pool_free(&blocks[i], a), TARN_E_INVALID);
    blocks[i] = take_on(pool, sizes[i % SIZES], stream);
  }
}

TEST_LOOP(nothing_breaks_the_capture, STRATEGIES) {
  enum { BLOCKS = 12 };
  tarn_stream *streams[3] = {NULL};
  tarn_block blocks[BLOCKS];
  static hold held;  // the stream may still look at it
  open_warm(_i);
  streams[0] = a, streams[1] = b;
  for (size_t i = 0; i < BLOCKS; i++)
    blocks[i] = take_on(pool, sizes[i % SIZES], streams[i % 3]);
  hold_begin(&held, b);
  start_capture(a);
  for (int i = 0; i < 3; i++)
    play(blocks, BLOCKS);
  assert_ok(tarn__front_check(pool));
  tarn_pool_stats stats = stats_of(pool);
  ck_assert_uint_eq(stats.frees, WARM);  // all others are put off
  ck_assert_uint_eq(stats.stream_crossings, 0);
  assert_unbroken();
  stop_capture();
  hold_end(&held);
  for (size_t i = 0; i < BLOCKS; i++)
    give_on(blocks[i], streams[i % 3]);
  give(take(pool, sizes[0]));  // sees the end
  ck_assert_uint_gt(stats_of(pool).live_blocks, 0);
  release();
  ck_assert_uint_eq(stats_of(pool).live_blocks, 0);
  ck_assert_uint_eq(stats_of(pool).frees, stats_of(pool).allocs);
  assert_ok(tarn__front_check(pool));
}

// Neither in the capture nor behind it.
TEST_LOOP(the_graph_s_memory_is_nobody_else_s, STRATEGIES) {
  open_warm(_i);
  start_capture(a);
  tarn_block block = take_on(pool, MIB, a);
  tarn_block kept = take_on(pool, MIB, a);
  give_on(block, a);
  tarn_block others[8];
  others[0] = take_on(pool, MIB, b);
  others[1] = take(pool, MIB);
  stop_capture();
  for (size_t i = 2; i < 8; i++)
    others[i] = take_on(pool, MIB, i % 2 ? a : NULL);
  give_on(kept, a);
  for (size_t i = 0; i < 8; i++) {
    ck_assert_uint_ne(others[i].address, block.address);
    give_on(others[i], a);
  }
  assert_ok(tarn_pool_trim(pool, 0));
  tarn_pool_stats stats = stats_of(pool);
  ck_assert_uint_eq(stats.live_blocks, 2);
  ck_assert_uint_ge(stats.reserved_bytes, (size_t)2 * MIB);
  assert_status(tarn_pool_destroy(pool), TARN_E_STATE);
  assert_error_says("tarn_pool_end_graphs");
  release();
  ck_assert_uint_eq(stats_of(pool).live_blocks, 0);
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
}

// The same stream gets it again, for about the same size, and in a later
// capture too.
TEST_LOOP(the_graph_s_stream_has_it_again, STRATEGIES) {
  open_warm(_i);
  start_capture(a);
  tarn_block block = take_on(pool, MIB, a);
  tarn_block used = take_on(pool, MIB, a);
  assert_ok(tarn_block_use_on(&used, b));
  give_on(used, a);
  give_on(block, a);
  tarn_block small = take_on(pool, sizes[1], a);
  ck_assert_uint_ne(small.address, block.address);
  tarn_block again = take_on(pool, MIB - 4096, a);
  ck_assert_uint_eq(again.address, block.address);
  assert_status(tarn_pool_free(&block, a), TARN_E_INVALID);
  tarn_block other = take_on(pool, MIB, a);
  ck_assert_uint_ne(other.address, block.address);
  ck_assert_uint_ne(other.address, used.address);
  assert_ok(tarn__front_check(pool));
  give_on(again, a);
  stop_capture();
  give(take(pool, sizes[0]));
  start_capture(a);
  again = take_on(pool, MIB, a);
  ck_assert_uint_eq(again.address, block.address);
  stop_capture();
  ck_assert_uint_eq(stats_of(pool).stream_crossings, 0);
  give_on(again, a);
  give_on(small, a);
  give_on(other, a);
  release();
  ck_assert_uint_eq(stats_of(pool).live_blocks, 0);
  ck_assert_uint_eq(stats_of(pool).frees, stats_of(pool).allocs);
  assert_unbroken();
}

// Blocks that it did not take are ordinary ones behind it.
TEST_LOOP(what_was_there_before_is_freed_behind_it, STRATEGIES) {
  open_warm(_i);
  tarn_block before = take_on(pool, MIB, a);
  start_capture(a);
  give_on(before, a);
  tarn_block hosts = take(pool, MIB);
  give(hosts);
  ck_assert_uint_eq(stats_of(pool).live_blocks, 2);
  stop_capture();
  ck_assert_uint_eq(stats_of(pool).live_blocks, 2);  // nobody has looked yet
  assert_ok(tarn_pool_trim(pool, SIZE_MAX));
  ck_assert_uint_eq(stats_of(pool).live_blocks, 0);
  assert_unbroken();
}

TEST(a_request_that_must_not_wait_ends_no_capture) {
  open_warm(0);
  tarn_block before = take_on(pool, MIB, b);
  start_capture(a);
  give_on(before, a);
  stop_capture();
  tarn_alloc_options options = {.struct_size = sizeof options,
                                .size = MIB,
                                .stream = b,
                                .flags = TARN_ALLOC_NO_WAIT};
  tarn_block block;
  assert_ok(tarn_pool_alloc_with(pool, &options, &block));
  ck_assert_uint_eq(stats_of(pool).live_blocks, 2);
  give_on(block, b);
  give_on(take_on(pool, MIB, b), b);
  ck_assert_uint_eq(stats_of(pool).live_blocks, 0);
}

TEST(a_graph_s_block_has_its_size) {
  open_warm(1);
  tarn_block before = take_on(pool, MIB, a);
  start_capture(a);
  tarn_block block = take_on(pool, MIB, a);
  assert_status(tarn_pool_resize(&block, MIB / 2, a), TARN_E_STATE);
  assert_error_says("a captured graph uses its memory");
  assert_status(tarn_pool_resize(&before, MIB / 2, a), TARN_E_STATE);
  assert_error_says("a stream captures a graph");
  stop_capture();
  assert_status(tarn_pool_resize(&block, MIB / 2, a), TARN_E_STATE);
  assert_ok(tarn_pool_resize(&before, MIB / 2, a));
  release();
  assert_ok(tarn_pool_resize(&block, MIB / 2, a));
  give_on(block, a);
  give_on(before, a);
  assert_unbroken();
}

TEST(an_explicit_capture_goes_on_from_it) {
  open_warm(0);
  start_capture(a);
  tarn_block first = take_on(pool, MIB, a);
  begin();
  tarn_block second = take_on(pool, MIB, a);
  give_on(second, a);
  ck_assert_uint_eq(take_on(pool, MIB, a).address, second.address);
  give_on(first, a);
  stop_capture();
  end();
  ck_assert_uint_eq(stats_of(pool).live_blocks, 2);
  release();
  ck_assert_uint_eq(stats_of(pool).live_blocks, 1);
  assert_ok(tarn_pool_free_address(pool, second.address, a));
  assert_unbroken();
}

// The second capture's end is seen, also where the first one was seen first.
TEST(one_capture_follows_another) {
  open_warm(0);
  start_capture(a);
  tarn_block first = take_on(pool, MIB, a);
  start_capture(b);
  tarn_block second = take_on(pool, MIB, b);
  give_on(first, a);
  stop_capture();
  give(take(pool, MIB));
  ck_assert_int_eq(pool->capture, TARN__CAPTURE_OPEN);
  give_on(second, b);
  ck_assert_uint_eq(stats_of(pool).live_blocks, 2);
  release();
  assert_unbroken();
}

// --- who is asked ----------------------------------------------------------

static uint64_t asked_by(uint32_t flags, tarn_stream *stream) {
  tarn_pool *own = own_pool_with(p.place, "page_unit_pool", 0, flags);
  fake_ext_seen.called = 0;
  give_on(take_on(own, MIB, stream), stream);
  give_on(take_on(own, MIB, stream), stream);
  uint64_t called = fake_ext_seen.called & FAKE_SLOT(stream_capturing);
  end_own(own);
  return called;
}

TEST(only_pools_that_capture_ask) {
  fake_ext.there = true;
  p = open_arena("fake:0", "page_unit_pool");
  a = stream_on(&p);
  ck_assert_uint_eq(asked_by(0, a), 0);
  ck_assert_uint_eq(asked_by(TARN_POOL_DEFER, NULL), 0);
  ck_assert_uint_ne(asked_by(TARN_POOL_DEFER, a), 0);
}

TEST(a_device_without_the_slot_is_not_asked) {
  fake_ext.there = true;
  fake_ext.missing = FAKE_SLOT(stream_capturing);
  p = open_arena("fake:0", "page_unit_pool");
  a = stream_on(&p);
  fake_ext.capturing = tarn_stream_native(a);
  ck_assert_uint_eq(asked_by(TARN_POOL_DEFER, a), 0);
}

// No answer is no.
TEST(a_driver_that_cannot_say_says_no) {
  fake_ext.there = true;
  fake_ext.refusing = FAKE_SLOT(stream_capturing);
  fake_ext.answer = TARN_E_DEVICE;
  p = open_arena("fake:0", "page_unit_pool");
  a = stream_on(&p);
  tarn_pool *own = own_pool_with(p.place, "page_unit_pool", 0, TARN_POOL_DEFER);
  give_on(take_on(own, MIB, a), a);
  ck_assert_uint_eq(stats_of(own).live_blocks, 0);
  end_own(own);
}
