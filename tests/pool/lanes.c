// Lanes: what threads keep of a pool, what is counted, when there are none.
#include "lanes_kit.h"

#include "support/faults.h"
#include "tarn/account.h"
#include "tarn/alloc.h"
#include "tarn/misuse.h"

static tarn_pool *arena(void) {
  return own_pool_with(TARN_HOST, "arena_pool", 0, 0);
}

static size_t lanes_of(tarn_pool *pool) {
  return pool->lanes.owned;
}

// --- when there are any -----------------------------------------------------

TEST(one_thread_has_no_lane) {
  tarn_pool *pool = arena();
  for (int i = 0; i < 1000; i++)
    take_and_give(pool);
  ck_assert(!pool->lanes.begun);
  ck_assert_uint_eq(stats_of(pool).leased_peak_bytes, 0);
  ck_assert_uint_eq(stats_of(pool).live_peak_bytes, 1000);
}

TEST(threads_that_take_turns_get_lanes) {
  tarn_pool *pool = arena();
  tarn_other other;
  other_begin(&other);
  begin_lanes(pool, &other);
  ck_assert_uint_eq(lanes_of(pool), 2);
  other_ends(&other);
  ck_assert_uint_eq(lanes_of(pool), 1);
  assert_ok(tarn__front_check(pool));
}

TEST(a_thread_that_is_left_alone_has_none) {
  tarn_pool *pool = arena();
  tarn_other other;
  other_begin(&other);
  begin_lanes(pool, &other);
  other_ends(&other);
  ck_assert(!pool->lanes.begun);
  assert_ok(tarn_pool_reset_peaks(pool));
  for (int i = 0; i < 1000; i++)
    take_and_give(pool);
  ck_assert_uint_eq(stats_of(pool).leased_peak_bytes, 0);
  ck_assert_ptr_nonnull(pool->steps.cursor.layout);  // its steps are learned
  assert_ok(tarn__front_check(pool));
}

static void many(void *pool) {
  for (int i = 0; i < 400; i++)
    take_and_give(pool);
}

TEST(rare_turns_begin_no_lanes) {
  tarn_pool *pool = arena();
  tarn_other other;
  other_begin(&other);
  for (int i = 0; i < 40; i++) {
    other_does(&other, many, pool);
    many(pool);
  }
  other_ends(&other);
  ck_assert(!pool->lanes.begun);
}

TEST_LOOP(only_arena_pool_has_them, ALL_STRATEGIES) {
  const char *name = any_strategy(_i);
  tarn_pool *pool = own_pool_with(TARN_HOST, name, 0, 0);
  tarn_other other;
  other_begin(&other);
  begin_lanes(pool, &other);
  other_ends(&other);
  ck_assert_uint_eq(lanes_of(pool), strcmp(name, "arena_pool") == 0 ? 1 : 0);
}

static void check_most(const char *strategy, size_t lanes) {
  tarn_pool *pool = own_pool_with(TARN_HOST, strategy, 0, 0);
  tarn_other other;
  other_begin(&other);
  begin_lanes(pool, &other);
  ck_assert(pool->lanes.begun == (lanes != 0));
  ck_assert_uint_eq(lanes_of(pool), lanes);
  other_ends(&other);
  assert_ok(tarn__front_check(pool));
}

TEST(as_many_threads_have_them_as_is_said) {
  check_most("arena_pool:lanes=0", 0);
  check_most("arena_pool:lanes=1", 1);
  check_most("arena_pool:lanes=2", 2);
}

// Not even of blocks that no lane takes.
TEST(no_step_is_learned_meanwhile) {
  tarn_pool *pool = arena();
  tarn_other other;
  other_begin(&other);
  begin_lanes(pool, &other);
  uint64_t heard = pool->steps.recorder.count;
  for (int i = 0; i < 1000; i++) {
    tarn_block block;
    assert_ok(tarn_pool_alloc(pool, 2 * MIB, 0, NULL, &block));
    assert_ok(tarn_pool_free(&block, NULL));
  }
  ck_assert_uint_eq(pool->steps.recorder.count, heard);
  ck_assert_ptr_null(pool->steps.cursor.layout);
  other_ends(&other);
}

