// Synced buffers and many threads: on buffers of their own, on ranges of one,
// on the same range at once, with views, traces and reports meanwhile.
#include <sched.h>

#include "own_kit.h"

// ---------------------------------------------------------------------------
// Buffers of their own
// ---------------------------------------------------------------------------

enum { OWN_BUFFERS = EFFORT(40, 8), OWN_STEPS = EFFORT(60, 30) };

static void *use_an_own_buffer(void *number) {
  own o = {.random = (uintptr_t)number * 77 + 5};
  make_streams(&o);
  for (int i = 0; i < OWN_BUFFERS; i++) {
    expect(tarn_synced_create(RANGE, NULL, &o.buffer) == TARN_OK);
    memset(o.value, 0, sizeof o.value);
    for (int k = 0; k < OWN_STEPS; k++)
      step(&o);
    expect(tarn_synced_destroy(o.buffer) == TARN_OK);
  }
  end_streams(&o);
  return NULL;
}

TEST(threads_have_buffers_of_their_own) {
  open_devices(0);
  run_threads(use_an_own_buffer, WORKERS);
  close_devices();
}

// ---------------------------------------------------------------------------
// Ranges of one buffer
// ---------------------------------------------------------------------------

enum { RANGE_STEPS = EFFORT(2500, 250) };

static tarn_synced *shared;

static void require_bytes(const own *o) {
  tarn_access a;
  assert_ok(
      tarn_synced_begin(shared, o->at, RANGE, TARN_HOST, TARN_READ, NULL, &a));
  ck_assert(memcmp(a.pointer, o->value, RANGE) == 0);
  assert_ok(tarn_synced_end(&a));
}

static own owns[WORKERS];

static void *use_an_own_range(void *number) {
  own *o = &owns[(uintptr_t)number];
  *o = (own){.buffer = shared,
             .at = (uintptr_t)number * RANGE,
             .random = (uintptr_t)number * 99 + 7};
  make_streams(o);
  for (int i = 0; i < RANGE_STEPS; i++)
    step(o);
  end_streams(o);
  return NULL;
}

TEST_LOOP(threads_have_ranges_of_their_own, 2) {
  open_devices(_i == 0 ? 0 : 20000);
  assert_ok(tarn_synced_create(SIZE, NULL, &shared));
  run_threads(use_an_own_range, WORKERS);
  for (int i = 0; i < WORKERS; i++)
    require_bytes(&owns[i]);
  assert_ok(tarn_synced_destroy(shared));
  close_devices();
}

// Each has a view of its range, and destroys it; the whole is gone before.
static void *use_an_own_view(void *number) {
  own *o = &owns[(uintptr_t)number];
  make_streams(o);
  for (int i = 0; i < RANGE_STEPS / 4; i++)
    step(o);
  expect(tarn_synced_destroy(o->buffer) == TARN_OK);
  end_streams(o);
  return NULL;
}

TEST(threads_destroy_views) {
  open_devices(0);
  for (int round = 0; round < 4; round++) {
    assert_ok(tarn_synced_create(SIZE, NULL, &shared));
    for (uintptr_t i = 0; i < WORKERS; i++) {
      owns[i] = (own){.random = i * 31 + 3 + (unsigned)round};
      assert_ok(tarn_synced_view(shared, i * RANGE, RANGE, &owns[i].buffer));
    }
    assert_ok(tarn_synced_destroy(shared));
    run_threads(use_an_own_view, WORKERS);
  }
  close_devices();
}

// ---------------------------------------------------------------------------
// The same range at once
// ---------------------------------------------------------------------------

enum { MEETINGS = EFFORT(150, 25) };

static pthread_barrier_t barrier;

static tarn_status add_copies(void *context, const tarn_traffic *t) {
  uint64_t *sums = context;
  sums[0] += t->copies;
  sums[1] += t->bytes_moved;
  return TARN_OK;
}

static void *read_with_others(void *number) {
  own o = {.buffer = shared};
  make_streams(&o);
  for (int i = 0; i < MEETINGS; i++) {
    unsigned char bytes[SIZE] = {0};
    tarn_stream *stream =
        (i + (int)(uintptr_t)number) % 3 == 0 ? o.streams[i % 2] : NULL;
    tarn_place place = places[1 + i % 2];
    tarn_access a;
    pthread_barrier_wait(&barrier);
    if (begin(shared, 0, SIZE, place, TARN_READ, stream, &a)) {
      get(&a, place, bytes);
      expect(bytes[0] == (unsigned char)(i + 1));
      expect(memcmp(bytes, bytes + 1, SIZE - 1) == 0);
      expect(tarn_synced_end(&a) == TARN_OK);
    }
    pthread_barrier_wait(&barrier);
  }
  end_streams(&o);
  return NULL;
}

