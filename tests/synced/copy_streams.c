// Copy streams and spare events of a device: created once, replaced after a
// failure, bounded, and no reason for an unused device to stay open.
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "sim/kit.h"
#include "support/child.h"
#include "support/effort.h"
#include "support/faults.h"
#include "support/on_devices.h"
#include "synced/copy_streams.h"

static tarn_stream *copy_stream(tarn_device *device,
                                tarn__synced_copy_stream way) {
  tarn_stream *stream = NULL;
  assert_ok(tarn__copy_streams_copy_stream(device, way, &stream));
  ck_assert_ptr_nonnull(stream);
  ck_assert_ptr_eq(tarn_stream_device(stream), device);
  return stream;
}

static tarn__synced_event *take_event(tarn_device *device) {
  tarn__synced_event *event = NULL;
  assert_ok(tarn__copy_streams_take_event(device, &event));
  ck_assert_ptr_nonnull(event);
  return event;
}

// --- the copy streams -------------------------------------------------------

TEST_ON(one_for_each_device, TEST_NEEDS_DISCRETE) {
  tarn_device *second = open_second(device);
  tarn__synced_copy_streams *of_a = NULL;
  tarn__synced_copy_streams *of_b = NULL;
  tarn__synced_copy_streams *again = NULL;
  assert_ok(tarn__copy_streams_of(device, &of_a));
  assert_ok(tarn__copy_streams_of(second, &of_b));
  assert_ok(tarn__copy_streams_of(device, &again));
  ck_assert_ptr_nonnull(of_a);
  ck_assert_ptr_ne(of_a, of_b);
  ck_assert_ptr_eq(of_a, again);
}

TEST(of_no_device) {
  tarn__synced_copy_streams *copy_streams =
      (tarn__synced_copy_streams *)&copy_streams;
  tarn_stream *stream = (tarn_stream *)&stream;
  tarn__synced_event *event = (tarn__synced_event *)&event;
  assert_status(tarn__copy_streams_of(NULL, &copy_streams), TARN_E_INVALID);
  ck_assert_ptr_null(copy_streams);
  assert_status(
      tarn__copy_streams_copy_stream(NULL, TARN__COPY_STREAM_IN, &stream),
      TARN_E_INVALID);
  ck_assert_ptr_null(stream);
  assert_status(tarn__copy_streams_take_event(NULL, &event), TARN_E_INVALID);
  ck_assert_ptr_null(event);
  tarn__copy_streams_release_copy_stream(NULL);
  tarn__copy_streams_give_event(NULL);
}

// --- copy streams -----------------------------------------------------------

TEST_ON(one_copy_stream_for_each_way, 0) {
  tarn_stream *in = copy_stream(device, TARN__COPY_STREAM_IN);
  tarn_stream *out = copy_stream(device, TARN__COPY_STREAM_OUT);
  tarn_stream *again = copy_stream(device, TARN__COPY_STREAM_IN);
  ck_assert_ptr_ne(in, out);
  ck_assert_ptr_eq(in, again);
  tarn__copy_streams_release_copy_stream(again);
  tarn__copy_streams_release_copy_stream(out);
  tarn__copy_streams_release_copy_stream(in);
  again = copy_stream(device, TARN__COPY_STREAM_OUT);
  ck_assert_ptr_eq(again, out);
  tarn__copy_streams_release_copy_stream(again);
}

// A copy that fails when it is queued: the failure sticks to the stream.
static void break_it(tarn_device *device, tarn_stream *stream) {
  char byte = 0;
  tarn_addr target = sim_take(device, 1);
  assert_ok(tarn_sim_faults("async_memory_copy_h2d@1"));
  assert_status(tarn_copy_h2d(device, target, &byte, 1, stream), TARN_E_DEVICE);
  assert_ok(tarn_sim_faults(NULL));
  sim_give(device, target, 1);
}

TEST(a_failed_copy_stream_is_replaced) {
  tarn_device *device = sim_open("sim:0");
  tarn_stream *first = copy_stream(device, TARN__COPY_STREAM_IN);
  uint64_t serial = tarn_stream_serial(first);
  break_it(device, first);
  tarn__copy_streams_release_copy_stream(first);

  tarn_stream *second = copy_stream(device, TARN__COPY_STREAM_IN);
  ck_assert_uint_ne(tarn_stream_serial(second), serial);
  assert_ok(tarn_stream_query(second));
  tarn__copy_streams_release_copy_stream(second);
  assert_ok(tarn_device_close(device));
}

