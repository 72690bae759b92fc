// What the front keeps count of: tags, limits, peaks, statistics.
#include <stddef.h>
#include <stdio.h>

#include "kit.h"
#include "support/strategy.h"

// --- tags ------------------------------------------------------------------

TEST(a_name_is_one_tag) {
  tarn_tag a = tag_of("activations");
  tarn_tag b = tag_of("gradients");
  ck_assert_uint_ne(a, 0);
  ck_assert_uint_ne(a, b);
  char copy[] = "activations";
  ck_assert_uint_eq(tag_of(copy), a);
  memset(copy, 'x', sizeof copy - 1);
  ck_assert_str_eq(tarn_pool_tag_name(a), "activations");
  ck_assert_str_eq(tarn_pool_tag_name(b), "gradients");
  ck_assert_str_eq(tarn_pool_tag_name(0), "untagged");
  ck_assert_str_eq(tarn_pool_tag_name(b + 1), "untagged");
  ck_assert_str_eq(tarn_pool_tag_name(UINT32_MAX), "untagged");
}

TEST(a_tag_needs_a_name) {
  tarn_tag tag = 7;
  assert_status(tarn_pool_tag(NULL, &tag), TARN_E_INVALID);
  ck_assert_uint_eq(tag, 0);
  tag = 7;
  assert_status(tarn_pool_tag("", &tag), TARN_E_INVALID);
  assert_error_says("empty");
  ck_assert_uint_eq(tag, 0);
}

TEST(there_are_at_most_65535_tags) {
  char name[32];
  for (unsigned i = 1; i <= 65535; i++) {
    snprintf(name, sizeof name, "layer %u", i);
    tarn_tag tag = 0;
    tarn_status status = tarn_pool_tag(name, &tag);
    if (status != TARN_OK || tag != i) ck_abort_msg("%s is tag %u", name, tag);
  }
  tarn_tag tag = 7;
  assert_status(tarn_pool_tag("one more", &tag), TARN_E_INVALID);
  assert_error_says("one more");
  assert_error_says("65535");
  ck_assert_uint_eq(tag, 0);
  ck_assert_uint_eq(tag_of("layer 1"), 1);
  ck_assert_uint_eq(tag_of("layer 65535"), 65535);
  ck_assert_str_eq(tarn_pool_tag_name(65535), "layer 65535");

  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_block block = take_tagged(pool, 100, 65535);
  ck_assert_uint_eq(tag_stats_of(pool, 65535).live_bytes, 100);
  ck_assert_uint_eq(tag_stats_of(pool, 65534).live_bytes, 0);
  give(block);
}

// A number that was never given out must not become the size of a table.
TEST(a_number_that_is_no_tag_is_refused) {
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_pool_stats before = stats_of(pool);
  const tarn_tag numbers[] = {tag_of("the only one") + 1, 65536, UINT32_MAX};
  size_t held = tarn_host_memory();
  for (int i = 0; i < 3; i++) {
    tarn_block block;
    memset(&block, 0xff, sizeof block);
    assert_status(alloc_tagged(pool, 100, 0, NULL, numbers[i], &block),
                  TARN_E_INVALID);
    assert_zero_block(block);
    ck_assert_uint_eq(tag_stats_of(pool, numbers[i]).live_bytes, 0);
  }
  assert_same_stats(before, stats_of(pool));
  ck_assert_uint_eq(tarn_host_memory(), held);
}

TEST(every_tag_has_its_own_count) {
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_tag a = tag_of("a");
  tarn_tag b = tag_of("b");
  assert_tag(pool, a, 0, 0, 0);
  tarn_block a1 = take_tagged(pool, 100, a);
  tarn_block a2 = take_tagged(pool, 200, a);
  tarn_block b1 = take_tagged(pool, 5000, b);
  tarn_block plain = take(pool, 7);
  assert_tag(pool, a, 300, 300, 2);
  assert_tag(pool, b, 5000, 5000, 1);
  assert_tag(pool, 0, 7, 7, 1);
  give(a1);
  assert_tag(pool, a, 200, 300, 1);
  assert_ok(use_strategy(TARN_HOST, "no_pool"));
  assert_tag(pool, a, 200, 300, 1);
  assert_ok(tarn_pool_free_address(pool, a2.address, NULL));
  give(b1);
  give(plain);
  assert_tag(pool, a, 0, 300, 0);
  assert_tag(pool, b, 0, 5000, 0);
  assert_tag(pool, 0, 0, 7, 0);
}

TEST(a_buffer_that_is_reused_counts_for_its_new_tag) {
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_block block = take_tagged(pool, 100, tag_of("first"));
  give(block);
  tarn_block again = take_tagged(pool, 50, tag_of("second"));
  ck_assert_uint_eq(again.address, block.address);
  assert_tag(pool, tag_of("first"), 0, 100, 0);
  assert_tag(pool, tag_of("second"), 50, 50, 1);
  give(again);
}

