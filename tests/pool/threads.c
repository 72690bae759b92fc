// One pool and many threads: blocks that change hands, strategies that change
// meanwhile, limits, streams.
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

#include "kit.h"
#include "market.h"
#include "support/effort.h"
#include "support/fake_plugin.h"
#include "support/strategy.h"
#include "support/threads.h"

enum { WORKERS = 4, ROUNDS = EFFORT(5000, 2000) };

static void assert_at_rest(tarn_pool *pool) {
  assert_as_expected();
  tarn_pool_stats stats = stats_of(pool);
  ck_assert_uint_eq(stats.live_blocks, 0);
  ck_assert_uint_eq(stats.live_bytes, 0);
  ck_assert_uint_eq(stats.allocs, stats.frees);
  ck_assert_uint_eq(stats.failures, 0);
  ck_assert_uint_eq(stats.allocs, stats.hits + stats.misses);
  ck_assert(tarn_list_empty(&pool->replaced));
  assert_ok(tarn__front_check(pool));
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
}

// --- blocks that change hands ----------------------------------------------

static item make(tarn_pool *pool, uint64_t *state, unsigned char pattern) {
  item made = {.mark = pattern};
  size_t size = next_random(state) % 16 == 0 ? next_random(state) % 100000 + 1
                                             : next_random(state) % 9000 + 1;
  size_t align = next_random(state) % 4 == 0 ? 4096 : 0;
  tarn_tag tag = (tarn_tag)(next_random(state) % 20);
  expect(alloc_tagged(pool, size, align, NULL, tag, &made.block) == TARN_OK);
  if (made.block.address == 0) return made;
  expect(made.block.size >= size);
  expect(align == 0 || made.block.address % align == 0);
  memset((void *)(uintptr_t)made.block.address, pattern, made.block.size);
  return made;
}

static void check_and_free(item i, bool by_address) {
  if (i.block.address == 0) return;
  const unsigned char *bytes = (unsigned char *)(uintptr_t)i.block.address;
  expect(bytes[0] == (unsigned char)i.mark);
  expect(memcmp(bytes, bytes + 1, i.block.size - 1) == 0);
  tarn_block found;
  expect(tarn_pool_block_of(i.block.pool, i.block.address, &found, NULL) ==
         TARN_OK);
  expect(found.generation == i.block.generation);
  expect((by_address
              ? tarn_pool_free_address(i.block.pool, i.block.address, NULL)
              : tarn_pool_free(&i.block, NULL)) == TARN_OK);
}

static void make_some_tags(void) {
  char name[] = "tag a";
  for (; name[4] < 'a' + 20; name[4]++)
    (void)tag_of(name);
}

static void *trade(void *number) {
  uint64_t state = (uintptr_t)number * 0x9e3779b97f4a7c15u;
  tarn_pool *pool = NULL;
  expect(tarn_pool_of(TARN_HOST, &pool) == TARN_OK);
  for (int i = 0; i < ROUNDS; i++) {
    item mine = make(pool, &state, (unsigned char)(i * 8 + (int)(state & 7)));
    item theirs = exchange(next_random(&state) % MARKET_SLOTS, mine);
    check_and_free(theirs, i % 3 == 0);
  }
  return NULL;
}

static atomic_bool trading;

// Switches, trims and asks, as long as the others trade.
static void *disturb(void *unused) {
  static const char *const strategies[] = {
      "no_pool", "page_unit_pool", "arena_pool", "page_unit_pool:page=16K"};
  (void)unused;
  tarn_pool *pool = NULL;
  expect(tarn_pool_of(TARN_HOST, &pool) == TARN_OK);
  for (unsigned i = 0; atomic_load(&trading); i++) {
    tarn_pool_stats stats = {.struct_size = sizeof stats};
    expect(tarn_pool_query(pool, &stats) == TARN_OK);
    expect(stats.live_bytes <= stats.reserved_bytes);
    expect(stats.live_bytes <= stats.live_peak_bytes);
    expect(stats.reserved_bytes <= stats.reserved_peak_bytes);
    expect(stats.allocs - stats.frees == stats.live_blocks);
    if (i % 16 == 0) {
      expect(use_strategy(TARN_HOST, strategies[i / 16 % 4]) == TARN_OK);
    }
    if (i % 16 == 8) expect(tarn_pool_trim(pool, 0) == TARN_OK);
    if (i % 64 == 5) expect(tarn_pool_reset_peaks(pool) == TARN_OK);
    tarn_pool_tag_stats tag = {.struct_size = sizeof tag};
    expect(tarn_pool_query_tag(pool, i % 20, &tag) == TARN_OK);
    expect(tag.live_bytes <= tag.live_peak_bytes);
  }
  return NULL;
}