TEST(a_failed_copy_stream_stays_with_who_holds_it) {
  tarn_device *device = sim_open("sim:0");
  tarn_stream *first = copy_stream(device, TARN__COPY_STREAM_OUT);
  tarn_stream *shared = copy_stream(device, TARN__COPY_STREAM_OUT);
  break_it(device, first);
  tarn_stream *second = copy_stream(device, TARN__COPY_STREAM_OUT);
  ck_assert_ptr_ne(first, second);
  break_it(device, second);
  tarn_stream *third = copy_stream(device, TARN__COPY_STREAM_OUT);
  ck_assert_ptr_ne(second, third);

  tarn__copy_streams_release_copy_stream(third);
  assert_status(tarn_stream_query(second), TARN_E_DEVICE);
  tarn__copy_streams_release_copy_stream(first);
  assert_status(tarn_stream_query(shared), TARN_E_DEVICE);
  assert_status(tarn_device_close(device), TARN_E_STATE);
  tarn__copy_streams_release_copy_stream(shared);
  tarn__copy_streams_release_copy_stream(second);
  assert_ok(tarn_device_close(device));
}

TEST(no_copy_stream_can_be_made) {
  tarn_device *device = sim_open("sim:0");
  tarn_stream *stream = (tarn_stream *)&stream;
  assert_ok(tarn_sim_faults("create_stream@1"));
  assert_status(
      tarn__copy_streams_copy_stream(device, TARN__COPY_STREAM_IN, &stream),
      TARN_E_DEVICE);
  ck_assert_ptr_null(stream);
  assert_ok(tarn_sim_faults(NULL));
  tarn__copy_streams_release_copy_stream(
      copy_stream(device, TARN__COPY_STREAM_IN));
  assert_ok(tarn_device_close(device));
}

// --- events ----------------------------------------------------------------

TEST_ON(events_are_used_again, 0) {
  tarn__synced_event *first = take_event(device);
  tarn__synced_event *second = take_event(device);
  ck_assert_ptr_ne(first, second);
  tarn__copy_streams_give_event(first);
  ck_assert_ptr_eq(take_event(device), first);
  tarn__copy_streams_give_event(first);
  tarn__copy_streams_give_event(second);
}

// More than are kept: the others are destroyed, and none is given twice.
TEST_ON(spare_events_are_bounded, 0) {
  enum { COUNT = 1000 };
  static tarn__synced_event *flags[COUNT];
  size_t without = tarn_host_memory();
  for (int i = 0; i < COUNT; i++)
    flags[i] = take_event(device);
  size_t with = tarn_host_memory();
  for (int i = 0; i < COUNT; i++)
    tarn__copy_streams_give_event(flags[i]);
  size_t kept = tarn_host_memory();
  ck_assert_uint_lt(kept - without, (with - without) / 2);
  for (int i = 0; i < COUNT; i++) {
    flags[i] = take_event(device);
    for (int j = 0; j < i; j++)
      require(flags[j] != flags[i]);
  }
  for (int i = 0; i < COUNT; i++)
    tarn__copy_streams_give_event(flags[i]);
}

TEST(no_event_can_be_made) {
  tarn_device *device = sim_open("sim:0");
  tarn__synced_event *event = (tarn__synced_event *)&event;
  assert_ok(tarn_sim_faults("create_event@1"));
  assert_status(tarn__copy_streams_take_event(device, &event), TARN_E_DEVICE);
  ck_assert_ptr_null(event);
  assert_ok(tarn_sim_faults(NULL));
  tarn__copy_streams_give_event(take_event(device));
  assert_ok(tarn_device_close(device));
}

// --- the end of a device ---------------------------------------------------

TEST_ON(who_uses_a_copy_stream_keeps_the_device_open, TEST_NEEDS_DISCRETE) {
  tarn_stream *stream = copy_stream(device, TARN__COPY_STREAM_IN);
  assert_status(tarn_device_close(device), TARN_E_STATE);
  assert_error_says("synced buffers copy there");
  assert_ok(tarn_stream_query(stream));  // it is still there
  tarn__copy_streams_release_copy_stream(stream);
}