// The thread that writes what the others read.
static void write_and_count(int round) {
  uint64_t sums[2] = {0, 0};
  tarn_access a;
  assert_ok(tarn_synced_begin(shared, 0, SIZE, TARN_HOST, TARN_WRITE_DISCARD,
                              NULL, &a));
  memset(a.pointer, round + 1, SIZE);
  assert_ok(tarn_synced_end(&a));
  assert_ok(tarn_synced_traffic_reset(shared));
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  assert_ok(tarn_synced_traffic(shared, add_copies, sums));
  ck_assert_uint_eq(sums[0], 1);
  ck_assert_uint_eq(sums[1], SIZE);
}

TEST(readers_that_meet_make_one_copy) {
  open_devices(2000);
  assert_ok(tarn_synced_create(SIZE, NULL, &shared));
  pthread_barrier_init(&barrier, NULL, WORKERS + 1);
  pthread_t threads[WORKERS];
  for (uintptr_t i = 0; i < WORKERS; i++) {
    pthread_create(&threads[i], NULL, read_with_others, (void *)i);
  }
  for (int i = 0; i < MEETINGS; i++)
    write_and_count(i);
  for (int i = 0; i < WORKERS; i++)
    pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&barrier);
  assert_ok(tarn_synced_destroy(shared));
  close_devices();
}

enum { TURNS = EFFORT(300, 40), WAITERS = 6 };

// Counts up, wherever the count is wanted this time.
static void *count_up(void *number) {
  own o = {.buffer = shared, .random = (uintptr_t)number * 13 + 1};
  make_streams(&o);
  for (int i = 0; i < TURNS; i++) {
    size_t place = next_random(&o.random) % PLACES;
    tarn_stream *stream = place > 0 && next_random(&o.random) % 2 == 0
                              ? o.streams[place - 1]
                              : NULL;
    uint64_t count = 0;
    tarn_access a;
    if (!begin(shared, 64, sizeof count, places[place],
               TARN_READ_WRITE | TARN_ACCESS_WAIT, stream, &a)) {
      continue;
    }
    get(&a, places[place], (unsigned char *)&count);
    count++;
    set(&a, places[place], (unsigned char *)&count);
    if (i % 16 == 3) {  // leaves no trace but where it was the only copy
      count--;
      set(&a, places[place], (unsigned char *)&count);
    }
    expect(tarn_synced_end(&a) == TARN_OK);
  }
  end_streams(&o);
  return NULL;
}

TEST(writers_hand_a_range_around) {
  open_devices(0);
  assert_ok(tarn_synced_create(SIZE, NULL, &shared));
  run_threads(count_up, WAITERS);
  uint64_t count = 0;
  tarn_access a;
  assert_ok(tarn_synced_begin(shared, 64, sizeof count, TARN_HOST, TARN_READ,
                              NULL, &a));
  memcpy(&count, a.pointer, sizeof count);
  assert_ok(tarn_synced_end(&a));
  uint64_t spoiled = 0;
  for (int i = 0; i < TURNS; i++)
    spoiled += i % 16 == 3;
  ck_assert_uint_eq(count, WAITERS * (TURNS - spoiled));
  assert_ok(tarn_synced_destroy(shared));
  close_devices();
}

// ---------------------------------------------------------------------------
// An access that another thread ends
// ---------------------------------------------------------------------------

static tarn_access handed;
static pthread_barrier_t handing;

static void *end_for_another(void *nothing) {
  for (int i = 0; i < 200; i++) {
    pthread_barrier_wait(&handing);
    expect(i % 3 == 0 ? tarn_synced_cancel(&handed, NULL) == TARN_OK
                      : tarn_synced_end(&handed) == TARN_OK);
    pthread_barrier_wait(&handing);
  }
  return nothing;
}

TEST(an_access_is_ended_by_another_thread) {
  open_devices(0);
  assert_ok(tarn_synced_create(RANGE, NULL, &shared));
  pthread_barrier_init(&handing, NULL, 2);
  pthread_t thread;
  pthread_create(&thread, NULL, end_for_another, NULL);
  unsigned char value = 0;
  for (int i = 0; i < 200; i++) {
    assert_ok(tarn_synced_begin(shared, 0, RANGE, TARN_HOST, TARN_READ, NULL,
                                &handed));
    ck_assert_uint_eq(*(unsigned char *)handed.pointer, value);
    assert_ok(tarn_synced_end(&handed));
    tarn_place place = places[1 + i % 2];
    assert_ok(tarn_synced_begin(shared, 0, RANGE, place, TARN_READ_WRITE, NULL,
                                &handed));
    unsigned char bytes[RANGE];
    memset(bytes, i, sizeof bytes);
    set(&handed, place, bytes);
    pthread_barrier_wait(&handing);
    pthread_barrier_wait(&handing);
    if (i % 3 != 0) value = (unsigned char)i;
  }
  pthread_join(thread, NULL);
  pthread_barrier_destroy(&handing);
  assert_ok(tarn_synced_destroy(shared));
  close_devices();
}

