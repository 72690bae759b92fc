// arena_pool on ranges and many threads: blocks that change hands, pages that
// move between zones, a device that is often full, trims and switches.
#include <pthread.h>
#include <stdatomic.h>

#include "arena_kit.h"
#include "market.h"
#include "support/strategy.h"
#include "support/threads.h"

enum { WORKERS = 4, SLOTS = 24, MARK = 8, LEAST = 16 };

static atomic_int full;
static atomic_bool trading;
static arena_place at;
static size_t rounds;

// Now and then another size than was asked for at first.
static void change_size(tarn_block *block, uint64_t *state,
                        tarn_stream *stream) {
  if (next_random(state) % 3 != 0) return;
  size_t before = block->size;
  size_t size = next_random(state) % (2 * before) + LEAST;
  tarn_status status = tarn_pool_resize(block, size, stream);
  expect(status == TARN_OK || status == TARN_FULL);
  expect(block->size >= (status == TARN_OK ? size : before));
}

static tarn_addr end_of(const item *i) {
  return i->block.address + i->block.size - MARK;
}

static item make(uint64_t *state, tarn_stream *stream) {
  item made = {.mark = *state};
  size_t size = next_random(state) % 4 == 0
                    ? next_random(state) % ((size_t)5 * MIB) + LEAST
                    : next_random(state) % 60000 + LEAST;
  size_t align = (size_t)1 << next_random(state) % 22;
  tarn_status status =
      tarn_pool_alloc(at.pool, size, align, stream, &made.block);
  expect(status == TARN_OK || status == TARN_FULL);
  if (status != TARN_OK) {
    atomic_fetch_add(&full, 1);
    return made;
  }
  expect(made.block.size >= size && made.block.address % align == 0);
  change_size(&made.block, state, stream);
  tarn_addr last = end_of(&made);
  expect(tarn_copy_h2d(at.device, made.block.address, &made.mark, MARK,
                       stream) == TARN_OK);
  expect(tarn_copy_h2d(at.device, last, &made.mark, MARK, stream) == TARN_OK);
  if (stream != NULL) expect(tarn_stream_synchronize(stream) == TARN_OK);
  return made;
}

static void check_and_free(item i, tarn_stream *stream) {
  uint64_t marks[2] = {0, 0};
  if (i.block.pool == NULL) return;
  expect(tarn_copy_d2h(at.device, &marks[0], i.block.address, MARK, NULL) ==
         TARN_OK);
  expect(tarn_copy_d2h(at.device, &marks[1], end_of(&i), MARK, NULL) ==
         TARN_OK);
  expect(marks[0] == i.mark && marks[1] == i.mark);
  expect(tarn_pool_free(&i.block, stream) == TARN_OK);
}

static void *trade(void *number) {
  uint64_t state = (uintptr_t)number * 0x9e3779b97f4a7c15u;
  tarn_stream *stream = NULL;
  expect(tarn_stream_create(at.device, &stream) == TARN_OK);
  for (size_t i = 0; i < rounds; i++) {
    tarn_stream *on = i % 3 ? stream : NULL;
    item mine = make(&state, on);
    item theirs = exchange(next_random(&state) % SLOTS, mine);
    check_and_free(theirs, on);
  }
  expect(tarn_stream_destroy(stream) == TARN_OK);
  return NULL;
}

static void *disturb(void *unused) {
  static const char *const strategies[] = {"arena_pool", "page_unit_pool",
                                           "arena_pool:page=4M", "arena_pool"};
  (void)unused;
  for (unsigned i = 0; atomic_load(&trading); i++) {
    tarn_pool_stats stats = {.struct_size = sizeof stats};
    expect(tarn_pool_query(at.pool, &stats) == TARN_OK);
    expect(stats.live_bytes <= stats.reserved_bytes);
    expect(stats.reserved_bytes <= stats.reserved_peak_bytes);
    expect(stats.allocs - stats.frees == stats.live_blocks);
    if (i % 64 == 0) {
      expect(use_strategy(at.place, strategies[i / 64 % 4]) == TARN_OK);
    }
    if (i % 64 == 32) expect(tarn_pool_trim(at.pool, 0) == TARN_OK);
  }
  return NULL;
}