TEST_ON(who_has_an_event_keeps_the_device_open, TEST_NEEDS_DISCRETE) {
  tarn__synced_event *event = take_event(device);
  assert_status(tarn_device_close(device), TARN_E_STATE);
  assert_error_says("1 events");
  tarn__copy_streams_give_event(event);
}

// An allocation keeps the device open; copies go on with fresh streams.
TEST_ON(a_copy_streams_outlives_an_objection, TEST_NEEDS_DISCRETE) {
  tarn_addr held = sim_take(device, 1);
  tarn__copy_streams_release_copy_stream(
      copy_stream(device, TARN__COPY_STREAM_IN));
  tarn__copy_streams_give_event(take_event(device));
  assert_status(tarn_device_close(device), TARN_E_STATE);
  assert_error_says("1 allocations");
  tarn_stream *stream = copy_stream(device, TARN__COPY_STREAM_IN);
  assert_ok(tarn_stream_query(stream));
  tarn__copy_streams_release_copy_stream(stream);
  tarn__copy_streams_give_event(take_event(device));
  sim_give(device, held, 1);
}

// --- failures --------------------------------------------------------------

static void use_a_copy_streams(void *context) {
  (void)context;
  tarn_device *device = NULL;
  tarn_stream *in = NULL;
  tarn_stream *out = NULL;
  tarn__synced_event *event = NULL;
  if (tarn_device_open("sim:0", &device) != TARN_OK) return;
  tarn_status status =
      tarn__copy_streams_copy_stream(device, TARN__COPY_STREAM_IN, &in);
  require((status == TARN_OK) == (in != NULL));
  status = tarn__copy_streams_copy_stream(device, TARN__COPY_STREAM_OUT, &out);
  require((status == TARN_OK) == (out != NULL));
  status = tarn__copy_streams_take_event(device, &event);
  require((status == TARN_OK) == (event != NULL));
  tarn__copy_streams_give_event(event);
  tarn__copy_streams_release_copy_stream(out);
  tarn__copy_streams_release_copy_stream(in);
  assert_ok(tarn_device_close(device));
}

TEST(host_memory_that_runs_out) {
  faults_install();
  use_a_copy_streams(NULL);  // opens cpu:0, for good
  ck_assert_uint_gt(faults_sweep(use_a_copy_streams, NULL), 8);
}

// Whatever call of the device fails, nothing stays behind.
TEST(calls_of_the_device_that_fail) {
  size_t met = 0;
  tarn_device *device = sim_open("sim:0");
  for (int n = 1; n <= 20; n++) {
    char plan[32];
    tarn_stream *stream = NULL;
    tarn__synced_event *event = NULL;
    snprintf(plan, sizeof plan, "*@%d", n);
    assert_ok(tarn_sim_faults(plan));
    if (tarn__copy_streams_copy_stream(device, TARN__COPY_STREAM_IN, &stream) !=
        TARN_OK) {
      met++;
    }
    if (tarn__copy_streams_take_event(device, &event) != TARN_OK) met++;
    tarn__copy_streams_give_event(event);
    tarn__copy_streams_release_copy_stream(stream);
    assert_ok(tarn_sim_faults(NULL));
    require(tarn_device_synchronize(device) == TARN_OK);
  }
  ck_assert_uint_gt(met, 0);
  assert_ok(tarn_device_close(device));
}

// --- threads ---------------------------------------------------------------

enum { THREADS = 4 };

typedef struct worker {
  pthread_t thread;
  pthread_barrier_t *barrier;
  tarn_device *device;
  tarn__synced_copy_streams *copy_streams;
  tarn_stream *stream;
} worker;