TEST(blocks_change_hands_while_strategies_change) {
  tarn_pool *pool = host_pool("page_unit_pool");
  pthread_t disturber;
  make_some_tags();
  atomic_store(&trading, true);
  pthread_create(&disturber, NULL, disturb, NULL);
  run_threads(trade, WORKERS);
  atomic_store(&trading, false);
  pthread_join(disturber, NULL);
  for (size_t i = 0; i < MARKET_SLOTS; i++)
    check_and_free(market.items[i], false);
  ck_assert_uint_eq(stats_of(pool).allocs, WORKERS * ROUNDS);
  assert_at_rest(pool);
}

TEST_LOOP(blocks_change_hands_in_peace, ALL_STRATEGIES) {
  const char *strategy = any_strategy(_i);
  tarn_pool *pool = host_pool(strategy);
  make_some_tags();
  run_threads(trade, WORKERS);
  for (size_t i = 0; i < MARKET_SLOTS; i++)
    check_and_free(market.items[i], false);
  ck_assert_uint_eq(stats_of(pool).allocs, WORKERS * ROUNDS);
  if (keeps_idle(strategy)) {
    ck_assert_uint_gt(stats_of(pool).hits, WORKERS * ROUNDS / 2);
  }
  assert_at_rest(pool);
}

// --- limits ----------------------------------------------------------------

enum { LIMIT = 512 * KIB };
static atomic_int full;

static void *press(void *number) {
  uint64_t state = (uintptr_t)number * 0x9e3779b97f4a7c15u;
  tarn_pool *pool = NULL;
  expect(tarn_pool_of(TARN_HOST, &pool) == TARN_OK);
  for (int i = 0; i < ROUNDS / 2; i++) {
    tarn_block blocks[3] = {0};
    for (int k = 0; k < 3; k++) {
      size_t align = next_random(&state) % 4 == 0 ? 16 * KIB : 0;
      size_t size = next_random(&state) % (LIMIT / 3) + 1;
      tarn_status status = tarn_pool_alloc(pool, size, align, NULL, &blocks[k]);
      expect(status == TARN_OK || status == TARN_FULL);
      if (status == TARN_FULL) atomic_fetch_add(&full, 1);
    }
    for (int k = 0; k < 3; k++) {
      if (blocks[k].pool == NULL) continue;
      expect(tarn_pool_free(&blocks[k], NULL) == TARN_OK);
    }
  }
  return NULL;
}

TEST_LOOP(a_limit_is_never_exceeded, ALL_STRATEGIES) {
  tarn_pool *pool = host_pool(any_strategy(_i));
  assert_ok(tarn_pool_limit(pool, LIMIT));
  // With half of it gone, one thread alone meets the limit now and then.
  tarn_block half = take(pool, LIMIT / 2);
  run_threads(press, WORKERS);
  give(half);
  tarn_pool_stats stats = stats_of(pool);
  ck_assert_uint_le(stats.reserved_peak_bytes, LIMIT);
  ck_assert_uint_ge(stats.reserved_peak_bytes, LIMIT / 4 * 3);
  ck_assert_uint_eq(stats.failures, (unsigned)atomic_load(&full));
  ck_assert_int_gt(atomic_load(&full), 0);
  assert_as_expected();
  ck_assert_uint_eq(stats.live_blocks, 0);
  assert_ok(tarn__front_check(pool));
}

// Holds a stream up until the gate is opened.
static void pass_gate(void *context, tarn_status status) {
  expect(status == TARN_OK);
  while (sem_wait(context) != 0)
    continue;
}

static void *trim_host(void *unused) {
  (void)unused;
  tarn_pool *pool = NULL;
  expect(tarn_pool_of(TARN_HOST, &pool) == TARN_OK);
  expect(tarn_pool_trim(pool, 0) == TARN_OK);
  return NULL;
}

static void *take_and_give(void *unused) {
  (void)unused;
  tarn_pool *pool = NULL;
  tarn_block block;
  expect(tarn_pool_of(TARN_HOST, &pool) == TARN_OK);
  expect(tarn_pool_alloc(pool, 4096, 0, NULL, &block) == TARN_OK);
  expect(tarn_pool_free(&block, NULL) == TARN_OK);
  return NULL;
}

