// Faults: host memory and every call of the driver fail, one after the other
// and all together, in a scenario that uses all that a pool can do.
#include <stdio.h>

#include "kit.h"
#include "support/fake_extension.h"
#include "support/fake_plugin.h"
#include "support/faults.h"
#include "support/strategy.h"
#include "tarn/strategy.h"

enum { BLOCKS = 14 };

// One run of the scenario, and what it should have come to.
static struct {
  tarn_device *device;
  tarn_pool *pool;
  tarn_stream *streams[3];  // the first is the host
  tarn_block blocks[BLOCKS];
  size_t asked[BLOCKS];
  size_t count;
  uint64_t allocs;
  uint64_t frees;
  uint64_t failures;
  size_t live_bytes;
  size_t objections;  // of the driver to what was given back all the same
} run;

// Questions in all runs that there was no memory to answer.
static size_t unordered;

// The strategies that it begins and ends with.
static const char *first_strategy;
static const char *last_strategy;

// Made before any fault: a tag is a number from 0 to 40.
enum { TAGS = 41 };

// A failure of something that gives memory back; it is done all the same.
static void note(tarn_status status) {
  if (status == TARN_OK) return;
  ck_assert_int_lt(status, TARN_OK);
  ck_assert_str_ne(tarn_last_error(), "");
  run.objections++;
}

static void check_pool(void) {
  assert_ok(tarn__front_check(run.pool));
  tarn_pool_stats stats = stats_of(run.pool);
  ck_assert_uint_eq(stats.allocs, run.allocs);
  ck_assert_uint_eq(stats.frees, run.frees);
  ck_assert_uint_eq(stats.failures, run.failures);
  ck_assert_uint_eq(stats.live_blocks, run.count);
  ck_assert_uint_eq(stats.live_bytes, run.live_bytes);
  ck_assert_uint_le(stats.hits, run.allocs);
  ck_assert_uint_le(stats.allocs, stats.hits + stats.misses);
}

static void try_take(size_t size, size_t align, tarn_tag tag, int stream) {
  tarn_block block;
  memset(&block, 0xff, sizeof block);
  tarn_status status =
      alloc_tagged(run.pool, size, align, run.streams[stream], tag, &block);
  if (status == TARN_OK) {
    ck_assert_uint_ge(block.size, size);
    memset((void *)(uintptr_t)block.address, 0x3c, block.size);
    run.asked[run.count] = size;
    run.blocks[run.count++] = block;
    run.live_bytes += size;
    run.allocs++;
  } else {
    assert_zero_block(block);
    run.failures++;
  }
  check_pool();
}

// A lookup of an address inside a block may fail for lack of memory to sort the
// blocks. A lookup of a block's first address needs none.
static void find(tarn_block block) {
  tarn_block found;
  size_t offset = 7;
  assert_ok(tarn_pool_block_of(run.pool, block.address, &found, NULL));
  assert_same_block(found, block);
  tarn_status status =
      tarn_block_of(tarn_place_on(run.device), block.address + block.size - 1,
                    &found, &offset);
  if (status == TARN_OK) {
    assert_same_block(found, block);
    ck_assert_uint_eq(offset, block.size - 1);
  } else if (block.size > 1) {
    ck_assert_int_eq(status, TARN_E_NOMEM);
    assert_zero_block(found);
    ck_assert_uint_eq(offset, 0);
    unordered++;
  }
}

// Frees the newest block, which cannot fail to be freed.
static void drop(int stream, bool by_address) {
  if (run.count == 0) return;
  run.count--;
  tarn_block block = run.blocks[run.count];
  find(block);
  run.live_bytes -= run.asked[run.count];
  run.frees++;
  tarn_stream *on = run.streams[stream];
  note(by_address ? tarn_free(tarn_place_on(run.device), block.address, on)
                  : tarn_pool_free(&block, on));
  check_pool();
  assert_status(tarn_free(tarn_place_on(run.device), block.address, on),
                TARN_E_INVALID);
  assert_status(tarn_pool_free(&block, on), TARN_E_INVALID);
}

static void drop_all(void) {
  while (run.count > 0)
    drop((int)run.count % 3, run.count % 2 == 0);
}

static void try_use(const char *strategy) {
  char before[32];
  snprintf(before, sizeof before, "%s", stats_of(run.pool).strategy);
  tarn_status status = use_strategy(tarn_place_on(run.device), strategy);
  const char *after = stats_of(run.pool).strategy;
  if (status == TARN_E_NOMEM) {
    ck_assert_str_eq(after, before);
  } else {
    note(status);
    ck_assert_int_eq(strncmp(after, strategy, strlen(after)), 0);
  }
  check_pool();
}

static void try_streams(void) {
  char text[64] = "in use";
  for (int i = 1; i < 3; i++) {
    if (run.count == 0 || run.streams[i] == NULL) continue;
    tarn_block block = run.blocks[run.count - 1];
    (void)!tarn_copy_h2d(run.device, block.address, text, 8, run.streams[i]);
    (void)!tarn_stream_synchronize(run.streams[i]);
    drop(i, false);
    try_take(100, 0, 1, 3 - i);
    try_take(200, 0, 2, 0);
  }
}

