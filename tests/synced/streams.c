// Accesses and copies on streams: which wait for which, and which do not.
//
// Streams are held up here, or run only when a call waits for them, so that
// what a call leaves behind can be looked at before it is over: by events, and
// by what the map says is pending.
#include "kit.h"
#include "support/fake_plugin.h"
#include "support/hold.h"
#include "support/on_devices.h"
#include "synced/work.h"

enum { SIZE = 8192 };

static const uint64_t SLOW_NS = 20000000;

static tarn_device *device0;
static tarn_device *device1;
static tarn_place at0;
static tarn_place at1;
static tarn_stream *on0;
static tarn_stream *other0;
static tarn_stream *on1;

static void open_both(tarn_device *device) {
  device0 = device;
  device1 = open_second(device);
  at0 = tarn_place_on(device0);
  at1 = tarn_place_on(device1);
  assert_ok(tarn_stream_create(device0, &on0));
  assert_ok(tarn_stream_create(device0, &other0));
  assert_ok(tarn_stream_create(device1, &on1));
}

static void open_devices(uint64_t latency_ns) {
  tarn_sim_options options = {.struct_size = sizeof options,
                              .latency_ns = latency_ns};
  assert_ok(tarn_sim_configure(&options));
  open_both(open_device("sim:0"));
}

// Work queued there runs when a thread waits for it, and not before.
static void open_lazy_devices(void) {
  open_both(open_device("fake:0"));
}

static hold held;

static void close_devices(void) {
  (void)tarn_stream_destroy(on0);
  (void)tarn_stream_destroy(other0);
  (void)tarn_stream_destroy(on1);
  ck_assert_uint_eq(sim_misuses(), 0);
}

static void tear_down(void *buffer) {
  assert_ok(tarn_synced_destroy(buffer));
  close_devices();
}

static tarn_synced *buffer_for_test(void) {
  tarn_synced *buffer = new_buffer(SIZE);
  after_test(tear_down, buffer);
  return buffer;
}

static tarn_synced *set_up(uint64_t latency_ns) {
  open_devices(latency_ns);
  return buffer_for_test();
}

// For tests of the order only: on each device that queues.
enum { QUEUES = TEST_NEEDS_DISCRETE | TEST_NEEDS_STREAMS };

static tarn_synced *set_up_on(tarn_device *device) {
  open_both(device);
  return buffer_for_test();
}

static tarn_synced *set_up_lazily(void) {
  open_lazy_devices();
  return buffer_for_test();
}

// Uses of the buffer's memory that are not known to be over.
static size_t count_uses(const tarn_synced *buffer) {
  size_t count = 0;
  for (const tarn__synced_span *span = buffer->core->spans.first; span != NULL;
       span = span->next) {
    for (const tarn__synced_use *use = span->uses; use != NULL; use = use->next)
      count++;
  }
  return count;
}

static void assert_filled(const unsigned char *bytes, size_t size,
                          unsigned char value) {
  for (size_t i = 0; i < size; i++)
    require(bytes[i] == value);
}

// Queues what a kernel would: writes |value| to all of the range.
static unsigned char pattern[8][SIZE];

static void queue_write(const tarn_access *access, tarn_device *device,
                        unsigned char value) {
  memset(pattern[value], value, SIZE);
  assert_ok(tarn_copy_h2d(device, access->address, pattern[value], access->size,
                          access->stream));
}

// --- prefetch ----------------------------------------------------------------

TEST_ON(prefetch_does_not_wait, QUEUES) {
  tarn_synced *x = set_up_on(device);
  tarn_event *event = NULL;
  assert_ok(tarn_event_create(device0, &event));
  write_at(x, 0, SIZE, TARN_HOST, NULL, 5);
  hold_begin(&held, on0);
  assert_ok(tarn_synced_prefetch(x, 0, TARN_ALL, at0, on0, event));
  assert_status(tarn_event_query(event), TARN_PENDING);
  ck_assert_uint_eq(count_uses(x), 2);
  hold_end(&held);
  assert_ok(tarn_event_synchronize(event));
  expect_at(x, 0, SIZE, at0, 5);
  assert_moved(x, TARN_HOST, at0, 1, SIZE);
  ck_assert_uint_eq(count_uses(x), 0);
  assert_ok(tarn_event_destroy(event));
}

