// arena_pool: blocks that are cut and joined, memory that comes and goes by
// pages or by segments, streams, and what is left when it is replaced.
#include <sys/wait.h>
#include <unistd.h>

#include "arena_kit.h"
#include "support/strategy.h"

static tarn_block take_aligned(tarn_pool *pool, size_t size, size_t align) {
  tarn_block block;
  assert_ok(tarn_pool_alloc(pool, size, align, NULL, &block));
  require(block.size >= size);
  require(align == 0 || block.address % align == 0);
  return block;
}

// --- blocks ----------------------------------------------------------------

TEST_LOOP(holes_are_cut_and_joined, TEST_DEVICES) {
  arena_place p = open_arena_with(_i, 0, "arena_pool");
  tarn_block a = take(p.pool, 100 * KIBIBYTE);
  tarn_block b = take(p.pool, 100 * KIBIBYTE);
  tarn_block c = take(p.pool, 100 * KIBIBYTE);
  tarn_pool_stats before = stats_of(p.pool);
  give(b);
  tarn_block again = take(p.pool, 90 * KIBIBYTE);
  ck_assert_uint_eq(again.address, b.address);
  ck_assert_uint_eq(again.size, 90 * KIBIBYTE);
  give(a);
  give(again);
  give(c);
  // Joined, they are one hole.
  tarn_block all = take(p.pool, 300 * KIBIBYTE);
  tarn_pool_stats after = stats_of(p.pool);
  ck_assert_uint_eq(after.misses, before.misses);
  ck_assert_uint_eq(after.hits, before.hits + 2);
  ck_assert_uint_eq(after.reserved_bytes, before.reserved_bytes);
  give(all);
}

TEST_LOOP(small_blocks_stay_apart_from_large_ones, TEST_DEVICES) {
  arena_place p = open_arena_with(_i, TEST_NEEDS_FREE_GROWTH, "arena_pool");
  if (p.pool == NULL) return;
  tarn_block large = take(p.pool, 100 * KIBIBYTE);
  tarn_block small = take(p.pool, 64 * KIBIBYTE);
  tarn_block tiny = take(p.pool, 1);
  give(large);
  // What is small does not go where large ones are.
  tarn_block other = take(p.pool, 64 * KIBIBYTE);
  ck_assert(other.address + other.size <= large.address ||
            other.address >= large.address + large.size);
  ck_assert_uint_eq(tiny.size, 512);
  give(small);
  give(tiny);
  give(other);
}

TEST_LOOP(blocks_are_aligned_as_asked_beyond_a_page_too, TEST_DEVICES) {
  arena_place p = open_arena_with(_i, 0, "arena_pool");
  tarn_block blocks[64];
  size_t count = 0;
  for (size_t align = 1; align <= (size_t)8 * MIB; align *= 2) {
    blocks[count++] = take_aligned(p.pool, 700, align);
    if (align <= (size_t)2 * MIB)
      blocks[count++] = take_aligned(p.pool, 70 * KIBIBYTE, align);
  }
  for (size_t i = 0; i < count; i++) {
    for (size_t k = 0; k < i; k++)
      require(blocks[i].address + blocks[i].size <= blocks[k].address ||
              blocks[k].address + blocks[k].size <= blocks[i].address);
  }
  assert_ok(tarn__front_check(p.pool));
  give_many(blocks, count);
}

// Where there is no memory for another segment or page, what is open in the
// other zone serves: the free bytes are enough.
TEST_LOOP(the_other_zone_serves_before_a_request_is_refused, TEST_DEVICES) {
  arena_place p = open_arena_at(4 * MIB, _i, 0, "arena_pool");
  tarn_block small = take(p.pool, 4096);
  assert_ok(tarn_pool_limit(p.pool, stats_of(p.pool).reserved_bytes));
  tarn_block large = take(p.pool, 100 * KIBIBYTE);
  ck_assert_uint_eq(stats_of(p.pool).failures, 0);
  give(small);
  small = take(p.pool, 4096);
  give(large);
  assert_ok(tarn__front_check(p.pool));
  tarn_block fill = take(p.pool, 200 * KIBIBYTE);
  give(small);
  give(fill);
}

