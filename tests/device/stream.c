// Streams, events, callbacks, and failures that stick.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "kit.h"

// --- streams ---------------------------------------------------------------

TEST(serials_are_never_reused) {
  tarn_device *device = open_fake();
  uint64_t last = 0;
  for (int i = 0; i < 100; i++) {
    tarn_stream *stream = stream_on(device);
    ck_assert_uint_gt(tarn_stream_serial(stream), last);
    ck_assert_ptr_eq(tarn_stream_device(stream), device);
    ck_assert_ptr_nonnull(tarn_stream_native(stream));
    last = tarn_stream_serial(stream);
    end_stream(stream);
  }
  assert_ok(tarn_stream_destroy(NULL));
}

TEST(a_serial_is_found_among_many) {
  enum { STREAMS = 2000 };
  static tarn_stream *streams[STREAMS];
  static uint64_t serials[STREAMS];
  tarn_device *device = open_fake();
  end_stream(stream_on(device));
  size_t before = tarn_host_memory();
  for (int i = 0; i < STREAMS; i++) {
    assert_ok(tarn_stream_create(device, &streams[i]));
    serials[i] = tarn_stream_serial(streams[i]);
  }
  for (int i = 0; i < STREAMS; i += 2)
    assert_ok(tarn_stream_destroy(streams[i]));
  for (int i = 0; i < STREAMS; i++) {
    require(tarn__stream_is_gone(serials[i]) == (i % 2 == 0));
    tarn_stream *pinned = tarn__stream_pin(serials[i]);
    require(pinned == (i % 2 == 0 ? NULL : streams[i]));
    if (pinned != NULL) tarn__stream_unpin(pinned);
  }
  for (int i = 0; i < STREAMS; i += 2)
    assert_ok(tarn_stream_create(device, &streams[i]));
  assert_ok(tarn_device_synchronize(device));
  for (int i = 0; i < STREAMS; i++)
    assert_ok(tarn_stream_destroy(streams[i]));
  ck_assert_uint_eq(tarn_host_memory(), before);
}

// A departed stream captures nothing more, and one that is gone did not.
TEST(a_stream_tells_that_it_captures) {
  fake_ext.there = true;
  tarn_device *device = open_fake();
  tarn_stream *stream = stream_on(device);
  tarn_stream *other = stream_on(device);
  uint64_t serial = tarn_stream_serial(stream);
  ck_assert(!tarn__stream_is_capturing(serial));
  fake_ext.capturing = tarn_stream_native(stream);
  ck_assert(tarn__stream_is_capturing(serial));
  ck_assert(!tarn__stream_is_capturing(tarn_stream_serial(other)));
  fake_ext.refusing = FAKE_SLOT(stream_capturing);
  fake_ext.answer = TARN_E_UNSUPPORTED;
  ck_assert(!tarn__stream_is_capturing(serial));
  fake_ext.refusing = 0;
  end_stream(stream);
  ck_assert(!tarn__stream_is_capturing(serial));
  end_stream(other);
}

static struct {
  tarn_stream *streams[5];
  size_t count;
  uint64_t seen[5];
} walk;

// The first and the one behind it leave, and another comes.
static tarn_status visit(uint64_t serial) {
  if (walk.count == 0) {
    tarn_device *device = tarn_stream_device(walk.streams[0]);
    end_stream(walk.streams[0]);
    end_stream(walk.streams[1]);
    walk.streams[0] = stream_on(device);
    walk.streams[1] = NULL;
  }
  walk.seen[walk.count++] = serial;
  return walk.count == 2 ? TARN_E_DEVICE : TARN_OK;
}

TEST(a_walk_goes_on_where_streams_have_left) {
  tarn_device *device = open_fake();
  tarn_device *other = open_device("fake:1");
  uint64_t serials[5];
  for (int i = 0; i < 5; i++) {
    walk.streams[i] = stream_on(i == 2 ? other : device);
    serials[i] = tarn_stream_serial(walk.streams[i]);
  }
  assert_status(tarn__streams_each(device, visit), TARN_E_DEVICE);
  ck_assert_uint_eq(walk.count, 3);
  ck_assert_uint_eq(walk.seen[0], serials[0]);
  ck_assert_uint_eq(walk.seen[1], serials[3]);
  ck_assert_uint_eq(walk.seen[2], serials[4]);
  for (int i = 0; i < 5; i++)
    if (walk.streams[i] != NULL) end_stream(walk.streams[i]);
}

