// Streams that are put behind others without the host waiting, on a device
// whose queues run only when a caller waits: the test sees which call waited.
#include "device/memory.h"
#include "kit.h"

TEST(a_wait_is_queued_or_it_is_pending) {
  tarn_device *device = open_device("fake:0");
  tarn_stream *first = stream_on(device);
  tarn_stream *second = stream_on(device);
  uint64_t serial = tarn_stream_serial(first);
  static int source;
  static int copy;
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
  end_stream(first);
  assert_ok(tarn__stream_join_at_once(second, serial));  // gone
  assert_ok(tarn__stream_join_at_once(NULL, 0));
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
  tarn_device *device = open_device("fake:0");
  tarn_stream *first = stream_on(device);
  tarn_stream *second = stream_on(device);
  static int cell;
  queue_write(first, &cell, &one);
  uint64_t serial = tarn_stream_serial(first);
  assert_status(tarn__stream_join_at_once(second, serial), TARN_PENDING);
  ck_assert_int_eq(cell, 0);
  ck_assert_uint_eq(fake_seen.waits, 0);
}

TEST(without_query_nothing_is_known) {
  fake.missing = FAKE_MISSES(query_stream);
  tarn_device *device = open_device("fake:0");
  tarn_stream *first = stream_on(device);
  static int cell;
  queue_write(first, &cell, &one);
  ck_assert(!tarn__stream_is_idle(tarn_stream_serial(first)));
  ck_assert_int_eq(cell, 0);
}

TEST(across_plugins_it_is_pending) {
  tarn_device *device = open_device("fake:0");
  tarn_device *cpu = open_device("cpu:0");
  tarn_stream *first = stream_on(device);
  tarn_stream *second = stream_on(cpu);
  static int cell;
  queue_write(first, &cell, &one);
  assert_status(tarn__stream_join_at_once(second, tarn_stream_serial(first)),
                TARN_PENDING);
  ck_assert_int_eq(cell, 0);
}

TEST(a_stream_that_failed_is_not_known_to_be_done) {
  fake.sync_answer = C_ERROR;
  tarn_device *device = open_device("fake:0");
  tarn_stream *first = stream_on(device);
  tarn_stream *second = stream_on(device);
  uint64_t serial = tarn_stream_serial(first);
  assert_status(tarn_stream_synchronize(first), TARN_E_DEVICE);
  assert_status(tarn__stream_join_at_once(second, serial), TARN_PENDING);
  assert_status(tarn__stream_join_at_once(first, serial), TARN_E_DEVICE);
  fake.sync_answer = C_SUCCESS;
  forget(first);
  (void)tarn_stream_destroy(first);
}
