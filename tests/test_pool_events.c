// The ring of a pool's last events: what is written, what a reader sees, and
// what is lost.
#include <pthread.h>

#include "support/fake_plugin.h"
#include "support/faults.h"
#include "test_pool_kit.h"

enum { ROOM = 8, MOST = 1 << 16 };

static tarn_pool_event seen[MOST];

// All that is there from |from| on, into |seen|.
static size_t read_from(tarn_pool *pool, uint64_t from, uint64_t *out_next) {
  size_t count = 0;
  assert_ok(tarn_pool_events(pool, from, seen, MOST, &count, out_next));
  return count;
}

static size_t read_all(tarn_pool *pool) {
  uint64_t next = 0;
  return read_from(pool, 0, &next);
}

static tarn_pool *events_on(const char *strategy, uint32_t more) {
  tarn_pool *pool = host_pool(strategy);
  assert_ok(tarn_pool_account(pool, TARN_COUNT_EVENTS | more));
  return pool;
}

// --- what is written -------------------------------------------------------

START_TEST(nothing_is_written_unless_asked) {
  tarn_pool *pool = host_pool("page_unit_pool");
  size_t held = tarn_host_memory();
  give(take(pool, 100));
  give(take(pool, 100));
  ck_assert_uint_eq(read_all(pool), 0);
  ck_assert_ptr_null(pool->events.ring);
  ck_assert_uint_le(tarn_host_memory(), held + 65536);
}
END_TEST

