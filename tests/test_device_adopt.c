// Streams and events of others: one object for one handle, counted; and what is
// left of a stream that was given back while it is at work.
//
// The native streams here are made by the plug-in's own functions, as a runtime
// makes them that has the driver besides Tarn. The fake plug-in runs what is
// queued when somebody waits for it: nothing is over by chance.
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "device/device.h"
#include "support/child.h"
#include "support/fake_extension.h"
#include "support/fake_plugin.h"
#include "support/faults.h"
#include "support/hold.h"
#include "support/run.h"
#include "tarn/pool.h"

#define MISSES_EVENTS                                            \
  (FAKE_MISSES(create_event) | FAKE_MISSES(record_event) |       \
   FAKE_MISSES(destroy_event) | FAKE_MISSES(synchronize_event) | \
   FAKE_MISSES(query_event) | FAKE_MISSES(stream_wait_event))
#define MISSES_STREAMS                                           \
  (FAKE_MISSES(create_stream) | FAKE_MISSES(destroy_stream) |    \
   FAKE_MISSES(synchronize_stream) | FAKE_MISSES(query_stream) | \
   FAKE_MISSES(stream_add_callback))

static tarn_device *open_named(const char *name) {
  tarn_device *device = NULL;
  assert_ok(tarn_device_open(name, &device));
  return device;
}

static tarn_device *open_fake(void) {
  fake_add();
  return open_named("fake:0");
}

// --- the runtime's side ----------------------------------------------------

static C_Stream native_stream(tarn_device *device) {
  C_Stream native = NULL;
  ck_assert_int_eq(device->abi->create_stream(&device->handle, &native),
                   C_SUCCESS);
  return native;
}

static void end_native_stream(tarn_device *device, C_Stream native) {
  ck_assert_int_eq(device->abi->destroy_stream(&device->handle, native),
                   C_SUCCESS);
}

static C_Event native_event(tarn_device *device) {
  C_Event native = NULL;
  ck_assert_int_eq(device->abi->create_event(&device->handle, &native),
                   C_SUCCESS);
  return native;
}

static void end_native_event(tarn_device *device, C_Event native) {
  ck_assert_int_eq(device->abi->destroy_event(&device->handle, native),
                   C_SUCCESS);
}

static const int one = 1;

// Puts 1 into |*cell|, behind what is on |native|.
static void queue_write(tarn_device *device, C_Stream native, int *cell) {
  ck_assert_int_eq(device->abi->async_memory_copy_h2d(&device->handle, native,
                                                      cell, &one, sizeof one),
                   C_SUCCESS);
}

static tarn_stream *adopt(tarn_device *device, void *native) {
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_adopt(device, native, &stream));
  ck_assert_ptr_nonnull(stream);
  return stream;
}

// --- one object for one handle ---------------------------------------------

START_TEST(the_same_handle_gives_the_same_stream) {
  tarn_device *device = open_fake();
  C_Stream native = native_stream(device);
  C_Stream other = native_stream(device);
  tarn_stream *stream = adopt(device, native);
  tarn_stream *another = adopt(device, other);
  ck_assert_ptr_eq(adopt(device, native), stream);
  ck_assert_ptr_ne(another, stream);
  ck_assert_ptr_eq(tarn_stream_native(stream), native);
  ck_assert_ptr_eq(tarn_stream_device(stream), device);
  ck_assert_uint_ne(tarn_stream_serial(stream), tarn_stream_serial(another));
  assert_ok(tarn_stream_destroy(stream));
  ck_assert_ptr_eq(adopt(device, native), stream);
  assert_ok(tarn_stream_destroy(stream));
  assert_status(tarn_device_close(device), TARN_E_STATE);
  assert_ok(tarn_stream_destroy(stream));
  assert_ok(tarn_stream_destroy(another));
  ck_assert_uint_eq(fake_seen.streams, 2);
  ck_assert_uint_eq(fake_seen.events, 0);
  end_native_stream(device, native);
  end_native_stream(device, other);
  assert_ok(tarn_device_close(device));
}
END_TEST

START_TEST(handles_of_two_devices_are_apart) {
  tarn_device *device = open_fake();
  tarn_device *second = open_named("fake:1");
  C_Stream native = native_stream(device);
  tarn_stream *stream = adopt(device, native);
  tarn_stream *other = adopt(second, native);
  ck_assert_ptr_ne(stream, other);
  ck_assert_ptr_eq(tarn_stream_device(other), second);
  assert_ok(tarn_stream_destroy(other));
  assert_ok(tarn_stream_destroy(stream));
  end_native_stream(device, native);
  assert_ok(tarn_device_close(second));
  assert_ok(tarn_device_close(device));
}
END_TEST

