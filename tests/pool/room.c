// Requests for more than there is: they are refused before anything is
// reserved, entered or mapped for them, and metadata grows with what is mapped.
#include <inttypes.h>
#include <stdio.h>

#include "arena_kit.h"
#include "pool/region.h"
#include "support/child.h"
#include "support/faults.h"
#include "support/strategy.h"
#include "support/threads.h"

static const size_t GIB = (size_t)1 << 30;
static const size_t TIB = (size_t)1 << 40;

// The first keep what is freed. The last frees in the order of streams, where
// what is free is unknown: there only the device's total memory counts.
static const char *const strategies[] = {
    "arena_pool", "page_unit_pool", "buddy_pool:init=2M,realloc=2M,max=1M",
    "no_pool",    "async_pool",
};
enum { STRATEGIES = sizeof strategies / sizeof *strategies, KEEPING = 2 };
static const int EXACT = STRATEGIES - 1;

// What must be the same before and after a request that is refused.
typedef struct counts {
  size_t host;
  tarn_pool_stats stats;
} counts;

static counts counts_of(tarn_pool *pool) {
  return (counts){.host = tarn_host_memory(), .stats = stats_of(pool)};
}

static void assert_same_counts(tarn_pool *pool, counts before) {
  counts now = counts_of(pool);
  ck_assert_uint_eq(now.host, before.host);
  assert_same_stats(now.stats, before.stats);
}

static void assert_refused(tarn_pool *pool, size_t size) {
  counts before = counts_of(pool);
  refuse(pool, size, 0, TARN_FULL);
  assert_same_counts(pool, before);
}

// --- more than the device has ----------------------------------------------

TEST_LOOP(what_no_device_has_is_refused_at_once, TEST_DEVICES *STRATEGIES) {
  const char *strategy = strategies[_i % STRATEGIES];
  arena_place p = open_arena_with(_i / STRATEGIES, 0, strategy);
  size_t total = 0;
  size_t available = 0;
  assert_ok(tarn_device_memory(p.device, &total, &available));
  assert_refused(p.pool, total + 1);
  assert_refused(p.pool, 3 * total);
  assert_refused(p.pool, TIB);
  assert_refused(p.pool, (size_t)1 << 45);
  tarn_block block = take(p.pool, 600 * KIBIBYTE);
  assert_refused(p.pool, total);
  assert_refused(p.pool, 16 * TIB);
  give(block);
  assert_refused(p.pool, TIB);
}

TEST_LOOP(the_text_says_what_is_free, TEST_DEVICES) {
  arena_place p = open_arena_with(_i, NEEDS_CAPACITY, "arena_pool");
  if (p.pool == NULL) return;
  tarn_addr others = 0;
  assert_ok(tarn_device_allocate(p.place, (size_t)60 * MIB, &others));
  refuse(p.pool, (size_t)8 * MIB, 0, TARN_FULL);
  assert_error_says(p.name);
  assert_error_says("no room for 8.00 MiB (8388608 bytes)");
  assert_error_says("there are only 4.00 MiB (4194304 bytes) free");
  assert_ok(tarn_device_deallocate(p.place, others, (size_t)60 * MIB));
  give(take(p.pool, (size_t)8 * MIB));
}

// --- what is free now, and what the pool has idle --------------------------

// A pool on a small device. No pool: the device cannot be made small, or its
// driver keeps what is freed, and so what is free is unknown.
static arena_place open_exact(int i) {
  const char *strategy = strategies[i % EXACT];
  arena_place p = open_arena_with(i / EXACT, NEEDS_CAPACITY, strategy);
  if (p.pool == NULL || !retains(p.device) || strcmp(strategy, "no_pool") != 0)
    return p;
  close_arena(&p);
  return (arena_place){.pool = NULL};
}

// 40 of 64 MiB are not the pool's, and 10 are idle: 14 are free.
TEST_LOOP(idle_memory_counts_as_free, EXACT *TEST_DEVICES) {
  const size_t unit = MIB;
  arena_place p = open_exact(_i);
  if (p.pool == NULL) return;
  tarn_addr others = 0;
  assert_ok(tarn_device_allocate(p.place, 40 * unit, &others));
  assert_refused(p.pool, 25 * unit);
  give(take(p.pool, 10 * unit));
  assert_refused(p.pool, 25 * unit);
  give(take(p.pool, 18 * unit));
  assert_ok(tarn_device_deallocate(p.place, others, 40 * unit));
  give(take(p.pool, 40 * unit));
}

