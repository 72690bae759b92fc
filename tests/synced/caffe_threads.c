// Threads that evict, query and move memory of a buffer while other threads use
// their own ranges: no byte is lost, and no thread waits forever.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "caffe_kit.h"
#include "support/effort.h"

enum { WRITERS = 3, PART = SIZE / WRITERS, ROUNDS = EFFORT(3000, 300) };

static atomic_size_t writers_left;
static unsigned char borrowed[SIZE];

static void open_threads(tarn_device *device) {
  open_x(device);
  atomic_store(&writers_left, WRITERS);
}

static tarn_stream *streams[WRITERS];
static unsigned char queued[WRITERS][PART];
static bool on_streams;

static tarn_place place_number(unsigned number) {
  const tarn_place places[] = {TARN_HOST, tarn_place_on(gpu),
                               tarn_place_on(other)};
  return places[number % 3];
}

static void write_part(size_t part, tarn_place place, unsigned seed) {
  tarn_access access;
  require(tarn_synced_begin(x, part * PART, PART, place,
                            TARN_WRITE_DISCARD | TARN_ACCESS_WAIT, NULL,
                            &access) == TARN_OK);
  unsigned char bytes[PART];
  fill_pattern(bytes, access.offset, PART, seed);
  if (access.pointer != NULL) {
    memcpy(access.pointer, bytes, PART);
  } else {
    require(tarn_copy_h2d(place.device, access.address, bytes, PART, NULL) ==
            TARN_OK);
  }
  require(tarn_synced_end(&access) == TARN_OK);
}

static void read_part(size_t part, tarn_place place, unsigned seed) {
  tarn_access access;
  unsigned char bytes[PART];
  tarn_status status = tarn_synced_begin(
      x, part * PART, PART, place, TARN_READ | TARN_ACCESS_WAIT, NULL, &access);
  require(status == TARN_OK);
  if (access.pointer != NULL) {
    memcpy(bytes, access.pointer, PART);
  } else {
    require(tarn_copy_d2h(place.device, bytes, access.address, PART, NULL) ==
            TARN_OK);
  }
  require(tarn_synced_end(&access) == TARN_OK);
  assert_pattern(bytes, part * PART, PART, seed);
}

// The write is queued, and so is the copy to the host: the next read waits for
// both, and then the bytes that it came from may change.
static void queue_part(size_t part, unsigned seed) {
  tarn_access access;
  tarn_stream *stream = streams[part];
  require(tarn_synced_begin(x, part * PART, PART, tarn_place_on(gpu),
                            TARN_WRITE_DISCARD | TARN_ACCESS_WAIT, stream,
                            &access) == TARN_OK);
  fill_pattern(queued[part], access.offset, PART, seed);
  require(tarn_copy_h2d(gpu, access.address, queued[part], PART, stream) ==
          TARN_OK);
  require(tarn_synced_end(&access) == TARN_OK);
  require(tarn_synced_pull(x, part * PART, PART, stream, NULL) == TARN_OK);
}

// Each has a part of its own.
static void *write_and_read(void *context) {
  size_t part = (size_t)(uintptr_t)context;
  for (unsigned i = 1; i <= ROUNDS; i++) {
    if (on_streams) queue_part(part, i);
    if (!on_streams) write_part(part, place_number(i * 7 + (unsigned)part), i);
    read_part(part, place_number(i), i);
  }
  atomic_fetch_sub(&writers_left, 1);
  return NULL;
}

static atomic_size_t evicted;

static void *evict_all(void *context) {
  for (unsigned i = 0; atomic_load(&writers_left) > 0; i++) {
    tarn_status status = tarn_synced_evict(x, place_number(i));
    require(status == TARN_OK || status == TARN_E_STATE);
    if (status == TARN_OK) atomic_fetch_add(&evicted, 1);
  }
  return context;
}

static tarn_status see(void *context, const tarn_synced_open *open) {
  (void)context;
  require(open->handles == 1 && strcmp(open->name, "x") == 0);
  return TARN_OK;
}

static void *ask(void *context) {
  (void)context;
  for (unsigned i = 0; atomic_load(&writers_left) > 0; i++) {
    tarn_synced_info info = info_at(place_number(i));
    require(info.valid <= SIZE && info.lost == 0);
    require(info.memory == 0 || info.memory == SIZE);
    require(tarn_synced_head(x) <= TARN_HEAD_ELSEWHERE);
    require(tarn_synced_each_open(see, NULL) == TARN_OK);
  }
  return NULL;
}

static void start(pthread_t *thread, void *(*run)(void *), void *context) {
  ck_assert_int_eq(pthread_create(thread, NULL, run, context), 0);
}

static void start_writers(pthread_t *threads) {
  for (size_t i = 0; i < WRITERS; i++)
    start(&threads[i], write_and_read, (void *)(uintptr_t)i);
}

