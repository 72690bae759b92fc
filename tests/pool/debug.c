// Pools that debug, on the host's memory: options, guards, poison, quarantine,
// what is found and where it is reported.
#include <stdio.h>

#include "kit.h"

// What AddressSanitizer and valgrind would stop is done behind their backs.
#if defined(__SANITIZE_ADDRESS__)
#define BEHIND_BACKS __attribute__((no_sanitize_address))
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BEHIND_BACKS __attribute__((no_sanitize("address")))
#endif
#endif
#ifndef BEHIND_BACKS
#define BEHIND_BACKS
#endif

BEHIND_BACKS static void write_at(tarn_addr address, unsigned char byte) {
  *(volatile unsigned char *)(uintptr_t)address = byte;
}

BEHIND_BACKS static unsigned char byte_at(tarn_addr address) {
  return *(volatile unsigned char *)(uintptr_t)address;
}

static bool all_are(tarn_addr address, size_t size, unsigned char byte) {
  for (size_t i = 0; i < size; i++) {
    if (byte_at(address + i) != byte) return false;
  }
  return true;
}

static struct {
  size_t count;
  tarn_pool *pool;
  tarn_pool_finding last;
} told;

static void remember(void *context, tarn_pool *pool,
                     const tarn_pool_finding *finding) {
  ck_assert_ptr_eq(context, &told);
  told.count++;
  told.pool = pool;
  told.last = *finding;
}

static void debug_with(tarn_pool *pool, uint32_t flags, size_t bytes) {
  tarn_pool_debug_options options = {.struct_size = sizeof options,
                                     .flags = flags,
                                     .quarantine_bytes = bytes,
                                     .found = remember,
                                     .context = &told};
  assert_ok(tarn_pool_debug(pool, &options));
}

static tarn_pool *debugging(const char *strategy, uint32_t flags) {
  tarn_pool *pool = host_pool(strategy);
  debug_with(pool, flags, 0);
  return pool;
}

static tarn_pool_debug_stats report_of(tarn_pool *pool) {
  tarn_pool_debug_stats stats = {.struct_size = sizeof stats};
  assert_ok(tarn_pool_debug_report(pool, &stats));
  return stats;
}

static void assert_told(tarn_pool_finding_kind kind, tarn_block block,
                        size_t size, size_t offset) {
  ck_assert_int_eq(told.last.kind, kind);
  ck_assert_uint_eq(told.last.address, block.address);
  ck_assert_uint_eq(told.last.size, size);
  ck_assert_uint_eq(told.last.offset, offset);
  ck_assert_ptr_eq(told.pool, block.pool);
}

static void assert_rest(tarn_pool *pool) {
  assert_ok(tarn__front_check(pool));
  ck_assert_uint_eq(stats_of(pool).live_blocks, 0);
  ck_assert_uint_eq(stats_of(pool).live_bytes, 0);
}

// --- guards ----------------------------------------------------------------

TEST_LOOP(a_guarded_block_is_as_large_as_was_asked_for, ALL_STRATEGIES) {
  tarn_pool *pool = debugging(any_strategy(_i), TARN_POOL_DEBUG_GUARDS);
  static const size_t sizes[] = {1, 7, 64, 100, 4096, 70000, 3 * (size_t)MIB};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    tarn_block block = take(pool, sizes[i]);
    tarn_block found;
    ck_assert_uint_eq(block.size, sizes[i]);
    assert_ok(tarn_pool_block_of(pool, block.address, &found, NULL));
    assert_same_block(found, block);
    ck_assert_uint_eq(stats_of(pool).live_bytes, sizes[i]);
    require(all_are(block.address + sizes[i], 64, TARN_POOL_GUARD_BYTE));
    memset(bytes_of(block), 0x11, block.size);
    give(block);
  }
  assert_rest(pool);
}

TEST_LOOP(an_overrun_is_told_by_the_free, ALL_STRATEGIES) {
  tarn_pool *pool = debugging(any_strategy(_i), TARN_POOL_DEBUG_GUARDS);
  uint64_t before = report_of(pool).overruns;
  tarn_block block = take_tagged(pool, 1000, tag_of("weights"));
  write_at(block.address + 1003, 0x41);
  assert_status(tarn_pool_free(&block, NULL), TARN_E_CORRUPT);
  assert_error_says("weights");
  assert_error_says("1000 bytes");
  assert_error_says("offset 1003");
  assert_error_says("0x41");
  assert_told(TARN_POOL_OVERRUN, block, 1000, 1003);
  ck_assert_uint_eq(told.last.byte, 0x41);
  ck_assert_uint_eq(told.last.tag, tag_of("weights"));
  ck_assert_uint_eq(report_of(pool).overruns, before + 1);
  assert_ok(tarn_pool_debug_check(pool));  // it has been told
  assert_rest(pool);
}

