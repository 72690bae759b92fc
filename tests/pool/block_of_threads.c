// Eight threads find and free their blocks by addresses at a place with several
// pools, while others come and go there and strategies change.
#include <pthread.h>
#include <stdatomic.h>

#include "kit.h"
#include "support/effort.h"
#include "support/mix.h"
#include "support/threads.h"
#include "tarn/range.h"

enum { WORKERS = 8, HELD = 24, OWN = 2 };

static atomic_bool working;
static size_t rounds;
static atomic_int ended;  // pools that came and went

typedef struct scene {
  tarn_place place;
  tarn_pool *pools[1 + OWN];  // the place's first
} scene;

typedef struct worker {
  const scene *at;
  uint64_t seed;
} worker;

// --- what the workers do ---------------------------------------------------

static void find(const scene *at, tarn_block block, uint64_t random) {
  tarn_block found;
  size_t offset = 0;
  size_t inside = (size_t)random % block.size;
  expect(tarn_block_of(at->place, block.address + inside, &found, &offset) ==
         TARN_OK);
  expect(found.pool == block.pool && found.address == block.address);
  expect(found.size == block.size && found.id == block.id);
  expect(found.generation == block.generation);
  expect(offset == inside);
}

// False: strategies that were replaced, with blocks still out, keep the
// addresses that a small device has.
static bool take_some(tarn_pool *pool, size_t size, tarn_block *out) {
  tarn_status status = tarn_pool_alloc(pool, size, 0, NULL, out);
  expect(status == TARN_OK || status == TARN_FULL);
  return status == TARN_OK;
}

static void *work(void *context) {
  const worker *self = context;
  tarn_block blocks[HELD] = {{0}};
  for (uint64_t i = 0; i < rounds; i++) {
    uint64_t random = mix(self->seed, i);
    tarn_block *block = &blocks[random % HELD];
    if (block->pool == NULL) {
      tarn_pool *pool = self->at->pools[(random >> 8) % (1 + OWN)];
      (void)take_some(pool, (size_t)(random >> 16) % 20000 + 1, block);
    } else if ((random >> 40) % 4 != 0) {
      find(self->at, *block, random >> 8);
    } else {
      expect(tarn_free(self->at->place, block->address, NULL) == TARN_OK);
      *block = (tarn_block){0};
    }
  }
  for (size_t i = 0; i < HELD; i++) {
    if (blocks[i].pool == NULL) continue;
    find(self->at, blocks[i], i);
    expect(tarn_free(self->at->place, blocks[i].address, NULL) == TARN_OK);
  }
  return NULL;
}

// --- what goes on meanwhile ------------------------------------------------

static void come_and_go(const scene *at) {
  tarn_pool *pool = NULL;
  tarn_block block;
  expect(tarn_pool_create(at->place, NULL, &pool) == TARN_OK);
  if (take_some(pool, 5000, &block)) {
    find(at, block, 4999);
    expect(tarn_free(at->place, block.address, NULL) == TARN_OK);
  }
  expect(tarn_pool_destroy(pool) == TARN_OK);
  atomic_fetch_add(&ended, 1);
}

static void *disturb(void *context) {
  static const char *const strategies[] = {"no_pool", "page_unit_pool",
                                           "arena_pool", "buddy_pool"};
  const scene *at = context;
  for (size_t i = 0; atomic_load(&working); i++) {
    tarn_pool *pool = at->pools[i % (1 + OWN)];
    come_and_go(at);
    expect(tarn_pool_set_strategy(pool, strategies[i / (1 + OWN) % 4]) ==
           TARN_OK);
    if (i % 16 == 8) expect(tarn_pool_trim(pool, 0) == TARN_OK);
  }
  return NULL;
}

// --- searches beside blocks that come and go --------------------------------

static void *take_and_free(void *context) {
  tarn_pool *pool = context;
  for (size_t i = 0; i < rounds; i++) {
    tarn_block block;
    if (!take_some(pool, 5000, &block)) continue;
    expect(tarn_pool_free(&block, NULL) == TARN_OK);
  }
  atomic_fetch_add(&ended, 1);
  return NULL;
}