// --- limits ----------------------------------------------------------------

static void assert_full(tarn_pool *pool, size_t size, size_t align,
                        const char *says) {
  tarn_pool_stats before = stats_of(pool);
  refuse(pool, size, align, TARN_FULL);
  assert_error_says(says);
  tarn_pool_stats after = stats_of(pool);
  ck_assert_uint_eq(after.failures, before.failures + 1);
  ck_assert_uint_eq(after.device_allocs, before.device_allocs);
  ck_assert_uint_eq(after.misses, before.misses);
  ck_assert_uint_eq(after.live_bytes, before.live_bytes);
}

TEST(a_limit_is_checked_before_the_device_is_asked) {
  tarn_pool *pool = host_pool("page_unit_pool");
  assert_ok(tarn_pool_limit(pool, 10 * 4096));
  ck_assert_uint_eq(stats_of(pool).limit_bytes, 10 * 4096);
  tarn_block a = take(pool, 4 * 4096);
  tarn_block b = take(pool, 6 * 4096);
  assert_full(pool, 1, 0, "limit of 40.00 KiB (40960 bytes)");
  give(b);
  assert_full(pool, 6 * 4096 + 1, 0,
              "this would exceed the limit of 40.00 KiB (40960 bytes)");
  b = take(pool, 6 * 4096);
  give(a);
  give(b);
  ck_assert_uint_eq(stats_of(pool).reserved_peak_bytes, 10 * 4096);
}

TEST(a_limit_counts_rounded_sizes) {
  tarn_pool *pool = host_pool("page_unit_pool");
  assert_ok(tarn_pool_limit(pool, 4095));
  assert_full(pool, 1, 0, "limit of 3.99 KiB (4095 bytes)");
  assert_ok(use_strategy(TARN_HOST, "no_pool"));
  tarn_block block = take(pool, 4095);
  assert_full(pool, 1, 0, "limit of 3.99 KiB (4095 bytes)");
  give(block);
}

TEST(idle_memory_makes_room_below_a_limit) {
  tarn_pool *pool = host_pool("page_unit_pool");
  assert_ok(tarn_pool_limit(pool, MIB));
  give(take(pool, MIB));
  tarn_block block = take(pool, MIB / 2);
  tarn_pool_stats stats = stats_of(pool);
  ck_assert_uint_eq(stats.reserved_bytes, MIB / 2);
  ck_assert_uint_eq(stats.device_allocs, 2);
  ck_assert_uint_eq(stats.device_frees, 1);
  ck_assert_uint_eq(stats.misses, 2);
  ck_assert_uint_eq(stats.failures, 0);
  ck_assert_uint_eq(stats.reserved_peak_bytes, MIB);
  give(block);
}

TEST(a_lower_limit_only_stops_growth) {
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_block a = take(pool, MIB);
  tarn_block b = take(pool, MIB);
  assert_ok(tarn_pool_limit(pool, 4096));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 2 * MIB);
  memset(bytes_of(a), 1, a.size);
  give(b);
  tarn_block again = take(pool, MIB);  // held already: no growth
  ck_assert_uint_eq(again.address, b.address);
  give(again);
  assert_full(pool, 4096, 0, "limit of 4.00 KiB (4096 bytes)");
  give(a);
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, MIB);
  tarn_block small = take(pool, 4096);  // in the room of what was idle
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 4096);
  give(small);
}

TEST(a_limit_of_0_is_none) {
  tarn_pool *pool = host_pool("no_pool");
  assert_ok(tarn_pool_limit(pool, 1));
  assert_full(pool, 2, 0, "limit of 1");
  assert_ok(tarn_pool_limit(pool, 0));
  give(take(pool, 64 * MIB));
  ck_assert_uint_eq(stats_of(pool).limit_bytes, 0);
}

// An aligned part of a device's memory needs more of it than the block has.
TEST(a_limit_holds_with_large_alignments) {
  static const char *const strategies[] = {"page_unit_pool", "no_pool"};
  for (int s = 0; s < 2; s++) {
    tarn_pool *pool = host_pool(strategies[s]);
    assert_ok(tarn_pool_limit(pool, MIB));
    for (int i = 0; i < 20; i++) {
      tarn_block block = {0};
      tarn_status status = tarn_pool_alloc(pool, 4096, 4 * MIB, NULL, &block);
      ck_assert_uint_le(stats_of(pool).reserved_bytes, MIB);
      ck_assert(status == TARN_OK || status == TARN_FULL);
      if (status == TARN_OK) ck_assert_uint_eq(block.address % (4 * MIB), 0);
      if (status == TARN_OK) give(block);
      assert_ok(tarn__front_check(pool));
    }
    ck_assert_uint_le(stats_of(pool).reserved_peak_bytes, MIB);
  }
}

