// Threads that allocate, record and free at once, each on a stream of its own
// and on one that they share.
#include "support/threads.h"
#include "kit.h"
#include "support/effort.h"

enum { THREADS = 4, ROUNDS = EFFORT(400, 60), KEPT = 8 };

typedef struct worker {
  uint64_t seed;
  void *own;
  void *shared;
} worker;

static void *work(void *context) {
  worker *w = context;
  void *blocks[KEPT] = {NULL};
  for (int i = 0; i < ROUNDS; i++) {
    uint64_t random = next_random(&w->seed);
    size_t at = random % KEPT;
    tarn_torch_free(blocks[at], 0, 0, w->own);
    blocks[at] = tarn_torch_alloc_or_null(1 + (random % 1000000), 0, w->own);
    expect(blocks[at] != NULL);
    tarn_torch_record_stream(blocks[at], w->shared);
  }
  for (size_t i = 0; i < KEPT; i++)
    tarn_torch_free(blocks[i], 0, 0, w->own);
  return NULL;
}

TEST_LOOP_ON_LIBRARY(threads_do_not_get_in_each_others_way, 1,
                     TEST_NEEDS_STREAMS, serve_on) {
  worker workers[THREADS];
  void *shared = native(stream_on(device));
  for (size_t i = 0; i < THREADS; i++)
    workers[i] = (worker){i + 1, native(stream_on(device)), shared};
  run_threads_each(work, THREADS, workers, sizeof workers[0]);
  assert_as_expected();
  tarn_torch_stats stats = stats_of_torch();
  ck_assert_uint_eq(stats.blocks, 0);
  ck_assert_uint_eq(stats.allocs, stats.frees);
  ck_assert_uint_eq(stats.failures, 0);
}