// 900 bytes are small, the 1024 that they take are not.
TEST(a_block_comes_back_to_the_zone_that_it_came_from) {
  arena_place p = open_arena("cpu:0", "arena_pool:small=1000");
  tarn_block small = take(p.pool, 900);
  tarn_block large = take(p.pool, 1025);
  tarn_block neighbour = take(p.pool, 400);
  give(small);
  assert_ok(tarn__front_check(p.pool));
  give(take(p.pool, 512));
  give(neighbour);
  give(large);
}

TEST(a_device_s_chunk_may_be_larger_than_small_blocks) {
  fake.min_chunk = 128 * KIBIBYTE;
  fake.padding = 100;
  arena_place p = open_arena("fake:0", "arena_pool:page=512");
  tarn_block a = take(p.pool, 1);
  tarn_block b = take(p.pool, 100);
  ck_assert_uint_eq(a.size, 128 * KIBIBYTE - 100);
  ck_assert_uint_eq(b.address % (128 * KIBIBYTE), 0);
  give(a);
  give(b);
}

TEST(small_is_an_option) {
  arena_place p = open_arena("cpu:0", "arena_pool:small=0");
  tarn_block a = take(p.pool, 100);
  tarn_block b = take(p.pool, 100 * KIBIBYTE);
  ck_assert_uint_lt(
      a.address > b.address ? a.address - b.address : b.address - a.address,
      SIM_PAGE);
  give(a);
  give(b);
}

// --- sizes -----------------------------------------------------------------

TEST_LOOP(sizes_that_cannot_be_are_refused, TEST_DEVICES) {
  static const size_t most = SIZE_MAX / 2 + 1;
  arena_place p = open_arena_with(_i, 0, "arena_pool");
  tarn_block kept = take(p.pool, 1000);
  refuse(p.pool, 0, 0, TARN_E_INVALID);
  refuse(p.pool, SIZE_MAX, 0, TARN_E_INVALID);
  refuse(p.pool, SIZE_MAX - 600, 0, TARN_FULL);
  refuse(p.pool, most, 0, TARN_FULL);
  refuse(p.pool, most / 2, 0, TARN_FULL);
  refuse(p.pool, most / 2 - 512, 0, TARN_FULL);
  refuse(p.pool, most / 2 - 512, most, TARN_FULL);
  refuse(p.pool, 100, most, TARN_FULL);
  refuse(p.pool, 100, 3, TARN_E_INVALID);
  ck_assert_uint_eq(stats_of(p.pool).live_blocks, 1);
  give(take(p.pool, 1000));
  give(kept);
}

TEST(a_device_smaller_than_a_segment_is_used) {
  arena_place p = open_arena_of((size_t)2 * MIB, "fake:0", "arena_pool");
  tarn_block a = take(p.pool, 100);
  tarn_block b = take(p.pool, 500 * KIBIBYTE);
  refuse(p.pool, MIB, 0, TARN_FULL);
  refuse(p.pool, 3 * (size_t)MIB, 0, TARN_FULL);
  assert_error_says("there are only 2.00 MiB (2097152 bytes)");
  give(a);
  give(b);
  // All of it, once the rest is given back.
  give(take(p.pool, MIB - 4096));
}

// --- limits ----------------------------------------------------------------

TEST(a_limit_below_a_segment_is_kept_to) {
  arena_place p = open_arena("fake:0", "arena_pool");
  assert_ok(tarn_pool_limit(p.pool, 512 * KIBIBYTE));
  tarn_block a = take(p.pool, 300 * KIBIBYTE);
  tarn_block b = take(p.pool, 100 * KIBIBYTE);
  refuse(p.pool, 150 * KIBIBYTE, 0, TARN_FULL);
  assert_error_says("limit");
  ck_assert_uint_le(stats_of(p.pool).reserved_peak_bytes, 512 * KIBIBYTE);
  give(a);
  give(take(p.pool, 350 * KIBIBYTE));
  give(b);
}