// What others take later is seen, however much was free before.
TEST_LOOP(it_is_what_is_free_now, EXACT *TEST_DEVICES) {
  arena_place p = open_exact(_i);
  if (p.pool == NULL) return;
  tarn_block block = take(p.pool, 100);
  tarn_addr others = 0;
  size_t rest = available_on(p.device) - (size_t)3 * MIB;
  assert_ok(tarn_device_allocate(p.place, rest, &others));
  assert_refused(p.pool, (size_t)16 * MIB);
  give(block);
  assert_ok(tarn_device_deallocate(p.place, others, rest));
}

// --- the device is asked when the pool has to grow, and not each time ------

TEST_LOOP(hits_ask_nothing, KEEPING) {
  arena_place p = open_arena("fake:0", strategies[_i]);
  give(take(p.pool, 600 * KIBIBYTE));
  size_t before = fake_seen.memory_queries;
  for (int i = 0; i < 1000; i++)
    give(take(p.pool, 600 * KIBIBYTE));
  ck_assert_uint_eq(fake_seen.memory_queries, before);
}

TEST_LOOP(small_blocks_ask_rarely, STRATEGIES) {
  enum { BLOCKS = 2000 };
  static tarn_block blocks[BLOCKS];
  arena_place p = open_arena("fake:0", strategies[_i]);
  size_t before = fake_seen.memory_queries;
  take_many(p.pool, 4096, blocks, BLOCKS);
  ck_assert_uint_ge(fake_seen.memory_queries, before + 1);
  ck_assert_uint_le(fake_seen.memory_queries, before + 16);
  give_many(blocks, BLOCKS);
}

// A device that cannot answer is taken to have what is asked for.
TEST_LOOP(what_is_unknown_forbids_nothing, STRATEGIES) {
  arena_place p = open_faulty(ARENA_CAPACITY, strategies[_i]);
  assert_ok(tarn_sim_faults("device_memory_stats@1+"));
  give(take(p.pool, (size_t)20 * MIB));
  refuse(p.pool, (size_t)100 * MIB, 0, TARN_FULL);
  assert_ok(tarn_sim_faults(""));
}

// --- what moves while the device is asked ----------------------------------

// When the device's answer comes something else has been done.
static struct {
  tarn_pool *pool;
  tarn_status (*act)(tarn_pool *pool);  // once, by another thread
} late;

static void *act(void *context) {
  (void)context;
  require(late.act(late.pool) == TARN_OK);
  return NULL;
}

static void answer_late(void) {
  pthread_t thread;
  fake.answered = NULL;
  require(pthread_create(&thread, NULL, act, NULL) == 0);
  pthread_join(thread, NULL);
}

static void be_late(tarn_pool *pool, tarn_status (*do_what)(tarn_pool *pool)) {
  late.pool = pool;
  late.act = do_what;
  fake.answered = answer_late;
}

static tarn_status trim_all(tarn_pool *pool) {
  return tarn_pool_trim(pool, 0);
}

static tarn_status replace(tarn_pool *pool) {
  return tarn_pool_set_strategy(pool, "no_pool");
}

// What is given back meanwhile is not in the answer, and not idle any more.
TEST_LOOP(what_goes_back_while_the_device_is_asked_is_counted, EXACT) {
  arena_place p = open_arena("fake:0", strategies[_i]);
  give(take(p.pool, (size_t)30 * MIB));
  be_late(p.pool, trim_all);
  give(take(p.pool, (size_t)50 * MIB));
  ck_assert(fake.answered == NULL);
}

// A block does not grow in a strategy that was replaced meanwhile.
TEST(who_is_replaced_while_the_device_is_asked_gets_nothing) {
  arena_place p = open_arena("fake:0", "arena_pool");
  tarn_block block = take(p.pool, (size_t)4 * MIB);
  size_t before = stats_of(p.pool).reserved_bytes;
  be_late(p.pool, replace);
  assert_status(tarn_pool_resize(&block, (size_t)20 * MIB, NULL), TARN_FULL);
  ck_assert(fake.answered == NULL);
  ck_assert_uint_eq(stats_of(p.pool).reserved_bytes, before);
  ck_assert_uint_eq(stats_of(p.pool).reserved_peak_bytes, before);
  ck_assert_uint_eq(block.size, (size_t)4 * MIB);
  give(block);
  ck_assert_uint_eq(stats_of(p.pool).reserved_bytes, 0);
}

// --- the limit -------------------------------------------------------------

