// Blocks: sizes, alignment, what is refused, finding and freeing by address.
#include "kit.h"

static size_t natural_align(void) {
  tarn_device *cpu = NULL;
  tarn_device_info info = {.struct_size = sizeof info};
  assert_ok(tarn_device_open("cpu:0", &cpu));
  assert_ok(tarn_device_query(cpu, &info));
  assert_ok(tarn_device_close(cpu));
  return info.min_chunk;
}

// --- sizes -----------------------------------------------------------------

static void check_size(tarn_pool *pool, size_t size) {
  tarn_block block = take(pool, size);
  ck_assert_ptr_eq(block.pool, pool);
  ck_assert_uint_ge(block.size, size);
  ck_assert_uint_ne(block.address, 0);
  ck_assert_uint_eq(block.address % natural_align(), 0);
  memset(bytes_of(block), 0x5a, block.size);
  ck_assert_uint_eq(stats_of(pool).live_bytes, size);
  ck_assert_uint_ge(stats_of(pool).reserved_bytes, block.size);
  give(block);
  ck_assert_uint_eq(stats_of(pool).live_bytes, 0);
}

TEST(every_size_is_served) {
  static const size_t sizes[] = {1,    255,  256,   4095,
                                 4096, 4097, 65537, 64 * (size_t)MIB};
  for (int s = 0; s < ALL_STRATEGIES; s++) {
    tarn_pool *pool = host_pool(any_strategy(s));
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
      check_size(pool, sizes[i]);
    assert_ok(tarn__front_check(pool));
  }
}

TEST(blocks_do_not_overlap) {
  enum { COUNT = 64 };
  for (int s = 0; s < ALL_STRATEGIES; s++) {
    tarn_pool *pool = host_pool(any_strategy(s));
    tarn_block blocks[COUNT];
    for (int i = 0; i < COUNT; i++) {
      blocks[i] = take(pool, (size_t)i * 1000 + 1);
      memset(bytes_of(blocks[i]), i, blocks[i].size);
    }
    for (int i = 0; i < COUNT; i++) {
      unsigned char *bytes = bytes_of(blocks[i]);
      for (size_t k = 0; k < blocks[i].size; k += 97)
        ck_assert_int_eq(bytes[k], i);
      ck_assert_int_eq(bytes[blocks[i].size - 1], i);
      give(blocks[i]);
    }
  }
}

// --- alignment -------------------------------------------------------------

static const size_t max_align = 2 * (size_t)MIB;
enum { ALIGNS = 22 };  // 1, 2, 4, ... 2 MiB

static void take_all_aligns(tarn_pool *pool, tarn_block *blocks) {
  size_t i = 0;
  for (size_t align = 1; align <= max_align; align *= 2, i++) {
    assert_ok(tarn_pool_alloc(pool, 4097, align, NULL, &blocks[i]));
    ck_assert_uint_eq(blocks[i].address % align, 0);
    memset(bytes_of(blocks[i]), (int)i, blocks[i].size);
  }
  ck_assert_uint_eq(i, ALIGNS);
}

static void give_all_aligns(tarn_block *blocks) {
  for (int i = 0; i < ALIGNS; i++) {
    unsigned char *bytes = bytes_of(blocks[i]);
    ck_assert_int_eq(bytes[0], i);
    ck_assert_int_eq(bytes[blocks[i].size - 1], i);
    give(blocks[i]);
  }
}

TEST_LOOP(every_alignment_is_honoured, ALL_STRATEGIES) {
  tarn_pool *pool = host_pool(any_strategy(_i));
  tarn_block blocks[ALIGNS];
  take_all_aligns(pool, blocks);
  assert_ok(tarn__front_check(pool));
  give_all_aligns(blocks);
  assert_ok(tarn__front_check(pool));
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
}

TEST(alignment_is_honoured_when_memory_is_reused) {
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_block blocks[ALIGNS];
  take_all_aligns(pool, blocks);
  give_all_aligns(blocks);
  tarn_pool_stats before = stats_of(pool);
  take_all_aligns(pool, blocks);
  tarn_pool_stats after = stats_of(pool);
  ck_assert_uint_eq(after.hits, before.hits + ALIGNS);
  ck_assert_uint_eq(after.device_allocs, before.device_allocs);
  give_all_aligns(blocks);
}

TEST(what_the_device_aligns_anyway_is_one_kind_of_memory) {
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_block plain = take(pool, 4096);
  give(plain);
  for (size_t align = 1; align <= natural_align(); align *= 2) {
    tarn_block block;
    assert_ok(tarn_pool_alloc(pool, 4096, align, NULL, &block));
    ck_assert_uint_eq(block.address, plain.address);
    give(block);
  }
}

// --- refusals --------------------------------------------------------------

typedef struct refusal {
  size_t size;
  size_t align;
  tarn_status of_page_unit;
  tarn_status of_no_pool;
  const char *says;
} refusal;

// An invalid request reaches nothing. One that is too large may have reached
// the device, which is counted.
static void check_refusal(tarn_pool *pool, const refusal *r,
                          tarn_status expected) {
  tarn_block block;
  memset(&block, 0xff, sizeof block);
  tarn_pool_stats before = stats_of(pool);
  assert_status(tarn_pool_alloc(pool, r->size, r->align, NULL, &block),
                expected);
  assert_error_says(r->says);
  assert_zero_block(block);
  tarn_pool_stats after = stats_of(pool);
  if (expected == TARN_FULL) {
    ck_assert_uint_eq(after.failures, before.failures + 1);
    after.misses = before.misses;
    after.device_allocs = before.device_allocs;
    after.device_frees = before.device_frees;  // what was not aligned
  }
  assert_same_stats(before, after);
  assert_ok(tarn__front_check(pool));
}