static void *attach_and_use(void *context) {
  worker *w = context;
  pthread_barrier_wait(w->barrier);
  require(tarn__copy_streams_of(w->device, &w->copy_streams) == TARN_OK);
  for (int i = 0; i < 20; i++) {
    tarn__synced_event *event = NULL;
    tarn_stream *stream = NULL;
    require(tarn__copy_streams_copy_stream(w->device, TARN__COPY_STREAM_IN,
                                           &stream) == TARN_OK);
    require(tarn__copy_streams_take_event(w->device, &event) == TARN_OK);
    require(tarn_event_record(event->event, stream) == TARN_OK);
    require(tarn_event_synchronize(event->event) == TARN_OK);
    tarn__copy_streams_give_event(event);
    w->stream = stream;
    tarn__copy_streams_release_copy_stream(stream);
  }
  return NULL;
}

TEST_LOOP(threads_that_come_at_once_share_one, LIBRARY_DEVICES) {
  add_device(test_devices[_i]);
  for (int round = 0; round < EFFORT(100, 20); round++) {
    pthread_barrier_t barrier;
    worker workers[THREADS];
    tarn_device *device = sim_open(test_devices[_i]);
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
      workers[i] = (worker){.barrier = &barrier, .device = device};
      require(pthread_create(&workers[i].thread, NULL, attach_and_use,
                             &workers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
      require(pthread_join(workers[i].thread, NULL) == 0);
    for (int i = 1; i < THREADS; i++) {
      ck_assert_ptr_eq(workers[i].copy_streams, workers[0].copy_streams);
      ck_assert_ptr_eq(workers[i].stream, workers[0].stream);
    }
    pthread_barrier_destroy(&barrier);
    assert_ok(tarn_device_close(device));
  }
}

// One thread breaks the copy stream again and again while others use it.
static void *break_copy_streams(void *context) {
  worker *w = context;
  char byte = 0;
  pthread_barrier_wait(w->barrier);
  for (int i = 0; i < EFFORT(300, 50); i++) {
    tarn_stream *stream = NULL;
    require(tarn__copy_streams_copy_stream(w->device, TARN__COPY_STREAM_IN,
                                           &stream) == TARN_OK);
    // To address 64 nothing can be copied.
    (void)!tarn_copy_h2d(w->device, 64, &byte, 1, stream);
    tarn__copy_streams_release_copy_stream(stream);
  }
  return NULL;
}

TEST(threads_whose_copy_stream_fails) {
  pthread_barrier_t barrier;
  worker workers[THREADS];
  tarn_device *device = sim_open("sim:0");
  pthread_barrier_init(&barrier, NULL, THREADS);
  for (int i = 0; i < THREADS; i++) {
    workers[i] = (worker){.barrier = &barrier, .device = device};
    require(pthread_create(&workers[i].thread, NULL, break_copy_streams,
                           &workers[i]) == 0);
  }
  for (int i = 0; i < THREADS; i++)
    require(pthread_join(workers[i].thread, NULL) == 0);
  pthread_barrier_destroy(&barrier);
  assert_ok(tarn_device_close(device));
  ck_assert_uint_gt(sim_misuses(), 0);
}

// --- forks -----------------------------------------------------------------

static void in_child(tarn_device *device, tarn_stream *held,
                     tarn__synced_event *event) {
  tarn_stream *stream = (tarn_stream *)&stream;
  tarn__synced_event *other = (tarn__synced_event *)&other;
  size_t before = tarn_host_memory();
  MUST(tarn__copy_streams_copy_stream(device, TARN__COPY_STREAM_IN, &stream) ==
       TARN_E_STATE);
  MUST(stream == NULL);
  MUST(tarn__copy_streams_take_event(device, &other) == TARN_E_STATE);
  MUST(other == NULL);
  tarn__copy_streams_release_copy_stream(held);
  MUST(tarn_device_close(device) == TARN_OK);
  tarn__copy_streams_give_event(event);  // of a device that is gone
  MUST(tarn_host_memory() < before);
}

TEST_ON(a_child_only_frees, TEST_NEEDS_DISCRETE) {
  tarn_stream *held = copy_stream(device, TARN__COPY_STREAM_IN);
  tarn__synced_event *event = take_event(device);
  tarn__copy_streams_give_event(take_event(device));
  pid_t child = fork();
  if (child == 0) {
    child_begin(30);
    in_child(device, held, event);
    _exit(0);
  }
  assert_child_ended_well(child);
  tarn__copy_streams_give_event(event);
  tarn__copy_streams_release_copy_stream(held);
}
