// The function for full pools among threads: exchanged while it runs, called by
// many at once; memory of streams that others go on using.
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "kit.h"
#include "pool/reclaim.h"
#include "support/threads.h"

enum { WORKERS = 4, ROUNDS = 1500 };

static const size_t PAGE = 4096;

static tarn_pool *host(void) {
  tarn_pool *pool = NULL;
  expect(tarn_pool_of(TARN_HOST, &pool) == TARN_OK);
  return pool;
}

static void end_pool(tarn_pool *pool) {
  assert_as_expected();
  assert_ok(tarn_pool_on_full(pool, NULL, NULL));
  assert_ok(tarn_pool_limit(pool, 0));
  assert_ok(tarn__front_check(pool));
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_eq(stats_of(pool).live_blocks, 0);
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
}

// --- exchanged while it runs -----------------------------------------------

static struct {
  sem_t entered;
  sem_t leave;
  atomic_int exchanged;
} door;

static bool stand_in_the_door(tarn_pool *pool, const tarn_pool_need *need,
                              void *context) {
  (void)pool;
  (void)context;
  expect(need->size == 2 * PAGE);
  sem_post(&door.entered);
  sem_wait(&door.leave);
  expect(atomic_load(&door.exchanged) == 0);
  return false;
}

static void *ask_too_much(void *unused) {
  (void)unused;
  tarn_block block;
  expect(tarn_pool_alloc(host(), 2 * PAGE, 0, NULL, &block) == TARN_FULL);
  return NULL;
}

static void *take_it_away(void *unused) {
  (void)unused;
  expect(tarn_pool_on_full(host(), NULL, NULL) == TARN_OK);
  atomic_fetch_add(&door.exchanged, 1);
  return NULL;
}

static bool is_exchanging(tarn_pool *pool) {
  pthread_mutex_lock(&pool->on_full.lock);
  bool exchanging = pool->on_full.exchanging;
  pthread_mutex_unlock(&pool->on_full.lock);
  return exchanging;
}

TEST(who_exchanges_it_waits_until_it_is_left) {
  pthread_t asker;
  pthread_t takers[2];
  tarn_pool *pool = host_pool("page_unit_pool");
  sem_init(&door.entered, 0, 0);
  sem_init(&door.leave, 0, 0);
  assert_ok(tarn_pool_limit(pool, PAGE));
  assert_ok(tarn_pool_on_full(pool, stand_in_the_door, NULL));
  pthread_create(&asker, NULL, ask_too_much, NULL);
  sem_wait(&door.entered);
  for (int i = 0; i < 2; i++)
    pthread_create(&takers[i], NULL, take_it_away, NULL);
  while (!is_exchanging(pool))
    sched_yield();
  // New requests do not find it any more, and nothing holds them up.
  refuse(pool, 3 * PAGE, 0, TARN_FULL);
  ck_assert_int_eq(atomic_load(&door.exchanged), 0);
  sem_post(&door.leave);
  pthread_join(asker, NULL);
  for (int i = 0; i < 2; i++)
    pthread_join(takers[i], NULL);
  ck_assert_int_eq(atomic_load(&door.exchanged), 2);
  sem_destroy(&door.entered);
  sem_destroy(&door.leave);
  end_pool(pool);
}

// --- many at once ----------------------------------------------------------