// --- statistics ------------------------------------------------------------

TEST(peaks_start_again_from_now) {
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_tag tag = tag_of("peaks");
  tarn_block kept = take_tagged(pool, 100, tag);
  give(take_tagged(pool, 10000, tag));
  ck_assert_uint_eq(stats_of(pool).live_peak_bytes, 10100);
  ck_assert_uint_eq(stats_of(pool).reserved_peak_bytes, 4096 + 12288);
  ck_assert_uint_eq(tag_stats_of(pool, tag).live_peak_bytes, 10100);
  assert_ok(tarn_pool_reset_peaks(pool));
  ck_assert_uint_eq(stats_of(pool).live_peak_bytes, 100);
  ck_assert_uint_eq(stats_of(pool).reserved_peak_bytes, 4096 + 12288);
  ck_assert_uint_eq(tag_stats_of(pool, tag).live_peak_bytes, 100);
  assert_ok(tarn_pool_trim(pool, 0));
  assert_ok(tarn_pool_reset_peaks(pool));
  ck_assert_uint_eq(stats_of(pool).reserved_peak_bytes, 4096);
  give(take(pool, 200));
  ck_assert_uint_eq(stats_of(pool).live_peak_bytes, 300);
  give(kept);
}

TEST(statistics_fit_the_caller_s_struct) {
  tarn_pool *pool = host_pool("no_pool");
  tarn_block block = take(pool, 10);
  struct {
    tarn_pool_stats stats;
    unsigned char beyond[16];
  } newer;
  memset(&newer, 0xee, sizeof newer);
  newer.stats.struct_size = sizeof newer;
  assert_ok(tarn_pool_query(pool, &newer.stats));
  ck_assert_uint_eq(newer.stats.struct_size, sizeof newer.stats);
  ck_assert_uint_eq(newer.stats.live_bytes, 10);
  ck_assert_uint_eq(newer.stats.stream_crossings, 0);
  for (size_t i = 0; i < sizeof newer.beyond; i++)
    ck_assert_uint_eq(newer.beyond[i], 0xee);

  tarn_pool_stats first = {.struct_size = 0};
  assert_ok(tarn_pool_query(pool, &first));
  ck_assert_uint_eq(first.live_bytes, 10);
  ck_assert_uint_eq(first.device_allocs, 1);

  // That of the first version ended before what sleeps.
  first.struct_size = offsetof(tarn_pool_stats, asleep_bytes);
  assert_ok(tarn_pool_query(pool, &first));
  first.struct_size--;
  assert_status(tarn_pool_query(pool, &first), TARN_E_INVALID);
  assert_error_says("struct_size");
  assert_status(tarn_pool_query(pool, NULL), TARN_E_INVALID);
  give(block);
}

TEST(tag_statistics_fit_the_caller_s_struct) {
  tarn_pool *pool = host_pool("no_pool");
  tarn_block block = take(pool, 10);
  struct {
    tarn_pool_tag_stats stats;
    unsigned char beyond[16];
  } newer;
  memset(&newer, 0xee, sizeof newer);
  newer.stats.struct_size = sizeof newer;
  assert_ok(tarn_pool_query_tag(pool, 0, &newer.stats));
  ck_assert_uint_eq(newer.stats.struct_size, sizeof newer.stats);
  ck_assert_uint_eq(newer.stats.live_bytes, 10);
  for (size_t i = 0; i < sizeof newer.beyond; i++)
    ck_assert_uint_eq(newer.beyond[i], 0xee);

  tarn_pool_tag_stats first = {.struct_size = 0};
  assert_ok(tarn_pool_query_tag(pool, 0, &first));
  ck_assert_uint_eq(first.live_blocks, 1);
  first.struct_size = 8;
  assert_status(tarn_pool_query_tag(pool, 0, &first), TARN_E_INVALID);
  assert_error_says("struct_size");
  assert_status(tarn_pool_query_tag(pool, 0, NULL), TARN_E_INVALID);
  give(block);
}

TEST(statistics_of_no_pool_are_zero) {
  tarn_pool_stats stats;
  memset(&stats, 0xff, sizeof stats);
  stats.struct_size = sizeof stats;
  assert_status(tarn_pool_query(NULL, &stats), TARN_E_INVALID);
  ck_assert_uint_eq(stats.live_bytes, 0);
  ck_assert_uint_eq(stats.stream_crossings, 0);
  tarn_pool_tag_stats of_tag;
  memset(&of_tag, 0xff, sizeof of_tag);
  of_tag.struct_size = sizeof of_tag;
  assert_status(tarn_pool_query_tag(NULL, 0, &of_tag), TARN_E_INVALID);
  ck_assert_uint_eq(of_tag.live_blocks, 0);
}
