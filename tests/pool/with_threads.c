// Threads that take blocks with options, several at once, and change what the
// pool keeps, its strategy and its limit meanwhile.
#include <pthread.h>
#include <stdatomic.h>

#include "support/effort.h"
#include "support/faults.h"
#include "support/strategy.h"
#include "support/threads.h"
#include "with_kit.h"

enum { THREADS = 4, BATCH = 4 };

static arena_place at;
static atomic_bool done;
static size_t rounds;

static uint32_t next_of(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

static void take_several(uint32_t *seed, tarn_stream *stream) {
  tarn_alloc_options options[BATCH];
  tarn_block blocks[BATCH];
  for (size_t i = 0; i < BATCH; i++) {
    options[i] =
        options_for(1 + next_of(seed) % (200 * KIB),
                    next_of(seed) % 2 == 0 ? stream : NULL, next_of(seed) % 8);
    options[i].user = next_of(seed) % 2 == 0 ? seed : NULL;
  }
  tarn_status status = tarn_pool_alloc_many(at.pool, options, BATCH, blocks);
  require(status == TARN_OK || status == TARN_FULL);
  for (size_t i = 0; i < BATCH && status == TARN_OK; i++) {
    void *user = NULL;
    require(tarn_block_user(&blocks[i], &user) == TARN_OK);
    require(user == options[i].user);
    require(tarn_pool_free(&blocks[i], options[i].stream) == TARN_OK);
  }
}

static void *work(void *context) {
  uint32_t seed = (uint32_t)(uintptr_t)context;
  tarn_stream *stream = NULL;
  require(tarn_stream_create(at.device, &stream) == TARN_OK);
  for (size_t i = 0; i < rounds; i++)
    take_several(&seed, stream);
  require(tarn_stream_destroy(stream) == TARN_OK);
  return NULL;
}

static void *disturb(void *context) {
  uint32_t seed = 7;
  (void)context;
  while (!atomic_load(&done)) {
    tarn_status status = tarn_pool_reserve(at.pool, next_of(&seed) % MIB);
    require(status == TARN_OK || status == TARN_FULL || status == TARN_E_STATE);
    require(tarn_pool_trim(at.pool, next_of(&seed) % MIB) == TARN_OK);
    if (next_of(&seed) % 16 != 0) continue;
    size_t which = next_of(&seed) % KEEPING;
    require(use_strategy(at.place, keeping[which]) == TARN_OK);
  }
  return NULL;
}

TEST_LOOP(threads_take_several_at_once, KEEPING *TEST_DEVICES) {
  pthread_t other;
  at = open_arena_at(64 * MIB, _i / KEEPING, 0, keeping[_i % KEEPING]);
  rounds = effort_on(_i / KEEPING, EFFORT(2000, 300));
  assert_ok(tarn_pool_limit(at.pool, 2 * MIB));
  ck_assert_int_eq(pthread_create(&other, NULL, disturb, NULL), 0);
  run_threads(work, THREADS);
  atomic_store(&done, true);
  ck_assert_int_eq(pthread_join(other, NULL), 0);
  tarn_pool_stats stats = stats_of(at.pool);
  ck_assert_uint_eq(stats.live_blocks, 0);
  ck_assert_uint_eq(stats.allocs, stats.frees);
  ck_assert_uint_eq(stats.allocs % BATCH, 0);
  assert_ok(tarn_pool_reserve(at.pool, 0));
}

int main(void) {
  faults_install();
  return run_tests();
}