// Blocks that can be given up, as those of a cache.
static struct {
  pthread_mutex_t lock;  // guards |blocks| and |count|
  tarn_block blocks[64];
  size_t count;
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool give_one_up(tarn_block *out) {
  pthread_mutex_lock(&cache.lock);
  bool any = cache.count > 0;
  if (any) *out = cache.blocks[--cache.count];
  pthread_mutex_unlock(&cache.lock);
  return any;
}

static bool keep(tarn_block block) {
  pthread_mutex_lock(&cache.lock);
  bool room = cache.count < sizeof cache.blocks / sizeof *cache.blocks;
  if (room) cache.blocks[cache.count++] = block;
  pthread_mutex_unlock(&cache.lock);
  return room;
}

static bool shrink_cache(tarn_pool *pool, const tarn_pool_need *need,
                         void *context) {
  tarn_block block;
  expect(context == &cache);
  expect(need->attempt >= 1 && need->attempt <= 16);
  expect(need->live_bytes <= need->reserved_bytes);
  if (!give_one_up(&block)) return false;
  expect(block.pool == pool);
  expect(tarn_pool_free(&block, NULL) == TARN_OK);
  return true;
}

static bool say_no(tarn_pool *pool, const tarn_pool_need *need, void *context) {
  (void)pool;
  (void)need;
  expect(context == NULL);
  return false;
}

static void *fill_cache(void *number) {
  uint64_t state = (uintptr_t)number;
  for (int i = 0; i < ROUNDS; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    size_t size = (size_t)(state >> 33) % (12 * PAGE) + 1;
    tarn_block block;
    tarn_status status = tarn_pool_alloc(host(), size, 0, NULL, &block);
    expect(status == TARN_OK || status == TARN_FULL);
    if (status != TARN_OK || keep(block)) continue;
    expect(tarn_pool_free(&block, NULL) == TARN_OK);
  }
  return NULL;
}

static atomic_bool filling;

static void *exchange_often(void *unused) {
  (void)unused;
  for (unsigned i = 0; atomic_load(&filling); i++) {
    bool no = i % 4 == 3;
    expect(tarn_pool_on_full(host(), no ? say_no : shrink_cache,
                             no ? NULL : &cache) == TARN_OK);
    sched_yield();
  }
  return NULL;
}

static const char *const strategies[] = {"page_unit_pool", "arena_pool:page=4K",
                                         "buddy_pool:init=64K,realloc=64K",
                                         "no_pool"};

TEST_LOOP(many_threads_make_room_at_once, 4) {
  pthread_t exchanger;
  tarn_pool *pool = host_pool(strategies[_i]);
  size_t limit = (size_t)512 * KIB;
  assert_ok(tarn_pool_limit(pool, limit));
  assert_ok(tarn_pool_on_full(pool, shrink_cache, &cache));
  atomic_store(&filling, true);
  pthread_create(&exchanger, NULL, exchange_often, NULL);
  run_threads(fill_cache, WORKERS);
  atomic_store(&filling, false);
  pthread_join(exchanger, NULL);
  ck_assert_uint_le(stats_of(pool).reserved_peak_bytes, limit);
  tarn_block block;
  while (give_one_up(&block))
    give(block);
  end_pool(pool);
}

// --- streams ---------------------------------------------------------------

// Blocks that come and go on streams which never rest, in a pool that is always
// full: no other owner gets what a stream still uses. The stream writes, later,
// what the next owner must not find.
static void *work_on_stream(void *number) {
  static const unsigned char old[64] = {1};
  tarn_device *cpu = NULL;
  tarn_stream *stream = NULL;
  uint64_t state = (uintptr_t)number;
  expect(tarn_device_open("cpu:0", &cpu) == TARN_OK);
  expect(tarn_stream_create(cpu, &stream) == TARN_OK);
  for (int i = 0; i < ROUNDS; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    size_t size = ((size_t)(state >> 33) % 15 + 1) * PAGE;
    tarn_block block;
    tarn_stream *on = i % 3 == 0 ? NULL : stream;
    tarn_status status = tarn_pool_alloc(host(), size, 0, on, &block);
    expect(status == TARN_OK || status == TARN_FULL);
    if (status != TARN_OK) continue;
    if (on != NULL) {
      expect(tarn_copy_h2d(cpu, block.address, old, sizeof old, on) == TARN_OK);
    } else {
      unsigned char *bytes = (unsigned char *)(uintptr_t)block.address;
      bytes[0] = (unsigned char)i;
      sched_yield();
      expect(bytes[0] == (unsigned char)i);
    }
    expect(tarn_pool_free(&block, on) == TARN_OK);
  }
  expect(tarn_stream_destroy(stream) == TARN_OK);
  expect(tarn_device_close(cpu) == TARN_OK);
  return NULL;
}

TEST_LOOP(what_streams_still_use_is_nobody_else_s, 4) {
  tarn_pool *pool = host_pool(strategies[_i]);
  assert_ok(tarn_pool_limit(pool, (size_t)128 * KIB));
  run_threads(work_on_stream, WORKERS);
  end_pool(pool);
}

// --- what is freed while streams are waited for ----------------------------

enum { STEP_OF_STREAMS = 6, GATES = 2 };

static sem_t gates[GATES];

// Holds a stream up until the gate is opened.
static void pass_gate(void *context, tarn_status status) {
  expect(status == TARN_OK);
  while (sem_wait(context) != 0)
    continue;
}

static atomic_int waiter_id;

// Climbs the one step that waits for streams.
static void *wait_for_streams(void *unused) {
  (void)unused;
  atomic_store(&waiter_id, gettid());
  tarn_pool *pool = host();
  tarn__pool_request request = {.size = 1, .align = 1};
  tarn__pool_reclaim reclaim = tarn__reclaim_of(pool, &request);
  reclaim.step = STEP_OF_STREAMS;
  tarn__front_enter(pool);
  expect(tarn__reclaim_next(&reclaim));
  expect(reclaim.step == STEP_OF_STREAMS + 1);
  tarn__front_leave(pool);
  return NULL;
}

// Whether the system says that the thread sleeps.
static bool is_asleep(int thread) {
  char path[64];
  char state = '?';
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
  FILE *file = fopen(path, "r");
  require(file != NULL);
  require(fscanf(file, "%*d (%*[^)]) %c", &state) == 1);
  fclose(file);
  return state == 'S';
}

// Outside of the lock is not enough: what is queued on the stream before the
// wait has begun would be waited for too.
static bool is_waiting(tarn_pool *pool) {
  tarn__front_enter(pool);
  bool inside = pool->current->inside > 0;
  tarn__front_leave(pool);
  if (!inside) return false;
  while (!is_asleep(atomic_load(&waiter_id)))
    sched_yield();
  return true;
}

static size_t streams_with_holes(tarn_pool *pool) {
  tarn__pool_survey found = {.idle = 0};
  pool->current->type->survey(pool->current, &found);
  return found.streams.count;
}

// Reclaims while stream |a| stands before the first gate. Meanwhile the block
// is freed or cut behind the second one, or nothing is done.
static void reclaim_meanwhile(tarn_pool *pool, tarn_stream *a,
                              tarn_block *block, bool freed, bool cut) {
  pthread_t waiter;
  assert_ok(tarn_stream_add_callback(a, pass_gate, &gates[0]));
  pthread_create(&waiter, NULL, wait_for_streams, NULL);
  while (!is_waiting(pool))
    sched_yield();
  assert_ok(tarn_stream_add_callback(a, pass_gate, &gates[1]));
  if (cut) assert_ok(tarn_pool_resize(block, (size_t)128 * KIB, a));
  if (freed) give_on(*block, a);
  sem_post(&gates[0]);
  pthread_join(waiter, NULL);
}

// It may be behind work that was not waited for, of the same stream.
TEST_LOOP(what_is_freed_meanwhile_stays_with_its_stream, 2) {
  bool by_cutting = _i == 1;
  tarn_device *cpu = NULL;
  tarn_stream *a = NULL;
  size_t quarter = (size_t)256 * KIB;
  tarn_pool *pool = host_pool("arena_pool");
  for (int i = 0; i < GATES; i++)
    sem_init(&gates[i], 0, 0);
  assert_ok(tarn_device_open("cpu:0", &cpu));
  assert_ok(tarn_stream_create(cpu, &a));
  tarn_block blocks[4];
  for (int i = 0; i < 4; i++)
    blocks[i] = take_on(pool, quarter, i % 2 == 0 ? a : NULL);
  give_on(blocks[0], a);
  ck_assert_uint_eq(streams_with_holes(pool), 1);
  reclaim_meanwhile(pool, a, &blocks[2], !by_cutting, by_cutting);
  ck_assert_uint_eq(streams_with_holes(pool), 1);
  sem_post(&gates[1]);
  assert_ok(tarn_stream_synchronize(a));
  reclaim_meanwhile(pool, a, &blocks[2], false, false);
  ck_assert_uint_eq(streams_with_holes(pool), 0);
  sem_post(&gates[1]);
  give(blocks[1]);
  give(blocks[3]);
  if (by_cutting) give(blocks[2]);
  assert_ok(tarn_stream_destroy(a));
  assert_ok(tarn_device_close(cpu));
  for (int i = 0; i < GATES; i++)
    sem_destroy(&gates[i]);
  end_pool(pool);
}