TEST(a_check_finds_an_overrun_of_a_live_block_once) {
  tarn_pool *pool = debugging("arena_pool", TARN_POOL_DEBUG_GUARDS);
  tarn_block block = take_tagged(pool, 100, tag_of("cache"));
  tarn_block other = take(pool, 100);
  assert_ok(tarn_pool_debug_check(pool));
  write_at(block.address + 100, 0);
  assert_status(tarn_pool_debug_check(pool), TARN_E_CORRUPT);
  assert_error_says("cache");
  assert_error_says("offset 100");
  assert_told(TARN_POOL_OVERRUN, block, 100, 100);
  ck_assert_uint_eq(byte_at(block.address + 100), TARN_POOL_GUARD_BYTE);
  assert_ok(tarn_pool_debug_check(pool));
  give(block);
  give(other);
  assert_rest(pool);
}

TEST(the_end_of_a_guard_is_watched_too) {
  tarn_pool *pool = debugging("page_unit_pool", TARN_POOL_DEBUG_GUARDS);
  tarn_block block = take(pool, 100);
  write_at(block.address + 4095, 1);
  assert_status(tarn_pool_free(&block, NULL), TARN_E_CORRUPT);
  assert_told(TARN_POOL_OVERRUN, block, 100, 4095);
}

// --- poison ----------------------------------------------------------------

TEST(fresh_and_freed_blocks_are_filled) {
  tarn_pool *pool = debugging("page_unit_pool", TARN_POOL_DEBUG_POISON);
  tarn_block block = take(pool, 5000);
  ck_assert_uint_ge(block.size, 8192);
  require(all_are(block.address, block.size, TARN_POOL_FRESH_BYTE));
  memset(bytes_of(block), 0, block.size);
  give(block);
  require(all_are(block.address, block.size, TARN_POOL_FREED_BYTE));
  tarn_block again = take(pool, 5000);
  ck_assert_uint_eq(again.address, block.address);
  require(all_are(again.address, again.size, TARN_POOL_FRESH_BYTE));
  give(again);
  assert_rest(pool);
}

// --- quarantine ------------------------------------------------------------

TEST_LOOP(a_freed_block_is_not_used_again_while_it_is_aside, ALL_STRATEGIES) {
  tarn_pool *pool = debugging(any_strategy(_i), TARN_POOL_DEBUG_QUARANTINE);
  tarn_block block = take_tagged(pool, 5000, tag_of("old"));
  give(block);
  ck_assert_uint_eq(report_of(pool).quarantine_blocks, 1);
  ck_assert_uint_ge(report_of(pool).quarantine_bytes, 5000);
  ck_assert_uint_eq(stats_of(pool).live_blocks, 0);
  assert_status(tarn_pool_free(&block, NULL), TARN_E_INVALID);
  assert_error_says("it was old");
  assert_status(tarn_pool_free_address(pool, block.address, NULL),
                TARN_E_INVALID);
  assert_error_says("it was old");
  tarn_block other = take(pool, 5000);
  ck_assert_uint_ne(other.address, block.address);
  give(other);
  assert_ok(tarn__front_check(pool));
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_eq(report_of(pool).quarantine_blocks, 0);
  ck_assert_uint_eq(report_of(pool).quarantine_bytes, 0);
  assert_rest(pool);
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
}

TEST_LOOP(a_write_after_free_is_found_when_it_leaves, ALL_STRATEGIES) {
  tarn_pool *pool = debugging(any_strategy(_i), TARN_POOL_DEBUG_QUARANTINE);
  uint64_t before = report_of(pool).stale_writes;
  tarn_block block = take_tagged(pool, 5000, tag_of("gradients"));
  give(block);
  write_at(block.address + 17, 0x42);
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_eq(report_of(pool).stale_writes, before + 1);
  assert_told(TARN_POOL_STALE_WRITE, block, 5000, 17);
  assert_status(tarn_pool_debug_check(pool), TARN_E_CORRUPT);
  assert_error_says("gradients");
  assert_error_says("after it was freed");
  assert_error_says("offset 17");
  assert_ok(tarn_pool_debug_check(pool));
  assert_rest(pool);
}

TEST(a_check_finds_a_write_after_free_once) {
  tarn_pool *pool = debugging("arena_pool", 0);
  tarn_block a = take(pool, 100);
  tarn_block b = take_tagged(pool, 100, tag_of("loss"));
  give(a);
  give(b);
  write_at(b.address, 0);
  assert_status(tarn_pool_debug_check(pool), TARN_E_CORRUPT);
  assert_error_says("loss");
  assert_told(TARN_POOL_STALE_WRITE, b, 100, 0);
  assert_ok(tarn_pool_debug_check(pool));
  size_t found = told.count;
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_eq(told.count, found);
}