TEST(the_host_waits_for_its_data) {
  tarn_synced *x = set_up_lazily();
  tarn_access a;
  write_at(x, 0, SIZE, at0, NULL, 5);
  assert_ok(tarn_synced_prefetch(x, 0, TARN_ALL, TARN_HOST, on0, NULL));
  assert_status(tarn_stream_query(on0), TARN_PENDING);
  assert_ok(tarn_synced_begin(x, 0, TARN_ALL, TARN_HOST, TARN_READ, NULL, &a));
  assert_filled(a.pointer, SIZE, 5);
  assert_ok(tarn_synced_end(&a));
  assert_moved(x, at0, TARN_HOST, 1, SIZE);
  ck_assert_uint_eq(counts_of(x, TARN_HOST, TARN_HOST).stalls, 1);
}

TEST_ON(push_and_pull, QUEUES) {
  open_both(device);
  tarn_synced_options options = {.struct_size = sizeof options,
                                 .device = device0};
  tarn_synced *x = NULL;
  assert_ok(tarn_synced_create(SIZE, &options, &x));
  after_test(tear_down, x);
  write_at(x, 0, SIZE, TARN_HOST, NULL, 5);
  assert_ok(tarn_synced_push(x, 0, 100, on0, NULL));
  assert_ok(tarn_synced_push(x, 100, TARN_ALL, NULL, NULL));
  expect_at(x, 0, SIZE, at0, 5);
  assert_moved(x, TARN_HOST, at0, 2, SIZE);
  write_at(x, 50, 100, at0, NULL, 6);
  assert_ok(tarn_synced_pull(x, 0, TARN_ALL, other0, NULL));
  expect_at(x, 50, 100, TARN_HOST, 6);
  assert_moved(x, at0, TARN_HOST, 1, 100);
  tarn_event *event = NULL;
  assert_ok(tarn_event_create(device0, &event));
  assert_status(tarn_synced_pull(x, 0, TARN_ALL, NULL, event), TARN_E_INVALID);
  assert_ok(tarn_event_destroy(event));
}

// --- one stream after another ------------------------------------------------

TEST(another_stream_waits_for_a_write) {
  tarn_synced *x = set_up(SLOW_NS);
  tarn_access a;
  unsigned char *bytes = malloc(SIZE);
  assert_ok(
      tarn_synced_begin(x, 0, TARN_ALL, at0, TARN_WRITE_DISCARD, on0, &a));
  hold_begin(&held, on0);
  queue_write(&a, device0, 3);
  assert_ok(tarn_synced_end(&a));
  assert_status(tarn_stream_query(on0), TARN_PENDING);
  assert_ok(tarn_synced_begin(x, 0, TARN_ALL, at0, TARN_READ, other0, &a));
  assert_ok(tarn_copy_d2h(device0, bytes, a.address, SIZE, other0));
  assert_ok(tarn_synced_end(&a));
  hold_end(&held);
  assert_ok(tarn_stream_synchronize(other0));
  assert_filled(bytes, SIZE, 3);
  assert_moved(x, at0, at0, 0, 0);
  free(bytes);
}

TEST(a_host_write_waits_for_device_reads) {
  tarn_synced *x = set_up_lazily();
  tarn_access a;
  write_at(x, 0, SIZE, TARN_HOST, NULL, 1);
  assert_ok(tarn_synced_prefetch(x, 0, TARN_ALL, at0, on0, NULL));
  assert_status(tarn_stream_query(on0), TARN_PENDING);
  // The host's memory is still being read.
  write_at(x, 0, SIZE, TARN_HOST, NULL, 2);
  ck_assert_uint_eq(counts_of(x, TARN_HOST, TARN_HOST).stalls, 1);
  assert_ok(tarn_stream_query(on0));
  expect_at(x, 0, SIZE, at0, 2);
  // A kernel reads the device's memory: no concern of the host's.
  assert_ok(tarn_synced_begin(x, 0, TARN_ALL, at0, TARN_READ, on0, &a));
  assert_ok(tarn_copy_d2h(device0, pattern[0], a.address, SIZE, on0));
  assert_ok(tarn_synced_end(&a));
  write_at(x, 0, SIZE, TARN_HOST, NULL, 3);
  ck_assert_uint_eq(counts_of(x, at0, TARN_HOST).stalls, 0);
  // But a write there waits.
  expect_at(x, 0, SIZE, at0, 3);
  assert_filled(pattern[0], SIZE, 2);
}