static void use_pool(void) {
  for (size_t i = 0; i < 5; i++)
    try_take(3000 * i + 1, 0, (tarn_tag)(i * 7), (int)i % 3);
  try_take(5000, 65536, 40, 0);
  try_streams();
  drop(0, true);
  drop(1, false);
  drop(2, false);
  try_take(100, 0, 3, 1);
  note(tarn_pool_trim(run.pool, 0));
  check_pool();
  try_use("no_pool");
  try_take(7000, 0, 4, 2);
  drop(2, true);
  assert_ok(tarn_pool_limit(run.pool, 1));
  try_take(7000, 0, 4, 0);
  assert_ok(tarn_pool_limit(run.pool, 512 * KIB));
  try_use(last_strategy);
  try_take(100 * KIB, 0, 5, 1);
  drop(1, false);
  try_take(200 * KIB, 0, 5, 2);
  drop_all();
}

// Not every strategy can.
static void try_reserve(void) {
  if (tarn_pool_reserve(run.pool, 300 * KIB) != TARN_OK) {
    ck_assert_str_ne(tarn_last_error(), "");
  }
  check_pool();
  note(tarn_pool_reserve(run.pool, 0));
  note(tarn_pool_trim(run.pool, 0));
  check_pool();
}

static void use_device(void) {
  tarn_place place = tarn_place_on(run.device);
  for (int i = 1; i < 3; i++) {
    if (tarn_stream_create(run.device, &run.streams[i]) != TARN_OK) {
      ck_assert_ptr_null(run.streams[i]);
    }
  }
  if (tarn_pool_of(place, &run.pool) == TARN_OK) {
    try_use(first_strategy);
    try_reserve();
    use_pool();
  } else {
    ck_assert_ptr_null(run.pool);
  }
  for (int i = 1; i < 3; i++)
    (void)tarn_stream_destroy(run.streams[i]);
}

static void scenario(void *context) {
  (void)context;
  memset(&run, 0, sizeof run);
  if (tarn_device_open("fake:0", &run.device) != TARN_OK) return;
  use_device();
  tarn_status status = tarn_device_close(run.device);
  ck_assert_int_ne(status, TARN_E_STATE);
  note(status);
  ck_assert_uint_eq(fake_seen.open_devices, 0);
  ck_assert_uint_eq(fake_seen.streams, 0);
  ck_assert_uint_eq(fake_seen.events, 0);
  ck_assert_uint_eq(fake_seen.wrong_size, 0);
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
  ck_assert_uint_eq(fake_seen.live_bytes, 0);
}

// What the device is like, what the pool is like, and what may fail besides
// host memory. The strategy of the end is another, or the same again.
static const struct {
  const char *what;
  const char *first;
  const char *last;
  size_t capacity;  // 0: plenty
  size_t misalign;
  size_t named;  // all sizes that the plug-in names; 0: its own
  bool is_async;
  bool driver_fails;
  size_t least;  // faults that are met, at least
} cases[] = {
    {"host memory", "page_unit_pool", "page_unit_pool:page=16K", .least = 100},
    {"host memory and driver", "page_unit_pool", "page_unit_pool:page=16K",
     .driver_fails = true, .least = 1000},
    {"a driver that does not align", "page_unit_pool",
     "page_unit_pool:page=16K", .misalign = 64, .driver_fails = true,
     .least = 1000},
    {"named sizes, page_unit_pool", "page_unit_pool", "page_unit_pool",
     .named = 16 * KIB, .driver_fails = true, .least = 1000},
    {"named sizes, arena_pool", "arena_pool", "arena_pool", .named = 16 * KIB,
     .driver_fails = true, .least = 1000},
    {"named sizes, buddy_pool", "buddy_pool", "buddy_pool", .named = 16 * KIB,
     .driver_fails = true, .least = 1000},
    {"named sizes, power_pool", "power_pool", "power_pool", .named = 16 * KIB,
     .driver_fails = true, .least = 1000},
    {"power_pool, not aligned", "power_pool:least=4K", "power_pool",
     .misalign = 256, .driver_fails = true, .least = 1000},
    {"buddy_pool, little memory", "buddy_pool:init=64K,realloc=128K,max=256K",
     "buddy_pool:init=16K,max=32K", .capacity = 700 * KIB, .driver_fails = true,
     .least = 1000},
    {"buddy_pool, not aligned", "buddy_pool:init=64K,realloc=128K,max=256K",
     "buddy_pool:init=16K,max=32K", .capacity = 700 * KIB, .misalign = 64,
     .driver_fails = true, .least = 1000},
    {"async_pool", "async_pool", "async_pool", .misalign = 256,
     .is_async = true, .driver_fails = true, .least = 1000},
};
enum { CASES = sizeof cases / sizeof *cases };