TEST(without_host_memory_threads_use_the_lock) {
  faults_install();
  tarn_pool *pool = arena();
  tarn_other other;
  other_begin(&other);
  other_does(&other, take_and_give, pool);
  take_and_give(pool);
  faults_arm(1, FAULTS_FROM_NOW);
  begin_lanes(pool, &other);
  ck_assert(faults_disarm());
  ck_assert_uint_eq(lanes_of(pool), 0);
  begin_lanes(pool, &other);
  ck_assert_uint_eq(lanes_of(pool), 2);
  assert_ok(tarn__front_check(pool));
  other_ends(&other);
}

// --- what they serve --------------------------------------------------------

static struct {
  tarn_pool *pool;
  tarn_block block;
  size_t size;
  tarn_tag tag;
  tarn_status status;
} shared;

static void take_shared(void *unused) {
  (void)unused;
  shared.status = alloc_tagged(shared.pool, shared.size, 0, NULL, shared.tag,
                               &shared.block);
}

static void give_shared(void *unused) {
  (void)unused;
  shared.status = tarn_pool_free(&shared.block, NULL);
}

static void give_shared_address(void *unused) {
  (void)unused;
  shared.status =
      tarn_pool_free_address(shared.pool, shared.block.address, NULL);
}

// Both threads have lanes; the pool has no live block.
static tarn_pool *begin(tarn_other *other) {
  tarn_pool *pool = arena();
  shared.pool = pool;
  shared.size = 5000;
  shared.tag = 0;
  other_begin(other);
  begin_lanes(pool, other);
  return pool;
}

TEST(a_block_is_served_again_without_the_pool) {
  tarn_other other;
  tarn_pool *pool = begin(&other);
  uint64_t before = stats_of(pool).allocs;
  tarn_block first = take(pool, 5000);
  give(first);
  uint64_t counted = pool->stats.allocs;  // without what lanes count
  tarn_block second = take(pool, 4800);
  ck_assert_uint_eq(second.address, first.address);
  ck_assert_uint_eq(second.id, first.id);
  ck_assert_uint_ne(second.generation, first.generation);
  ck_assert_uint_eq(pool->stats.allocs, counted);
  ck_assert_uint_eq(stats_of(pool).allocs, before + 2);
  ck_assert_uint_eq(stats_of(pool).live_bytes, 4800);
  give(second);
  other_ends(&other);
}

TEST(a_much_larger_idle_block_does_not_serve) {
  tarn_other other;
  tarn_pool *pool = begin(&other);
  tarn_block large = take(pool, (size_t)100 * KIB);
  tarn_addr there = large.address;
  give(large);
  tarn_block small = take(pool, (size_t)60 * KIB);
  ck_assert_uint_ne(small.address, there);
  tarn_block again = take(pool, (size_t)99 * KIB);
  ck_assert_uint_eq(again.address, there);
  give(small);
  give(again);
  other_ends(&other);
}

TEST(an_alignment_is_kept) {
  tarn_other other;
  tarn_pool *pool = begin(&other);
  for (size_t align = 512; align <= MIB; align *= 2) {
    tarn_block block;
    give(take(pool, 5000));
    assert_ok(tarn_pool_alloc(pool, 5000, align, NULL, &block));
    ck_assert_uint_eq(block.address % align, 0);
    give(block);
  }
  other_ends(&other);
}

TEST(wrong_requests_are_refused_as_ever) {
  tarn_other other;
  tarn_pool *pool = begin(&other);
  tarn_block block;
  give(take(pool, 5000));
  assert_fails(tarn_pool_alloc(pool, 0, 0, NULL, &block), TARN_E_INVALID,
               "size is 0");
  give(take(pool, 5000));
  assert_fails(tarn_pool_alloc(pool, 5000, 48, NULL, &block), TARN_E_INVALID,
               "power of two");
  give(take(pool, 5000));
  assert_fails(alloc_tagged(pool, 5000, 0, NULL, 65000, &block), TARN_E_INVALID,
               "no tag 65000");
  other_ends(&other);
}

// --- blocks that another thread frees ---------------------------------------

