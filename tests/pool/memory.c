// Pools over memory of the caller's: they cut it up and have no more than it;
// the device is asked for nothing.
#include <stdio.h>
#include <unistd.h>

#include "arena_kit.h"
#include "pool/decay.h"
#include "support/child.h"
#include "support/faults.h"
#include "tarn/account.h"
#include "tarn/capture.h"
#include "tarn/misuse.h"
#include "tarn/snapshot.h"
#include "tarn/strategy.h"

static const char *const strategies[] = {
    "arena_pool",          "page_unit_pool", "buddy_pool",
    "buddy_pool:max=4096", "power_pool",
};
enum { STRATEGIES = sizeof strategies / sizeof *strategies };

// Not in main, since faults are installed before anything else.
static void register_power_pool(void) {
  tarn_status status = tarn_pool_register(TarnPoolStrategy());
  ck_assert(status == TARN_OK || status == TARN_E_STATE);
}

static tarn_pool *pool_over(tarn_place place, const char *strategy,
                            tarn_addr address, size_t size) {
  register_power_pool();
  return own_pool(place, (tarn_pool_options){.strategy = strategy,
                                             .memory = {address, size}});
}

// Memory of the host's, with a byte of its own at each place.
enum { SLAB = 1 * MIB };
static _Alignas(4096) unsigned char slab[SLAB];

static unsigned char mark_of(size_t index) {
  return (unsigned char)(index * 31 + 7);
}

static void mark_slab(void) {
  for (size_t i = 0; i < SLAB; i++)
    slab[i] = mark_of(i);
}

static void check_slab(void) {
  for (size_t i = 0; i < SLAB; i++)
    require(slab[i] == mark_of(i));
}

static tarn_pool *over_slab(const char *strategy) {
  return pool_over(TARN_HOST, strategy, tarn_addr_of(slab), SLAB);
}

static bool is_inside(tarn_block block, tarn_addr address, size_t size) {
  return block.address >= address && block.size <= size &&
         block.address - address <= size - block.size;
}

// --- what it has -----------------------------------------------------------

TEST_LOOP(it_has_what_it_was_given, STRATEGIES) {
  tarn_pool *pool = over_slab(strategies[_i]);
  tarn_pool_stats stats = stats_of(pool);
  ck_assert_uint_eq(stats.reserved_bytes, SLAB);
  ck_assert_uint_eq(stats.live_blocks, 0);
  tarn_block block = take(pool, 1000);
  ck_assert(is_inside(block, tarn_addr_of(slab), SLAB));
  assert_ok(tarn_pool_trim(pool, 0));
  give(block);
  assert_ok(tarn_pool_trim(pool, 0));
  assert_ok(tarn__front_check(pool));
  stats = stats_of(pool);
  ck_assert_uint_eq(stats.reserved_bytes, SLAB);
  ck_assert_uint_eq(stats.reserved_peak_bytes, SLAB);
  ck_assert_uint_eq(stats.device_allocs, 0);
  ck_assert_uint_eq(stats.device_frees, 0);
  ck_assert_uint_eq(stats.misses, 0);
  ck_assert_uint_eq(stats.hits, 1);
  ck_assert_uint_eq(stats.limit_bytes, 0);
}

TEST_LOOP(its_bytes_are_not_touched, STRATEGIES) {
  mark_slab();
  tarn_pool *pool = over_slab(strategies[_i]);
  tarn_block blocks[50];
  for (size_t i = 0; i < 50; i++)
    blocks[i] = take(pool, 1 + i * 300);
  give_many(blocks, 50);
  end_own(pool);
  check_slab();
}

// Whatever was taken before, all of it can be one block again.
TEST_LOOP(all_of_it_can_be_one_block, STRATEGIES) {
  tarn_pool *pool = over_slab(strategies[_i]);
  size_t most = SLAB / 2;  // power_pool and buddy_pool cut by halves
  if (_i < 2) most = SLAB - 4096;
  for (int round = 0; round < 2; round++) {
    tarn_block all = take(pool, most);
    ck_assert(is_inside(all, tarn_addr_of(slab), SLAB));
    give(all);
    tarn_block blocks[60];
    for (size_t i = 0; i < 60; i++)
      blocks[i] = take(pool, 1 + i * 111);
    for (size_t i = 0; i < 60; i++)
      give(blocks[(i * 7) % 60]);
  }
}

