// Streams that are put behind others without the host waiting, on a device
// whose queues run only when somebody waits: who waited is seen.
#include "device/memory.h"
#include "support/fake_plugin.h"
#include "support/run.h"
#include "tarn/device.h"

static const int one = 1;

static tarn_device *open_named(const char *name) {
  tarn_device *device = NULL;
  assert_ok(tarn_device_open(name, &device));
  return device;
}

static tarn_stream *stream_on(tarn_device *device) {
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_create(device, &stream));
  return stream;
}

static void queue_write(tarn_stream *stream, int *cell, const int *value) {
  assert_ok(tarn_copy_h2d(tarn_stream_device(stream), tarn_addr_of(cell), value,
                          sizeof *cell, stream));
}

TEST(a_wait_is_queued_or_it_is_pending) {
  fake_add();
  tarn_device *device = open_named("fake:0");
  tarn_stream *first = stream_on(device);
  tarn_stream *second = stream_on(device);
  uint64_t serial = tarn_stream_serial(first);
  int source = 0;
  int copy = 0;
  queue_write(first, &source, &one);
  ck_assert(!tarn__stream_is_idle(serial));
  assert_status(tarn__stream_join_at_once(NULL, serial), TARN_PENDING);
  assert_ok(tarn__stream_join_at_once(first, serial));
  assert_ok(tarn__stream_join_at_once(second, serial));
  ck_assert_int_eq(source, 0);
  ck_assert_uint_eq(fake_seen.waits, 0);
  queue_write(second, &copy, &source);
  assert_ok(tarn_stream_synchronize(second));
  ck_assert_int_eq(copy, 1);
  assert_ok(tarn_stream_synchronize(first));
  ck_assert(tarn__stream_is_idle(serial));
  assert_ok(tarn__stream_join_at_once(NULL, serial));
  assert_ok(tarn_stream_destroy(first));
  assert_ok(tarn__stream_join_at_once(second, serial));  // gone
  assert_ok(tarn__stream_join_at_once(NULL, 0));
  assert_ok(tarn_stream_destroy(second));
  assert_ok(tarn_device_close(device));
}

// What makes the host wait in tarn_stream_join.
static const uint64_t stands_in[] = {
    FAKE_MISSES(stream_wait_event),
    FAKE_MISSES(create_event) | FAKE_MISSES(record_event) |
        FAKE_MISSES(destroy_event) | FAKE_MISSES(synchronize_event) |
        FAKE_MISSES(query_event) | FAKE_MISSES(stream_wait_event),
};
enum { STAND_INS = sizeof stands_in / sizeof *stands_in };

TEST_LOOP(a_stand_in_that_waits_is_not_used, STAND_INS) {
  fake.missing = stands_in[_i];
  fake_add();
  tarn_device *device = open_named("fake:0");
  tarn_stream *first = stream_on(device);
  tarn_stream *second = stream_on(device);
  int cell = 0;
  queue_write(first, &cell, &one);
  uint64_t serial = tarn_stream_serial(first);
  assert_status(tarn__stream_join_at_once(second, serial), TARN_PENDING);
  ck_assert_int_eq(cell, 0);
  ck_assert_uint_eq(fake_seen.waits, 0);
  assert_ok(tarn_stream_destroy(first));
  assert_ok(tarn_stream_destroy(second));
  assert_ok(tarn_device_close(device));
}

TEST(without_query_nothing_is_known) {
  fake.missing = FAKE_MISSES(query_stream);
  fake_add();
  tarn_device *device = open_named("fake:0");
  tarn_stream *first = stream_on(device);
  int cell = 0;
  queue_write(first, &cell, &one);
  ck_assert(!tarn__stream_is_idle(tarn_stream_serial(first)));
  ck_assert_int_eq(cell, 0);
  assert_ok(tarn_stream_destroy(first));
  assert_ok(tarn_device_close(device));
}

TEST(across_plugins_it_is_pending) {
  fake_add();
  tarn_device *device = open_named("fake:0");
  tarn_device *cpu = open_named("cpu:0");
  tarn_stream *first = stream_on(device);
  tarn_stream *second = stream_on(cpu);
  int cell = 0;
  queue_write(first, &cell, &one);
  assert_status(tarn__stream_join_at_once(second, tarn_stream_serial(first)),
                TARN_PENDING);
  ck_assert_int_eq(cell, 0);
  assert_ok(tarn_stream_destroy(first));
  assert_ok(tarn_stream_destroy(second));
  assert_ok(tarn_device_close(device));
  assert_ok(tarn_device_close(cpu));
}

TEST(a_stream_that_failed_is_not_known_to_be_done) {
  fake_add();
  fake.sync_answer = C_ERROR;
  tarn_device *device = open_named("fake:0");
  tarn_stream *first = stream_on(device);
  tarn_stream *second = stream_on(device);
  uint64_t serial = tarn_stream_serial(first);
  assert_status(tarn_stream_synchronize(first), TARN_E_DEVICE);
  assert_status(tarn__stream_join_at_once(second, serial), TARN_PENDING);
  assert_status(tarn__stream_join_at_once(first, serial), TARN_E_DEVICE);
  fake.sync_answer = C_SUCCESS;
  (void)tarn_stream_destroy(first);
  assert_ok(tarn_stream_destroy(second));
  assert_ok(tarn_device_close(device));
}