START_TEST(a_stream_that_tarn_made_is_counted_too) {
  int cell = 0;
  tarn_device *device = open_fake();
  tarn_stream *made = NULL;
  assert_ok(tarn_stream_create(device, &made));
  ck_assert_ptr_eq(adopt(device, tarn_stream_native(made)), made);
  queue_write(device, tarn_stream_native(made), &cell);
  assert_ok(tarn_stream_destroy(made));
  ck_assert_int_eq(cell, 0);  // that was not the last one
  ck_assert_uint_eq(fake_seen.streams, 1);
  assert_ok(tarn_stream_destroy(made));
  ck_assert_int_eq(cell, 1);
  ck_assert_uint_eq(fake_seen.streams, 0);
  assert_ok(tarn_device_close(device));
}
END_TEST

START_TEST(many_streams_are_found_and_nothing_is_kept) {
  enum { STREAMS = 2000 };
  static C_Stream natives[STREAMS];
  static tarn_stream *streams[STREAMS];
  tarn_device *device = open_fake();
  size_t before = tarn_host_memory();
  for (int i = 0; i < STREAMS; i++) {
    natives[i] = native_stream(device);
    streams[i] = adopt(device, natives[i]);
  }
  for (int i = 0; i < STREAMS; i++) {
    require(adopt(device, natives[i]) == streams[i]);
    assert_ok(tarn_stream_destroy(streams[i]));
  }
  for (int i = 0; i < STREAMS; i++) {
    assert_ok(tarn_stream_destroy(streams[i]));
    end_native_stream(device, natives[i]);
  }
  ck_assert_uint_eq(tarn_host_memory(), before);
  assert_ok(tarn_device_close(device));
}
END_TEST

// --- what cannot be adopted ------------------------------------------------

START_TEST(without_streams_none_is_adopted) {
  fake.missing = MISSES_STREAMS | MISSES_EVENTS;
  tarn_device *device = open_fake();
  tarn_stream *stream = (tarn_stream *)&one;
  assert_status(tarn_stream_adopt(device, &stream, &stream),
                TARN_E_UNSUPPORTED);
  ck_assert_ptr_null(stream);
  assert_error_says("fake:0 has no streams");
  assert_ok(tarn_device_close(device));
}
END_TEST

START_TEST(without_a_slot_null_is_no_stream) {
  tarn_device *device = open_fake();
  tarn_stream *stream = (tarn_stream *)&one;
  assert_status(tarn_stream_adopt(device, NULL, &stream), TARN_E_UNSUPPORTED);
  ck_assert_ptr_null(stream);
  assert_error_says("default_stream");
  tarn_event *event = (tarn_event *)&one;
  assert_status(tarn_event_adopt(device, NULL, &event), TARN_E_INVALID);
  ck_assert_ptr_null(event);
  assert_status(tarn_stream_adopt(NULL, &stream, &stream), TARN_E_INVALID);
  assert_status(tarn_event_adopt(NULL, &event, &event), TARN_E_INVALID);
  assert_ok(tarn_device_close(device));
}
END_TEST

START_TEST(without_events_none_is_adopted) {
  fake.missing = MISSES_EVENTS;
  tarn_device *device = open_fake();
  tarn_event *event = (tarn_event *)&one;
  assert_status(tarn_event_adopt(device, &event, &event), TARN_E_UNSUPPORTED);
  ck_assert_ptr_null(event);
  assert_error_says("fake:0 has no events");
  assert_ok(tarn_device_close(device));
}
END_TEST

// --- the default stream ----------------------------------------------------

START_TEST(null_is_the_default_stream_of_the_plug_in) {
  int default_stream = 0;
  fake_ext.there = true;
  fake_ext.stream = &default_stream;
  tarn_device *device = open_fake();
  ck_assert_uint_ne(
      tarn_device_extensions(device) & TARN_EXTENSION_DEFAULT_STREAM, 0);
  C_Stream native = native_stream(device);
  fake_ext.stream = native;
  tarn_stream *stream = adopt(device, NULL);
  ck_assert_ptr_eq(tarn_stream_native(stream), native);
  ck_assert_ptr_eq(adopt(device, native), stream);
  fake_ext_seen.called = 0;
  ck_assert_ptr_eq(adopt(device, NULL), stream);
  ck_assert_uint_eq(fake_ext_seen.called, 0);  // asked for once
  for (int i = 0; i < 3; i++)
    assert_ok(tarn_stream_destroy(stream));
  end_native_stream(device, native);
  assert_ok(tarn_device_close(device));
}
END_TEST