// One thread gives all that the limit allows back, and waits for its stream to
// do so; another that wants some of it is not told that there is no room.
TEST(room_that_another_thread_makes_is_waited_for) {
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_device *cpu = NULL;
  tarn_stream *stream = NULL;
  pthread_t trimmer;
  pthread_t taker;
  sem_t gate;
  sem_init(&gate, 0, 0);
  assert_ok(tarn_device_open("cpu:0", &cpu));
  assert_ok(tarn_stream_create(cpu, &stream));
  assert_ok(tarn_pool_limit(pool, 8192));
  tarn_block block = take_on(pool, 8192, stream);
  assert_ok(tarn_stream_add_callback(stream, pass_gate, &gate));
  give_on(block, stream);
  pthread_create(&trimmer, NULL, trim_host, NULL);
  while (stats_of(pool).device_frees == 0)
    sched_yield();
  pthread_create(&taker, NULL, take_and_give, NULL);
  usleep(50000);  // so that the taker is there before the memory is
  ck_assert_uint_eq(stats_of(pool).allocs, 1);
  sem_post(&gate);
  pthread_join(trimmer, NULL);
  pthread_join(taker, NULL);
  assert_as_expected();
  ck_assert_uint_eq(stats_of(pool).allocs, 2);
  ck_assert_uint_eq(stats_of(pool).reserved_peak_bytes, 8192);
  assert_ok(tarn_stream_destroy(stream));
  assert_ok(tarn_device_close(cpu));
  sem_destroy(&gate);
  assert_at_rest(pool);
}

// --- a device that refuses -------------------------------------------------

static tarn_device *device;
static atomic_bool asking;

static void *ask_for_too_much(void *unused) {
  (void)unused;
  tarn_pool *pool = NULL;
  expect(tarn_pool_of(tarn_place_on(device), &pool) == TARN_OK);
  while (atomic_load(&asking)) {
    tarn_block block;
    expect(tarn_pool_alloc(pool, 2 * MIB, 0, NULL, &block) == TARN_FULL);
  }
  return NULL;
}

// The strategy is replaced while the device is asked on its behalf and refuses:
// the thread that asked is the last to leave it.
TEST(a_strategy_ends_when_the_last_thread_has_left_it) {
  enum { THREADS = 3, SWITCHES = 1000 };
  pthread_t threads[THREADS];
  fake.capacity = MIB;
  fake_add();
  assert_ok(tarn_device_open("fake:0", &device));
  tarn_place place = tarn_place_on(device);
  tarn_pool *pool = pool_at(place);
  atomic_store(&asking, true);
  for (int i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, ask_for_too_much, NULL);
  while (stats_of(pool).failures == 0)
    sched_yield();
  for (int i = 0; i < SWITCHES; i++)
    assert_ok(use_strategy(place, i % 2 ? "page_unit_pool" : "no_pool"));
  atomic_store(&asking, false);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  assert_as_expected();
  ck_assert(tarn_list_empty(&pool->replaced));
  assert_ok(tarn__front_check(pool));
  assert_ok(tarn_device_close(device));
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
}

// --- streams ---------------------------------------------------------------

enum { FLIGHTS = 16, LARGE = 96 * KIB };

// A copy into a block and one out of it, queued and not waited for. The block
// is freed behind them: the work of its next owner must come after them.
typedef struct flight {
  unsigned char in[LARGE];
  unsigned char out[LARGE];
} flight;

static void fly(tarn_pool *pool, tarn_stream *stream, flight *f, size_t size) {
  tarn_device *cpu = tarn_stream_device(stream);
  tarn_block block;
  tarn_status status = tarn_pool_alloc(pool, size, 0, stream, &block);
  expect(status == TARN_OK);
  if (status != TARN_OK) return;
  expect(tarn_copy_h2d(cpu, block.address, f->in, size, stream) == TARN_OK);
  expect(tarn_copy_d2h(cpu, f->out, block.address, size, stream) == TARN_OK);
  expect(tarn_pool_free(&block, stream) == TARN_OK);
}