TEST(the_first_that_was_freed_leaves_first) {
  tarn_pool *pool = debugging("page_unit_pool", TARN_POOL_DEBUG_QUARANTINE);
  debug_with(pool, TARN_POOL_DEBUG_QUARANTINE, (size_t)3 * 4096);
  tarn_block blocks[5];
  take_many(pool, 4096, blocks, 5);
  give_many(blocks, 3);
  ck_assert_uint_eq(report_of(pool).quarantine_blocks, 3);
  give(blocks[3]);
  ck_assert_uint_eq(report_of(pool).quarantine_blocks, 3);
  tarn_block again = take(pool, 4096);
  ck_assert_uint_eq(again.address, blocks[0].address);
  give(again);
  give(blocks[4]);
  assert_ok(tarn_pool_trim(pool, 0));
  assert_rest(pool);
}

TEST(what_is_larger_than_the_quarantine_goes_home_at_once) {
  tarn_pool *pool = host_pool("page_unit_pool");
  debug_with(pool, 0, 8192);
  tarn_block block = take(pool, 100000);
  give(block);
  ck_assert_uint_eq(report_of(pool).quarantine_blocks, 0);
  tarn_block again = take(pool, 100000);
  ck_assert_uint_eq(again.address, block.address);
  give(again);
  assert_rest(pool);
}

TEST_LOOP(the_quarantine_is_emptied_before_a_request_fails, ALL_STRATEGIES) {
  tarn_pool *pool = debugging(any_strategy(_i), TARN_POOL_DEBUG_QUARANTINE);
  assert_ok(tarn_pool_trim(pool, 0));
  assert_ok(tarn_pool_limit(pool, 2 * (size_t)MIB));
  tarn_block block = take(pool, MIB);
  give(block);
  for (int i = 0; i < 10; i++) {
    block = take(pool, (size_t)MIB + MIB / 4);
    give(block);
  }
  refuse(pool, 4 * (size_t)MIB, 0, TARN_FULL);
  assert_ok(tarn_pool_limit(pool, 0));
  assert_ok(tarn_pool_trim(pool, 0));
  assert_rest(pool);
}

TEST_LOOP(a_switch_of_strategy_empties_it, ALL_STRATEGIES) {
  tarn_pool *pool = debugging(any_strategy(_i), 0);
  tarn_block aside = take(pool, 5000);
  tarn_block stays = take(pool, 5000);
  give(aside);
  assert_ok(use_strategy(TARN_HOST, "no_pool"));
  ck_assert_uint_eq(report_of(pool).quarantine_blocks, 0);
  write_at(stays.address + 5000, 1);
  assert_status(tarn_pool_free(&stays, NULL), TARN_E_CORRUPT);
  ck_assert_uint_eq(report_of(pool).quarantine_blocks, 0);
  assert_rest(pool);
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
  ck_assert(tarn_list_empty(&pool->replaced));
}

// --- switching on and off --------------------------------------------------

TEST(blocks_keep_what_they_were_taken_with) {
  tarn_pool *pool = host_pool("arena_pool");
  tarn_block plain = take(pool, 100);
  debug_with(pool, 0, 0);
  tarn_block guarded = take(pool, 100);
  ck_assert_uint_gt(plain.size, 100);
  ck_assert_uint_eq(guarded.size, 100);
  give(plain);
  ck_assert_uint_eq(report_of(pool).quarantine_blocks, 0);
  assert_ok(tarn_pool_debug(pool, NULL));
  ck_assert_uint_eq(report_of(pool).flags, 0);
  write_at(guarded.address + 101, 1);
  assert_status(tarn_pool_debug_check(pool), TARN_E_CORRUPT);
  give(guarded);
  ck_assert_uint_eq(report_of(pool).quarantine_blocks, 0);
  tarn_block after = take(pool, 100);
  ck_assert_uint_gt(after.size, 100);
  give(after);
  assert_rest(pool);
}

TEST(switching_off_empties_the_quarantine) {
  tarn_pool *pool = debugging("page_unit_pool", 0);
  give(take(pool, 100));
  give(take(pool, 200));
  ck_assert_uint_eq(report_of(pool).quarantine_blocks, 2);
  assert_ok(tarn_pool_debug(pool, NULL));
  ck_assert_uint_eq(report_of(pool).quarantine_blocks, 0);
  assert_ok(tarn_pool_debug(pool, NULL));
  assert_rest(pool);
}