START_TEST(sim_has_a_default_stream) {
  unsigned char bytes[4096] = {7};
  unsigned char back[4096] = {0};
  tarn_device *sim = open_named("sim:0");
  tarn_stream *stream = adopt(sim, NULL);
  ck_assert_ptr_nonnull(tarn_stream_native(stream));
  tarn_pool *pool = NULL;
  tarn_block block;
  assert_ok(tarn_pool_of(tarn_place_on(sim), &pool));
  assert_ok(tarn_pool_alloc(pool, sizeof bytes, 0, stream, &block));
  assert_ok(tarn_copy_h2d(sim, block.address, bytes, sizeof bytes, stream));
  assert_ok(tarn_copy_d2h(sim, back, block.address, sizeof back, stream));
  assert_ok(tarn_stream_synchronize(stream));
  ck_assert_int_eq(back[0], 7);
  assert_ok(tarn_pool_free(&block, stream));
  assert_ok(tarn_stream_destroy(stream));
  assert_ok(tarn_device_synchronize(sim));
  assert_ok(tarn_device_close(sim));
}
END_TEST

// --- giving back -----------------------------------------------------------

START_TEST(giving_back_does_not_wait) {
  int cell = 0;
  tarn_device *device = open_fake();
  C_Stream native = native_stream(device);
  tarn_stream *stream = adopt(device, native);
  uint64_t serial = tarn_stream_serial(stream);
  queue_write(device, native, &cell);
  size_t waits = fake_seen.waits;
  assert_ok(tarn_stream_destroy(stream));
  ck_assert_uint_eq(fake_seen.waits, waits);
  ck_assert_int_eq(cell, 0);
  ck_assert_uint_eq(fake_seen.streams, 1);  // its owner's
  ck_assert(!tarn__stream_is_gone(serial));
  ck_assert(tarn__stream_is_departed(serial));
  ck_assert(!tarn__stream_is_idle(serial));
  ck_assert_ptr_null(tarn__stream_pin(serial));

  // The same handle is another stream now.
  stream = adopt(device, native);
  ck_assert_uint_ne(tarn_stream_serial(stream), serial);
  assert_ok(tarn_stream_destroy(stream));

  assert_ok(tarn_stream_join(NULL, serial));
  ck_assert_int_eq(cell, 1);
  ck_assert(tarn__stream_is_gone(serial));
  assert_ok(tarn_device_synchronize(device));
  end_native_stream(device, native);
  assert_ok(tarn_device_close(device));
  ck_assert_uint_eq(fake_seen.events, 0);
}
END_TEST

START_TEST(a_stream_that_was_idle_is_gone_at_once) {
  tarn_device *device = open_fake();
  C_Stream native = native_stream(device);
  tarn_stream *stream = adopt(device, native);
  uint64_t serial = tarn_stream_serial(stream);
  assert_ok(tarn_stream_destroy(stream));
  ck_assert(tarn__stream_is_gone(serial));
  end_native_stream(device, native);
  assert_ok(tarn_device_close(device));
}
END_TEST

// Its event outlives the native stream.
START_TEST(the_owner_may_end_the_native_stream) {
  int cell = 0;
  tarn_device *device = open_fake();
  C_Stream native = native_stream(device);
  tarn_stream *stream = adopt(device, native);
  uint64_t serial = tarn_stream_serial(stream);
  queue_write(device, native, &cell);
  assert_ok(tarn_stream_destroy(stream));
  end_native_stream(device, native);  // the fake runs what is on it
  ck_assert(!tarn__stream_is_gone(serial));
  tarn_stream *waiting = NULL;
  assert_ok(tarn_stream_create(device, &waiting));
  assert_ok(tarn_stream_join(waiting, serial));
  ck_assert(tarn__stream_is_gone(serial));
  assert_ok(tarn_stream_destroy(waiting));
  assert_ok(tarn_device_close(device));
}
END_TEST

