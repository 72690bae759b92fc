// page_unit_pool, as its document describes it: sizes rounded up to a page
// unit, equal rounded sizes share buffers, nothing given back unasked.
#include "kit.h"
#include "support/strategy.h"

// --- rounding --------------------------------------------------------------

TEST(requests_are_rounded_up_to_a_page) {
  static const size_t sizes[][2] = {{1, 4096},     {3000, 4096},  {4095, 4096},
                                    {4096, 4096},  {4097, 8192},  {8192, 8192},
                                    {8193, 12288}, {65536, 65536}};
  tarn_pool *pool = host_pool("page_unit_pool");
  size_t reserved = 0;
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    tarn_block block = take(pool, sizes[i][0]);
    ck_assert_uint_eq(block.size, sizes[i][1]);
    reserved += sizes[i][1];
    ck_assert_uint_eq(stats_of(pool).reserved_bytes, reserved);
  }
}

TEST(requests_of_the_same_rounded_size_share_a_buffer) {
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_block first = take(pool, 3000);
  give(first);
  tarn_block second = take(pool, 4000);
  ck_assert_uint_eq(second.address, first.address);
  give(second);
  tarn_block third = take(pool, 5000);
  ck_assert_uint_ne(third.address, first.address);
  ck_assert_uint_eq(stats_of(pool).hits, 1);
  ck_assert_uint_eq(stats_of(pool).misses, 2);
  give(third);
}

TEST(a_buffer_that_is_used_is_not_shared) {
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_block a = take(pool, 3000);
  tarn_block b = take(pool, 3000);
  ck_assert_uint_ne(a.address, b.address);
  give(a);
  tarn_block c = take(pool, 3000);
  ck_assert_uint_eq(c.address, a.address);
  give(b);
  give(c);
}

TEST(the_last_one_freed_is_the_first_taken) {
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_block blocks[5];
  take_many(pool, 100, blocks, 5);
  give_many(blocks, 5);
  for (int i = 5; i-- > 0;)
    ck_assert_uint_eq(take(pool, 100).address, blocks[i].address);
}

// --- options ---------------------------------------------------------------

static void check_page(const char *strategy, size_t page) {
  tarn_pool *pool = host_pool(strategy);
  ck_assert_str_eq(stats_of(pool).strategy, "page_unit_pool");
  tarn_block small = take(pool, 1);
  tarn_block large = take(pool, page + 1);
  ck_assert_uint_eq(small.size, page);
  ck_assert_uint_eq(large.size, 2 * page);
  give(small);
  give(large);
}

TEST(the_page_can_be_chosen) {
  check_page("page_unit_pool", 4096);
  check_page("page_unit_pool:page=65536", 65536);
  check_page("page_unit_pool:page=64K", 65536);
  check_page("page_unit_pool:page=2M", 2 * (size_t)MIB);
  check_page("page_unit_pool:page=512", 512);
}

typedef struct bad_text {
  const char *text;
  const char *says;
} bad_text;