TEST(wrong_options_change_nothing) {
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_pool_debug_options options = {.struct_size = sizeof options,
                                     .flags = 1u << 3};
  assert_status(tarn_pool_debug(pool, &options), TARN_E_INVALID);
  assert_error_says("0x8");
  options = (tarn_pool_debug_options){.struct_size = 4};
  assert_status(tarn_pool_debug(pool, &options), TARN_E_INVALID);
  assert_status(tarn_pool_debug(NULL, NULL), TARN_E_INVALID);
  assert_status(tarn_pool_debug_check(NULL), TARN_E_INVALID);
  assert_status(tarn_pool_debug_report(pool, NULL), TARN_E_INVALID);
  tarn_pool_debug_stats stats = {.struct_size = 1};
  assert_status(tarn_pool_debug_report(pool, &stats), TARN_E_INVALID);
  ck_assert_uint_eq(report_of(pool).flags, 0);
  ck_assert_uint_eq(report_of(pool).verified, 0);
  assert_ok(tarn_pool_debug_check(pool));
  options = (tarn_pool_debug_options){0};  // all that there is
  assert_ok(tarn_pool_debug(pool, &options));
  ck_assert_uint_eq(report_of(pool).flags, 7);
}

static void pool_with_variable(const char *value, uint32_t flags) {
  tarn_pool *pool = NULL;
  ck_assert_int_eq(setenv("TARN_POOL_DEBUG", value, 1), 0);
  assert_ok(tarn_pool_of(TARN_HOST, &pool));
  ck_assert_uint_eq(report_of(pool).flags, flags);
  give(take(pool, 100));
}

TEST_LOOP(the_variable_switches_it_on, 7) {
  static const struct {
    const char *value;
    uint32_t flags;
  } rows[] = {{"all", 7},
              {"off", 0},
              {"", 0},
              {"guards", 1},
              {"poison,guards", 3},
              {"quarantine", 4},
              {"quarantine=1M,poison", 6}};
  ck_assert_int_lt(_i, (int)(sizeof rows / sizeof rows[0]));
  pool_with_variable(rows[_i].value, rows[_i].flags);
}

TEST(a_wrong_variable_is_refused) {
  static const char *const values[] = {"al", "guards,", "quarantine=x",
                                       "off,guards"};
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
    tarn_pool *pool = NULL;
    ck_assert_int_eq(setenv("TARN_POOL_DEBUG", values[i], 1), 0);
    assert_status(tarn_pool_of(TARN_HOST, &pool), TARN_E_INVALID);
    assert_error_says("TARN_POOL_DEBUG");
    ck_assert_ptr_null(pool);
  }
  pool_with_variable("poison", 2);
}

// --- where findings are reported -------------------------------------------

static char logged[512];

static void keep_line(void *context, tarn_log_level level,
                      const char *message) {
  (void)context;
  ck_assert_int_eq(level, TARN_LOG_ERROR);
  snprintf(logged, sizeof logged, "%s", message);
}

TEST(each_finding_is_logged) {
  tarn_pool *pool = debugging("page_unit_pool", 0);
  tarn_log_set(keep_line, NULL, TARN_LOG_ERROR);
  tarn_block block = take_tagged(pool, 100, tag_of("states"));
  give(block);
  write_at(block.address + 5, 1);
  assert_ok(tarn_pool_trim(pool, 0));
  tarn_log_set(NULL, NULL, TARN_LOG_ERROR);
  ck_assert_ptr_nonnull(strstr(logged, "states"));
  ck_assert_ptr_nonnull(strstr(logged, "offset 5"));
  ck_assert_ptr_nonnull(strstr(logged, "pool of host"));
}

// --- resizing --------------------------------------------------------------

TEST_LOOP(a_guard_moves_with_the_end, ALL_STRATEGIES) {
  tarn_pool *pool = debugging(any_strategy(_i), 0);
  tarn_block block = take(pool, 3000);
  memset(bytes_of(block), 0x22, block.size);
  assert_ok(tarn_pool_resize(&block, 1000, NULL));
  ck_assert_uint_eq(block.size, 1000);
  require(all_are(block.address, 1000, 0x22));
  require(all_are(block.address + 1000, 64, TARN_POOL_GUARD_BYTE));
  tarn_status status = tarn_pool_resize(&block, 2000, NULL);
  if (status == TARN_OK) {
    require(all_are(block.address, 1000, 0x22));
    require(all_are(block.address + 1000, 1000, TARN_POOL_FRESH_BYTE));
  } else {
    assert_status(status, TARN_FULL);
  }
  size_t size = status == TARN_OK ? 2000 : 1000;
  ck_assert_uint_eq(block.size, size);
  ck_assert_uint_eq(stats_of(pool).live_bytes, size);
  assert_ok(tarn_pool_debug_check(pool));
  write_at(block.address + size, 1);
  tarn_block same = block;
  (void)!tarn_pool_resize(&same, size, NULL);
  assert_status(tarn_pool_debug_check(pool), TARN_E_CORRUPT);
  assert_status(tarn_pool_resize(&block, SIZE_MAX, NULL), TARN_E_INVALID);
  give(block);
  assert_ok(tarn_pool_trim(pool, 0));
  assert_rest(pool);
}