TEST_LOOP(a_limit_counts_pages, TEST_DEVICES) {
  arena_place p = open_arena_with(_i, TEST_NEEDS_RANGES, "arena_pool:page=2M");
  if (p.pool == NULL) return;
  assert_ok(tarn_pool_limit(p.pool, 3 * SIM_PAGE));
  tarn_block a = take(p.pool, SIM_PAGE);
  tarn_block b = take(p.pool, 1000);
  refuse(p.pool, 2 * SIM_PAGE, 0, TARN_FULL);
  assert_error_says("limit of 6.00 MiB (6291456 bytes)");
  ck_assert_uint_eq(stats_of(p.pool).reserved_bytes, 2 * SIM_PAGE);
  give(a);
  // Its page moves, and only one more comes.
  tarn_block c = take(p.pool, 2 * SIM_PAGE);
  ck_assert_uint_eq(stats_of(p.pool).reserved_bytes, 3 * SIM_PAGE);
  give(b);
  give(c);
  ck_assert_uint_eq(stats_of(p.pool).reserved_peak_bytes, 3 * SIM_PAGE);
}

// --- pages -----------------------------------------------------------------

TEST_LOOP(pages_move_from_hole_to_hole, TEST_DEVICES) {
  arena_place p =
      open_arena_with(_i, TEST_NEEDS_RANGES, "arena_pool:page=2M,slack=0");
  if (p.pool == NULL) return;
  tarn_block blocks[8];
  take_many(p.pool, SIM_PAGE, blocks, 8);
  for (int i = 0; i < 8; i += 2)
    give(blocks[i]);
  // No hole is large enough, but all of them together are.
  tarn_block large = take(p.pool, 4 * SIM_PAGE);
  tarn_pool_stats stats = stats_of(p.pool);
  ck_assert_uint_eq(stats.reserved_bytes, 8 * SIM_PAGE);
  ck_assert_uint_eq(stats.device_allocs, 8);
  assert_taken(&p, 8 * SIM_PAGE);
  // The small ones get theirs from there as well.
  give(large);
  tarn_block small = take(p.pool, 100);
  ck_assert_uint_eq(stats_of(p.pool).reserved_bytes, 8 * SIM_PAGE);
  give(small);
  for (int i = 1; i < 8; i += 2)
    give(blocks[i]);
}

// |page| or, if that is more, the device's own step.
static void check_page(int i, const char *strategy, size_t page) {
  arena_place p = open_arena_with(i, TEST_NEEDS_RANGES, strategy);
  if (p.pool == NULL) return;
  size_t step = 0;
  assert_ok(tarn_range_granularity(p.device, &step));
  if (page < step) page = step;
  tarn_block block = take(p.pool, 1000);
  ck_assert_uint_eq(stats_of(p.pool).reserved_bytes, page);
  tarn_block more = take_aligned(p.pool, 5 * (size_t)MIB + 1, 4 * (size_t)MIB);
  ck_assert_uint_eq(stats_of(p.pool).reserved_bytes % page, 0);
  assert_ok(tarn__front_check(p.pool));
  give(block);
  give(more);
  close_arena(&p);
}

TEST_LOOP(pages_are_the_device_s_at_least, TEST_DEVICES) {
  check_page(_i, "arena_pool:page=512", 512);
  check_page(_i, "arena_pool:page=64K", 64 * KIBIBYTE);
  check_page(_i, "arena_pool", 256 * KIBIBYTE);
  check_page(_i, "arena_pool:page=2M", SIM_PAGE);
  check_page(_i, "arena_pool:page=4M", 2 * SIM_PAGE);
  check_page(_i, "arena_pool:page=16M", 8 * SIM_PAGE);
}

// A default page is not too large for a device: memory that the device has is
// given out, and a request for more is refused as on any device.
TEST_LOOP(a_device_below_a_page_is_used_all_the_same, TEST_DEVICES) {
  arena_place p = open_arena_at(
      64 * KIBIBYTE, _i, TEST_NEEDS_RANGES | NEEDS_CAPACITY, "arena_pool");
  if (p.pool == NULL) return;
  refuse(p.pool, 64 * KIBIBYTE + 1, 0, TARN_FULL);
  tarn_block block = take(p.pool, 64 * KIBIBYTE);
  ck_assert_uint_eq(stats_of(p.pool).reserved_bytes, 64 * KIBIBYTE);
  refuse(p.pool, 1, 0, TARN_FULL);
  give(block);
  assert_status(use_strategy(p.place, "arena_pool:page=512K"), TARN_E_INVALID);
  assert_error_says("page=524288 is more than the 65536 bytes of");
  assert_error_says(p.name);
}