// A search looks at the piece below an address, which another thread may be
// taking from its lane just then. Lanes are opened for two threads and more.
TEST_LOOP(searches_pass_blocks_that_come_and_go, TEST_DEVICES) {
  enum { THREADS = 2 };
  pthread_t threads[THREADS];
  tarn_device *device = open_device(test_devices[_i]);
  tarn_place place = tarn_place_on(device);
  tarn_pool *pool = pool_at(place);
  tarn_block found;
  rounds = effort_on(_i, EFFORT(20000, 4000));
  atomic_store(&ended, 0);
  for (size_t i = 0; i < THREADS; i++)
    threads[i] = start_thread(take_and_free, pool);
  while (atomic_load(&ended) < THREADS) {
    assert_fails(tarn_block_of(place, UINT64_MAX, &found, NULL), TARN_E_INVALID,
                 "no block of the pools");
  }
  for (size_t i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  assert_as_expected();
}

// --- frees of what is no block ---------------------------------------------

static void *free_wrongly(void *context) {
  const scene *at = context;
  for (size_t i = 0; i < rounds; i++)
    expect(tarn_free(at->place, 16, NULL) == TARN_E_INVALID);
  atomic_store(&working, false);
  return NULL;
}

// The pool that says what is wrong may be one that another thread ends.
TEST_LOOP(a_wrong_free_is_refused_while_pools_end, TEST_DEVICES) {
  pthread_t thread;
  tarn_device *device = open_device(test_devices[_i]);
  scene at = {.place = tarn_place_on(device)};
  rounds = effort_on(_i, EFFORT(20000, 4000));
  atomic_store(&working, true);
  ck_assert_int_eq(pthread_create(&thread, NULL, free_wrongly, &at), 0);
  while (atomic_load(&working))
    come_and_go(&at);
  pthread_join(thread, NULL);
  assert_as_expected();
}

// --- addresses of the device -----------------------------------------------

static bool has_range(tarn_device *device, size_t size) {
  tarn_addr address = 0;
  if (tarn_range_reserve(device, size, 0, &address) != TARN_OK) return false;
  assert_ok(tarn_range_release(device, address, size));
  return true;
}

// The largest range that can be reserved: with one range reserved elsewhere it
// is smaller.
static size_t largest_range(tarn_device *device) {
  size_t step = 0;
  size_t size = 0;
  assert_ok(tarn_range_granularity(device, &step));
  for (size_t more = (size_t)1 << 46; more >= step; more /= 2)
    if (has_range(device, size + more)) size += more;
  return size;
}

// --- the test --------------------------------------------------------------

static void run_scene(scene *at, int device) {
  pthread_t threads[WORKERS];
  pthread_t disturber;
  worker workers[WORKERS];
  atomic_store(&working, true);
  atomic_store(&ended, 0);
  rounds = effort_on(device, EFFORT(20000, 4000));
  ck_assert_int_eq(pthread_create(&disturber, NULL, disturb, at), 0);
  for (size_t i = 0; i < WORKERS; i++) {
    workers[i] = (worker){.at = at, .seed = i + 1};
    ck_assert_int_eq(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
  }
  for (size_t i = 0; i < WORKERS; i++)
    pthread_join(threads[i], NULL);
  atomic_store(&working, false);
  pthread_join(disturber, NULL);
  assert_as_expected();
  ck_assert_int_gt(atomic_load(&ended), 0);
}

static void assert_at_rest(tarn_pool *pool) {
  ck_assert_uint_eq(stats_of(pool).live_blocks, 0);
  assert_ok(tarn__front_check(pool));
}

TEST_LOOP(blocks_are_found_while_pools_come_and_go, TEST_DEVICES) {
  tarn_device *device = open_device(test_devices[_i]);
  scene at = {.place = tarn_place_on(device)};
  at.pools[0] = pool_at(at.place);
  for (size_t i = 1; i <= OWN; i++)
    assert_ok(tarn_pool_create(at.place, NULL, &at.pools[i]));
  run_scene(&at, _i);
  for (size_t i = 0; i <= OWN; i++)
    assert_at_rest(at.pools[i]);
  for (size_t i = 1; i <= OWN; i++)
    assert_ok(tarn_pool_destroy(at.pools[i]));
}

// Strategies that were replaced keep addresses while blocks of theirs are out,
// and no longer.
TEST_LOOP(no_addresses_are_lost, TEST_DEVICES) {
  tarn_device *device =
      open_device_with(_i, TEST_NEEDS_RANGES | TEST_NEEDS_DISCRETE);
  if (device == NULL) return;
  size_t largest = largest_range(device);
  scene at = {.place = tarn_place_on(device)};
  at.pools[0] = pool_at(at.place);
  for (size_t i = 1; i <= OWN; i++)
    assert_ok(tarn_pool_create(at.place, NULL, &at.pools[i]));
  run_scene(&at, _i);
  for (size_t i = 0; i <= OWN; i++)
    assert_ok(tarn_pool_set_strategy(at.pools[i], "no_pool"));
  ck_assert_uint_eq(largest_range(device), largest);
  for (size_t i = 1; i <= OWN; i++)
    assert_ok(tarn_pool_destroy(at.pools[i]));
}

// On the first exchanges each strategy has all the addresses that it wants;
// then the device has none left, until the blocks are freed.
TEST_LOOP(addresses_come_back_with_the_last_block, TEST_DEVICES) {
  enum { MOST = 4096 };
  static tarn_block blocks[MOST];
  tarn_device *device =
      open_device_with(_i, TEST_NEEDS_RANGES | TEST_NEEDS_DISCRETE);
  if (device == NULL) return;
  size_t largest = largest_range(device);
  tarn_pool *pool = pool_at(tarn_place_on(device));
  size_t count = 0;
  for (; count < MOST; count++) {
    assert_ok(tarn_pool_set_strategy(pool, "arena_pool"));
    if (!take_some(pool, 5000, &blocks[count])) break;
  }
  ck_assert_uint_ge(count, 8);
  ck_assert_uint_lt(count, MOST);
  ck_assert_uint_eq(largest_range(device), 0);
  for (size_t i = 0; i < count; i++)
    assert_ok(tarn_pool_free(&blocks[i], NULL));
  assert_ok(tarn_pool_set_strategy(pool, "no_pool"));
  ck_assert_uint_eq(largest_range(device), largest);
}