static const bad_text bad_texts[] = {
    {"page_unit_pool:page=3", "page=3 "},
    {"page_unit_pool:page=0", "page=0 "},
    {"page_unit_pool:page=x", "page=x "},
    {"page_unit_pool:page=", "page= "},
    {"page_unit_pool:page=-4096", "page=-4096 "},
    {"page_unit_pool:page= 4096", "page= 4096 "},
    {"page_unit_pool:page=4K,page=8K", "twice"},
    {"page_unit_pool:page=4096B", "page=4096B "},
    {"page_unit_pool:page=4k", "page=4k "},
    {"page_unit_pool:page=4KK", "page=4KK "},
    {"page_unit_pool:page=K", "page=K "},
    {"page_unit_pool:page=0x1000", "page=0x1000 "},
    {"page_unit_pool:page=18446744073709551616", "=18446744073709551616 "},
    {"page_unit_pool:page=17179869184G", "page=17179869184G "},
    {"page_unit_pool:nosuch=1", "'nosuch'"},
    {"page_unit_pool:page=4096,nosuch=1", "'nosuch'"},
    {"page_unit_pool:page", "'page' is not key=value"},
    {"page_unit_pool:=4096", "'=4096' is not key=value"},
    {"page_unit_pool:", "'' is not key=value"},
    {"page_unit_pool:,", "'' is not key=value"},
    {"page_unit_pool:page=4096,", "'' is not key=value"},
    {"page_unit_pool:,page=4096", "'' is not key=value"},
    {"page_unit_pool:page=1,a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1", "more than 8"},
    {"no_pool:page=4096", "'page'"},
    {"", "no strategy ''"},
    {":page=4096", "no strategy ''"},
    {"page_unit", "no strategy 'page_unit'"},
    {"Page_Unit_Pool", "no strategy 'Page_Unit_Pool'"},
    {"no_pool ", "no strategy 'no_pool '"},
    {"nosuch", "page_unit_pool, no_pool"},
};

static void check_bad_text(tarn_pool *pool, const char *text,
                           const char *says) {
  tarn_pool_stats before = stats_of(pool);
  size_t held = tarn_host_memory();
  assert_status(use_strategy(TARN_HOST, text), TARN_E_INVALID);
  assert_error_says(says);
  assert_same_stats(before, stats_of(pool));
  ck_assert_uint_eq(tarn_host_memory(), held);
}

TEST(bad_options_change_nothing) {
  tarn_pool *pool = host_pool("page_unit_pool:page=16K");
  tarn_block kept = take(pool, 100);
  tarn_block idle = take(pool, 100);
  give(idle);
  for (size_t i = 0; i < sizeof bad_texts / sizeof bad_texts[0]; i++)
    check_bad_text(pool, bad_texts[i].text, bad_texts[i].says);
  tarn_block again = take(pool, 100);
  ck_assert_uint_eq(again.address, idle.address);
  ck_assert_uint_eq(again.size, 16 * KIB);
  give(again);
  give(kept);
}

TEST(a_text_that_is_too_long_is_refused) {
  char text[301];
  memset(text, 'x', sizeof text - 1);
  text[300] = '\0';
  tarn_pool *pool = host_pool("page_unit_pool");
  check_bad_text(pool, text, "over 255 bytes");
  text[256] = '\0';
  check_bad_text(pool, text, "over 255 bytes");
  text[255] = '\0';
  check_bad_text(pool, text, "no strategy 'xxxx");
}

// --- keeping and giving back -----------------------------------------------

TEST(nothing_is_given_back_before_it_is_asked_for) {
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_block blocks[10];
  for (size_t i = 0; i < 10; i++)
    blocks[i] = take(pool, (i + 1) * 4096);
  give_many(blocks, 10);
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 55 * 4096);
  ck_assert_uint_eq(stats_of(pool).device_frees, 0);
  ck_assert_uint_eq(stats_of(pool).live_bytes, 0);
}

TEST(trim_gives_all_idle_memory_back) {
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_block kept = take(pool, 4096);
  memset(bytes_of(kept), 0x77, kept.size);
  tarn_block blocks[10];
  for (size_t i = 0; i < 10; i++)
    blocks[i] = take(pool, (i + 1) * 4096);
  give_many(blocks, 10);
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 4096);
  ck_assert_uint_eq(stats_of(pool).device_frees, 10);
  ck_assert_int_eq(bytes_of(kept)[4095], 0x77);
  assert_ok(tarn__front_check(pool));
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_eq(stats_of(pool).device_frees, 10);
  give(kept);
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
}

typedef struct counters {
  uint64_t hits, misses, device_allocs, device_frees;
} counters;

static void assert_counters(tarn_pool *pool, counters expected) {
  tarn_pool_stats stats = stats_of(pool);
  ck_assert_uint_eq(stats.hits, expected.hits);
  ck_assert_uint_eq(stats.misses, expected.misses);
  ck_assert_uint_eq(stats.device_allocs, expected.device_allocs);
  ck_assert_uint_eq(stats.device_frees, expected.device_frees);
}

