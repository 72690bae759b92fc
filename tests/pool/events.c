// A pool's last events: which are written, and what is in them.
#include "events_kit.h"
#include "support/fake_plugin.h"
#include "support/faults.h"
#include "support/strategy.h"
#include "support/tagged.h"
#include "support/threads.h"

static tarn_pool *events_on(const char *strategy, uint32_t more) {
  tarn_pool *pool = host_pool(strategy);
  assert_ok(tarn_pool_account(pool, TARN_COUNT_EVENTS | more));
  return pool;
}

// --- what is written -------------------------------------------------------

TEST(nothing_is_written_unless_asked) {
  tarn_pool *pool = host_pool("page_unit_pool");
  size_t held = tarn_host_memory();
  give(take(pool, 100));
  give(take(pool, 100));
  ck_assert_uint_eq(read_all(pool), 0);
  ck_assert_ptr_null(pool->events.ring);
  ck_assert_uint_le(tarn_host_memory(), held + 65536);
}

TEST(a_block_s_life_is_written) {
  tarn_pool *pool = events_on("page_unit_pool", 0);
  tarn_tag tag = tag_of("weights");
  tarn_block block = take_tagged(pool, 5000, tag);
  give(block);
  ck_assert_uint_eq(read_all(pool), 3);
  ck_assert_int_eq(seen[0].kind, TARN_POOL_EVENT_GROW);
  ck_assert_uint_eq(seen[0].address, block.address);
  ck_assert_uint_ge(seen[0].size, 8192);
  const tarn_pool_event_kind kinds[] = {TARN_POOL_EVENT_ALLOC,
                                        TARN_POOL_EVENT_FREE};
  for (size_t i = 0; i < 2; i++) {
    const tarn_pool_event *e = &seen[i + 1];
    ck_assert_int_eq(e->kind, kinds[i]);
    ck_assert_uint_eq(e->number, i + 1);
    ck_assert_uint_eq(e->address, block.address);
    ck_assert_uint_eq(e->size, 5000);
    ck_assert_uint_eq(e->size_before, 0);
    ck_assert_uint_eq(e->tag, tag);
    ck_assert_uint_eq(e->stream, 0);
    ck_assert_uint_ne(e->thread, 0);
    ck_assert_uint_eq(e->time_ns, 0);
    ck_assert_int_eq(e->status, TARN_OK);
  }
  ck_assert_uint_eq(sizeof(tarn_pool_event), 64);  // as account.h says
}

TEST(resizes_are_written_with_both_sizes) {
  tarn_pool *pool = events_on("arena_pool", 0);
  tarn_block block = take(pool, MIB);
  assert_ok(tarn_pool_resize(&block, MIB / 2, NULL));
  assert_status(tarn_pool_resize(&block, SIZE_MAX / 2, NULL), TARN_FULL);
  give(block);
  size_t count = read_all(pool);
  const tarn_pool_event *e = &seen[count - 2];
  ck_assert_int_eq(e->kind, TARN_POOL_EVENT_RESIZE);
  ck_assert_uint_eq(e->address, block.address);
  ck_assert_uint_eq(e->size, MIB / 2);
  ck_assert_uint_eq(e->size_before, MIB);
  ck_assert_int_eq(seen[count - 1].kind, TARN_POOL_EVENT_FREE);
  ck_assert_uint_eq(seen[count - 1].size, MIB / 2);
}

TEST(failures_say_why) {
  tarn_pool *pool = events_on("page_unit_pool", 0);
  tarn_tag tag = tag_of("too much");
  assert_ok(tarn_pool_limit(pool, 4096));
  tarn_block block;
  assert_status(alloc_tagged(pool, 5000, 0, NULL, tag, &block), TARN_FULL);
  ck_assert_uint_eq(read_all(pool), 1);
  ck_assert_int_eq(seen[0].kind, TARN_POOL_EVENT_FAIL);
  ck_assert_uint_eq(seen[0].size, 5000);
  ck_assert_uint_eq(seen[0].address, 0);
  ck_assert_uint_eq(seen[0].tag, tag);
  ck_assert_int_eq(seen[0].status, TARN_FULL);
  refuse(pool, 0, 0, TARN_E_INVALID);
  ck_assert_uint_eq(read_all(pool), 1);  // which was no request
}

TEST(streams_and_switches_are_written) {
  tarn_device *cpu = open_device("cpu:0");
  tarn_stream *stream = stream_of(cpu);
  tarn_pool *pool = events_on("page_unit_pool", 0);
  tarn_block block = take_on(pool, 100, stream);
  assert_ok(use_strategy(TARN_HOST, "no_pool"));
  give_on(block, stream);
  uint64_t serial = tarn_stream_serial(stream);
  ck_assert_uint_eq(read_all(pool), 5);
  const tarn_pool_event_kind kinds[] = {
      TARN_POOL_EVENT_GROW, TARN_POOL_EVENT_ALLOC, TARN_POOL_EVENT_SWITCH,
      TARN_POOL_EVENT_FREE, TARN_POOL_EVENT_SHRINK};
  for (size_t i = 0; i < 5; i++) {
    ck_assert_int_eq(seen[i].kind, kinds[i]);
    ck_assert_uint_eq(seen[i].stream, i == 2 ? 0 : serial);
  }
  ck_assert_uint_eq(seen[4].address, seen[0].address);
  ck_assert_uint_eq(seen[4].size, seen[0].size);
}