TEST_LOOP(query_says_pending_until_it_is_done, 2) {
  fake.query_answer = _i == 0 ? C_WARNING : C_FAILED;
  tarn_device *device = open_fake();
  tarn_stream *stream = stream_on(device);
  static int cell;
  assert_ok(tarn_stream_query(stream));
  queue_write(stream, &cell, &one);
  assert_status(tarn_stream_query(stream), TARN_PENDING);
  ck_assert_int_eq(cell, 0);
  assert_ok(tarn_stream_synchronize(stream));
  ck_assert_int_eq(cell, 1);
  assert_ok(tarn_stream_query(stream));
}

TEST(destroying_does_what_is_queued) {
  tarn_device *device = open_fake();
  tarn_stream *stream = stream_on(device);
  static int cell;
  queue_write(stream, &cell, &two);
  end_stream(stream);
  ck_assert_int_eq(cell, 2);
}

static const uint64_t waiting_abilities[] = {0,
                                             FAKE_MISSES(synchronize_device)};

TEST_LOOP(synchronizing_a_device_waits_for_its_streams, 2) {
  fake.missing = waiting_abilities[_i];
  tarn_device *device = open_fake();
  tarn_device *second = open_device("fake:1");
  tarn_stream *streams[3] = {stream_on(device), stream_on(second),
                             stream_on(device)};
  static int cells[3];
  for (int i = 0; i < 3; i++)
    queue_write(streams[i], &cells[i], &one);
  assert_ok(tarn_device_synchronize(device));
  ck_assert_int_eq(cells[0], 1);
  ck_assert_int_eq(cells[1], 0);
  ck_assert_int_eq(cells[2], 1);
  for (int i = 0; i < 3; i++)
    end_stream(streams[i]);
  assert_ok(tarn_device_synchronize(device));
}

// --- failures --------------------------------------------------------------

TEST(the_first_failure_sticks_with_its_text) {
  tarn_device *device = open_fake();
  tarn_stream *stream = stream_on(device);
  tarn_event *event = event_on(device);
  static int cell;
  fake.copy_answer = C_ERROR;
  assert_status(tarn_copy_h2d(device, (tarn_addr)(uintptr_t)&cell, &one,
                              sizeof one, stream),
                TARN_E_DEVICE);
  char first[512];
  strcpy(first, tarn_last_error());
  fake.copy_answer = C_SUCCESS;

  tarn_addr addr = 0;
  assert_status(tarn_device_allocate(TARN_HOST, 0, &addr), TARN_E_INVALID);
  assert_status(tarn_stream_synchronize(stream), TARN_E_DEVICE);
  ck_assert_str_eq(tarn_last_error(), first);
  assert_status(tarn_stream_query(stream), TARN_E_DEVICE);
  assert_status(tarn_copy_h2d(device, 4096, &one, 4, stream), TARN_E_DEVICE);
  ck_assert_str_eq(tarn_last_error(), first);
  assert_status(tarn_event_record(event, stream), TARN_E_DEVICE);
  assert_status(tarn_event_synchronize(event), TARN_E_DEVICE);
  ck_assert_str_eq(tarn_last_error(), first);
  assert_status(tarn_event_query(event), TARN_E_DEVICE);

  // Another stream of the device is well, and can wait behind the failed one.
  tarn_stream *other = stream_on(device);
  assert_status(tarn_stream_wait_event(other, event), TARN_E_DEVICE);
  assert_ok(tarn_stream_join(other, tarn_stream_serial(stream)));
  assert_ok(tarn_stream_synchronize(other));
  end_stream(other);
  end_event(event);
  end_failed_stream(stream);
}