START_TEST(another_stream_waits_for_what_is_left) {
  int first = 0;
  int second = 0;
  tarn_device *device = open_fake();
  C_Stream native = native_stream(device);
  tarn_stream *stream = adopt(device, native);
  uint64_t serial = tarn_stream_serial(stream);
  tarn_stream *waiting = NULL;
  assert_ok(tarn_stream_create(device, &waiting));
  queue_write(device, native, &first);
  assert_ok(tarn_stream_destroy(stream));
  assert_ok(tarn_stream_join(waiting, serial));
  ck_assert_int_eq(first, 0);  // queued, the host has not waited
  queue_write(device, tarn_stream_native(waiting), &second);
  assert_ok(tarn_stream_synchronize(waiting));
  ck_assert_int_eq(first, 1);
  ck_assert_int_eq(second, 1);
  assert_ok(tarn_stream_destroy(waiting));
  end_native_stream(device, native);
  assert_ok(tarn_device_close(device));
}
END_TEST

START_TEST(the_device_stays_open_while_one_is_at_work) {
  int cell = 0;
  tarn_device *device = open_fake();
  C_Stream native = native_stream(device);
  tarn_stream *stream = adopt(device, native);
  queue_write(device, native, &cell);
  assert_ok(tarn_stream_destroy(stream));
  assert_status(tarn_device_close(device), TARN_E_STATE);
  assert_error_says("1 streams");
  assert_error_says("1 were adopted and destroyed and are at work");
  ck_assert_int_eq(cell, 0);
  assert_ok(tarn_device_synchronize(device));
  ck_assert_int_eq(cell, 1);
  end_native_stream(device, native);
  assert_ok(tarn_device_close(device));
}
END_TEST

// However often streams come and go, only those at work are kept.
START_TEST(departed_streams_do_not_pile_up) {
  int cell = 0;
  tarn_device *device = open_fake();
  C_Stream native = native_stream(device);
  for (int i = 0; i < 1000; i++) {
    tarn_stream *stream = adopt(device, native);
    queue_write(device, native, &cell);
    assert_ok(tarn_stream_destroy(stream));
    require(tarn__departed_count(device) <= 11);
    if (i % 10 == 9) {
      ck_assert_int_eq(device->abi->synchronize_stream(&device->handle, native),
                       C_SUCCESS);
    }
  }
  assert_ok(tarn_device_synchronize(device));
  ck_assert_uint_eq(tarn__departed_count(device), 0);
  end_native_stream(device, native);
  assert_ok(tarn_device_close(device));
}
END_TEST

START_TEST(without_events_giving_back_waits) {
  int cell = 0;
  fake.missing = MISSES_EVENTS;
  tarn_device *device = open_fake();
  C_Stream native = native_stream(device);
  tarn_stream *stream = adopt(device, native);
  uint64_t serial = tarn_stream_serial(stream);
  queue_write(device, native, &cell);
  assert_ok(tarn_stream_destroy(stream));
  ck_assert_int_eq(cell, 1);
  ck_assert(tarn__stream_is_gone(serial));
  end_native_stream(device, native);
  assert_ok(tarn_device_close(device));
}
END_TEST

START_TEST(a_failed_stream_is_waited_for_and_tells_why) {
  int cell = 0;
  tarn_device *device = open_fake();
  C_Stream native = native_stream(device);
  tarn_stream *stream = adopt(device, native);
  uint64_t serial = tarn_stream_serial(stream);
  fake.sync_answer = C_INTERNAL_ERROR;
  assert_status(tarn_stream_synchronize(stream), TARN_E_DEVICE);
  queue_write(device, native, &cell);
  assert_status(tarn_stream_destroy(stream), TARN_E_DEVICE);
  assert_error_says("synchronize_stream");
  ck_assert_int_eq(cell, 1);
  ck_assert(tarn__stream_is_gone(serial));
  fake.sync_answer = C_SUCCESS;
  stream = adopt(device, native);  // without the failure
  assert_ok(tarn_stream_synchronize(stream));
  assert_ok(tarn_stream_destroy(stream));
  end_native_stream(device, native);
  assert_ok(tarn_device_close(device));
}
END_TEST

static C_Status fail_event(const C_Device device, C_Event event) {
  (void)device;
  (void)event;
  return C_INTERNAL_ERROR;
}