START_TEST(a_block_s_life_is_written) {
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
END_TEST

START_TEST(resizes_are_written_with_both_sizes) {
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
END_TEST

START_TEST(failures_say_why) {
  tarn_pool *pool = events_on("page_unit_pool", 0);
  tarn_tag tag = tag_of("too much");
  assert_ok(tarn_pool_limit(pool, 4096));
  tarn_block block;
  assert_status(tarn_pool_alloc_tagged(pool, 5000, 0, NULL, tag, &block),
                TARN_FULL);
  ck_assert_uint_eq(read_all(pool), 1);
  ck_assert_int_eq(seen[0].kind, TARN_POOL_EVENT_FAIL);
  ck_assert_uint_eq(seen[0].size, 5000);
  ck_assert_uint_eq(seen[0].address, 0);
  ck_assert_uint_eq(seen[0].tag, tag);
  ck_assert_int_eq(seen[0].status, TARN_FULL);
  assert_status(tarn_pool_alloc(pool, 0, 0, NULL, &block), TARN_E_INVALID);
  ck_assert_uint_eq(read_all(pool), 1);  // which was no request
}
END_TEST

START_TEST(streams_and_switches_are_written) {
  tarn_device *cpu = NULL;
  tarn_stream *stream = NULL;
  assert_ok(tarn_device_open("cpu:0", &cpu));
  assert_ok(tarn_stream_create(cpu, &stream));
  tarn_pool *pool = events_on("page_unit_pool", 0);
  tarn_block block = take_on(pool, 100, stream);
  assert_ok(tarn_pool_use(TARN_HOST, "no_pool"));
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
  assert_ok(tarn_stream_destroy(stream));
  assert_ok(tarn_device_close(cpu));
}
END_TEST

START_TEST(times_are_written_where_asked) {
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
END_TEST

// A crossing that cannot be arranged: the block went back as it came.
START_TEST(a_crossing_that_fails_leaves_no_block) {
  tarn_device *device = NULL;
  tarn_stream *a = NULL;
  tarn_stream *b = NULL;
  fake_add();
  assert_ok(tarn_device_open("fake:0", &device));
  assert_ok(tarn_stream_create(device, &a));
  assert_ok(tarn_stream_create(device, &b));
  tarn_pool *pool = pool_at(tarn_place_on(device));
  assert_ok(tarn_pool_account(pool, TARN_COUNT_EVENTS));
  tarn_tag tag = tag_of("crossing");
  tarn_block block = take_on(pool, 100, a);
  give_on(block, a);
  faults_arm(1, FAULTS_FROM_NOW);
  fake.strikes = true;
  assert_status(tarn_pool_alloc_tagged(pool, 100, 0, b, tag, &block),
                TARN_E_DEVICE);
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
  assert_ok(tarn_device_close(device));
}
END_TEST

// --- sums ------------------------------------------------------------------

static uint64_t next_random(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

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

static const char *const strategies[] = {"page_unit_pool", "arena_pool",
                                         "buddy_pool", "no_pool"};
enum { STRATEGIES = sizeof strategies / sizeof strategies[0] };

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
START_TEST(events_add_up) {
  enum {
    SLOTS = 32,
    STEPS = 2000,
    LARGEST = 2 * MIB,
    MOST_HELD = 48 * MIB,
    KEPT = 8 * MIB
  };
  static tarn_block blocks[SLOTS];
  uint64_t state = 88172645463325252u + (uint64_t)_i;
  tarn_device *device = NULL;
  fake_add();
  assert_ok(tarn_device_open(_i % 2 == 0 ? "cpu:0" : "fake:0", &device));
  tarn_place place = tarn_place_on(device);
  tarn_pool *pool = pool_at(place);
  assert_ok(tarn_pool_account(pool, TARN_COUNT_EVENTS));
  assert_ok(tarn_pool_account_ring(pool, MOST));
  assert_ok(tarn_pool_limit(pool, MOST_HELD));
  for (int i = 0; i < STEPS; i++) {
    size_t slot = next_random(&state) % SLOTS;
    size_t size = 1 + next_random(&state) % LARGEST;
    if (i % 200 == 0) {
      require(tarn_pool_use(place, strategies[i / 200 % STRATEGIES]) ==
              TARN_OK);
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
  assert_ok(tarn_device_close(device));
}
END_TEST

// --- reading ---------------------------------------------------------------

static tarn_pool *small_ring(void) {
  tarn_pool *pool = host_pool("page_unit_pool");
  give(take(pool, 100));
  assert_ok(tarn_pool_account_ring(pool, ROOM));
  assert_ok(tarn_pool_account(pool, TARN_COUNT_EVENTS));
  return pool;
}

START_TEST(a_reader_follows) {
  tarn_pool *pool = small_ring();
  uint64_t next = 0;
  for (uint64_t i = 0; i < 20; i++) {
    give(take(pool, 100));
    ck_assert_uint_eq(read_from(pool, next, &next), 2);
    ck_assert_uint_eq(seen[0].number, 2 * i);
    ck_assert_uint_eq(next, 2 * i + 2);
  }
  ck_assert_uint_eq(read_from(pool, next, &next), 0);
  ck_assert_uint_eq(next, 40);
}
END_TEST

START_TEST(a_reader_sees_what_is_lost) {
  tarn_pool *pool = small_ring();
  for (int i = 0; i < 10; i++)
    give(take(pool, 100));
  uint64_t next = 0;
  ck_assert_uint_eq(read_from(pool, 3, &next), ROOM);
  ck_assert_uint_eq(seen[0].number, 12);  // 9 are lost
  for (uint64_t i = 0; i < ROOM; i++)
    ck_assert_uint_eq(seen[i].number, 12 + i);
  ck_assert_uint_eq(next, 20);
  ck_assert_uint_eq(read_from(pool, 15, &next), 5);
  ck_assert_uint_eq(seen[0].number, 15);
}
END_TEST

START_TEST(a_reader_takes_as_much_as_it_has_room_for) {
  tarn_pool *pool = small_ring();
  for (int i = 0; i < 7; i++)
    give(take(pool, 100));  // 14 events: the ring begins in its middle
  uint64_t next = 0;
  uint64_t number = 6;
  size_t count = 0;
  do {
    assert_ok(tarn_pool_events(pool, next, seen, 3, &count, &next));
    for (size_t i = 0; i < count; i++)
      ck_assert_uint_eq(seen[i].number, number++);
    ck_assert_uint_eq(next, number);
  } while (count == 3);
  ck_assert_uint_eq(number, 14);
  assert_ok(tarn_pool_events(pool, 7, NULL, 0, &count, &next));
  ck_assert_uint_eq(count, 0);
  ck_assert_uint_eq(next, 7);
  assert_ok(tarn_pool_events(pool, 1000, seen, 3, &count, &next));
  ck_assert_uint_eq(count, 0);
  ck_assert_uint_eq(next, 14);
}
END_TEST

// --- the ring --------------------------------------------------------------

START_TEST(a_ring_that_changes_keeps_the_newest) {
  tarn_pool *pool = small_ring();
  for (int i = 0; i < 5; i++)
    give(take(pool, 100));
  assert_ok(tarn_pool_account_ring(pool, 3));  // rounded up to 4
  ck_assert_uint_eq(read_all(pool), 4);
  ck_assert_uint_eq(seen[0].number, 6);
  assert_ok(tarn_pool_account_ring(pool, 16));
  ck_assert_uint_eq(read_all(pool), 4);
  ck_assert_uint_eq(seen[0].number, 6);
  for (int i = 0; i < 4; i++)
    give(take(pool, 100));
  ck_assert_uint_eq(read_all(pool), 12);
  for (uint64_t i = 0; i < 12; i++)
    ck_assert_uint_eq(seen[i].number, 6 + i);
}
END_TEST

START_TEST(a_ring_of_nothing_switches_events_off) {
  tarn_pool *pool = small_ring();
  give(take(pool, 100));
  size_t held = tarn_host_memory();
  assert_ok(tarn_pool_account_ring(pool, 0));
  ck_assert_uint_eq(tarn_host_memory(), held - ROOM * sizeof seen[0]);
  ck_assert_uint_eq(stats_of(pool).counters, 0);
  give(take(pool, 100));
  ck_assert_uint_eq(read_all(pool), 0);
  assert_ok(tarn_pool_account(pool, TARN_COUNT_EVENTS));
  give(take(pool, 100));
  ck_assert_uint_eq(read_all(pool), 2);
  ck_assert_uint_eq(seen[0].number, 2);  // numbers never come again
}
END_TEST

START_TEST(switched_off_what_there_is_stays) {
  tarn_pool *pool = small_ring();
  give(take(pool, 100));
  assert_ok(tarn_pool_account(pool, TARN_COUNT_DEFAULT));
  give(take(pool, 100));
  ck_assert_uint_eq(read_all(pool), 2);
  assert_ok(tarn_pool_account(pool, TARN_COUNT_EVENTS));
  tarn_block block = take(pool, 100);
  ck_assert_uint_eq(read_all(pool), 3);
  ck_assert_uint_eq(seen[2].number, 2);
  give(block);
}
END_TEST

// Once it is on, events take no host memory, so that they cannot fail.
START_TEST(events_take_no_memory) {
  faults_install();
  tarn_pool *pool = small_ring();
  faults_arm(1, FAULTS_FROM_NOW);
  for (int i = 0; i < 100; i++)
    give(take(pool, 100));
  ck_assert(!faults_disarm());
  ck_assert_uint_eq(read_all(pool), ROOM);
}
END_TEST

START_TEST(without_host_memory_nothing_changes) {
  faults_install();
  tarn_pool *pool = host_pool("page_unit_pool");
  faults_arm(1, FAULTS_FROM_NOW);
  assert_status(tarn_pool_account(pool, TARN_COUNT_EVENTS), TARN_E_NOMEM);
  assert_status(tarn_pool_account_ring(pool, 16), TARN_E_NOMEM);
  ck_assert(faults_disarm());
  ck_assert_uint_eq(stats_of(pool).counters, TARN_COUNT_DEFAULT);
  pool = small_ring();
  give(take(pool, 100));
  faults_arm(1, FAULTS_FROM_NOW);
  assert_status(tarn_pool_account_ring(pool, 1000), TARN_E_NOMEM);
  ck_assert(faults_disarm());
  ck_assert_uint_eq(read_all(pool), 2);
  assert_status(tarn_pool_account_ring(pool, SIZE_MAX), TARN_E_INVALID);
  assert_error_says("too many");
  assert_status(tarn_pool_account_ring(pool, SIZE_MAX / 2), TARN_E_NOMEM);
  ck_assert_uint_eq(read_all(pool), 2);
}
END_TEST

START_TEST(a_device_that_closes_takes_its_ring_along) {
  tarn_device *device = NULL;
  fake_add();
  assert_ok(tarn_device_open("fake:0", &device));
  size_t held = tarn_host_memory();
  tarn_pool *pool = pool_at(tarn_place_on(device));
  assert_ok(tarn_pool_account(pool, TARN_COUNT_EVENTS));
  give(take(pool, 100));
  ck_assert_uint_ge(tarn_host_memory(), held + 4096 * sizeof seen[0]);
  assert_ok(tarn_device_close(device));
  ck_assert_uint_lt(tarn_host_memory(), held);
}
END_TEST

// --- wrong use -------------------------------------------------------------

static tarn_status seen_in_callback[3];

static void call_in_callback(void *context, tarn_status status) {
  (void)status;
  size_t count = 7;
  uint64_t next = 7;
  seen_in_callback[0] = tarn_pool_account(context, 0);
  seen_in_callback[1] = tarn_pool_account_ring(context, 4);
  seen_in_callback[2] = tarn_pool_events(context, 0, seen, 1, &count, &next);
  if (count != 0 || next != 0) seen_in_callback[2] = TARN_OK;
}

START_TEST(wrong_use_is_refused) {
  size_t count = 7;
  uint64_t next = 7;
  assert_status(tarn_pool_events(NULL, 0, seen, 1, &count, &next),
                TARN_E_INVALID);
  ck_assert_uint_eq(count, 0);
  ck_assert_uint_eq(next, 0);
  assert_status(tarn_pool_account_ring(NULL, 4), TARN_E_INVALID);
  tarn_pool *pool = small_ring();
  give(take(pool, 100));
  count = 7;
  assert_status(tarn_pool_events(pool, 0, NULL, 1, &count, &next),
                TARN_E_INVALID);
  ck_assert_uint_eq(count, 0);
  tarn_device *cpu = NULL;
  tarn_stream *stream = NULL;
  assert_ok(tarn_device_open("cpu:0", &cpu));
  assert_ok(tarn_stream_create(cpu, &stream));
  assert_ok(tarn_stream_add_callback(stream, call_in_callback, pool));
  assert_ok(tarn_stream_synchronize(stream));
  for (int i = 0; i < 3; i++)
    ck_assert_int_eq(seen_in_callback[i], TARN_E_STATE);
  assert_ok(tarn_stream_destroy(stream));
  assert_ok(tarn_device_close(cpu));
}
END_TEST

// --- threads ---------------------------------------------------------------

enum { WORKERS = 3, ROUNDS = 2000, EVENTS = 2 * WORKERS * ROUNDS };

static _Atomic int wrong;
static _Atomic int working;

static void *work(void *context) {
  tarn_pool *pool = context;
  for (size_t round = 1; round <= ROUNDS; round++) {
    tarn_block block;
    tarn_status status = tarn_pool_alloc(pool, round, 0, NULL, &block);
    if (status == TARN_OK) status = tarn_pool_free(&block, NULL);
    if (status != TARN_OK) wrong++;
  }
  working--;
  return NULL;
}

// Each thread's own events, in its own order: alloc, free, alloc, free.
static void check_threads(size_t count, size_t *in_turn) {
  enum { NUMBERS = 64 };
  for (size_t i = 0; i < count; i++) {
    const tarn_pool_event *e = &seen[i];
    bool of_a_block =
        e->kind == TARN_POOL_EVENT_ALLOC || e->kind == TARN_POOL_EVENT_FREE;
    if (!of_a_block) continue;
    require(e->thread != 0 && e->thread < NUMBERS);
    size_t turn = in_turn[e->thread]++;
    require((e->kind == TARN_POOL_EVENT_ALLOC) == (turn % 2 == 0));
    require(e->size == turn / 2 + 1);
  }
}

START_TEST(a_reader_follows_threads) {
  pthread_t threads[WORKERS];
  size_t in_turn[64] = {0};
  tarn_pool *pool = host_pool("page_unit_pool");
  assert_ok(tarn_pool_account_ring(pool, MOST));
  assert_ok(tarn_pool_account(pool, TARN_COUNT_EVENTS | TARN_COUNT_TIMES));
  working = WORKERS;
  for (int i = 0; i < WORKERS; i++)
    ck_assert_int_eq(pthread_create(&threads[i], NULL, work, pool), 0);
  uint64_t next = 0;
  bool last = false;
  while (!last) {
    last = working == 0;
    uint64_t from = next;
    size_t count = read_from(pool, from, &next);
    require(count == 0 || seen[0].number == from);
    check_threads(count, in_turn);
  }
  for (int i = 0; i < WORKERS; i++)
    pthread_join(threads[i], NULL);
  ck_assert_int_eq(wrong, 0);
  size_t blocks = 0;
  for (int i = 0; i < 64; i++)
    blocks += in_turn[i];
  ck_assert_uint_eq(blocks, EVENTS);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("pool: events");
  ADD_CASE(suite, "written", nothing_is_written_unless_asked,
           a_block_s_life_is_written, resizes_are_written_with_both_sizes,
           failures_say_why, streams_and_switches_are_written,
           times_are_written_where_asked,
           a_crossing_that_fails_leaves_no_block);
  TCase *sums = tcase_create("sums");
  tcase_set_timeout(sums, 120);
  tcase_add_loop_test(sums, events_add_up, 0, 6);
  suite_add_tcase(suite, sums);
  ADD_CASE(suite, "read", a_reader_follows, a_reader_sees_what_is_lost,
           a_reader_takes_as_much_as_it_has_room_for);
  ADD_CASE(suite, "ring", a_ring_that_changes_keeps_the_newest,
           a_ring_of_nothing_switches_events_off,
           switched_off_what_there_is_stays, events_take_no_memory,
           without_host_memory_nothing_changes,
           a_device_that_closes_takes_its_ring_along);
  ADD_CASE(suite, "wrong use, threads", wrong_use_is_refused,
           a_reader_follows_threads);
  return run_pool_suite(suite);
}