TEST_LOOP(the_limit_less_charges_is_compared_first, STRATEGIES) {
  arena_place p = open_arena("fake:0", strategies[_i]);
  assert_ok(tarn_pool_limit(p.pool, (size_t)32 * MIB));
  assert_ok(tarn_pool_charge(p.pool, (size_t)8 * MIB, 0));
  size_t queries = fake_seen.memory_queries;
  assert_refused(p.pool, (size_t)25 * MIB);
  assert_error_says("would exceed the limit of 32.00 MiB (33554432 bytes)");
  assert_refused(p.pool, TIB);
  ck_assert_uint_eq(fake_seen.memory_queries, queries);
  assert_ok(tarn_pool_discharge(p.pool, (size_t)8 * MIB, 0));
}

// A limit below what is held keeps the pool from growing, and no more.
TEST_LOOP(a_lowered_limit_does_not_take_idle_memory_away,
          KEEPING *TEST_DEVICES) {
  arena_place p = open_arena_with(_i / KEEPING, 0, strategies[_i % KEEPING]);
  give(take(p.pool, (size_t)10 * MIB));
  assert_ok(tarn_pool_limit(p.pool, MIB));
  give(take(p.pool, (size_t)10 * MIB));
}

// --- blocks that grow, and blocks that wake up -----------------------------

TEST_LOOP(a_block_does_not_grow_beyond_what_there_is, TEST_DEVICES) {
  arena_place p = open_arena_with(_i, 0, "arena_pool");
  tarn_block block = take(p.pool, (size_t)4 * MIB);
  counts before = counts_of(p.pool);
  size_t size = p.available * 3 / 2;
  assert_status(tarn_pool_resize(&block, size, NULL), TARN_FULL);
  assert_same_counts(p.pool, before);
  ck_assert_uint_ge(block.size, (size_t)4 * MIB);
  give(block);
}

TEST_LOOP(who_cannot_wake_stays_asleep, TEST_DEVICES) {
  arena_place p =
      open_arena_with(_i, TEST_NEEDS_RANGES | NEEDS_CAPACITY, "arena_pool");
  if (p.pool == NULL) return;
  tarn_tag tag = tag_of("weights");
  tarn_block block = take_tagged(p.pool, (size_t)40 * MIB, tag);
  assert_ok(tarn_pool_sleep(p.pool, tag, TARN_SLEEP_DROP));
  tarn_addr others = 0;
  assert_ok(tarn_device_allocate(p.place, (size_t)40 * MIB, &others));
  counts before = counts_of(p.pool);
  assert_status(tarn_pool_wake(p.pool, tag), TARN_FULL);
  assert_same_counts(p.pool, before);
  assert_ok(tarn__front_check(p.pool));
  assert_ok(tarn_device_deallocate(p.place, others, (size_t)40 * MIB));
  assert_ok(tarn_pool_wake(p.pool, tag));
  give(block);
}

// --- places ----------------------------------------------------------------

// Pinned memory is the host's: the device's own size does not bound it.
TEST_LOOP(memory_of_the_host_is_compared_with_the_hosts, TEST_DEVICES) {
  fake.missing = FAKE_MISSES(host_memory_allocate) |
                 FAKE_MISSES(host_memory_deallocate);  // which are its own
  arena_place p = open_arena_with(_i, NEEDS_CAPACITY, "arena_pool");
  if (p.pool == NULL) return;
  size_t total = 0;
  size_t available = 0;
  tarn_device *host = NULL;
  assert_ok(tarn_device_open("cpu:0", &host));
  assert_ok(tarn_device_memory(host, &total, &available));
  assert_ok(tarn_device_close(host));
  tarn_place pinned = {.device = p.device, .kind = TARN_PLACE_HOST};
  assert_ok(use_strategy(pinned, "page_unit_pool"));
  tarn_pool *pool = pool_at(pinned);
  give(take(pool, (size_t)80 * MIB));  // the device has 64
  assert_refused(pool, 2 * total);
  assert_ok(tarn_pool_trim(pool, 0));
}

// --- dry pools -------------------------------------------------------------

static tarn_pool *dry_at(tarn_place place, const char *strategy, size_t limit) {
  return own_pool_with(place, strategy, limit, TARN_POOL_DRY);
}