TEST(times_are_written_where_asked) {
  tarn_pool *pool = events_on("page_unit_pool", TARN_COUNT_TIMES);
  for (int i = 0; i < 10; i++)
    give(take(pool, 100));
  size_t count = read_all(pool);
  ck_assert_uint_eq(count, 21);
  for (size_t i = 0; i < count; i++) {
    ck_assert_uint_gt(seen[i].time_ns, 0);
    ck_assert_uint_ge(seen[i].time_ns, seen[i > 0 ? i - 1 : 0].time_ns);
  }
}

// A crossing that cannot be arranged: the block went back as it came.
TEST(a_crossing_that_fails_leaves_no_block) {
  tarn_stream *a = NULL;
  tarn_stream *b = NULL;
  fake_add();
  tarn_device *device = open_device("fake:0");
  assert_ok(tarn_stream_create(device, &a));
  assert_ok(tarn_stream_create(device, &b));
  tarn_pool *pool = pool_at(tarn_place_on(device));
  assert_ok(tarn_pool_account(pool, TARN_COUNT_EVENTS));
  tarn_tag tag = tag_of("crossing");
  tarn_block block = take_on(pool, 100, a);
  give_on(block, a);
  faults_arm(1, FAULTS_FROM_NOW);
  fake.strikes = true;
  assert_status(alloc_tagged(pool, 100, 0, b, tag, &block), TARN_E_DEVICE);
  fake.strikes = false;
  ck_assert(faults_disarm());
  ck_assert_uint_eq(read_all(pool), 6);
  ck_assert_int_eq(seen[3].kind, TARN_POOL_EVENT_ALLOC);
  ck_assert_int_eq(seen[4].kind, TARN_POOL_EVENT_FREE);
  ck_assert_uint_eq(seen[4].address, seen[3].address);
  ck_assert_int_eq(seen[5].kind, TARN_POOL_EVENT_FAIL);
  ck_assert_uint_eq(seen[5].tag, tag);
  ck_assert_int_eq(seen[5].status, TARN_E_DEVICE);
  (void)tarn_stream_destroy(a);
  (void)tarn_stream_destroy(b);
}

// --- sums ------------------------------------------------------------------

// Adds up what |seen| says; the numbers leave none out.
static void sum_up(size_t count, size_t *out_live, size_t *out_held) {
  *out_live = *out_held = 0;
  for (size_t i = 0; i < count; i++) {
    const tarn_pool_event *e = &seen[i];
    require(e->number == i);
    switch (e->kind) {
      case TARN_POOL_EVENT_ALLOC:
        *out_live += e->size;
        break;
      case TARN_POOL_EVENT_FREE:
        *out_live -= e->size;
        break;
      case TARN_POOL_EVENT_RESIZE:
        *out_live += e->size - e->size_before;
        break;
      case TARN_POOL_EVENT_GROW:
      case TARN_POOL_EVENT_MAP:
        *out_held += e->size;
        break;
      case TARN_POOL_EVENT_SHRINK:
      case TARN_POOL_EVENT_UNMAP:
        *out_held -= e->size;
        break;
      default:
        break;
    }
  }
}

static void assert_sums(tarn_pool *pool) {
  size_t live = 0;
  size_t held = 0;
  sum_up(read_all(pool), &live, &held);
  tarn_pool_stats stats = stats_of(pool);
  ck_assert_uint_eq(live, stats.live_bytes);
  ck_assert_uint_eq(held, stats.reserved_bytes);
}

// What is written adds up to what the pool says, on ranges and on segments,
// over switches, resizes, limits and trims.
TEST_LOOP(events_add_up, 2 * TEST_DEVICES) {
  enum {
    SLOTS = 32,
    STEPS = 2000,
    LARGEST = 2 * MIB,
    MOST_HELD = 48 * MIB,
    KEPT = 8 * MIB
  };
  static tarn_block blocks[SLOTS];
  uint64_t state = 88172645463325252u + (uint64_t)_i;
  tarn_device *device = open_device(test_devices[_i / 2]);
  tarn_place place = tarn_place_on(device);
  tarn_pool *pool = pool_at(place);
  assert_ok(tarn_pool_account(pool, TARN_COUNT_EVENTS));
  assert_ok(tarn_pool_account_ring(pool, MOST_EVENTS));
  assert_ok(tarn_pool_limit(pool, MOST_HELD));
  for (int i = 0; i < STEPS; i++) {
    size_t slot = next_random(&state) % SLOTS;
    size_t size = 1 + next_random(&state) % LARGEST;
    if (i % 200 == 0) {
      const char *strategy = any_strategy(i / 200 % ALL_STRATEGIES);
      require(use_strategy(place, strategy) == TARN_OK);
    }
    if (i % 97 == 0) require(tarn_pool_trim(pool, KEPT) == TARN_OK);
    if (blocks[slot].address == 0) {
      tarn_status status = tarn_pool_alloc(pool, size, 0, NULL, &blocks[slot]);
      require(status == TARN_OK || status == TARN_FULL);
    } else if (i % 3 == 0) {
      tarn_status status = tarn_pool_resize(&blocks[slot], size, NULL);
      require(status == TARN_OK || status == TARN_FULL);
    } else {
      require(tarn_pool_free(&blocks[slot], NULL) == TARN_OK);
      blocks[slot].address = 0;
    }
  }
  assert_sums(pool);
  for (int i = 0; i < SLOTS; i++) {
    if (blocks[i].address != 0) give(blocks[i]);
  }
  assert_ok(tarn_pool_trim(pool, 0));
  assert_sums(pool);
  assert_ok(tarn__front_check(pool));
}