TEST(synchronizing_waits_even_behind_a_failure) {
  tarn_device *device = open_fake();
  tarn_stream *stream = stream_on(device);
  static int cell;
  fake.copy_answer = C_ERROR;  // says so, and queues it all the same
  assert_status(tarn_copy_h2d(device, (tarn_addr)(uintptr_t)&cell, &one,
                              sizeof one, stream),
                TARN_E_DEVICE);
  ck_assert_int_eq(cell, 0);
  assert_status(tarn_stream_synchronize(stream), TARN_E_DEVICE);
  ck_assert_int_eq(cell, 1);
  end_failed_stream(stream);
}

TEST(a_bad_argument_does_not_stick) {
  tarn_device *device = open_fake();
  tarn_stream *stream = stream_on(device);
  assert_status(tarn_copy_h2d(device, 0, &one, 4, stream), TARN_E_INVALID);
  assert_status(tarn_stream_add_callback(stream, NULL, NULL), TARN_E_INVALID);
  assert_ok(tarn_stream_synchronize(stream));
  end_stream(stream);
  assert_status(tarn_stream_synchronize(NULL), TARN_E_INVALID);
}

TEST(what_could_not_be_queued_does_not_stick) {
  tarn_device *device = open_fake();
  tarn_stream *stream = stream_on(device);
  static int cell;
  fake.copy_answer = C_FAILED;
  assert_status(tarn_copy_h2d(device, (tarn_addr)(uintptr_t)&cell, &one,
                              sizeof one, stream),
                TARN_E_NOMEM);
  fake.copy_answer = C_SUCCESS;
  assert_ok(tarn_stream_synchronize(stream));
  queue_write(stream, &cell, &two);
  end_stream(stream);
  ck_assert_int_eq(cell, 2);
}

// --- events ----------------------------------------------------------------

TEST(an_event_is_a_mark_in_its_stream) {
  tarn_device *device = open_fake();
  tarn_stream *stream = stream_on(device);
  tarn_event *event = event_on(device);
  static int cells[2];
  assert_ok(tarn_event_query(event));  // never recorded
  assert_ok(tarn_event_synchronize(event));
  queue_write(stream, &cells[0], &one);
  assert_ok(tarn_event_record(event, stream));
  queue_write(stream, &cells[1], &two);
  assert_status(tarn_event_query(event), TARN_PENDING);
  assert_ok(tarn_event_synchronize(event));
  ck_assert_int_eq(cells[0], 1);
  ck_assert_int_eq(cells[1], 0);
  assert_ok(tarn_event_query(event));
  end_event(event);
  assert_ok(tarn_event_destroy(NULL));
}

TEST(a_stream_waits_for_another) {
  tarn_device *device = open_fake();
  tarn_stream *first = stream_on(device);
  tarn_stream *second = stream_on(device);
  tarn_event *event = event_on(device);
  static int source;
  static int copy;
  queue_write(first, &source, &two);
  assert_ok(tarn_event_record(event, first));
  assert_ok(tarn_stream_wait_event(second, event));
  end_event(event);  // the wait stays
  queue_write(second, &copy, &source);
  assert_ok(tarn_stream_synchronize(second));
  ck_assert_int_eq(copy, 2);
}

TEST(join_by_serial_queues_a_wait) {
  tarn_device *device = open_fake();
  tarn_stream *first = stream_on(device);
  tarn_stream *second = stream_on(device);
  uint64_t serial = tarn_stream_serial(first);
  static int source;
  static int copy;
  queue_write(first, &source, &one);
  assert_ok(tarn_stream_join(second, serial));
  ck_assert_int_eq(source, 0);  // the host did not wait
  queue_write(second, &copy, &source);
  assert_ok(tarn_stream_synchronize(second));
  ck_assert_int_eq(copy, 1);

  queue_write(first, &source, &two);
  assert_ok(tarn_stream_join(NULL, serial));
  ck_assert_int_eq(source, 2);  // here it did
  assert_ok(tarn_stream_join(first, serial));
  end_stream(first);
  assert_ok(tarn_stream_join(second, serial));  // gone: nothing to wait for
  assert_ok(tarn_stream_join(NULL, 0));
}