TEST(a_chain_over_devices_and_streams) {
  tarn_synced *x = set_up(1000000);
  tarn_access a;
  assert_ok(
      tarn_synced_begin(x, 0, TARN_ALL, at0, TARN_WRITE_DISCARD, on0, &a));
  queue_write(&a, device0, 1);
  assert_ok(tarn_synced_end(&a));
  assert_ok(tarn_synced_begin(x, 0, TARN_ALL, at1, TARN_READ_WRITE, on1, &a));
  a.size = 10;
  queue_write(&a, device1, 2);
  a.size = SIZE;
  assert_ok(tarn_synced_end(&a));
  assert_ok(tarn_synced_begin(x, 5, 100, at0, TARN_READ_WRITE, other0, &a));
  a.size = 2;
  queue_write(&a, device0, 3);
  a.size = 100;
  assert_ok(tarn_synced_end(&a));
  expect_at(x, 0, 5, TARN_HOST, 2);
  expect_at(x, 5, 2, TARN_HOST, 3);
  expect_at(x, 7, 3, TARN_HOST, 2);
  expect_at(x, 10, SIZE - 10, TARN_HOST, 1);
  assert_moved(x, at0, at1, 1, SIZE);
  assert_moved(x, at1, at0, 1, 100);
}

// The stream is of neither end's device: a copy stream carries it.
TEST(a_stream_that_cannot_carry) {
  tarn_synced *x = set_up(1000000);
  tarn_access a;
  write_at(x, 0, SIZE, at0, NULL, 1);
  assert_ok(
      tarn_synced_begin(x, 0, TARN_ALL, TARN_HOST, TARN_READ_WRITE, on1, &a));
  ck_assert_ptr_nonnull(a.pointer);
  assert_ok(tarn_stream_synchronize(on1));
  assert_filled(a.pointer, SIZE, 1);
  assert_ok(tarn_synced_end(&a));
  assert_ok(tarn_synced_prefetch(x, 0, TARN_ALL, at0, on1, NULL));
  assert_ok(tarn_stream_synchronize(on1));
  expect_at(x, 0, SIZE, at0, 1);
}

// --- cancel and failures -----------------------------------------------------

TEST(cancelled_work_is_waited_for) {
  tarn_synced *x = set_up(SLOW_NS);
  tarn_access a;
  write_at(x, 0, SIZE, TARN_HOST, NULL, 1);
  assert_ok(
      tarn_synced_begin(x, 0, TARN_ALL, at0, TARN_WRITE_DISCARD, on0, &a));
  hold_begin(&held, on0);
  queue_write(&a, device0, 3);
  assert_ok(tarn_synced_cancel(&a, NULL));
  assert_status(tarn_stream_query(on0), TARN_PENDING);
  hold_end(&held);
  expect_at(x, 0, SIZE, at0, 1);
}

TEST(a_copy_that_fails_later) {
  tarn_synced *x = set_up(0);
  write_at(x, 0, SIZE, TARN_HOST, NULL, 1);
  assert_ok(tarn_sim_faults("async_memory_copy_h2d@1"));
  tarn_status status = tarn_synced_prefetch(x, 0, TARN_ALL, at0, on0, NULL);
  assert_ok(tarn_sim_faults(NULL));
  if (status == TARN_OK) status = tarn_stream_synchronize(on0);
  ck_assert_int_eq(status, TARN_E_DEVICE);
  verify(x);
  expect_at(x, 0, SIZE, at0, 1);
  expect_at(x, 0, SIZE, TARN_HOST, 1);
}

// The stream fails at what was to write the range, so the access does too.
static void write_in_vain(tarn_access *access) {
  assert_ok(tarn_sim_faults("async_memory_copy_h2d@1"));
  tarn_status status =
      tarn_copy_h2d(device0, access->address, pattern[0], access->size, on0);
  if (status == TARN_OK) status = tarn_stream_synchronize(on0);
  ck_assert_int_eq(status, TARN_E_DEVICE);
  assert_ok(tarn_sim_faults(NULL));
  assert_status(tarn_synced_end(access), TARN_E_DEVICE);
}

TEST(a_write_on_a_stream_that_failed) {
  tarn_synced *x = set_up(0);
  tarn_access a;
  write_at(x, 0, SIZE, TARN_HOST, NULL, 1);
  assert_ok(tarn_synced_begin(x, 0, TARN_ALL, at0, TARN_READ_WRITE, on0, &a));
  write_in_vain(&a);
  assert_error_says("0 bytes are lost");
  ck_assert_ptr_null(a.buffer);
  verify(x);
  expect_at(x, 0, SIZE, at0, 1);
}