TEST_LOOP(the_device_is_asked_for_nothing, STRATEGIES *TEST_DEVICES) {
  arena_place p = open_arena_with(_i / STRATEGIES, 0, "page_unit_pool");
  tarn_addr address = 0;
  assert_ok(tarn_device_allocate(p.place, 8 * (size_t)MIB, &address));
  assert_ok(tarn_sim_faults("*@1+"));  // all would fail
  tarn_pool *pool =
      pool_over(p.place, strategies[_i % STRATEGIES], address, 8 * (size_t)MIB);
  tarn_block blocks[30];
  for (size_t j = 0; j < 30; j++) {
    blocks[j] = take(pool, 1 + j * 2000);
    ck_assert(is_inside(blocks[j], address, 8 * (size_t)MIB));
  }
  for (size_t j = 0; j < 30; j++)
    give(blocks[j]);
  refuse(pool, 9 * (size_t)MIB, 0, TARN_FULL);
  ck_assert_uint_eq(stats_of(pool).device_allocs, 0);
  end_own(pool);
  assert_ok(tarn_sim_faults(""));
  assert_taken(&p, 8 * (size_t)MIB);
  assert_ok(tarn_device_deallocate(p.place, address, 8 * (size_t)MIB));
}

TEST_LOOP(blocks_are_aligned_as_asked, STRATEGIES) {
  tarn_pool *pool =
      pool_over(TARN_HOST, strategies[_i], tarn_addr_of(slab + 13), SLAB - 29);
  for (size_t align = 1; align <= 128 * KIBIBYTE; align *= 2) {
    tarn_block block;
    assert_ok(tarn_pool_alloc(pool, 100, align, NULL, &block));
    ck_assert_uint_eq(block.address % align, 0);
    ck_assert(is_inside(block, tarn_addr_of(slab + 13), SLAB - 29));
    give(block);
  }
}

// --- no room ---------------------------------------------------------------

TEST(what_is_said_when_it_is_full) {
  tarn_pool *pool = over_slab("arena_pool");
  tarn_block block = take_tagged(pool, 900 * KIBIBYTE, tag_of("weights"));
  refuse(pool, 200 * KIBIBYTE, 0, TARN_FULL);
  assert_error_says("pool of host: no room for 200.00 KiB");
  assert_error_says("the caller's memory has no room");
  assert_error_says("1.00 MiB (1048576 bytes) reserved");
  assert_error_says("(126976 bytes) idle in one hole");
  assert_error_says("weights");
  tarn_block rest = take(pool, 60 * KIBIBYTE);
  tarn_block last = take(pool, 60 * KIBIBYTE);
  give(rest);
  refuse(pool, 62 * KIBIBYTE, 0, TARN_FULL);
  assert_error_says("the caller's memory has no room");
  give(last);
  give(block);
}

static tarn_pool_need seen;

static bool free_one(tarn_pool *pool, const tarn_pool_need *need,
                     void *context) {
  (void)pool;
  tarn_block *block = context;
  seen = *need;
  if (block->pool == NULL) return false;
  give(*block);
  block->pool = NULL;
  return true;
}

TEST_LOOP(the_program_makes_room, STRATEGIES) {
  tarn_pool *pool = over_slab(strategies[_i]);
  tarn_block block = take(pool, SLAB / 2);
  tarn_block rest = take(pool, SLAB / 4);  // beside it is no other half left
  assert_ok(tarn_pool_on_full(pool, free_one, &block));
  tarn_block other = take(pool, SLAB / 2);
  ck_assert_ptr_null(block.pool);
  give(rest);
  give(other);
  other = take(pool, SLAB / 2);
  block.pool = NULL;
  refuse(pool, SLAB + 1, 0, TARN_FULL);
  ck_assert(!seen.can_fit);
  refuse(pool, SLAB, 0, TARN_FULL);
  ck_assert(seen.can_fit || _i == 4);
  give(other);
}