// The driver takes the last event and can tell nothing of it: nobody else would
// learn that.
START_TEST(a_failure_that_giving_back_finds_is_told) {
  tarn_device *device = open_fake();
  C_Stream native = native_stream(device);
  tarn_stream *stream = adopt(device, native);
  uint64_t serial = tarn_stream_serial(stream);
  C_DeviceInterface *abi = &device->plugin->abi;
  C_DeviceInterface before = *abi;
  abi->query_event = fail_event;
  abi->synchronize_event = fail_event;
  assert_status(tarn_stream_destroy(stream), TARN_E_DEVICE);
  *abi = before;
  ck_assert(tarn__stream_is_gone(serial));
  end_native_stream(device, native);
  assert_ok(tarn_device_close(device));
}
END_TEST

static void note_call(void *context, tarn_status status) {
  *(int *)context += status == TARN_OK ? 1 : 100;
}

START_TEST(callbacks_of_a_departed_stream_come) {
  int calls = 0;
  tarn_device *device = open_fake();
  C_Stream native = native_stream(device);
  tarn_stream *stream = adopt(device, native);
  assert_ok(tarn_stream_add_callback(stream, note_call, &calls));
  assert_ok(tarn_stream_destroy(stream));
  ck_assert_int_eq(calls, 0);
  assert_ok(tarn_device_synchronize(device));
  ck_assert_int_eq(calls, 1);
  end_native_stream(device, native);
  assert_ok(tarn_device_close(device));
}
END_TEST

// --- given back while it is made to wait -----------------------------------

// Stands in for the plug-in's record_event: the first call, that of the thread
// that makes |ended| wait, comes when that is pinned. It lets another thread
// give |ended| back, and goes on when the last event of that is recorded.
static struct {
  C_Status (*record)(const C_Device device, C_Stream stream, C_Event event);
  tarn_stream *ended;
  pthread_t thread;
  sem_t recorded;
} race;

static C_Status record_and_tell(const C_Device device, C_Stream stream,
                                C_Event event) {
  C_Status status = race.record(device, stream, event);
  ck_assert_int_eq(sem_post(&race.recorded), 0);
  return status;
}

static void *give_back(void *context) {
  (void)context;
  return tarn_stream_destroy(race.ended) == TARN_OK ? &race : NULL;
}

static C_Status let_other_record(const C_Device device, C_Stream stream,
                                 C_Event event) {
  C_DeviceInterface *abi = &race.ended->device->plugin->abi;
  abi->record_event = record_and_tell;
  ck_assert_int_eq(pthread_create(&race.thread, NULL, give_back, NULL), 0);
  ck_assert_int_eq(sem_wait(&race.recorded), 0);
  abi->record_event = race.record;
  return race.record(device, stream, event);
}

// Its last event is in front of the wait, which that does not tell of.
START_TEST(what_a_stream_waits_for_is_not_lost_when_it_departs) {
  int cell = 0;
  void *result = NULL;
  tarn_device *device = open_fake();
  C_Stream native = native_stream(device);
  tarn_stream *first = NULL;
  assert_ok(tarn_stream_create(device, &first));
  queue_write(device, tarn_stream_native(first), &cell);
  race.ended = adopt(device, native);
  race.record = device->abi->record_event;
  ck_assert_int_eq(sem_init(&race.recorded, 0, 0), 0);
  device->plugin->abi.record_event = let_other_record;
  uint64_t serial = tarn_stream_serial(race.ended);
  assert_ok(tarn__stream_follow(serial, tarn_stream_serial(first)));
  ck_assert_int_eq(pthread_join(race.thread, &result), 0);
  ck_assert_ptr_nonnull(result);
  assert_ok(tarn_stream_join(NULL, serial));
  ck_assert(tarn__stream_is_gone(serial));
  ck_assert_int_eq(cell, 1);
  assert_ok(tarn_stream_destroy(first));
  end_native_stream(device, native);
  assert_ok(tarn_device_close(device));
}
END_TEST

// A stream of another plug-in can only be waited for by the host, which does
// not keep the stream that is given back meanwhile.
typedef struct behind {
  uint64_t serial;
  uint64_t first;
  tarn_status status;
} behind;

static void *follow(void *context) {
  behind *b = context;
  b->status = tarn__stream_follow(b->serial, b->first);
  return NULL;
}