static void *stream_through(void *number) {
  uint64_t state = (uintptr_t)number * 0x9e3779b97f4a7c15u;
  tarn_device *cpu = NULL;
  tarn_stream *stream = NULL;
  tarn_pool *pool = NULL;
  flight *flights = calloc(FLIGHTS, sizeof *flights);
  bool ready = flights != NULL && tarn_device_open("cpu:0", &cpu) == TARN_OK &&
               tarn_stream_create(cpu, &stream) == TARN_OK &&
               tarn_pool_of(TARN_HOST, &pool) == TARN_OK;
  expect(ready);
  for (int i = 0; ready && i < 60; i++) {
    size_t size = i % 2 ? LARGE : next_random(&state) % 3 * 4096 + 4096;
    for (int k = 0; k < FLIGHTS; k++) {
      memset(flights[k].in, (int)next_random(&state), size);
      memset(flights[k].out, 0, size);
      fly(pool, stream, &flights[k], size);
    }
    expect(tarn_stream_synchronize(stream) == TARN_OK);
    for (int k = 0; k < FLIGHTS; k++)
      expect(memcmp(flights[k].in, flights[k].out, size) == 0);
  }
  expect(tarn_stream_destroy(stream) == TARN_OK);
  expect(tarn_device_close(cpu) == TARN_OK);
  free(flights);
  return NULL;
}

TEST(memory_that_crosses_streams_keeps_order) {
  tarn_pool *pool = host_pool("page_unit_pool");
  // So little that the streams have to share it.
  assert_ok(tarn_pool_limit(pool, 3 * (LARGE + 3 * 4096)));
  run_threads(stream_through, 3);
  ck_assert_uint_gt(stats_of(pool).stream_crossings, 0);
  assert_at_rest(pool);
}

TEST(memory_goes_back_behind_its_stream) {
  tarn_pool *pool = host_pool("no_pool");
  run_threads(stream_through, 3);
  ck_assert_uint_eq(stats_of(pool).stream_crossings, 0);
  assert_at_rest(pool);
}

TEST(halves_that_cross_streams_keep_order) {
  tarn_pool *pool = host_pool("buddy_pool:init=512K");
  run_threads(stream_through, 3);
  // Each checks what its stream has written; whether they met is up to chance.
  ck_assert_uint_ge(stats_of(pool).allocs, 3 * 60);
  assert_at_rest(pool);
}

TEST(memory_goes_back_in_the_order_of_its_stream) {
  tarn_pool *pool = host_pool("async_pool");
  run_threads(stream_through, 3);
  ck_assert_uint_eq(stats_of(pool).stream_crossings, 0);
  assert_at_rest(pool);
}

// --- making ----------------------------------------------------------------

static pthread_barrier_t start;
static tarn_pool *_Atomic made;

static void *make_pool(void *unused) {
  (void)unused;
  tarn_pool *pool = NULL;
  pthread_barrier_wait(&start);
  expect(tarn_pool_of(TARN_HOST, &pool) == TARN_OK);
  tarn_pool *none = NULL;
  if (!atomic_compare_exchange_strong(&made, &none, pool)) {
    expect(none == pool);
  }
  return NULL;
}

TEST(all_threads_get_the_same_pool) {
  pthread_barrier_init(&start, NULL, WORKERS * 2);
  run_threads(make_pool, WORKERS * 2);
  assert_as_expected();
  ck_assert_ptr_eq(pool_at(TARN_HOST), atomic_load(&made));
  pthread_barrier_destroy(&start);
}

static tarn_tag tags[WORKERS][100];

static void *make_tags(void *number) {
  char name[] = "tag 00";
  uintptr_t self = (uintptr_t)number - 1;
  pthread_barrier_wait(&start);
  for (unsigned i = 0; i < 100; i++) {
    unsigned n = (i * 37 + (unsigned)self * 11) % 100;
    name[4] = (char)('0' + n / 10);
    name[5] = (char)('0' + n % 10);
    expect(tarn_pool_tag(name, &tags[self][n]) == TARN_OK);
    expect(strcmp(tarn_pool_tag_name(tags[self][n]), name) == 0);
  }
  return NULL;
}

TEST(all_threads_get_the_same_tags) {
  pthread_barrier_init(&start, NULL, WORKERS);
  run_threads(make_tags, WORKERS);
  assert_as_expected();
  for (int i = 0; i < 100; i++) {
    ck_assert_uint_ge(tags[0][i], 1);
    ck_assert_uint_le(tags[0][i], 100);
    for (int w = 1; w < WORKERS; w++)
      ck_assert_uint_eq(tags[w][i], tags[0][i]);
  }
  pthread_barrier_destroy(&start);
}