TEST_LOOP(foreign_frees_go_home, 2) {
  tarn_other other;
  tarn_pool *pool = begin(&other);
  tarn_addr seen[64];
  size_t again = 0;
  for (int i = 0; i < 64; i++) {
    take_shared(NULL);
    seen[i] = shared.block.address;
    other_does(&other, _i == 0 ? give_shared : give_shared_address, NULL);
    assert_ok(shared.status);
    for (int k = 0; k < i; k++)
      again += seen[k] == seen[i] ? 1 : 0;
  }
  // Parcels of 16: the first had to be sent before any could come back.
  ck_assert_uint_gt(again, 16);
  ck_assert_uint_eq(stats_of(pool).live_blocks, 0);
  assert_ok(tarn__front_check(pool));
  other_ends(&other);
}

TEST(a_block_is_freed_once) {
  tarn_other other;
  tarn_pool *pool = begin(&other);
  take_shared(NULL);
  tarn_block block = shared.block;
  give(block);
  other_does(&other, give_shared, NULL);
  ck_assert_int_eq(shared.status, TARN_E_INVALID);
  assert_fails(tarn_pool_free(&block, NULL), TARN_E_INVALID, "freed before");
  assert_fails(tarn_pool_free_address(pool, block.address, NULL),
               TARN_E_INVALID, "freed before");
  tarn_block next = take(pool, 5000);
  ck_assert_uint_eq(next.address, block.address);
  assert_fails(tarn_pool_free(&block, NULL), TARN_E_INVALID, "freed before");
  give(next);
  ck_assert_uint_eq(stats_of(pool).live_blocks, 0);
  other_ends(&other);
}

TEST(forged_blocks_are_refused) {
  tarn_other other;
  tarn_pool *pool = begin(&other);
  tarn_block block = take(pool, 5000);
  tarn_block forged = block;
  forged.id = UINT32_MAX;
  ck_assert_int_eq(tarn_pool_free(&forged, NULL), TARN_E_INVALID);
  forged = block;
  forged.address += 512;
  ck_assert_int_eq(tarn_pool_free(&forged, NULL), TARN_E_INVALID);
  ck_assert_int_eq(tarn_pool_free_address(pool, block.address + 512, NULL),
                   TARN_E_INVALID);
  give(block);
  other_ends(&other);
}

// --- what is counted --------------------------------------------------------

TEST(sums_are_exact_when_they_are_read) {
  enum { COUNT = 40 };
  tarn_other other;
  tarn_pool *pool = begin(&other);
  tarn_tag tags[6];
  tarn_block blocks[COUNT];
  size_t bytes[6] = {0};
  for (int i = 0; i < 6; i++) {
    char name[] = "lane 0";
    name[5] = (char)('0' + i);
    tags[i] = tag_of(name);
  }
  for (int round = 0; round < 4; round++) {
    for (int i = 0; i < COUNT; i++) {
      blocks[i] = take_tagged(pool, 4000 + (size_t)i, tags[i % 6]);
      bytes[i % 6] += (size_t)4000 + (size_t)i;
      if (i % 7 == 0) {
        ck_assert_uint_eq(tag_stats_of(pool, tags[i % 6]).live_bytes,
                          bytes[i % 6]);
      }
    }
    ck_assert_uint_eq(stats_of(pool).live_blocks, COUNT);
    for (int i = 0; i < COUNT; i++) {
      shared.block = blocks[i];
      if (i % 2 == 0) {
        give(blocks[i]);
      } else {
        other_does(&other, give_shared, NULL);
      }
      bytes[i % 6] -= 4000 + (size_t)i;
      if (i % 5 == 0) {
        ck_assert_uint_eq(tag_stats_of(pool, tags[i % 6]).live_bytes,
                          bytes[i % 6]);
      }
    }
    ck_assert_uint_eq(stats_of(pool).live_bytes, 0);
  }
  assert_ok(tarn__front_check(pool));
  other_ends(&other);
}