TEST(nothing_limits_it_but_its_size) {
  tarn_pool *pool = over_slab("arena_pool");
  assert_status(tarn_pool_limit(pool, 100), TARN_E_UNSUPPORTED);
  assert_error_says("limit of 100 bytes");
  assert_ok(tarn_pool_limit(pool, 0));
  ck_assert_uint_eq(stats_of(pool).limit_bytes, 0);
  assert_ok(tarn_pool_charge(pool, 10 * SLAB, 0));
  give(take(pool, SLAB / 2));
  assert_ok(tarn_pool_discharge(pool, 10 * SLAB, 0));
}

TEST_LOOP(its_blocks_are_in_a_snapshot, STRATEGIES) {
  tarn_pool *pool = over_slab(strategies[_i]);
  tarn_block block = take_tagged(pool, 1000, tag_of("weights"));
  tarn_trace *trace = NULL;
  assert_ok(tarn_pool_trace(pool, &trace));
  tarn_trace_destroy(trace);
  give(block);
}

// A hole that another stream used last is waited for, and joined.
TEST_LOOP(streams_share_it, STRATEGIES *TEST_DEVICES) {
  const char *strategy = strategies[_i % STRATEGIES];
  arena_place p = open_arena_with(_i / STRATEGIES, 0, "page_unit_pool");
  tarn_addr address = 0;
  tarn_stream *a = stream_on(&p);
  tarn_stream *b = stream_on(&p);
  assert_ok(tarn_device_allocate(p.place, MIB, &address));
  tarn_pool *pool = pool_over(p.place, strategy, address, MIB);
  for (int round = 0; round < 3; round++) {
    tarn_block first = take_on(pool, 400 * KIBIBYTE, a);
    tarn_block second = take_on(pool, 400 * KIBIBYTE, b);
    give_on(first, a);
    give_on(second, b);
    tarn_block both = take_on(pool, MIB / 2, NULL);
    give(both);
  }
  assert_ok(tarn__front_check(pool));
  end_own(pool);
  assert_ok(tarn_device_deallocate(p.place, address, MIB));
}

// --- what is refused -------------------------------------------------------

static void refuse_options(tarn_pool_options options, tarn_status expected) {
  tarn_pool *pool = (tarn_pool *)&options;
  options.struct_size = sizeof options;
  assert_status(tarn_pool_create(TARN_HOST, &options, &pool), expected);
  ck_assert_ptr_null(pool);
}

// Then the memory is the caller's, who may give it to others.
TEST_LOOP(its_end_waits_for_streams, STRATEGIES) {
  enum { STREAMS = 6 };
  static char out[STREAMS][8];
  arena_place p = open_arena("fake:0", "page_unit_pool");
  tarn_addr address = 0;
  tarn_stream *streams[STREAMS];
  tarn_block blocks[STREAMS];
  assert_ok(tarn_device_allocate(p.place, MIB, &address));
  tarn_pool *pool = pool_over(p.place, strategies[_i], address, MIB);
  for (int i = 0; i < STREAMS; i++) {
    streams[i] = stream_on(&p);
    blocks[i] = take_on(pool, 4096, streams[i]);
    tarn_addr at = blocks[i].address;
    assert_ok(tarn_copy_h2d(p.device, at, "queued ", 8, streams[i]));
    assert_ok(tarn_copy_d2h(p.device, out[i], at, 8, streams[i]));
  }
  for (int i = 0; i < STREAMS; i++)
    give_on(blocks[i], streams[i]);
  ck_assert_uint_eq(fake_seen.copies, 0);
  end_own(pool);
  for (int i = 0; i < STREAMS; i++) {
    ck_assert_str_eq(out[i], "queued ");
    end_stream(streams[i]);
  }
  assert_ok(tarn_device_deallocate(p.place, address, MIB));
}