TEST_LOOP(blocks_change_hands, 2 * TEST_DEVICES) {
  bool disturbed = _i % 2 != 0;
  pthread_t disturber;
  at = open_arena_with(_i / 2, 0, "arena_pool");
  rounds = effort_on(_i / 2, 2500);
  atomic_store(&trading, true);
  if (disturbed) pthread_create(&disturber, NULL, disturb, NULL);
  run_threads(trade, WORKERS);
  atomic_store(&trading, false);
  if (disturbed) pthread_join(disturber, NULL);
  for (size_t i = 0; i < SLOTS; i++)
    check_and_free(market.items[i], NULL);
  assert_as_expected();
  tarn_pool_stats stats = stats_of(at.pool);
  ck_assert_uint_eq(stats.allocs, stats.frees);
  ck_assert_uint_eq(stats.failures, (unsigned)atomic_load(&full));
  ck_assert_uint_eq(stats.allocs + stats.failures, (uint64_t)WORKERS * rounds);
}

// --- a block that two threads are at ---------------------------------------

static struct {
  pthread_mutex_t lock;  // guards the block
  tarn_block block;
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

static tarn_block shared_block(void) {
  pthread_mutex_lock(&shared.lock);
  tarn_block block = shared.block;
  pthread_mutex_unlock(&shared.lock);
  return block;
}

static void *resize_it(void *unused) {
  (void)unused;
  for (size_t i = 0; atomic_load(&trading); i++) {
    tarn_block block = shared_block();
    tarn_status status =
        tarn_pool_resize(&block, i % 2 ? 9 * SIM_PAGE : SIM_PAGE, NULL);
    expect(status == TARN_OK || status == TARN_FULL ||
           status == TARN_E_INVALID || status == TARN_E_STATE);
  }
  return NULL;
}

// Freed once, however often it is being resized just then.
static void replace_shared(void) {
  tarn_block block = shared_block();
  tarn_status status = TARN_E_STATE;
  while (status == TARN_E_STATE)
    status = tarn_pool_free(&block, NULL);
  require(status == TARN_OK);
  assert_ok(tarn_pool_trim(at.pool, 0));
  block = take(at.pool, SIM_PAGE);
  pthread_mutex_lock(&shared.lock);
  shared.block = block;
  pthread_mutex_unlock(&shared.lock);
}

TEST_LOOP(a_block_that_others_resize_is_freed_once, TEST_DEVICES) {
  enum { ROUNDS_OF_IT = 500 };
  pthread_t threads[2];
  at = open_arena_with(_i, 0, "arena_pool:page=2M");
  shared.block = take(at.pool, SIM_PAGE);
  atomic_store(&trading, true);
  for (int i = 0; i < 2; i++)
    pthread_create(&threads[i], NULL, resize_it, NULL);
  for (size_t i = 0; i < effort_on(_i, ROUNDS_OF_IT); i++) {
    replace_shared();
    if (i % 16 == 0) assert_ok(use_strategy(at.place, "arena_pool:page=2M"));
  }
  atomic_store(&trading, false);
  for (int i = 0; i < 2; i++)
    pthread_join(threads[i], NULL);
  give(shared.block);
  assert_as_expected();
}

// --- a strategy that is left while it fails --------------------------------

static void *ask_for_too_much(void *unused) {
  (void)unused;
  while (atomic_load(&trading)) {
    tarn_block block;
    expect(tarn_pool_alloc(at.pool, ARENA_CAPACITY + SIM_PAGE, 0, NULL,
                           &block) == TARN_FULL);
  }
  return NULL;
}

// Pages that were made before the device was full are counted nowhere once
// the strategy has been replaced, unless it gives them back as it ends.
TEST_LOOP(a_request_that_fails_leaves_nothing_in_a_replaced_strategy,
          TEST_DEVICES) {
  enum { SWITCHES = 300 };
  pthread_t threads[2];
  at = open_arena_with(_i, NEEDS_CAPACITY, "arena_pool");
  if (at.pool == NULL) return;
  atomic_store(&trading, true);
  for (int i = 0; i < 2; i++)
    pthread_create(&threads[i], NULL, ask_for_too_much, NULL);
  while (stats_of(at.pool).failures == 0)
    continue;
  for (size_t i = 0; i < effort_on(_i, SWITCHES); i++)
    assert_ok(use_strategy(at.place, "arena_pool"));
  atomic_store(&trading, false);
  for (int i = 0; i < 2; i++)
    pthread_join(threads[i], NULL);
  assert_as_expected();
}
