// Snapshots of a pool that other threads use all the time: each shows one
// moment. What is out at its end is what its events say, from the baseline on.
#include <pthread.h>
#include <stdatomic.h>

#include "kit.h"
#include "tarn/account.h"
#include "tarn/snapshot.h"

enum { THREADS = 4, SLOTS = 24, SNAPSHOTS = 40, PER_ROUND = 50, NAMES = 4 };

static tarn_pool *pool;
static tarn_tag names[NAMES];
static atomic_bool over;

static void open_pool(int device) {
  for (size_t i = 0; i < NAMES; i++)
    names[i] = tag_of((const char *[]){"a", "b", "c", "d"}[i]);
  tarn_place place = tarn_place_on(open_device(test_devices[device]));
  pool = own_pool_with(place, "arena_pool", 0, 0);
}

// --- the program -----------------------------------------------------------

typedef struct worker {
  pthread_t thread;
  uint64_t state;
  tarn_block blocks[SLOTS];
} worker;

static size_t below(worker *w, size_t limit) {
  w->state = w->state * 6364136223846793005u + 1442695040888963407u;
  return (size_t)(w->state >> 33) % limit;
}

// A block's size says what its tag is.
static size_t size_for(worker *w, size_t name) {
  return NAMES * (1 + below(w, (size_t)1 << (3 + below(w, 17)))) + name;
}

static void use_slot(worker *w, size_t slot) {
  tarn_block *block = &w->blocks[slot];
  size_t name = slot % NAMES;
  if (block->pool == NULL) {
    tarn_status status =
        alloc_tagged(pool, size_for(w, name), 0, NULL, names[name], block);
    // Strategies that were replaced may have all addresses of the device.
    require(status == TARN_OK || status == TARN_FULL);
  } else if (below(w, 4) == 0) {
    tarn_status status = tarn_pool_resize(block, size_for(w, name), NULL);
    // Another thread may be just waking it.
    require(status == TARN_OK || status == TARN_FULL || status == TARN_E_STATE);
  } else if (tarn_pool_free(block, NULL) == TARN_OK) {
    *block = (tarn_block){0};
  }
}

static void give_all(worker *w) {
  for (size_t i = 0; i < SLOTS; i++) {
    while (w->blocks[i].pool != NULL &&
           tarn_pool_free(&w->blocks[i], NULL) != TARN_OK)
      continue;
  }
}

static void *work(void *context) {
  worker *w = context;
  while (!over) {
    for (int i = 0; i < PER_ROUND; i++)
      use_slot(w, below(w, SLOTS));
  }
  give_all(w);
  return NULL;
}

static const char *const strategies[] = {"arena_pool", "page_unit_pool",
                                         "buddy_pool", "no_pool"};

static void sleep_and_wake(tarn_tag tag) {
  if (tarn_pool_sleep(pool, tag, TARN_SLEEP_DROP) != TARN_OK) return;
  while (tarn_pool_wake(pool, tag) != TARN_OK)
    continue;
}

// Events may be switched, and the ring may be smaller than what is out.
static void change_counts(worker *w) {
  static const uint32_t counters[] = {
      TARN_COUNT_DEFAULT, TARN_COUNT_EVENTS,
      TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS | TARN_COUNT_TIMES};
  require(tarn_pool_account_ring(pool, 1 + below(w, 4096)) == TARN_OK);
  require(tarn_pool_account(pool, counters[below(w, 3)]) == TARN_OK);
}

static bool all_is_kept;  // events are on from the beginning, in a large ring

static void *meddle(void *context) {
  worker *w = context;
  while (!over) {
    switch (below(w, 4)) {
      case 0:
        require(tarn_pool_trim(pool, 0) == TARN_OK);
        break;
      case 1:
        require(tarn_pool_set_strategy(pool, strategies[below(w, 4)]) ==
                TARN_OK);
        break;
      case 2:
        sleep_and_wake(names[below(w, NAMES)]);
        break;
      default:
        if (!all_is_kept) change_counts(w);
    }
  }
  return NULL;
}

// --- what is seen ----------------------------------------------------------

static void check_block(const tarn_trace *trace,
                        const tarn_trace_block *block) {
  require(block->tag != TARN_TRACE_NO_TAG);
  require(trace->tags[block->tag][0] == (char)('a' + block->size % NAMES));
}

static void check_trace(const tarn_trace *trace) {
  size_t out = 0;
  ck_assert_uint_eq(trace->ignored_count, 0);
  ck_assert_uint_eq(trace->unknown_count, 0);
  if (all_is_kept && trace->lost_count == 0) {
    ck_assert_uint_eq(trace->baseline_count, 0);
  }
  for (size_t i = 0; i < trace->block_count; i++) {
    check_block(trace, &trace->blocks[i]);
    out += trace->blocks[i].died == TARN_TRACE_NEVER;
  }
  ck_assert_uint_le(out, (size_t)THREADS * SLOTS);
}

TEST_LOOP(each_is_as_of_one_moment, 2 * TEST_DEVICES) {
  static worker workers[THREADS + 1];
  all_is_kept = _i % 2 == 0;
  open_pool(_i / 2);
  memset(workers, 0, sizeof workers);
  if (all_is_kept) {
    assert_ok(tarn_pool_account_ring(pool, (size_t)1 << 12));
    assert_ok(tarn_pool_account(pool, TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS));
  }
  for (size_t i = 0; i <= THREADS; i++) {
    workers[i].state = i + 1;
    ck_assert_int_eq(pthread_create(&workers[i].thread, NULL,
                                    i < THREADS ? work : meddle, &workers[i]),
                     0);
  }
  for (size_t i = 0; i < effort_on(_i / 2, SNAPSHOTS); i++) {
    tarn_trace *trace = NULL;
    assert_ok(tarn_pool_trace(pool, &trace));
    check_trace(trace);
    tarn_trace_destroy(trace);
  }
  over = true;
  for (size_t i = 0; i <= THREADS; i++)
    ck_assert_int_eq(pthread_join(workers[i].thread, NULL), 0);
  ck_assert_uint_eq(stats_of(pool).live_blocks, 0);
}