TEST(options_are_checked) {
  tarn_addr address = tarn_addr_of(slab);
  refuse_options((tarn_pool_options){.memory = {address, 0}}, TARN_E_INVALID);
  assert_error_says("memory of 0 bytes");
  refuse_options((tarn_pool_options){.memory = {0, 4096}}, TARN_E_INVALID);
  assert_error_says("memory of 4096 bytes at 0x0");
  refuse_options((tarn_pool_options){.memory = {address, SIZE_MAX}},
                 TARN_E_INVALID);
  assert_error_says("18446744073709551615");
  refuse_options((tarn_pool_options){.memory = {UINT64_MAX - 100, 4096}},
                 TARN_E_INVALID);
  refuse_options((tarn_pool_options){.memory = {address, SLAB}, .limit = 4096},
                 TARN_E_INVALID);
  assert_error_says("limit of 4096");
  refuse_options(
      (tarn_pool_options){.memory = {address, SLAB}, .flags = TARN_POOL_DRY},
      TARN_E_INVALID);
  register_power_pool();
  for (int i = 0; i < STRATEGIES; i++) {
    refuse_options((tarn_pool_options){.memory = {address + 1, 64},
                                       .strategy = strategies[i]},
                   TARN_E_INVALID);
    assert_error_says("memory of 64 bytes");
    assert_error_says("too small");
  }
}

TEST(strategies_that_keep_nothing_cannot) {
  tarn_pool_memory memory = {tarn_addr_of(slab), SLAB};
  refuse_options((tarn_pool_options){.memory = memory, .strategy = "no_pool"},
                 TARN_E_UNSUPPORTED);
  assert_error_says("no_pool cannot cut up memory");
  refuse_options(
      (tarn_pool_options){.memory = memory, .strategy = "async_pool"},
      TARN_E_UNSUPPORTED);
}

TEST(it_keeps_its_strategy_and_stays_awake) {
  tarn_pool *pool = over_slab("arena_pool");
  tarn_tag tag = tag_of("weights");
  tarn_block block = take_tagged(pool, 1000, tag);
  assert_status(tarn_pool_set_strategy(pool, "page_unit_pool"),
                TARN_E_UNSUPPORTED);
  assert_error_says("memory of the caller");
  assert_status(tarn_pool_sleep(pool, tag, TARN_SLEEP_DROP),
                TARN_E_UNSUPPORTED);
  assert_error_says("memory of the caller");
  assert_ok(tarn_pool_wake(pool, tag));
  assert_ok(tarn_pool_resize(&block, 2000, NULL));
  assert_status(tarn_pool_destroy(pool), TARN_E_STATE);
  give(block);
}

// --- by address ------------------------------------------------------------

// The memory of one is a block of another.
TEST(the_place_does_not_look_into_it) {
  tarn_pool *outer = own_pool_with(TARN_HOST, NULL, 0, 0);
  tarn_block all = take(outer, SLAB);
  tarn_pool *inner = pool_over(TARN_HOST, NULL, all.address, all.size);
  tarn_block block = take(inner, 1000);
  tarn_block found;
  size_t offset = 1;
  assert_ok(tarn_block_of(TARN_HOST, block.address, &found, &offset));
  assert_same_block(found, all);
  ck_assert_uint_eq(offset, block.address - all.address);
  assert_ok(tarn_pool_block_of(inner, block.address + 9, &found, &offset));
  assert_same_block(found, block);
  ck_assert_uint_eq(offset, 9);
  tarn_block next = take(inner, 1000);
  assert_status(tarn_free(TARN_HOST, next.address, NULL), TARN_E_INVALID);
  assert_ok(tarn_pool_free_address(inner, next.address, NULL));
  give(block);
  end_own(inner);
  give(all);
}

// --- what pools can besides ------------------------------------------------

static void use_debugging(tarn_pool *pool) {
  tarn_pool_debug_options options = {.struct_size = sizeof options,
                                     .flags = TARN_POOL_DEBUG_GUARDS |
                                              TARN_POOL_DEBUG_POISON |
                                              TARN_POOL_DEBUG_QUARANTINE,
                                     .quarantine_bytes = 64 * KIBIBYTE};
  assert_ok(tarn_pool_debug(pool, &options));
  tarn_block block = take(pool, 1000);
  ck_assert_uint_eq(block.size, 1000);
  memset(block.pointer, 1, 1000);
  give(block);
  for (size_t i = 0; i < 500; i++)
    give(take(pool, 1 + i * 100));
  // The quarantine makes room.
  give(take(pool, SLAB / 2 - 100));
  assert_ok(tarn__front_check(pool));
}