START_TEST(giving_back_does_not_wait_for_what_others_wait_for) {
  hold held;
  pthread_t thread;
  tarn_device *device = open_fake();
  tarn_device *sim = open_named("sim:0");
  C_Stream native = native_stream(device);
  tarn_stream *stream = adopt(device, native);
  tarn_stream *first = NULL;
  assert_ok(tarn_stream_create(sim, &first));
  hold_begin(&held, first);
  behind b = {tarn_stream_serial(stream), tarn_stream_serial(first), TARN_OK};
  ck_assert_int_eq(pthread_create(&thread, NULL, follow, &b), 0);
  struct timespec time = {.tv_nsec = 50000000};
  (void)nanosleep(&time, NULL);
  assert_ok(tarn_stream_destroy(stream));
  assert_status(tarn_stream_query(first), TARN_PENDING);
  hold_end(&held);
  ck_assert_int_eq(pthread_join(thread, NULL), 0);
  assert_ok(b.status);
  assert_ok(tarn_stream_destroy(first));
  end_native_stream(device, native);
  assert_ok(tarn_device_close(sim));
  assert_ok(tarn_device_close(device));
}
END_TEST

// Whatever the driver answers: who only asks does not wait.
START_TEST(to_ask_about_a_departed_stream_waits_for_nothing) {
  int cell = 0;
  tarn_device *device = open_fake();
  C_Stream native = native_stream(device);
  tarn_stream *stream = adopt(device, native);
  uint64_t serial = tarn_stream_serial(stream);
  queue_write(device, native, &cell);
  assert_ok(tarn_stream_destroy(stream));
  size_t waits = fake_seen.waits;
  fake.query_answer = C_INTERNAL_ERROR;
  ck_assert(!tarn__stream_is_idle(serial));
  assert_status(tarn__stream_join_at_once(NULL, serial), TARN_PENDING);
  ck_assert_uint_eq(fake_seen.waits, waits);
  ck_assert_int_eq(cell, 0);
  assert_ok(tarn_stream_join(NULL, serial));
  ck_assert_int_eq(cell, 1);
  end_native_stream(device, native);
  assert_ok(tarn_device_close(device));
}
END_TEST

// Others look at departed streams and wait for them meanwhile, which changes
// the order of these.
static struct {
  C_Status (*wait)(const C_Device device, C_Event event);
  tarn_device *device;
  uint64_t serial;  // of the first
  tarn_stream *kept;
} among;

static C_Status wait_among_others(const C_Device device, C_Event event) {
  among.device->plugin->abi.synchronize_event = among.wait;
  among.kept = tarn__departed_hold(among.serial);
  tarn__stream_release(tarn__departed_next(among.device), false);
  return among.wait(device, event);
}

START_TEST(all_departed_streams_are_waited_for) {
  int cells[2] = {0, 0};
  fake.missing = FAKE_MISSES(synchronize_device);
  tarn_device *device = open_fake();
  C_Stream natives[2] = {native_stream(device), native_stream(device)};
  tarn_stream *streams[2] = {adopt(device, natives[0]),
                             adopt(device, natives[1])};
  among.serial = tarn_stream_serial(streams[0]);
  for (size_t i = 0; i < 2; i++) {
    queue_write(device, natives[i], &cells[i]);
    assert_ok(tarn_stream_destroy(streams[i]));
  }
  tarn_stream *last = NULL;  // the one after it is the first
  do {
    last = tarn__departed_next(device);
    tarn__stream_release(last, false);
  } while (last != streams[1]);
  among.device = device;
  among.wait = device->plugin->abi.synchronize_event;
  device->plugin->abi.synchronize_event = wait_among_others;
  assert_ok(tarn_device_synchronize(device));
  ck_assert_ptr_nonnull(among.kept);
  ck_assert_int_eq(cells[0], 1);
  ck_assert_int_eq(cells[1], 1);
  tarn__stream_release(among.kept, false);
  for (size_t i = 0; i < 2; i++)
    end_native_stream(device, natives[i]);
  assert_ok(tarn_device_close(device));
}
END_TEST

// --- events ----------------------------------------------------------------

START_TEST(the_same_handle_gives_the_same_event) {
  tarn_device *device = open_fake();
  C_Event native = native_event(device);
  tarn_event *event = NULL;
  tarn_event *again = NULL;
  assert_ok(tarn_event_adopt(device, native, &event));
  assert_ok(tarn_event_adopt(device, native, &again));
  ck_assert_ptr_eq(event, again);
  ck_assert_ptr_eq(tarn_event_native(event), native);
  ck_assert_ptr_eq(tarn_event_device(event), device);
  assert_ok(tarn_event_destroy(event));
  assert_status(tarn_device_close(device), TARN_E_STATE);
  assert_ok(tarn_event_destroy(event));
  ck_assert_uint_eq(fake_seen.events, 1);
  end_native_event(device, native);
  assert_ok(tarn_event_create(device, &event));
  assert_ok(tarn_event_adopt(device, tarn_event_native(event), &again));
  ck_assert_ptr_eq(event, again);
  assert_ok(tarn_event_destroy(event));
  ck_assert_uint_eq(fake_seen.events, 1);
  assert_ok(tarn_event_destroy(event));
  ck_assert_uint_eq(fake_seen.events, 0);
  assert_ok(tarn_device_close(device));
}
END_TEST

