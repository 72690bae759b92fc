// Blocks that several streams use, on devices whose streams run by themselves
// and are held up, and among threads.
#include <pthread.h>

#include "support/hold.h"
#include "support/threads.h"
#include "tarn/sim.h"
#include "use_on_kit.h"

// --- real streams ----------------------------------------------------------

// The second stream is held up with the block in use, which is freed on the
// first, or by the host, and taken for the first again.
TEST_LOOP(a_stream_that_is_held_up_keeps_its_bytes, 2 * LIBRARY_DEVICES) {
  enum { LARGE = 1 << 20 };
  static unsigned char old[LARGE];
  static unsigned char new[LARGE];
  static unsigned char seen[LARGE];
  bool by_host = _i / LIBRARY_DEVICES == 1;
  hold held;
  memset(old, 0x11, LARGE);
  memset(new, 0x22, LARGE);
  open_on(test_devices[_i % LIBRARY_DEVICES], "arena_pool");
  tarn_block block = take_on(pool, LARGE, streams[0]);
  assert_ok(tarn_copy_h2d(device, block.address, old, LARGE, streams[0]));
  assert_ok(tarn_stream_join(streams[1], tarn_stream_serial(streams[0])));
  hold_begin(&held, streams[1]);
  assert_ok(tarn_copy_d2h(device, seen, block.address, LARGE, streams[1]));
  use_on(block, streams[1]);
  if (by_host) assert_ok(tarn_stream_synchronize(streams[0]));
  give_on(block, by_host ? NULL : streams[0]);
  tarn_block again = take_on(pool, LARGE, streams[0]);
  ck_assert_uint_eq(again.address, block.address);
  assert_ok(tarn_copy_h2d(device, again.address, new, LARGE, streams[0]));
  assert_status(tarn_stream_query(streams[0]), TARN_PENDING);
  hold_end(&held);
  assert_ok(tarn_stream_synchronize(streams[0]));
  assert_ok(tarn_stream_synchronize(streams[1]));
  ck_assert(memcmp(seen, old, LARGE) == 0);
  give_on(again, streams[0]);
  ck_assert_uint_eq(tarn_sim_misuses(NULL, 0), 0);
}

// --- threads ---------------------------------------------------------------

enum { WORKERS = 4, ROUNDS = 300, PLACES = 8, BYTES = 4000 };

typedef struct worker {
  unsigned seed;
  tarn_stream *first;
  tarn_stream *second;  // of this worker or of the next: shared by two threads
  unsigned char in[PLACES][BYTES];
  unsigned char out[PLACES][BYTES];
} worker;

static worker workers[WORKERS];

static void check_places(worker *l) {
  expect(tarn_stream_synchronize(l->second) == TARN_OK);
  for (int i = 0; i < PLACES; i++)
    expect(memcmp(l->in[i], l->out[i], BYTES) == 0);
}

// Written by the first stream, read by the second, freed while both are at it.
static void pass_on(worker *l, unsigned round) {
  unsigned place = round % PLACES;
  tarn_block block;
  memset(l->in[place], (int)(l->seed + round), BYTES);
  expect(tarn_pool_alloc(pool, BYTES, 0, l->first, &block) == TARN_OK);
  expect(tarn_copy_h2d(device, block.address, l->in[place], BYTES, l->first) ==
         TARN_OK);
  expect(tarn_stream_join(l->second, tarn_stream_serial(l->first)) == TARN_OK);
  expect(tarn_block_use_on(&block, l->second) == TARN_OK);
  expect(tarn_copy_d2h(device, l->out[place], block.address, BYTES,
                       l->second) == TARN_OK);
  bool by_host = round % 3 == 0;
  if (by_host) expect(tarn_stream_synchronize(l->first) == TARN_OK);
  expect(tarn_pool_free(&block, by_host ? NULL : l->first) == TARN_OK);
  if (place == PLACES - 1) check_places(l);
}

static void *work(void *context) {
  worker *l = context;
  for (unsigned round = 0; round < ROUNDS; round++)
    pass_on(l, round);
  return NULL;
}

TEST_LOOP(threads_share_streams_and_memory, STRATEGIES) {
  pthread_t threads[WORKERS];
  open_on("cpu:0", strategies[_i]);
  for (unsigned i = 0; i < WORKERS; i++) {
    workers[i].seed = i * 37;
    workers[i].first = streams[i % STREAMS];
    workers[i].second = streams[(i + 1) % STREAMS];
    ck_assert_int_eq(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
  }
  for (int i = 0; i < WORKERS; i++)
    pthread_join(threads[i], NULL);
  assert_as_expected();
}

// The streams come and go while blocks that they use are freed.
static void *come_and_go(void *context) {
  (void)context;
  for (int round = 0; round < ROUNDS; round++) {
    tarn_stream *brief = NULL;
    tarn_block block;
    unsigned char bytes[64];
    expect(tarn_stream_create(device, &brief) == TARN_OK);
    expect(tarn_pool_alloc(pool, SIZE, 0, streams[0], &block) == TARN_OK);
    expect(tarn_block_use_on(&block, brief) == TARN_OK);
    expect(tarn_copy_d2h(device, bytes, block.address, sizeof bytes, brief) ==
           TARN_OK);
    if (round % 2 == 0) expect(tarn_stream_destroy(brief) == TARN_OK);
    expect(tarn_pool_free(&block, round % 3 != 0 ? streams[0] : NULL) ==
           TARN_OK);
    if (round % 2 != 0) expect(tarn_stream_destroy(brief) == TARN_OK);
  }
  return NULL;
}

TEST(streams_come_and_go_among_threads) {
  open_on("cpu:0", "page_unit_pool");
  run_threads_on(come_and_go, WORKERS, NULL);
  assert_as_expected();
}

static tarn_block contested;

static void *free_it(void *freed) {
  tarn_status status = tarn_pool_free(&contested, streams[0]);
  if (status == TARN_OK) ++*(_Atomic int *)freed;
  expect(status == TARN_OK || status == TARN_E_INVALID ||
         status == TARN_E_STATE);
  return NULL;
}

TEST(one_of_several_frees_counts) {
  _Atomic int freed = 0;
  unsigned char bytes[64];
  open_on("cpu:0", "page_unit_pool");
  for (int round = 0; round < ROUNDS; round++) {
    contested = take_on(pool, SIZE, streams[0]);
    for (int i = 1; i < STREAMS; i++) {
      require(tarn_copy_d2h(device, bytes, contested.address, sizeof bytes,
                            streams[1]) == TARN_OK);
      require(tarn_block_use_on(&contested, streams[i]) == TARN_OK);
    }
    run_threads_on(free_it, 2, &freed);
  }
  ck_assert_int_eq(freed, ROUNDS);
  assert_as_expected();
  for (int i = 0; i < STREAMS; i++)
    assert_ok(tarn_stream_synchronize(streams[i]));
}
