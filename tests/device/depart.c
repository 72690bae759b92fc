// What is left of an adopted stream that was given back while it is at work.
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <time.h>

#include "adopt_kit.h"
#include "support/hold.h"

// --- giving back -----------------------------------------------------------

TEST(giving_back_does_not_wait) {
  static int cell;
  tarn_device *device = open_fake();
  C_Stream native = native_stream(device);
  tarn_stream *stream = adopt(device, native);
  uint64_t serial = tarn_stream_serial(stream);
  queue_native(device, native, &cell);
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
  close_device(device);
  ck_assert_uint_eq(fake_seen.events, 0);
}

TEST(a_stream_that_was_idle_is_gone_at_once) {
  tarn_device *device = open_fake();
  C_Stream native = native_stream(device);
  tarn_stream *stream = adopt(device, native);
  uint64_t serial = tarn_stream_serial(stream);
  assert_ok(tarn_stream_destroy(stream));
  ck_assert(tarn__stream_is_gone(serial));
  end_native_stream(device, native);
}

// Its event outlives the native stream.
TEST(the_owner_may_end_the_native_stream) {
  static int cell;
  tarn_device *device = open_fake();
  C_Stream native = native_stream(device);
  tarn_stream *stream = adopt(device, native);
  uint64_t serial = tarn_stream_serial(stream);
  queue_native(device, native, &cell);
  assert_ok(tarn_stream_destroy(stream));
  end_native_stream(device, native);  // the fake runs what is on it
  ck_assert(!tarn__stream_is_gone(serial));
  tarn_stream *waiting = stream_on(device);
  assert_ok(tarn_stream_join(waiting, serial));
  ck_assert(tarn__stream_is_gone(serial));
}

TEST(another_stream_waits_for_what_is_left) {
  static int first;
  static int second;
  tarn_device *device = open_fake();
  C_Stream native = native_stream(device);
  tarn_stream *stream = adopt(device, native);
  uint64_t serial = tarn_stream_serial(stream);
  tarn_stream *waiting = stream_on(device);
  queue_native(device, native, &first);
  assert_ok(tarn_stream_destroy(stream));
  assert_ok(tarn_stream_join(waiting, serial));
  ck_assert_int_eq(first, 0);  // queued, the host has not waited
  queue_native(device, tarn_stream_native(waiting), &second);
  assert_ok(tarn_stream_synchronize(waiting));
  ck_assert_int_eq(first, 1);
  ck_assert_int_eq(second, 1);
  end_stream(waiting);
  end_native_stream(device, native);
}

TEST(the_device_stays_open_while_one_is_at_work) {
  static int cell;
  tarn_device *device = open_fake();
  C_Stream native = native_stream(device);
  tarn_stream *stream = adopt(device, native);
  queue_native(device, native, &cell);
  assert_ok(tarn_stream_destroy(stream));
  assert_fails(tarn_device_close(device), TARN_E_STATE, "1 streams");
  assert_error_says("1 were adopted and destroyed and are at work");
  ck_assert_int_eq(cell, 0);
  assert_ok(tarn_device_synchronize(device));
  ck_assert_int_eq(cell, 1);
  end_native_stream(device, native);
}

// However often streams come and go, only those at work are kept.
TEST(departed_streams_do_not_pile_up) {
  static int cell;
  tarn_device *device = open_fake();
  C_Stream native = native_stream(device);
  for (int i = 0; i < 1000; i++) {
    tarn_stream *stream = adopt(device, native);
    queue_native(device, native, &cell);
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
}

TEST(without_events_giving_back_waits) {
  static int cell;
  fake.missing = MISSES_EVENTS;
  tarn_device *device = open_fake();
  C_Stream native = native_stream(device);
  tarn_stream *stream = adopt(device, native);
  uint64_t serial = tarn_stream_serial(stream);
  queue_native(device, native, &cell);
  assert_ok(tarn_stream_destroy(stream));
  ck_assert_int_eq(cell, 1);
  ck_assert(tarn__stream_is_gone(serial));
  end_native_stream(device, native);
}

TEST(a_failed_stream_is_waited_for_and_tells_why) {
  static int cell;
  tarn_device *device = open_fake();
  C_Stream native = native_stream(device);
  tarn_stream *stream = adopt(device, native);
  uint64_t serial = tarn_stream_serial(stream);
  fake.sync_answer = C_INTERNAL_ERROR;
  assert_status(tarn_stream_synchronize(stream), TARN_E_DEVICE);
  queue_native(device, native, &cell);
  assert_fails(tarn_stream_destroy(stream), TARN_E_DEVICE,
               "synchronize_stream");
  ck_assert_int_eq(cell, 1);
  ck_assert(tarn__stream_is_gone(serial));
  fake.sync_answer = C_SUCCESS;
  stream = adopt(device, native);  // without the failure
  assert_ok(tarn_stream_synchronize(stream));
  assert_ok(tarn_stream_destroy(stream));
  end_native_stream(device, native);
}

static C_Status fail_event(const C_Device device, C_Event event) {
  (void)device;
  (void)event;
  return C_INTERNAL_ERROR;
}

// The driver records the last event and fails to query it: only the destroying
// call can report that.
TEST(a_failure_that_giving_back_finds_is_told) {
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
}

static void note_call(void *context, tarn_status status) {
  *(int *)context += status == TARN_OK ? 1 : 100;
}

TEST(callbacks_of_a_departed_stream_come) {
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
}

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
TEST(what_a_stream_waits_for_is_not_lost_when_it_departs) {
  static int cell;
  void *result = NULL;
  tarn_device *device = open_fake();
  C_Stream native = native_stream(device);
  tarn_stream *first = stream_on(device);
  queue_native(device, tarn_stream_native(first), &cell);
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
  end_stream(first);
  end_native_stream(device, native);
}

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

TEST_LOOP(giving_back_does_not_wait_for_what_others_wait_for, LIBRARY_DEVICES) {
  hold held;
  pthread_t thread;
  tarn_device *device = open_fake();
  tarn_device *other = open_device(test_devices[_i]);
  C_Stream native = native_stream(device);
  tarn_stream *stream = adopt(device, native);
  tarn_stream *first = stream_on(other);
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
  end_stream(first);
  end_native_stream(device, native);
}

// Whatever the driver answers: who only asks does not wait.
TEST(to_ask_about_a_departed_stream_waits_for_nothing) {
  static int cell;
  tarn_device *device = open_fake();
  C_Stream native = native_stream(device);
  tarn_stream *stream = adopt(device, native);
  uint64_t serial = tarn_stream_serial(stream);
  queue_native(device, native, &cell);
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
}

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

TEST(all_departed_streams_are_waited_for) {
  int cells[2] = {0, 0};
  fake.missing = FAKE_MISSES(synchronize_device);
  tarn_device *device = open_fake();
  C_Stream natives[2] = {native_stream(device), native_stream(device)};
  tarn_stream *streams[2] = {adopt(device, natives[0]),
                             adopt(device, natives[1])};
  among.serial = tarn_stream_serial(streams[0]);
  for (size_t i = 0; i < 2; i++) {
    queue_native(device, natives[i], &cells[i]);
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
}