// Tarn has not recorded it, so only the driver knows.
START_TEST(the_driver_is_asked_about_an_adopted_event) {
  int cell = 0;
  tarn_device *device = open_fake();
  C_Stream native = native_stream(device);
  C_Event mark = native_event(device);
  tarn_event *event = NULL;
  assert_ok(tarn_event_adopt(device, mark, &event));
  assert_ok(tarn_event_query(event));  // never recorded
  queue_write(device, native, &cell);
  ck_assert_int_eq(device->abi->record_event(&device->handle, native, mark),
                   C_SUCCESS);
  assert_status(tarn_event_query(event), TARN_PENDING);

  tarn_stream *waiting = NULL;
  assert_ok(tarn_stream_create(device, &waiting));
  assert_ok(tarn_stream_wait_event(waiting, event));
  ck_assert_int_eq(cell, 0);
  assert_ok(tarn_stream_synchronize(waiting));
  ck_assert_int_eq(cell, 1);
  assert_ok(tarn_event_query(event));

  // The owner records it again: it is pending again.
  cell = 0;
  queue_write(device, native, &cell);
  ck_assert_int_eq(device->abi->record_event(&device->handle, native, mark),
                   C_SUCCESS);
  assert_status(tarn_event_query(event), TARN_PENDING);
  assert_ok(tarn_event_synchronize(event));
  ck_assert_int_eq(cell, 1);
  assert_ok(tarn_event_record(event, waiting));
  assert_ok(tarn_event_query(event));

  assert_ok(tarn_event_destroy(event));
  end_native_event(device, mark);
  assert_ok(tarn_stream_destroy(waiting));
  end_native_stream(device, native);
  assert_ok(tarn_device_close(device));
}
END_TEST

// An event of Tarn's own, whose handle another part of the program records.
START_TEST(the_driver_is_asked_about_an_event_that_tarn_made_too) {
  int cell = 0;
  tarn_device *device = open_fake();
  C_Stream native = native_stream(device);
  tarn_event *made = NULL;
  tarn_event *event = NULL;
  assert_ok(tarn_event_create(device, &made));
  C_Event mark = tarn_event_native(made);
  assert_ok(tarn_event_adopt(device, mark, &event));
  queue_write(device, native, &cell);
  ck_assert_int_eq(device->abi->record_event(&device->handle, native, mark),
                   C_SUCCESS);
  assert_status(tarn_event_query(event), TARN_PENDING);
  assert_ok(tarn_event_synchronize(event));
  ck_assert_int_eq(cell, 1);
  assert_ok(tarn_event_destroy(made));
  assert_ok(tarn_event_destroy(event));
  ck_assert_uint_eq(fake_seen.events, 0);  // Tarn's, which ends it
  end_native_stream(device, native);
  assert_ok(tarn_device_close(device));
}
END_TEST

// --- each call that can fail -----------------------------------------------

typedef struct natives {
  tarn_device *device;
  C_Stream stream;
  C_Event event;
} natives;

static bool planned(tarn_status status) {
  return status == TARN_OK || status == TARN_E_NOMEM || status == TARN_E_DEVICE;
}

static void use_event(const natives *n, tarn_stream *stream) {
  tarn_event *event = NULL;
  tarn_status status = tarn_event_adopt(n->device, n->event, &event);
  require(planned(status) && (status == TARN_OK) == (event != NULL));
  if (event == NULL) return;
  require(planned(tarn_event_record(event, stream)));
  status = tarn_event_query(event);
  require(planned(status) || status == TARN_PENDING);
  require(planned(tarn_event_destroy(event)));
}