// What stays for good is made first: tags, the plug-in's part and cpu:0's.
TEST_LOOP(nothing_is_lost_whatever_fails, CASES) {
  faults_install();
  first_strategy = cases[_i].first;
  last_strategy = cases[_i].last;
  if (cases[_i].capacity != 0) fake.capacity = cases[_i].capacity;
  fake.misalign = cases[_i].misalign;
  if (cases[_i].named != 0) {
    fake.padding = 100;
    fake.init_size = fake.realloc_size = fake.max_chunk = cases[_i].named;
  }
  fake_ext.there = cases[_i].is_async;
  // Memory of ranges is not where the host is.
  fake_ext.missing =
      FAKE_SLOTS_RANGES | FAKE_SLOTS_SHARING | FAKE_SLOT(range_move);
  fake_add();
  assert_ok(tarn_pool_register(TarnPoolStrategy()));
  for (int i = 1; i < TAGS; i++) {
    char name[16];
    snprintf(name, sizeof name, "tag %d", i);
    (void)tag_of(name);
  }
  scenario(NULL);
  ck_assert_uint_eq(run.objections, 0);
  ck_assert_uint_eq(run.failures, 1);
  fake.strikes = cases[_i].driver_fails;
  size_t count = faults_sweep(scenario, NULL);
  printf("pool: %zu faults of %s\n", count, cases[_i].what);
  fflush(stdout);
  ck_assert_uint_gt(count, cases[_i].least);
  if (_i == 0) ck_assert_uint_gt(unordered, 0);
}

// Without a place to note whose memory is, its stream is waited for. What comes
// of that is told.
TEST(a_stream_that_fails_is_told_of_without_host_memory) {
  fake.init_size = fake.realloc_size = fake.max_chunk = MIB;
  faults_install();
  fake_add();
  assert_ok(tarn_device_open("fake:0", &run.device));
  tarn_stream *a = NULL;
  tarn_stream *b = NULL;
  assert_ok(tarn_stream_create(run.device, &a));
  assert_ok(tarn_stream_create(run.device, &b));
  assert_ok(use_strategy(tarn_place_on(run.device), "page_unit_pool"));
  tarn_pool *pool = pool_at(tarn_place_on(run.device));
  tarn_block block = take_on(pool, 4096, a);
  tarn_block second = take_on(pool, 4096, b);
  tarn_block third = take_on(pool, 4096, b);
  assert_ok(tarn_pool_set_strategy(pool, "no_pool"));
  give_on(second, b);
  fake.sync_answer = C_ERROR;
  faults_arm(1, FAULTS_FROM_NOW);
  tarn_status status = tarn_pool_free(&block, a);
  (void)faults_disarm();
  fake.sync_answer = C_SUCCESS;
  assert_status(status, TARN_E_DEVICE);
  assert_ok(tarn__front_check(pool));
  give_on(third, b);
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
  (void)tarn_stream_destroy(a);
  assert_ok(tarn_stream_destroy(b));
  assert_ok(tarn_device_close(run.device));
}

// A host pool lives as long as the process, so what it holds may grow.
static void host_scenario(tarn_pool *pool) {
  tarn_block blocks[3] = {0};
  (void)!use_strategy(TARN_HOST, "page_unit_pool");
  for (size_t i = 0; i < 3; i++) {
    tarn_status status =
        tarn_pool_alloc(pool, i * 4096 + 1, 0, NULL, &blocks[i]);
    ck_assert(status == TARN_OK || status == TARN_E_NOMEM);
    if (status != TARN_OK) assert_zero_block(blocks[i]);
  }
  (void)!use_strategy(TARN_HOST, "no_pool");
  for (int i = 0; i < 3; i++)
    if (blocks[i].pool != NULL) give(blocks[i]);
  assert_ok(tarn__front_check(pool));
  ck_assert_uint_eq(stats_of(pool).live_blocks, 0);
}

TEST(a_host_pool_survives_a_lack_of_host_memory) {
  faults_install();
  tarn_pool *pool = host_pool("no_pool");
  size_t n = 0;
  for (bool struck = true; struck;) {
    faults_arm(++n, FAULTS_ONCE);
    host_scenario(pool);
    struck = faults_disarm();
    assert_ok(use_strategy(TARN_HOST, "no_pool"));
    ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
    ck_assert(tarn_list_empty(&pool->replaced));
  }
  ck_assert_uint_ge(n, 5);
}

// A tag that there was no memory for is not half there.
TEST(a_tag_without_memory_is_no_tag) {
  faults_install();
  size_t made = 0;
  for (size_t n = 1; made < 200; n = n % 4 + 1) {
    char name[32];
    snprintf(name, sizeof name, "tag %zu", made);
    faults_arm(n, FAULTS_ONCE);
    tarn_tag tag = 7;
    tarn_status status = tarn_pool_tag(name, &tag);
    (void)faults_disarm();
    if (status == TARN_OK) {
      ck_assert_uint_eq(tag, ++made);
      continue;
    }
    ck_assert_int_eq(status, TARN_E_NOMEM);
    ck_assert_uint_eq(tag, 0);
    ck_assert_str_eq(tarn_pool_tag_name((tarn_tag)made + 1), "untagged");
  }
  ck_assert_uint_gt(faults_total(), 10);
  ck_assert_uint_eq(tag_of("tag 0"), 1);
  ck_assert_uint_eq(tag_of("tag 199"), 200);
}