TEST(peaks_are_an_upper_bound) {
  enum { COUNT = 100, SIZE = 4000, ALL = COUNT * SIZE };
  tarn_other other;
  tarn_pool *pool = begin(&other);
  tarn_tag tag = tag_of("peaks");
  tarn_block blocks[COUNT];
  assert_ok(tarn_pool_reset_peaks(pool));
  for (int i = 0; i < COUNT; i++)
    blocks[i] = take_tagged(pool, SIZE, tag);
  for (int i = 0; i < COUNT; i++)
    give(blocks[i]);
  tarn_pool_stats stats = stats_of(pool);
  tarn_pool_tag_stats of_tag = tag_stats_of(pool, tag);
  ck_assert_uint_ge(stats.live_peak_bytes, ALL);
  ck_assert_uint_gt(stats.leased_peak_bytes, 0);
  ck_assert_uint_le(stats.live_peak_bytes, ALL + stats.leased_peak_bytes);
  ck_assert_uint_ge(of_tag.live_peak_bytes, ALL);
  ck_assert_uint_le(of_tag.live_peak_bytes, ALL + stats.leased_peak_bytes);
  other_ends(&other);
}

TEST(idle_memory_of_lanes_is_bounded) {
  enum { COUNT = 3000, SIZE = 20 * KIB };
  static tarn_block blocks[COUNT];
  tarn_other other;
  tarn_pool *pool = begin(&other);
  for (int i = 0; i < COUNT; i++)
    blocks[i] = take(pool, SIZE);
  for (int i = 0; i < COUNT; i++)
    give(blocks[i]);
  size_t idle = 0;
  for (size_t i = 1; i <= pool->lanes.count; i++)
    idle += pool->lanes.by_number[i]->idle;
  ck_assert_uint_gt(idle, 0);
  ck_assert_uint_le(idle, (size_t)COUNT * SIZE / 16);
  assert_ok(tarn__front_check(pool));
  other_ends(&other);
}

// --- limits and giving back -------------------------------------------------

TEST(a_trim_gives_all_back) {
  tarn_other other;
  tarn_pool *pool = begin(&other);
  take_shared(NULL);
  other_does(&other, give_shared, NULL);  // waits in a parcel
  give(take(pool, 3000));
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
  assert_ok(tarn__front_check(pool));
  other_ends(&other);
}

TEST(what_lanes_keep_is_recalled_before_a_refusal) {
  tarn_other other;
  tarn_pool *pool = begin(&other);
  shared.size = (size_t)300 * KIB;
  take_shared(NULL);
  size_t held = stats_of(pool).reserved_bytes;
  assert_ok(tarn_pool_limit(pool, held));
  other_does(&other, give_shared, NULL);
  tarn_block block = take(pool, held - (size_t)256 * KIB);
  ck_assert_uint_le(stats_of(pool).reserved_bytes, held);
  give(block);
  assert_ok(tarn_pool_limit(pool, 0));
  other_ends(&other);
}

TEST(a_thread_that_ends_leaves_nothing) {
  tarn_other other;
  tarn_pool *pool = begin(&other);
  take_shared(NULL);
  tarn_block mine = shared.block;
  other_does(&other, take_shared, NULL);
  tarn_block theirs = shared.block;
  shared.block = mine;
  other_does(&other, give_shared, NULL);  // in its parcel for this thread
  other_ends(&other);
  ck_assert_uint_eq(lanes_of(pool), 1);
  for (int i = 0; i < 40; i++) {
    give(theirs);  // for the lane of a thread that is gone
    theirs = take(pool, 5000);
  }
  give(theirs);
  assert_ok(tarn__front_check(pool));
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
}

// --- what needs one order ---------------------------------------------------

TEST(events_end_lanes_and_are_in_order) {
  tarn_other other;
  tarn_pool *pool = begin(&other);
  tarn_pool_event events[4];
  size_t count = 0;
  uint64_t next = 0;
  take_shared(NULL);
  assert_ok(tarn_pool_account(pool, TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS));
  other_does(&other, give_shared, NULL);
  take_shared(NULL);
  assert_ok(tarn_pool_events(pool, 0, events, 4, &count, &next));
  ck_assert_uint_eq(count, 2);
  ck_assert_int_eq(events[0].kind, TARN_POOL_EVENT_FREE);
  ck_assert_int_eq(events[1].kind, TARN_POOL_EVENT_ALLOC);
  ck_assert_uint_eq(pool->lanes.open, 0);
  assert_ok(tarn_pool_account(pool, TARN_COUNT_DEFAULT));
  give_shared(NULL);
  take_and_give(pool);
  ck_assert_uint_eq(pool->lanes.open, 1);
  assert_ok(tarn__front_check(pool));
  other_ends(&other);
}

