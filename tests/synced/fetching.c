// Memory that is evicted or replaced while a thread copies into it without an
// access: in either order the statistics agree in the end.
#include <pthread.h>
#include <sched.h>

#include "kit.h"
#include "support/effort.h"
#include "support/hold.h"
#include "support/on_devices.h"

enum { SIZE = 1000 };

static tarn_place there;
static tarn_synced *buffer;
static tarn_addr outside;
// Waits for a copy that is queued already, and has none of its own to make.
static void *fetch(void *context) {
  (void)context;
  assert_ok(tarn_synced_prefetch(buffer, 0, TARN_ALL, there, NULL, NULL));
  return NULL;
}

static void *evict(void *context) {
  (void)context;
  assert_ok(tarn_synced_evict(buffer, there));
  return NULL;
}

static void *wrap(void *context) {
  tarn_wrap_options empty = {.struct_size = sizeof empty,
                             .flags = TARN_WRAP_EMPTY | TARN_WRAP_FILL};
  (void)context;
  assert_ok(tarn_synced_wrap(buffer, there, outside, &empty));
  return NULL;
}

static uint32_t accesses_there(void) {
  tarn__synced_core *core = buffer->core;
  tarn__core_enter(core);
  uint32_t side = tarn__side_find(core, there);
  uint32_t count = core->sides[side].transfers;
  tarn__core_leave(core);
  return count;
}

static void run_round(void *(*taker)(void *), tarn_stream *stream) {
  pthread_t fetching;
  pthread_t taking;
  hold held;
  hold_begin(&held, stream);
  assert_ok(tarn_synced_prefetch(buffer, 0, TARN_ALL, there, stream, NULL));
  require(pthread_create(&fetching, NULL, fetch, NULL) == 0);
  while (accesses_there() == 0)
    sched_yield();
  require(pthread_create(&taking, NULL, taker, NULL) == 0);
  for (int i = 0; i < 20; i++)
    sched_yield();
  hold_end(&held);
  require(pthread_join(fetching, NULL) == 0);
  require(pthread_join(taking, NULL) == 0);
  require(accesses_there() == 0);
  verify(buffer);
}

static void run_rounds(tarn_device *device, void *(*taker)(void *)) {
  tarn_stream *stream = NULL;
  there = tarn_place_on(device);
  outside = sim_take(device, SIZE);
  assert_ok(tarn_stream_create(device, &stream));
  buffer = new_buffer(SIZE);
  for (int round = 0; round < EFFORT(100, 20); round++) {
    write_at(buffer, 0, SIZE, TARN_HOST, NULL, (unsigned char)round);
    run_round(taker, stream);
    expect_at(buffer, 0, SIZE, TARN_HOST, (unsigned char)round);
  }
  assert_ok(tarn_synced_destroy(buffer));
  assert_ok(tarn_stream_destroy(stream));
  sim_give(device, outside, SIZE);
  ck_assert_uint_eq(sim_misuses(), 0);
}

TEST_ON(memory_that_is_evicted, TEST_NEEDS_STREAMS | TEST_NEEDS_DISCRETE) {
  run_rounds(device, evict);
}

TEST_ON(memory_that_is_exchanged, TEST_NEEDS_STREAMS | TEST_NEEDS_DISCRETE) {
  run_rounds(device, wrap);
}