TEST_LOOP(a_dry_pool_has_what_it_pretends_to_have, STRATEGIES *TEST_DEVICES) {
  const char *strategy = strategies[_i % STRATEGIES];
  arena_place p =
      open_arena_with(_i / STRATEGIES, NEEDS_CAPACITY, "page_unit_pool");
  if (p.pool == NULL) return;
  tarn_pool *pool = dry_at(p.place, strategy, 2 * GIB);
  tarn_block block = take(pool, GIB);
  assert_refused(pool, GIB + MIB);
  assert_refused(pool, TIB);
  assert_ok(tarn_pool_limit(pool, 4 * GIB));
  give(take(pool, GIB + MIB));
  give(block);
  end_own(pool);

  pool = dry_at(p.place, strategy, 0);  // 1 TiB, which is more
  block = take(pool, (size_t)80 * MIB);
  assert_refused(pool, TIB);
  assert_refused(pool, (size_t)1 << 45);
  give(take(pool, 64 * GIB));
  give(block);
}

static bool note_need(tarn_pool *pool, const tarn_pool_need *need,
                      void *context) {
  (void)pool;
  *(tarn_pool_need *)context = *need;
  return false;
}

// Also when the last byte of it is out, and when it had a limit before.
TEST_LOOP(a_dry_pool_that_is_used_up_has_what_is_out, TEST_DEVICES) {
  enum { BLOCKS = 16 };
  for (int i = 0; i < 2 * STRATEGIES; i++) {
    size_t limit = i < STRATEGIES ? 0 : GIB;
    tarn_pool_need need = {0};
    tarn_block blocks[BLOCKS];
    arena_place p = open_arena_with(_i, NEEDS_CAPACITY, "page_unit_pool");
    if (p.pool == NULL) return;
    tarn_pool *pool = dry_at(p.place, strategies[i % STRATEGIES], limit);
    assert_ok(tarn_pool_limit(pool, 0));
    assert_ok(tarn_pool_on_full(pool, note_need, &need));
    for (int j = 0; j < BLOCKS; j++)
      blocks[j] = take(pool, 64 * GIB);
    refuse(pool, 64 * GIB, 0, TARN_FULL);
    assert_error_says("there are only 0 bytes free");
    ck_assert(need.can_fit);
    for (int j = 0; j < BLOCKS; j++)
      give(blocks[j]);
    end_own(pool);
    close_arena(&p);
  }
}

// --- alignments ------------------------------------------------------------

// Metadata grows with what is mapped, wherever that is.
TEST_LOOP(alignments_cost_addresses_only, TEST_DEVICES) {
  arena_place p = open_arena_with(_i, 0, "arena_pool");
  tarn_block first = take(p.pool, 4096);
  size_t before = tarn_host_memory();
  size_t least = p.pool->stats.reserved_bytes;
  for (int bits = 21; bits <= 46; bits++) {
    size_t align = (size_t)1 << bits;
    tarn_block block;
    tarn_status status = tarn_pool_alloc(p.pool, 4096, align, NULL, &block);
    ck_assert(status == TARN_OK || status == TARN_FULL);
    ck_assert_uint_le(tarn_host_memory(), before + 512 * KIBIBYTE);
    if (status != TARN_OK) continue;
    ck_assert_uint_eq(block.address % align, 0);
    if (device_has(p.device, TEST_NEEDS_RANGES)) {
      ck_assert_uint_le(stats_of(p.pool).reserved_bytes, least + 2 * SIM_PAGE);
    }
    assert_ok(tarn__front_check(p.pool));
    give(block);
    assert_ok(tarn_pool_trim(p.pool, least));
  }
  give(first);
}

TEST(the_host_has_blocks_at_large_alignments) {
  arena_place p = open_arena("cpu:0", "arena_pool");
  size_t before = tarn_host_memory();
  tarn_block blocks[4];
  for (size_t i = 0; i < 4; i++) {
    size_t align = (size_t)1 << (32 + 2 * i);
    assert_ok(tarn_pool_alloc(p.pool, 4096, align, NULL, &blocks[i]));
    ck_assert_uint_eq(blocks[i].address % align, 0);
    memset(bytes_of(blocks[i]), (int)i + 1, 4096);
  }
  ck_assert_uint_le(tarn_host_memory(), before + 512 * KIBIBYTE);
  for (size_t i = 0; i < 4; i++) {
    ck_assert_uint_eq(bytes_of(blocks[i])[4095], i + 1);
    give(blocks[i]);
  }
}

// --- pages -----------------------------------------------------------------

static void prepare(tarn__range_map *pages, uint64_t from, uint64_t to) {
  require(tarn__pages_prepare(pages, from, to));
}