TEST_LOOP(a_page_that_is_none_is_refused, TEST_DEVICES) {
  static const struct {
    const char *strategy;
    const char *says;
  } cases[] = {
      {"arena_pool:page=0", "page=0 is not a power of two of at least 512"},
      {"arena_pool:page=256", "page=256 is not a power"},
      {"arena_pool:page=3000", "page=3000 is not a power"},
      {"arena_pool:page=x", "page=x is not a number"},
      {"arena_pool:small=x", "small=x is not a number"},
      {"arena_pool:pages=4K", "no option 'pages'"},
      {"arena_pool:page=128M", "page=134217728 is more than the 67108864"},
      {"arena_pool:page=4611686018427387904", "is more than the 67108864"},
  };
  arena_place p =
      open_arena_with(_i, TEST_NEEDS_RANGES | NEEDS_CAPACITY, "no_pool");
  if (p.pool == NULL) return;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_status(use_strategy(p.place, cases[i].strategy), TARN_E_INVALID);
    assert_error_says(cases[i].says);
    ck_assert_str_eq(stats_of(p.pool).strategy, "no_pool");
  }
}

TEST_LOOP(the_environment_can_name_it, TEST_DEVICES) {
  setenv("TARN_POOL", "arena_pool:page=4M,small=1K", 1);
  arena_place p = open_arena_with(_i, TEST_NEEDS_RANGES, "no_pool");
  if (p.pool == NULL) return;
  assert_ok(use_strategy(p.place, NULL));
  ck_assert_str_eq(stats_of(p.pool).strategy, "arena_pool");
  give(take(p.pool, 2000));
  ck_assert_uint_eq(stats_of(p.pool).reserved_bytes, 4 * (size_t)MIB);
  close_arena(&p);
  unsetenv("TARN_POOL");
}

// --- streams ---------------------------------------------------------------

TEST_LOOP(each_stream_has_its_own_holes, TEST_DEVICES) {
  arena_place p = open_arena_with(_i, 0, "arena_pool");
  tarn_stream *a = stream_on(&p);
  tarn_stream *b = stream_on(&p);
  tarn_block first = take_on(p.pool, 1000, a);
  tarn_block second = take_on(p.pool, 1000, b);
  give_on(first, a);
  give_on(second, b);
  // Each its own, though one hole would do for either.
  tarn_block again_b = take_on(p.pool, 1000, b);
  tarn_block again_a = take_on(p.pool, 1000, a);
  ck_assert_uint_eq(again_a.address, first.address);
  ck_assert_uint_eq(again_b.address, second.address);
  ck_assert_uint_eq(stats_of(p.pool).stream_crossings, 0);
  give_on(again_a, a);
  give_on(again_b, b);
  // Two that touch are of two streams: both have to be waited for.
  size_t crossings = stats_of(p.pool).stream_crossings;
  tarn_pool_stats stats = stats_of(p.pool);
  tarn_block *all = calloc(20000, sizeof *all);
  size_t count = 0;
  while (stats_of(p.pool).misses == stats.misses)
    all[count++] = take_on(p.pool, 1000, a);
  ck_assert_uint_gt(stats_of(p.pool).stream_crossings, crossings);
  while (count > 0)
    give_on(all[--count], a);
  free(all);
  end_stream(a);
  // Any stream may use what a stream that is gone has left.
  crossings = stats_of(p.pool).stream_crossings;
  give_on(take_on(p.pool, 1000, b), b);
  ck_assert_uint_le(stats_of(p.pool).stream_crossings, crossings + 1);
}