static const refusal refusals[] = {
    {0, 0, TARN_E_INVALID, TARN_E_INVALID, "size is 0"},
    {1, 3, TARN_E_INVALID, TARN_E_INVALID, "alignment 3"},
    {1, SIZE_MAX, TARN_E_INVALID, TARN_E_INVALID, "not a power of two"},
    {SIZE_MAX, 0, TARN_E_INVALID, TARN_FULL, "18446744073709551615 bytes"},
    {SIZE_MAX - 4094, 0, TARN_E_INVALID, TARN_FULL, "18446744073709547521"},
    {SIZE_MAX - 4095, 0, TARN_FULL, TARN_FULL, "18446744073709547520"},
    {SIZE_MAX / 2 + 1, 0, TARN_FULL, TARN_FULL, "9223372036854775808"},
    {1, SIZE_MAX / 2 + 1, TARN_FULL, TARN_FULL, "out of memory"},
};

static void check_refusals(const char *strategy, size_t held) {
  tarn_pool *pool = host_pool(strategy);
  tarn_block block = take(pool, 100);
  if (held == 0) give(block);
  if (held == 0) assert_ok(tarn_pool_trim(pool, 0));
  bool page_unit = strcmp(strategy, "page_unit_pool") == 0;
  for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
    const refusal *r = &refusals[i];
    check_refusal(pool, r, page_unit ? r->of_page_unit : r->of_no_pool);
  }
  if (held != 0) give(block);
}

TEST_LOOP(impossible_requests_are_refused, 2) {
  check_refusals("page_unit_pool", (size_t)_i);
  check_refusals("no_pool", (size_t)_i);
}

TEST(a_pool_must_be_one) {
  refuse(NULL, 1, 0, TARN_E_INVALID);
  assert_status(tarn_pool_trim(NULL, 0), TARN_E_INVALID);
  assert_status(tarn_pool_limit(NULL, 1), TARN_E_INVALID);
  assert_status(tarn_pool_reset_peaks(NULL), TARN_E_INVALID);
  assert_status(tarn_pool_free_address(NULL, 1, NULL), TARN_E_INVALID);
  assert_status(tarn_pool_free(NULL, NULL), TARN_E_INVALID);
  assert_error_says("NULL");
}

// --- as a pointer ----------------------------------------------------------

TEST(the_pointer_is_the_address) {
  for (int s = 0; s < ALL_STRATEGIES; s++) {
    tarn_block block = take(host_pool(any_strategy(s)), 5000);
    ck_assert_ptr_eq(block.pointer, bytes_of(block));
    ck_assert_uint_eq(tarn_addr_of(block.pointer), block.address);
    memset(block.pointer, 0x3c, block.size);
    give(block);
  }
  tarn_block none = {0};
  ck_assert_ptr_null(none.pointer);
  ck_assert_uint_eq(tarn_addr_of(NULL), 0);
}

// Bindings that were made for the struct without |pointer| stay good.
TEST(the_pointer_takes_no_room) {
  ck_assert_uint_eq(offsetof(tarn_block, pointer),
                    offsetof(tarn_block, address));
  ck_assert_uint_eq(offsetof(tarn_block, address), 8);
  ck_assert_uint_eq(offsetof(tarn_block, size), 16);
  ck_assert_uint_eq(sizeof(tarn_block), 32);
}

// --- by address ------------------------------------------------------------

TEST(a_block_is_found_by_its_address) {
  for (int s = 0; s < ALL_STRATEGIES; s++) {
    tarn_pool *pool = host_pool(any_strategy(s));
    tarn_block blocks[300];
    for (size_t i = 0; i < 300; i++)
      blocks[i] = take(pool, i * 16 + 1);
    for (size_t i = 0; i < 300; i++) {
      tarn_block found;
      assert_ok(tarn_pool_block_of(pool, blocks[i].address, &found, NULL));
      assert_same_block(found, blocks[i]);
      give(found);
    }
    ck_assert_uint_eq(stats_of(pool).live_blocks, 0);
  }
}

TEST_LOOP(a_block_is_freed_by_its_address, ALL_STRATEGIES) {
  tarn_pool *pool = host_pool(any_strategy(_i));
  tarn_block a = take(pool, 5000);
  tarn_block b = take(pool, 5000);
  tarn_pool_stats before = stats_of(pool);
  assert_ok(tarn_pool_free_address(pool, a.address, NULL));
  tarn_pool_stats after = stats_of(pool);
  ck_assert_uint_eq(after.live_blocks, 1);
  ck_assert_uint_eq(after.live_bytes, 5000);
  ck_assert_uint_eq(after.frees, before.frees + 1);
  tarn_block found;
  assert_status(tarn_pool_block_of(pool, a.address, &found, NULL),
                TARN_E_INVALID);
  assert_ok(tarn_pool_block_of(pool, b.address, &found, NULL));
  assert_ok(tarn_pool_free_address(pool, b.address, NULL));
  ck_assert_uint_eq(stats_of(pool).live_blocks, 0);
}

TEST(the_bookkeeping_of_many_blocks_is_used_again) {
  enum { COUNT = 2000 };
  static tarn_block blocks[COUNT];
  tarn_pool *pool = host_pool("no_pool");
  size_t held = 0;
  for (int round = 0; round < 3; round++) {
    take_many(pool, 64, blocks, COUNT);
    for (int i = COUNT; i-- > 0;)
      give(blocks[i]);
    assert_ok(tarn__front_check(pool));
    if (round == 0) held = tarn_host_memory();
    ck_assert_uint_eq(tarn_host_memory(), held);
  }
}