TEST(across_plugins_the_host_waits) {
  tarn_device *device = open_fake();
  tarn_device *cpu = open_device("cpu:0");
  tarn_stream *first = stream_on(device);
  tarn_stream *second = stream_on(cpu);
  static int cell;
  queue_write(first, &cell, &one);
  assert_ok(tarn_stream_join(second, tarn_stream_serial(first)));
  ck_assert_int_eq(cell, 1);
}

TEST(without_handles_recording_waits) {
  fake.null_handles = true;
  tarn_device *device = open_fake();
  tarn_stream *stream = stream_on(device);
  tarn_event *event = event_on(device);
  static int cell;
  queue_write(stream, &cell, &one);
  ck_assert_int_eq(cell, 1);
  ck_assert_ptr_null(tarn_stream_native(stream));
  assert_ok(tarn_event_record(event, stream));
  assert_ok(tarn_event_query(event));
  assert_ok(tarn_stream_wait_event(stream, event));
}

TEST(without_events_recording_waits) {
  fake.missing = MISSES_EVENTS;
  tarn_device *device = open_fake();
  tarn_stream *stream = stream_on(device);
  tarn_event *event = event_on(device);
  static int cell;
  queue_write(stream, &cell, &one);
  ck_assert_int_eq(cell, 0);
  assert_ok(tarn_event_record(event, stream));
  ck_assert_int_eq(cell, 1);
  assert_ok(tarn_event_query(event));
}

TEST(events_of_other_devices_and_bad_ones_are_refused) {
  tarn_device *a = open_device("fake:0");
  tarn_device *b = open_device("fake:1");
  tarn_stream *stream = stream_on(a);
  tarn_event *event = event_on(b);
  assert_status(tarn_event_record(event, stream), TARN_E_INVALID);
  assert_status(tarn_event_record(NULL, stream), TARN_E_INVALID);
  assert_status(tarn_event_record(event, NULL), TARN_E_INVALID);
  assert_status(tarn_event_query(NULL), TARN_E_INVALID);
  assert_status(tarn_stream_wait_event(stream, NULL), TARN_E_INVALID);
  assert_ok(tarn_event_query(event));
}

// --- callbacks -------------------------------------------------------------

typedef struct call {
  atomic_int count;
  tarn_status status;
} call;

static void on_done(void *context, tarn_status status) {
  call *c = context;
  c->status = status;
  atomic_fetch_add(&c->count, 1);
}

static const uint64_t callback_abilities[] = {0,
                                              FAKE_MISSES(stream_add_callback)};

TEST_LOOP(a_callback_comes_behind_what_is_queued, 2) {
  fake.missing = callback_abilities[_i];
  tarn_device *device = open_fake();
  tarn_stream *stream = stream_on(device);
  static int cell;
  call c = {.status = TARN_E_STATE};
  queue_write(stream, &cell, &one);
  assert_ok(tarn_stream_add_callback(stream, on_done, &c));
  assert_ok(tarn_stream_synchronize(stream));
  ck_assert_int_eq(cell, 1);
  ck_assert_int_eq(c.count, 1);
  ck_assert_int_eq(c.status, TARN_OK);
}

TEST(callbacks_on_cpu_come_in_order) {
  tarn_device *cpu = open_device("cpu:0");
  tarn_stream *stream = stream_on(cpu);
  call c = {.status = TARN_E_STATE};
  for (int i = 0; i < 200; i++) {
    assert_ok(tarn_stream_add_callback(stream, on_done, &c));
  }
  assert_ok(tarn_stream_synchronize(stream));
  ck_assert_int_eq(c.count, 200);
  ck_assert_int_eq(c.status, TARN_OK);
}

typedef struct caller {
  tarn_device *device;
  tarn_stream *stream;
  tarn_event *event;
  tarn_status statuses[9];
} caller;