TEST(a_scripted_sequence_counts_exactly) {
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_block a = take(pool, 3000);
  assert_counters(pool, (counters){0, 1, 1, 0});
  give(a);
  a = take(pool, 4096);
  assert_counters(pool, (counters){1, 1, 1, 0});
  tarn_block b = take(pool, 10);
  assert_counters(pool, (counters){1, 2, 2, 0});
  tarn_block c = take(pool, 5000);
  assert_counters(pool, (counters){1, 3, 3, 0});
  give(a);
  give(b);
  give(c);
  c = take(pool, 8192);
  a = take(pool, 1);
  b = take(pool, 2);
  assert_counters(pool, (counters){4, 3, 3, 0});
  give(b);
  assert_ok(tarn_pool_trim(pool, 0));
  assert_counters(pool, (counters){4, 3, 3, 1});
  b = take(pool, 2);
  assert_counters(pool, (counters){4, 4, 4, 1});
  ck_assert_uint_eq(stats_of(pool).allocs, 8);
  ck_assert_uint_eq(stats_of(pool).frees, 5);
  ck_assert_uint_eq(stats_of(pool).failures, 0);
}

TEST(a_second_iteration_asks_the_device_for_nothing) {
  tarn_pool *pool = host_pool("page_unit_pool");
  for (int iteration = 0; iteration < 3; iteration++) {
    tarn_block blocks[40];
    for (size_t i = 0; i < 40; i++)
      blocks[i] = take(pool, 1000 * (i % 13 + 1));
    give_many(blocks, 40);
    ck_assert_uint_eq(stats_of(pool).misses, 40);
    ck_assert_uint_eq(stats_of(pool).hits, 40u * (unsigned)iteration);
  }
}

// The documented worst case.
TEST(growing_sizes_reuse_nothing) {
  enum { COUNT = 100 };
  tarn_pool *pool = host_pool("page_unit_pool");
  size_t sum = 0;
  for (size_t i = 1; i <= COUNT; i++) {
    give(take(pool, i * 4096));
    sum += i * 4096;
  }
  assert_counters(pool, (counters){0, COUNT, COUNT, 0});
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, sum);
  ck_assert_uint_eq(stats_of(pool).live_peak_bytes, COUNT * 4096);
  assert_ok(tarn__front_check(pool));
}

// Sizes that never come again leave nothing behind once they are trimmed.
TEST(a_trim_forgets_sizes_that_are_not_out) {
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_block kept = take(pool, 12345);
  give(take(pool, 4096));
  assert_ok(tarn_pool_trim(pool, 0));
  size_t held = tarn_host_memory();
  for (size_t i = 1; i <= 500; i++)
    give(take(pool, i * 4096));
  ck_assert_uint_gt(tarn_host_memory(), held + 500 * sizeof(void *));
  assert_ok(tarn_pool_trim(pool, 0));
  // Records of pieces stay for the next ones, in slabs of twice the size each,
  // and so do outgrown indices; classes do not.
  size_t records = (256 + 512) * sizeof(tarn__pool_piece) +
                   (512 + 1024 + 2048 + 4096) * sizeof(uint64_t) + 512;
  ck_assert_uint_le(tarn_host_memory(), held + records);
  assert_ok(tarn__front_check(pool));
  give(kept);
  give(take(pool, 12345));
  ck_assert_uint_eq(stats_of(pool).hits, 1);
}

TEST(what_can_never_fit_gives_nothing_back) {
  tarn_pool *pool = host_pool("page_unit_pool");
  give(take(pool, MIB));
  assert_ok(tarn_pool_limit(pool, 2 * MIB));
  refuse(pool, 3 * MIB, 0, TARN_FULL);
  ck_assert_uint_eq(stats_of(pool).device_frees, 0);
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, MIB);
}