static void join(pthread_t *threads, size_t count) {
  for (size_t i = 0; i < count; i++)
    ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
}

static void assert_parts(void) {
  for (size_t i = 0; i < WRITERS; i++)
    assert_range(x, i * PART, PART, TARN_HOST, ROUNDS);
}

TEST_LOOP_ON_LIBRARY(evictions_lose_nothing, 2, TEST_NEEDS_DISCRETE,
                     open_threads) {
  pthread_t threads[WRITERS + 2];
  on_streams = _i == 1;
  for (size_t i = 0; i < WRITERS; i++)
    streams[i] = stream_on(gpu);
  start(&threads[WRITERS], evict_all, NULL);
  start(&threads[WRITERS + 1], ask, NULL);
  while (atomic_load(&evicted) == 0)
    sched_yield();  // else the writers might be done before it begins
  start_writers(threads);
  join(threads, WRITERS + 2);
  assert_parts();
  for (size_t i = 0; i < WRITERS; i++)
    assert_ok(tarn_stream_destroy(streams[i]));
}

static void *wrap_and_unwrap(void *context) {
  (void)context;
  tarn_wrap_options options = {
      .struct_size = sizeof options,
      .flags = TARN_WRAP_EMPTY,
  };
  while (atomic_load(&writers_left) > 0) {
    tarn_status status =
        tarn_synced_wrap(x, TARN_HOST, (uintptr_t)borrowed, &options);
    require(status == TARN_OK || status == TARN_E_STATE);
    status = tarn_synced_evict(x, TARN_HOST);
    require(status == TARN_OK || status == TARN_E_STATE);
  }
  return NULL;
}

// Borrowed memory comes and goes, and copies are not made into it: the host
// moves to memory of its own, again and again.
TEST_LOOP_ON_LIBRARY(borrowed_memory_comes_and_goes, 1, TEST_NEEDS_DISCRETE,
                     open_threads) {
  pthread_t threads[WRITERS + 2];
  start_writers(threads);
  start(&threads[WRITERS], wrap_and_unwrap, NULL);
  start(&threads[WRITERS + 1], ask, NULL);
  join(threads, WRITERS + 2);
  assert_parts();
}

static void *prefetch_slowly(void *context) {
  sem_t *begun = context;
  require(sem_post(begun) == 0);
  tarn_status status =
      tarn_synced_prefetch(x, 0, TARN_ALL, tarn_place_on(gpu), NULL, NULL);
  require(status == TARN_OK || status == TARN_E_STATE);  // it came too late
  return NULL;
}

// A thread copies while the bytes become worthless, or others: its copy does
// not count.
TEST_LOOP(a_copy_under_way_is_not_committed_later, 2) {
  sem_t begun;
  pthread_t thread;
  struct timespec some = {.tv_nsec = 10000000L};
  tarn_sim_options options = {.struct_size = sizeof options,
                              .latency_ns = 40000000};
  assert_ok(tarn_sim_configure(&options));
  open_x(sim());
  write_range(x, 0, SIZE, TARN_HOST, 1);
  ck_assert_int_eq(sem_init(&begun, 0, 0), 0);
  start(&thread, prefetch_slowly, &begun);
  ck_assert_int_eq(sem_wait(&begun), 0);
  nanosleep(&some, NULL);
  if (_i == 0) {
    tarn_access access;
    assert_ok(tarn_synced_invalidate(x, 0, TARN_ALL));
    join(&thread, 1);
    assert_status(tarn_synced_begin(x, 0, 1, tarn_place_on(gpu), TARN_READ,
                                    NULL, &access),
                  TARN_E_STATE);
  } else {
    fill_pattern(borrowed, 0, SIZE, 2);
    assert_ok(tarn_synced_set_cpu_data(x, borrowed));
    join(&thread, 1);
    assert_range(x, 0, SIZE, tarn_place_on(gpu), 2);
  }
}

static void *call_const(void *context) {
  (void)context;
  for (unsigned i = 0; i < ROUNDS; i++) {
    const void *host = NULL;
    tarn_addr device = 0;
    assert_ok(tarn_synced_cpu_data(x, &host));
    assert_ok(tarn_synced_gpu_data(x, &device));
    require(((const unsigned char *)host)[i % SIZE] == 0);
  }
  return NULL;
}

// "const accessors allocate and change state without a lock": here the first
// of them make zeros, and all see them.
TEST_LOOP_ON_LIBRARY(const_calls_of_many_threads, 1, TEST_NEEDS_DISCRETE,
                     open_threads) {
  pthread_t threads[4];
  for (size_t i = 0; i < 4; i++)
    start(&threads[i], call_const, NULL);
  join(threads, 4);
  assert_head(x, TARN_SYNCED);
  ck_assert_uint_le(all_copies(), 1);
}