static void call_the_library(void *context, tarn_status status) {
  (void)status;
  caller *c = context;
  tarn_addr addr = 0;
  tarn_device *device = NULL;
  c->statuses[0] = tarn_stream_synchronize(c->stream);
  c->statuses[1] = tarn_event_synchronize(c->event);
  c->statuses[2] = tarn_device_open("cpu:0", &device);
  c->statuses[3] = tarn_device_close(c->device);
  c->statuses[4] = tarn_device_allocate(TARN_HOST, 64, &addr);
  c->statuses[5] = tarn_stream_destroy(c->stream);
  c->statuses[6] = tarn_stream_join(NULL, tarn_stream_serial(c->stream));
  c->statuses[7] = tarn_stream_join(NULL, UINT64_MAX);  // gone, or never was
  c->statuses[8] = tarn_event_destroy(c->event);
}

// A callback that waited for its own stream would wait for ever.
TEST(a_callback_that_calls_the_library_is_refused) {
  tarn_device *cpu = open_device("cpu:0");
  caller c = {cpu, stream_on(cpu), event_on(cpu), {TARN_OK}};
  assert_ok(tarn_stream_add_callback(c.stream, call_the_library, &c));
  assert_ok(tarn_stream_synchronize(c.stream));
  for (int i = 0; i < 9; i++)
    ck_assert_int_eq(c.statuses[i], TARN_E_STATE);
  assert_ok(tarn_stream_synchronize(c.stream));  // the thread is free again
}

// --- threads ---------------------------------------------------------------

enum { THREADS = 4, ROUNDS = 300, CELLS = 64 };

typedef struct worker {
  tarn_device *device;
  tarn_stream *shared;
  tarn_stream *own;
  long sum;
} worker;

// Every thread has a chain of copies of its own, some of them on a stream of
// its own behind the shared one.
static void *work(void *context) {
  worker *w = context;
  long cells[CELLS] = {1};
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 1; i < CELLS; i++) {
      tarn_stream *stream = i % 2 ? w->shared : w->own;
      tarn_stream *other = i % 2 ? w->own : w->shared;
      if (tarn_stream_join(stream, tarn_stream_serial(other)) != TARN_OK) {
        return NULL;
      }
      if (tarn_copy_d2d(w->device, (tarn_addr)(uintptr_t)&cells[i],
                        (tarn_addr)(uintptr_t)&cells[i - 1], sizeof cells[0],
                        stream) != TARN_OK) {
        return NULL;
      }
    }
    if (tarn_stream_synchronize(w->shared) != TARN_OK) return NULL;
    if (tarn_stream_synchronize(w->own) != TARN_OK) return NULL;
    w->sum += cells[CELLS - 1];
    memset(cells, 0, sizeof cells);
    cells[0] = 1;
  }
  return NULL;
}

TEST(threads_share_a_stream_and_chain_their_own) {
  tarn_device *cpu = open_device("cpu:0");
  tarn_stream *shared = stream_on(cpu);
  worker workers[THREADS] = {{0}};
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) {
    workers[i] = (worker){cpu, shared, stream_on(cpu), 0};
    pthread_create(&threads[i], NULL, work, &workers[i]);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    ck_assert_int_eq(workers[i].sum, ROUNDS);
    end_stream(workers[i].own);
  }
}

static void *make_and_end(void *context) {
  tarn_device *device = context;
  for (int i = 0; i < 200; i++) {
    tarn_device *again = NULL;
    tarn_stream *stream = NULL;
    if (tarn_device_open("fake:0", &again) != TARN_OK || again != device ||
        tarn_stream_create(again, &stream) != TARN_OK ||
        tarn_stream_join(NULL, tarn_stream_serial(stream) - 1) != TARN_OK ||
        tarn_stream_destroy(stream) != TARN_OK ||
        tarn_device_close(again) != TARN_OK) {
      return (void *)1;
    }
  }
  return NULL;
}

TEST(streams_come_and_go_while_others_join_them) {
  tarn_device *device = open_fake();
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) {
    pthread_create(&threads[i], NULL, make_and_end, device);
  }
  for (int i = 0; i < THREADS; i++) {
    void *failed = NULL;
    pthread_join(threads[i], &failed);
    ck_assert_ptr_null(failed);
  }
  close_device(device);
  ck_assert_uint_eq(fake_seen.streams, 0);
  ck_assert_uint_eq(fake_seen.events, 0);
}