TEST(debugging_ends_lanes) {
  tarn_other other;
  tarn_pool *pool = begin(&other);
  tarn_pool_debug_options options = {.struct_size = sizeof options};
  take_shared(NULL);
  assert_ok(tarn_pool_debug(pool, &options));
  other_does(&other, give_shared, NULL);
  assert_ok(shared.status);
  many(pool);
  ck_assert_uint_eq(pool->lanes.open, 0);
  assert_ok(tarn__front_check(pool));
  other_ends(&other);
}

TEST(blocks_of_a_replaced_strategy_go_to_it) {
  tarn_other other;
  tarn_pool *pool = begin(&other);
  take_shared(NULL);
  give(take(pool, 7000));
  assert_ok(tarn_pool_set_strategy(pool, "arena_pool:page=4M"));
  give(take(pool, 7000));
  other_does(&other, give_shared, NULL);
  assert_ok(shared.status);
  ck_assert(tarn_list_empty(&pool->replaced));
  assert_ok(tarn__front_check(pool));
  other_ends(&other);
}

TEST(blocks_that_streams_use_do_not_stay) {
  tarn_other other;
  tarn_pool *pool = begin(&other);
  tarn_device *device = NULL;
  assert_ok(tarn__place_device(TARN_HOST, &device));
  tarn_stream *stream = stream_of(device);
  tarn_block block = take(pool, 5000);
  assert_ok(tarn_block_use_on(&block, stream));
  give(block);
  assert_ok(tarn__front_check(pool));
  block = take(pool, 5000);
  give_on(block, stream);
  assert_ok(tarn__front_check(pool));
  other_ends(&other);
}

TEST(resized_blocks_are_served_by_their_size) {
  tarn_other other;
  tarn_pool *pool = begin(&other);
  for (size_t size = 1000; size < (size_t)2 * MIB; size = size * 3 / 2) {
    tarn_block block = take(pool, 900);
    tarn_status status = tarn_pool_resize(&block, size, NULL);
    ck_assert(status == TARN_OK || status == TARN_FULL);
    memset(block.pointer, 1, block.size);
    give(block);
    block = take(pool, 900);
    ck_assert_uint_ge(block.size, 900);
    give(block);
  }
  assert_ok(tarn__front_check(pool));
  other_ends(&other);
}

// --- the end of a thread ----------------------------------------------------

static pthread_key_t late_key;
static tarn_block late_blocks[8];

static void free_late(void *unused) {
  (void)unused;
  for (int i = 0; i < 8; i++)
    expect(tarn_pool_free(&late_blocks[i], NULL) == TARN_OK);
}

static void keep_until_late(void *pool) {
  take_and_give(pool);
  for (int i = 0; i < 8; i++) {
    expect(tarn_pool_alloc(pool, 1000, 0, NULL, &late_blocks[i]) == TARN_OK);
  }
  expect(pthread_setspecific(late_key, pool) == 0);
}

// The key is younger than the library's: its destructor runs later.
TEST(what_a_thread_frees_after_its_lane_ended_is_not_left_there) {
  tarn_other other;
  tarn_other third;
  tarn_pool *pool = begin(&other);
  other_begin(&third);
  begin_lanes(pool, &third);
  ck_assert_int_eq(pthread_key_create(&late_key, free_late), 0);
  other_does(&other, keep_until_late, pool);
  other_ends(&other);
  assert_as_expected();
  for (size_t i = 1; i <= pool->lanes.count; i++) {
    const tarn__pool_lane *lane = pool->lanes.by_number[i];
    ck_assert(lane->owner != NULL || (lane->closed && lane->idle == 0));
  }
  ck_assert_uint_eq(lanes_of(pool), 2);
  other_ends(&third);
  assert_ok(tarn__front_check(pool));
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
}