TEST(pages_stand_in_leaves) {
  static const uint64_t far = UINT64_C(1) << 44;
  const size_t leaf = TARN__LEAF_PAGES;
  size_t rest = tarn_host_memory();
  tarn__range_map pages = {.root = NULL};
  prepare(&pages, far + 10, far + 20);
  for (uint64_t i = far + 10; i < far + 20; i++)
    tarn__pages_set(&pages, i, i - far);
  tarn__pages_end(&pages, far + 10, far + 20);
  prepare(&pages, 3 * leaf, 6 * leaf);  // of which only some come
  tarn__pages_set(&pages, 5 * leaf, 7);
  tarn__pages_end(&pages, 3 * leaf, 6 * leaf);
  ck_assert_uint_eq(pages.count, 2);
  ck_assert_uint_eq(tarn__pages_check(&pages), 11);
  prepare(&pages, leaf, 8 * leaf);  // around the one that there is
  ck_assert_uint_eq(pages.count, 8);
  for (uint64_t i = leaf; i < 8 * leaf; i++)
    if (i != 5 * leaf) tarn__pages_set(&pages, i, 1);
  tarn__pages_end(&pages, leaf, 8 * leaf);
  ck_assert_uint_eq(tarn__pages_get(&pages, 5 * leaf), 7);
  ck_assert_uint_eq(tarn__pages_get(&pages, far + 19), 19);
  ck_assert_uint_eq(tarn__pages_get(&pages, far + 20), 0);
  ck_assert_uint_eq(tarn__pages_get(&pages, far / 2), 0);

  uint64_t page = 0;
  ck_assert_uint_eq(tarn__pages_run(&pages, &page, far * 2), 8 * leaf);
  ck_assert_uint_eq(page, leaf);
  page = 8 * leaf;
  ck_assert_uint_eq(tarn__pages_run(&pages, &page, far + 15), far + 15);
  ck_assert_uint_eq(page, far + 10);
  ck_assert_uint_eq(tarn__pages_run(&pages, &page, far + 10), 0);
  page = far + 20;
  ck_assert_uint_eq(tarn__pages_run(&pages, &page, UINT64_MAX), 0);

  tarn__pages_clear(&pages, 2 * leaf + 1, 8 * leaf);
  ck_assert_uint_eq(pages.count, 3);
  ck_assert_uint_eq(tarn__pages_check(&pages), leaf + 11);
  tarn__pages_clear(&pages, leaf, 2 * leaf + 1);
  tarn__pages_clear(&pages, far + 10, far + 20);
  ck_assert_uint_eq(tarn_host_memory(), rest);
}

static void fill_pages(void *context) {
  tarn__range_map pages = {.root = NULL};
  (void)context;
  if (!tarn__pages_prepare(&pages, 2000, 2001)) return;
  tarn__pages_set(&pages, 2000, 5);
  tarn__pages_end(&pages, 2000, 2001);
  bool there = tarn__pages_prepare(&pages, 1000, 3000);
  if (there) tarn__pages_end(&pages, 1000, 3000);
  require(pages.count == 1);
  require(tarn__pages_check(&pages) == 1);
  require(tarn__pages_get(&pages, 2000) == 5);
  tarn__pages_deinit(&pages);
}

TEST(pages_need_host_memory) {
  faults_install();
  ck_assert_uint_gt(faults_sweep(fill_pages, NULL), 20);
}

// --- threads ---------------------------------------------------------------

// Each wants more than half: one of them at a time can have it.
static void *take_most(void *context) {
  tarn_pool *pool = context;
  for (int i = 0; i < 50; i++) {
    tarn_block block;
    tarn_status status =
        tarn_pool_alloc(pool, (size_t)40 * MIB, 0, NULL, &block);
    require(status == TARN_OK || status == TARN_FULL);
    if (status == TARN_OK) require(tarn_pool_free(&block, NULL) == TARN_OK);
    status = tarn_pool_alloc(pool, TIB, 0, NULL, &block);
    require(status == TARN_FULL);
  }
  return NULL;
}

TEST_LOOP(threads_grow_at_once, STRATEGIES *TEST_DEVICES) {
  enum { THREADS = 4 };
  arena_place p = open_arena_with(_i / STRATEGIES, NEEDS_CAPACITY,
                                  strategies[_i % STRATEGIES]);
  if (p.pool == NULL) return;
  run_threads_on(take_most, THREADS, p.pool);
  ck_assert_uint_gt(stats_of(p.pool).allocs, 0);
}