// ---------------------------------------------------------------------------
// Traces and reports meanwhile
// ---------------------------------------------------------------------------

typedef struct listener {
  atomic_bool listens;
} listener;

static atomic_bool over;
static atomic_ullong heard;  // events

static void listen(void *context, const tarn_synced_event *event) {
  listener *l = context;
  expect(atomic_load(&l->listens));
  expect(tarn_synced_happening_name(event->what) != NULL);
  atomic_fetch_add(&heard, 1);
}

static tarn_status see_traffic(void *context, const tarn_traffic *t) {
  (void)context;
  expect(t->bytes_moved == 0 || t->copies > 0);
  return TARN_OK;
}

static tarn_status see_open(void *context, const tarn_synced_open *open) {
  (void)context;
  expect(open->handles > 0 || open->size > 0);
  expect(open->accesses <= (size_t)4 * WORKERS);
  tarn_synced_info info = {.struct_size = sizeof info};
  return tarn_synced_query(shared, 0, TARN_ALL, TARN_HOST, &info);
}

static void *look_meanwhile(void *nothing) {
  listener listeners[2] = {{.listens = false}, {.listens = false}};
  for (int i = 0; !atomic_load(&over); i++) {
    listener *l = &listeners[i % 2];
    atomic_store(&l->listens, true);
    expect(tarn_synced_trace(i % 5 == 4 ? NULL : listen, l) == TARN_OK);
    atomic_store(&listeners[1 - i % 2].listens, false);
    expect(tarn_synced_each_open(see_open, NULL) == TARN_OK);
    expect(tarn_synced_traffic(NULL, see_traffic, NULL) == TARN_OK);
    if (i % 7 == 0) expect(tarn_synced_traffic_reset(NULL) == TARN_OK);
    (void)tarn_synced_head(shared);
  }
  expect(tarn_synced_trace(NULL, NULL) == TARN_OK);
  return nothing;
}

static void *use_both(void *number) {
  (void)use_an_own_range(number);
  return use_an_own_buffer(number);
}

TEST(traces_and_reports_are_changed_meanwhile) {
  open_devices(0);
  assert_ok(tarn_synced_create(SIZE, NULL, &shared));
  pthread_t thread;
  pthread_create(&thread, NULL, look_meanwhile, NULL);
  run_threads(use_both, WORKERS);
  // On a busy machine no listener may have been there in all that time.
  while (atomic_load(&heard) == 0)
    run_threads(use_an_own_buffer, WORKERS);
  atomic_store(&over, true);
  pthread_join(thread, NULL);
  for (int i = 0; i < WORKERS; i++)
    require_bytes(&owns[i]);
  assert_ok(tarn_synced_destroy(shared));
  close_devices();
}

// ---------------------------------------------------------------------------
// Memory that goes while others come
// ---------------------------------------------------------------------------

enum { EVICTIONS = EFFORT(400, 60) };

// One thread gives the memory of places back that others are using: it is
// refused, or everything is there again when they want it.
static void *evict_meanwhile(void *nothing) {
  uint64_t random = 4711;
  while (!atomic_load(&over)) {
    tarn_place place = places[next_random(&random) % PLACES];
    tarn_status status = tarn_synced_evict(shared, place);
    expect(status == TARN_OK || status == TARN_E_STATE);
  }
  return nothing;
}

static void *use_what_may_be_evicted(void *number) {
  own *o = &owns[(uintptr_t)number];
  *o = (own){.buffer = shared,
             .at = (uintptr_t)number * RANGE,
             .random = (uintptr_t)number * 3 + 7};
  make_streams(o);
  for (int i = 0; i < EVICTIONS; i++)
    step(o);
  end_streams(o);
  return NULL;
}

TEST(memory_is_evicted_meanwhile) {
  open_devices(0);
  tarn_synced_options options = {.struct_size = sizeof options,
                                 .device = devices[0]};
  assert_ok(tarn_synced_create(SIZE, &options, &shared));
  pthread_t thread;
  pthread_create(&thread, NULL, evict_meanwhile, NULL);
  run_threads(use_what_may_be_evicted, WORKERS);
  atomic_store(&over, true);
  pthread_join(thread, NULL);
  for (int i = 0; i < WORKERS; i++)
    require_bytes(&owns[i]);
  assert_ok(tarn_synced_destroy(shared));
  close_devices();
}