// One page, or segment, in which the holes of many streams lie side by side.
static void check_shared_page(int device, int streams) {
  enum { MOST = 6 };
  arena_place p = open_arena_with(device, 0, "arena_pool");
  tarn_stream *on[MOST];
  tarn_block blocks[MOST];
  char out[MOST][8];
  for (int i = 0; i < streams; i++) {
    on[i] = stream_on(&p);
    blocks[i] = take_on(p.pool, 4096, on[i]);
    memset(out[i], 0, sizeof out[i]);
    assert_ok(tarn_copy_h2d(p.device, blocks[i].address, "written", 8, on[i]));
    assert_ok(tarn_copy_d2h(p.device, out[i], blocks[i].address, 8, on[i]));
  }
  for (int i = 0; i < streams; i++)
    give_on(blocks[i], on[i]);
  assert_ok(tarn__front_check(p.pool));
  assert_ok(tarn_pool_trim(p.pool, 0));
  ck_assert_uint_eq(stats_of(p.pool).reserved_bytes, 0);
  for (int i = 0; i < streams; i++) {
    ck_assert_str_eq(out[i], "written");
    end_stream(on[i]);
  }
  close_arena(&p);
}

TEST_LOOP(memory_that_two_streams_share_waits_for_both, TEST_DEVICES) {
  check_shared_page(_i, 2);
}

TEST_LOOP(memory_that_many_streams_share_waits_for_all_of_them, TEST_DEVICES) {
  check_shared_page(_i, 6);
}

// Bins are large: streams that come and go share them.
TEST_LOOP(streams_that_are_gone_leave_no_bins_behind, TEST_DEVICES) {
  arena_place p = open_arena_with(_i, 0, "arena_pool:page=2M");
  tarn_block kept = take(p.pool, 1000);
  size_t held = 0;
  for (int i = 0; i < 200; i++) {
    if (i == 10) held = tarn_host_memory();
    tarn_stream *stream = stream_on(&p);
    give_on(take_on(p.pool, 1000, stream), stream);
    give_on(take_on(p.pool, 100 * KIBIBYTE, stream), stream);
    end_stream(stream);
  }
  ck_assert_uint_le(tarn_host_memory(), held + 1024);
  give(kept);
}

// --- forks -----------------------------------------------------------------

// The child's end: 0 if all is as contracts.md has it.
static int use_in_child(const arena_place *p, const tarn_block *block) {
  tarn_block other;
  if (tarn_pool_alloc(p->pool, 100, 0, NULL, &other) != TARN_E_STATE) return 1;
  if (tarn_pool_free(block, NULL) != TARN_E_STATE) return 2;
  if (tarn_pool_trim(p->pool, 0) != TARN_E_STATE) return 3;
  size_t held = tarn_host_memory();
  (void)tarn_device_close(p->device);
  if (tarn_host_memory() > held) return 4;
  return 0;
}

TEST_LOOP(a_child_of_fork_leaves_it_alone, TEST_DEVICES) {
  arena_place p = open_arena_with(_i, 0, "arena_pool");
  tarn_block block = take(p.pool, 100 * KIBIBYTE);
  give(take(p.pool, 3000));
  pid_t child = fork();
  if (child == 0) _exit(use_in_child(&p, &block));
  int end = -1;
  ck_assert_int_eq(waitpid(child, &end, 0), child);
  ck_assert(WIFEXITED(end));
  ck_assert_int_eq(WEXITSTATUS(end), 0);
  give(block);
}

// --- replaced --------------------------------------------------------------

TEST_LOOP(a_replaced_arena_drains, TEST_DEVICES) {
  enum { COUNT = 12 };
  arena_place p = open_arena_with(_i, TEST_NEEDS_FREE_GROWTH, "arena_pool");
  if (p.pool == NULL) return;
  tarn_stream *stream = stream_on(&p);
  tarn_block blocks[COUNT];
  for (size_t i = 0; i < COUNT; i++)
    blocks[i] = take_on(p.pool, i % 2 ? MIB : 3000, i % 3 ? stream : NULL);
  give(take(p.pool, MIB));
  size_t reserved = stats_of(p.pool).reserved_bytes;
  assert_ok(use_strategy(p.place, "page_unit_pool"));
  ck_assert_uint_lt(stats_of(p.pool).reserved_bytes, reserved);
  for (size_t i = 0; i < COUNT; i++) {
    reserved = stats_of(p.pool).reserved_bytes;
    give_on(blocks[i], i % 3 ? stream : NULL);
    assert_ok(tarn__front_check(p.pool));
    ck_assert_uint_le(stats_of(p.pool).reserved_bytes, reserved);
  }
  ck_assert_uint_eq(stats_of(p.pool).reserved_bytes, 0);
  ck_assert(tarn_list_empty(&p.pool->replaced));
}