TEST(the_only_copy_on_a_stream_that_failed) {
  tarn_synced *x = set_up(0);
  tarn_access a;
  write_at(x, 0, SIZE, at0, NULL, 1);
  assert_ok(tarn_synced_begin(x, 10, 20, at0, TARN_READ_WRITE, on0, &a));
  write_in_vain(&a);
  assert_error_says("20 bytes are lost");
  expect_at(x, 0, 10, TARN_HOST, 1);
  assert_status(tarn_synced_begin(x, 0, 11, TARN_HOST, TARN_READ, NULL, &a),
                TARN_E_STATE);
  assert_error_says("bytes 10 to 30 are lost");
}

// --- failures that are found late --------------------------------------------

// As if the work of |stream|, which is held up, had failed.
static void fail_now(tarn_synced *buffer, tarn_stream *stream) {
  tarn__synced_core *core = buffer->core;
  tarn__core_enter(core);
  tarn__synced_timeline *timeline = core->timelines.first;
  while (timeline != NULL && timeline->serial != tarn_stream_serial(stream))
    timeline = timeline->next;
  ck_assert_ptr_nonnull(timeline);
  tarn__synced_point *point =
      tarn__timeline_hold_point(timeline, timeline->issued);
  ck_assert_ptr_nonnull(point);
  tarn__work_settle(core, point, TARN_E_DEVICE);
  tarn__core_leave(core);
  hold_end(&held);
  assert_ok(tarn_stream_synchronize(stream));  // who finds a failure has
  verify(buffer);
}

// Bytes at the first device that a stream is still to write.
static void write_later(tarn_synced *buffer, tarn_access *access) {
  hold_begin(&held, on0);
  assert_ok(tarn_synced_begin(buffer, 0, TARN_ALL, at0, TARN_WRITE_DISCARD, on0,
                              access));
  queue_write(access, device0, 3);
  assert_ok(tarn_synced_end(access));
}

static void assert_all_lost(tarn_synced *buffer) {
  tarn_access access;
  assert_status(tarn_synced_begin(buffer, 0, TARN_ALL, TARN_HOST, TARN_READ,
                                  NULL, &access),
                TARN_E_STATE);
  assert_error_says("when a stream failed");
  verify(buffer);
}

TEST_ON(a_copy_of_what_failed_is_void, QUEUES) {
  tarn_synced *x = set_up_on(device);
  tarn_access a;
  write_later(x, &a);
  assert_ok(tarn_synced_prefetch(x, 0, TARN_ALL, TARN_HOST, other0, NULL));
  fail_now(x, on0);
  assert_all_lost(x);
  write_at(x, 0, SIZE, TARN_HOST, NULL, 4);
  expect_at(x, 0, SIZE, at0, 4);
}

TEST_ON(a_write_upon_what_failed_is_cancelled, QUEUES) {
  tarn_synced *x = set_up_on(device);
  tarn_access a;
  write_later(x, &a);
  assert_ok(tarn_synced_begin(x, 0, TARN_ALL, TARN_HOST, TARN_READ_WRITE,
                              other0, &a));
  fail_now(x, on0);
  assert_status(tarn_synced_end(&a), TARN_E_DEVICE);
  assert_error_says("a write was cancelled");
  assert_all_lost(x);
}

TEST_ON(a_write_upon_what_fails_later_is_void, QUEUES) {
  tarn_synced *x = set_up_on(device);
  tarn_access a;
  write_later(x, &a);
  assert_ok(
      tarn_synced_begin(x, 0, TARN_ALL, at0, TARN_READ_WRITE, other0, &a));
  assert_ok(tarn_synced_end(&a));
  fail_now(x, on0);
  assert_all_lost(x);
  // A discarding write does not depend on it.
  write_later(x, &a);
  assert_ok(
      tarn_synced_begin(x, 0, TARN_ALL, at0, TARN_WRITE_DISCARD, other0, &a));
  queue_write(&a, device0, 5);
  assert_ok(tarn_synced_end(&a));
  hold_end(&held);
  expect_at(x, 0, SIZE, TARN_HOST, 5);
}

TEST_ON(another_copy_is_taken_where_one_failed, QUEUES) {
  tarn_synced *x = set_up_on(device);
  write_at(x, 0, SIZE, TARN_HOST, NULL, 6);
  hold_begin(&held, on0);
  assert_ok(tarn_synced_prefetch(x, 0, TARN_ALL, at0, on0, NULL));
  fail_now(x, on0);
  expect_at(x, 0, SIZE, at0, 6);
  assert_moved(x, TARN_HOST, at0, 2, 2 * SIZE);
}