// Whatever fails: what was queued is done when nobody has to wait for it any
// more, or the driver has failed to wait, which is told; and nothing is kept.
static void come_and_go(void *context) {
  const natives *n = context;
  int cell = 0;
  tarn_stream *stream = NULL;
  tarn_status status = tarn_stream_adopt(n->device, n->stream, &stream);
  require(planned(status) && (status == TARN_OK) == (stream != NULL));
  if (stream == NULL) return;
  uint64_t serial = tarn_stream_serial(stream);
  use_event(n, stream);
  bool queued =
      n->device->abi->async_memory_copy_h2d(
          &n->device->handle, n->stream, &cell, &one, sizeof one) == C_SUCCESS;
  tarn_status destroyed = tarn_stream_destroy(stream);
  tarn_status joined = tarn_stream_join(NULL, serial);
  require(planned(destroyed) && planned(joined));
  require(tarn__stream_is_gone(serial));
  bool failed = destroyed == TARN_E_DEVICE || joined == TARN_E_DEVICE;
  require(!queued || cell == 1 || failed);
}

START_TEST(whatever_fails_order_holds) {
  faults_install();
  fake.strikes = true;
  tarn_device *device = open_fake();
  natives n = {device, native_stream(device), native_event(device)};
  ck_assert_uint_gt(faults_sweep(come_and_go, &n), 10);
  end_native_event(device, n.event);
  end_native_stream(device, n.stream);
  ck_assert_uint_eq(fake_seen.events, 0);
  assert_ok(tarn_device_close(device));
}
END_TEST

// --- forks -----------------------------------------------------------------

START_TEST(a_child_frees_host_memory_only) {
  int cell = 0;
  tarn_device *device = open_fake();
  C_Stream native = native_stream(device);
  C_Event mark = native_event(device);
  tarn_event *event = NULL;
  tarn_stream *stream = adopt(device, native);
  queue_write(device, native, &cell);
  assert_ok(tarn_stream_destroy(stream));  // departed
  stream = adopt(device, native);
  ck_assert_ptr_eq(adopt(device, native), stream);
  assert_ok(tarn_event_adopt(device, mark, &event));
  pid_t child = fork();
  if (child == 0) {
    child_begin(20);
    MUST(tarn_stream_synchronize(stream) == TARN_E_STATE);
    MUST(tarn_event_query(event) == TARN_E_STATE);
    MUST(tarn_stream_destroy(stream) == TARN_OK);
    MUST(tarn_stream_destroy(stream) == TARN_OK);
    MUST(tarn_event_destroy(event) == TARN_OK);
    MUST(tarn_device_close(device) == TARN_OK);
    MUST(fake_seen.streams == 1);
    MUST(fake_seen.events == 3);
    _exit(0);
  }
  assert_child_ended_well(child);
  assert_ok(tarn_stream_destroy(stream));
  assert_ok(tarn_stream_destroy(stream));
  assert_ok(tarn_event_destroy(event));
  assert_ok(tarn_device_synchronize(device));
  end_native_event(device, mark);
  end_native_stream(device, native);
  assert_ok(tarn_device_close(device));
  ck_assert_uint_eq(fake_seen.events, 0);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("device_adopt");
  ADD_CASE(suite, "same", the_same_handle_gives_the_same_stream,
           handles_of_two_devices_are_apart,
           a_stream_that_tarn_made_is_counted_too,
           many_streams_are_found_and_nothing_is_kept,
           without_streams_none_is_adopted, without_a_slot_null_is_no_stream,
           without_events_none_is_adopted,
           null_is_the_default_stream_of_the_plug_in, sim_has_a_default_stream);
  ADD_CASE(suite, "back", giving_back_does_not_wait,
           a_stream_that_was_idle_is_gone_at_once,
           the_owner_may_end_the_native_stream,
           another_stream_waits_for_what_is_left,
           the_device_stays_open_while_one_is_at_work,
           departed_streams_do_not_pile_up, without_events_giving_back_waits,
           a_failed_stream_is_waited_for_and_tells_why,
           a_failure_that_giving_back_finds_is_told,
           callbacks_of_a_departed_stream_come,
           what_a_stream_waits_for_is_not_lost_when_it_departs,
           giving_back_does_not_wait_for_what_others_wait_for,
           to_ask_about_a_departed_stream_waits_for_nothing,
           all_departed_streams_are_waited_for);
  ADD_CASE(suite, "events", the_same_handle_gives_the_same_event,
           the_driver_is_asked_about_an_adopted_event,
           the_driver_is_asked_about_an_event_that_tarn_made_too,
           whatever_fails_order_holds, a_child_frees_host_memory_only);
  return run_suite(suite);
}
