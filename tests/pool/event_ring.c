// The ring of a pool's last events: what a reader sees, what is lost, and what
// it takes.
#include <pthread.h>

#include "events_kit.h"
#include "support/fake_plugin.h"
#include "support/faults.h"

enum { ROOM = 8 };

// --- reading ---------------------------------------------------------------

static tarn_pool *small_ring(void) {
  tarn_pool *pool = host_pool("page_unit_pool");
  give(take(pool, 100));
  assert_ok(tarn_pool_account_ring(pool, ROOM));
  assert_ok(tarn_pool_account(pool, TARN_COUNT_EVENTS));
  return pool;
}

TEST(a_reader_follows) {
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

TEST(a_reader_sees_what_is_lost) {
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

TEST(a_reader_takes_as_much_as_it_has_room_for) {
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

// --- the ring --------------------------------------------------------------

TEST(a_ring_that_changes_keeps_the_newest) {
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

TEST(a_ring_of_nothing_switches_events_off) {
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

TEST(switched_off_what_there_is_stays) {
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

// Once it is on, events take no host memory, so that they cannot fail.
TEST(events_take_no_memory) {
  faults_install();
  tarn_pool *pool = small_ring();
  faults_arm(1, FAULTS_FROM_NOW);
  for (int i = 0; i < 100; i++)
    give(take(pool, 100));
  ck_assert(!faults_disarm());
  ck_assert_uint_eq(read_all(pool), ROOM);
}

TEST(without_host_memory_nothing_changes) {
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

TEST(a_device_that_closes_takes_its_ring_along) {
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

TEST(wrong_use_is_refused) {
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
  tarn_device *cpu = open_device("cpu:0");
  tarn_stream *stream = stream_of(cpu);
  assert_ok(tarn_stream_add_callback(stream, call_in_callback, pool));
  assert_ok(tarn_stream_synchronize(stream));
  for (int i = 0; i < 3; i++)
    ck_assert_int_eq(seen_in_callback[i], TARN_E_STATE);
}

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

TEST(a_reader_follows_threads) {
  pthread_t threads[WORKERS];
  size_t in_turn[64] = {0};
  tarn_pool *pool = host_pool("page_unit_pool");
  assert_ok(tarn_pool_account_ring(pool, MOST_EVENTS));
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