TEST_LOOP(it_debugs_and_leaves_the_bytes_to_be_used, STRATEGIES) {
  tarn_pool *pool = over_slab(strategies[_i]);
  use_debugging(pool);
  end_own(pool);
  mark_slab();  // which the address sanitizer lets pass
  check_slab();
}

TEST_LOOP(a_graph_may_be_captured_with_it, 2) {
  tarn_pool *pool = own_pool(
      TARN_HOST, (tarn_pool_options){.strategy = strategies[_i],
                                     .flags = TARN_POOL_DEFER,
                                     .memory = {tarn_addr_of(slab), SLAB}});
  assert_ok(tarn_pool_begin_capture(pool));
  tarn_block block = take(pool, 3000);
  refuse(pool, SLAB, 0, TARN_FULL);
  give(block);
  assert_ok(tarn_pool_end_capture(pool));
  assert_ok(tarn_pool_end_graphs(pool));
}

TEST(steps_are_learned_in_it) {
  tarn_pool *pool = over_slab("arena_pool");
  tarn_block blocks[20];
  for (int step = 0; step < 200; step++) {
    for (size_t i = 0; i < 20; i++) {
      blocks[i] = take(pool, 100 + i * 777);
      ck_assert(is_inside(blocks[i], tarn_addr_of(slab), SLAB));
    }
    give_many(blocks, 20);
  }
  ck_assert_ptr_nonnull(pool->steps.cursor.layout);
  assert_ok(tarn__front_check(pool));
  pool->decay.high = SLAB;
  tarn__decay_tend(pool);  // periods without any need: nothing can go back
  tarn__decay_tend(pool);
  ck_assert_ptr_nonnull(pool->steps.cursor.layout);
  tarn_block all = take(pool, SLAB - 4096);
  give(all);
  assert_ok(tarn_pool_decay(pool, 1));
  assert_ok(tarn_pool_decay(pool, 0));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, SLAB);
}

static bool use_in_child(tarn_pool *pool) {
  tarn_block block;
  return tarn_pool_alloc(pool, 1, 0, NULL, &block) == TARN_E_STATE &&
         tarn_pool_destroy(pool) == TARN_OK;
}

TEST_LOOP(a_child_leaves_the_memory_alone, STRATEGIES) {
  mark_slab();
  tarn_pool *pool = over_slab(strategies[_i]);
  tarn_block block = take(pool, 5000);
  pid_t child = fork();
  if (child == 0) {
    child_begin(30);
    bool done = use_in_child(pool);
    for (size_t i = 0; i < SLAB; i++)
      done = done && slab[i] == mark_of(i);
    _exit(done ? 0 : 1);
  }
  assert_child_ended_well(child);
  give(block);
}

// --- without host memory ---------------------------------------------------

static void create_and_use(void *context) {
  const char *strategy = context;
  tarn_pool_options options = {.struct_size = sizeof options,
                               .strategy = strategy,
                               .memory = {tarn_addr_of(slab), SLAB}};
  tarn_pool *pool = NULL;
  tarn_block blocks[3] = {0};
  tarn_status status = tarn_pool_create(TARN_HOST, &options, &pool);
  require(status == TARN_OK || status == TARN_E_NOMEM);
  require((pool != NULL) == (status == TARN_OK));
  if (status != TARN_OK) return;
  for (size_t i = 0; i < 3; i++) {
    status = tarn_pool_alloc(pool, 9999 * (i + 1), 0, NULL, &blocks[i]);
    require(status == TARN_OK || status == TARN_E_NOMEM);
  }
  for (size_t i = 0; i < 3; i++)
    if (blocks[i].pool != NULL) give(blocks[i]);
  assert_ok(tarn__front_check(pool));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, SLAB);
  assert_ok(tarn_pool_destroy(pool));
}

TEST(nothing_is_lost_without_host_memory) {
  faults_install();
  register_power_pool();
  char strategy[32];
  end_own(over_slab(NULL));  // what is made once
  for (int i = 0; i < STRATEGIES; i++) {
    snprintf(strategy, sizeof strategy, "%s", strategies[i]);
    ck_assert_uint_gt(faults_sweep(create_and_use, strategy), 5);
  }
}
