// Streams that fail after the library has made points in them. Bytes that they
// were to write are never taken for valid.
#include <sched.h>
#include <stdatomic.h>

#include "kit.h"
#include "tarn/traffic.h"

enum { SIZE = 4000 };

static tarn_device *sim0;
static tarn_device *sim1;
static tarn_place at0;
static tarn_place at1;

static tarn_stream *broken;  // on sim:0
static tarn_synced *x;

static tarn_stream *stream_on(tarn_device *device) {
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_create(device, &stream));
  return stream;
}

static void set_up(void) {
  sim0 = sim_open("sim:0");
  sim1 = sim_open("sim:1");
  at0 = tarn_place_on(sim0);
  at1 = tarn_place_on(sim1);
  broken = stream_on(sim0);
  x = new_buffer(SIZE);
}

static atomic_bool may_run;

static void hold_up(void *context, tarn_status status) {
  (void)context;
  (void)status;
  while (!atomic_load(&may_run))
    sched_yield();
}

// What is on |broken| from now on is behind an operation that will fail: a copy
// into a block that is gone when it runs. Nothing runs there until let_run.
static void break_later(void) {
  static const char byte = 1;
  tarn_addr gone = sim_take(sim0, 1);
  atomic_store(&may_run, false);
  assert_ok(tarn_stream_add_callback(broken, hold_up, NULL));
  assert_ok(tarn_copy_h2d(sim0, gone, &byte, 1, broken));
  sim_give(sim0, gone, 1);
}

static void let_run(void) {
  atomic_store(&may_run, true);
}

static void end_broken(void) {
  assert_status(tarn_stream_destroy(broken), TARN_E_DEVICE);
}

static void close_devices(void) {
  assert_ok(tarn_device_close(sim0));
  assert_ok(tarn_device_close(sim1));
}

// |other|: one more stream to destroy, or NULL.
static void tear_down(tarn_stream *other) {
  assert_ok(tarn_synced_destroy(x));
  if (other != NULL) assert_ok(tarn_stream_destroy(other));
  end_broken();
  close_devices();
}

static tarn_synced_info info_of(tarn_synced *buffer, tarn_place place) {
  tarn_synced_info info = {.struct_size = sizeof info};
  assert_ok(tarn_synced_query(buffer, 0, TARN_ALL, place, &info));
  return info;
}

// --- prefetches ------------------------------------------------------------

TEST(a_copy_that_never_came) {
  set_up();
  write_at(x, 0, SIZE, TARN_HOST, NULL, 1);
  write_at(x, 0, SIZE, at0, NULL, 2);
  write_at(x, 100, SIZE - 100, TARN_HOST, NULL, 3);
  break_later();
  assert_ok(tarn_synced_prefetch(x, 100, 500, at0, broken, NULL));
  let_run();
  expect_at(x, 100, SIZE - 100, at0, 3);
  expect_at(x, 0, 100, at0, 2);
  expect_at(x, 100, SIZE - 100, TARN_HOST, 3);
  ck_assert_uint_eq(info_of(x, at0).lost, 0);
  tear_down(NULL);
}

// From the host to the one, from there to the other, and the first has failed.
TEST(a_copy_of_what_never_came) {
  set_up();
  tarn_stream *other = stream_on(sim0);
  write_at(x, 0, SIZE, TARN_HOST, NULL, 4);
  break_later();
  assert_ok(tarn_synced_prefetch(x, 0, SIZE, at0, broken, NULL));
  assert_ok(tarn_synced_prefetch(x, 0, SIZE, at1, other, NULL));
  let_run();
  tarn_status status = tarn_stream_synchronize(other);
  (void)status;  // nothing is wrong with this one
  expect_at(x, 0, SIZE, at1, 4);
  expect_at(x, 0, SIZE, at0, 4);
  assert_ok(tarn_synced_destroy(x));
  (void)tarn_stream_destroy(other);
  end_broken();
  close_devices();
}

// --- writes ----------------------------------------------------------------

static size_t told_lost;

static void note_lost(void *context, const tarn_synced_event *event) {
  (void)context;
  if (event->what == TARN_SYNCED_LOST) told_lost += event->size;
}

TEST(a_write_that_never_came) {
  set_up();
  tarn_access a;
  told_lost = 0;
  assert_ok(tarn_synced_trace(note_lost, NULL));
  write_at(x, 0, SIZE, TARN_HOST, NULL, 5);
  assert_ok(
      tarn_synced_begin(x, 1000, 500, at0, TARN_WRITE_DISCARD, broken, &a));
  break_later();
  assert_ok(tarn_synced_end(&a));
  let_run();
  assert_status(tarn_synced_begin(x, 0, SIZE, TARN_HOST, TARN_READ, NULL, &a),
                TARN_E_STATE);
  assert_error_says("bytes 1000 to 1500 are lost");
  assert_error_says("failed");
  expect_at(x, 0, 1000, TARN_HOST, 5);
  expect_at(x, 1500, SIZE - 1500, TARN_HOST, 5);
  ck_assert_uint_eq(info_of(x, at0).lost, 500);
  ck_assert_uint_eq(told_lost, 500);
  write_at(x, 1000, 500, TARN_HOST, NULL, 6);
  expect_at(x, 1000, 500, at0, 6);
  assert_ok(tarn_synced_trace(NULL, NULL));
  tear_down(NULL);
}

// A query that comes first must not hide it from a later read.
TEST(a_query_that_finds_it) {
  set_up();
  tarn_access a;
  write_at(x, 0, SIZE, TARN_HOST, NULL, 5);
  assert_ok(tarn_synced_begin(x, 0, 500, at0, TARN_WRITE_DISCARD, broken, &a));
  break_later();
  assert_ok(tarn_synced_end(&a));
  assert_ok(tarn_synced_prefetch(x, 1000, 500, at0, broken, NULL));
  let_run();
  assert_status(tarn_stream_synchronize(broken), TARN_E_DEVICE);
  ck_assert_uint_eq(info_of(x, at0).lost, 500);
  ck_assert_int_eq(tarn_synced_head(x), TARN_HEAD_ELSEWHERE);
  assert_status(tarn_synced_begin(x, 0, 500, TARN_HOST, TARN_READ, NULL, &a),
                TARN_E_STATE);
  assert_status(tarn_synced_begin(x, 0, 500, at0, TARN_READ, NULL, &a),
                TARN_E_STATE);
  expect_at(x, 1000, 500, at0, 5);
  expect_at(x, 500, SIZE - 500, TARN_HOST, 5);
  tear_down(NULL);
}

// The stream that reads has not failed; the copy that came before has.
TEST_LOOP(who_has_read_what_never_came_is_told, 2) {
  set_up();
  tarn_stream *other = stream_on(sim0);
  tarn_access a;
  write_at(x, 0, SIZE, TARN_HOST, NULL, 7);
  break_later();
  assert_ok(tarn_synced_prefetch(x, 100, 500, at0, broken, NULL));
  assert_ok(tarn_synced_begin(x, 100, 500, at0, TARN_READ, other, &a));
  let_run();
  assert_status(tarn_stream_synchronize(broken), TARN_E_DEVICE);
  ck_assert_uint_eq(info_of(x, at0).valid, 0);  // finds it
  assert_status(_i == 0 ? tarn_synced_end(&a) : tarn_synced_cancel(&a, NULL),
                TARN_E_DEVICE);
  assert_error_says("brought its bytes failed");
  ck_assert_ptr_null(a.buffer);
  expect_at(x, 0, SIZE, at0, 7);
  tear_down(other);
}

// All of a write or nothing of it, though some of its bytes were there.
TEST(a_write_partly_on_top_of_what_never_came) {
  set_up();
  tarn_stream *other = stream_on(sim0);
  tarn_access a;
  write_at(x, 0, SIZE, TARN_HOST, NULL, 7);
  expect_at(x, 0, SIZE, at0, 7);
  write_at(x, 100, 500, TARN_HOST, NULL, 8);
  break_later();
  assert_ok(tarn_synced_prefetch(x, 100, 500, at0, broken, NULL));
  assert_ok(tarn_synced_begin(x, 0, SIZE, at0, TARN_READ_WRITE, other, &a));
  let_run();
  assert_status(tarn_stream_synchronize(broken), TARN_E_DEVICE);
  (void)info_of(x, at0);  // finds it
  assert_ok(tarn_copy_h2d(sim0, a.address, "changed", 7, other));
  assert_status(tarn_synced_end(&a), TARN_E_DEVICE);
  assert_error_says("cancelled, 0 bytes are lost");
  expect_at(x, 0, 100, TARN_HOST, 7);
  expect_at(x, 100, 500, TARN_HOST, 8);
  expect_at(x, 0, 100, at0, 7);
  tear_down(other);
}

// What is written on top of bytes that never came does not count; either the
// end says so, or the next read.
TEST(a_write_on_top_of_what_never_came) {
  set_up();
  tarn_stream *other = stream_on(sim1);
  tarn_access a;
  write_at(x, 0, SIZE, TARN_HOST, NULL, 7);
  break_later();
  assert_ok(tarn_synced_prefetch(x, 0, SIZE, at0, broken, NULL));
  assert_ok(tarn_synced_begin(x, 0, SIZE, at1, TARN_READ_WRITE, other, &a));
  tarn_status ended = tarn_synced_end(&a);
  let_run();
  tarn_status status = tarn_stream_synchronize(other);
  (void)status;
  if (ended == TARN_OK) {
    assert_status(tarn_synced_begin(x, 0, SIZE, TARN_HOST, TARN_READ, NULL, &a),
                  TARN_E_STATE);
  } else {
    ck_assert_int_eq(ended, TARN_E_DEVICE);
    expect_at(x, 0, SIZE, TARN_HOST, 7);
  }
  (void)tarn_synced_destroy(x);
  (void)tarn_stream_destroy(other);
  end_broken();
  close_devices();
}

// The stream failed behind the write: the write is as good as any.
TEST(a_failure_behind_a_write) {
  set_up();
  tarn_access a;
  static unsigned char bytes[SIZE];
  memset(bytes, 8, SIZE);
  assert_ok(tarn_synced_begin(x, 0, SIZE, at0, TARN_WRITE_DISCARD, broken, &a));
  assert_ok(tarn_copy_h2d(sim0, a.address, bytes, SIZE, broken));
  assert_ok(tarn_synced_end(&a));
  break_later();
  let_run();
  tarn_status status = tarn_stream_synchronize(broken);
  ck_assert_int_eq(status, TARN_E_DEVICE);
  expect_at(x, 0, SIZE, TARN_HOST, 8);
  tear_down(NULL);
}

// --- ends ------------------------------------------------------------------

TEST(the_end_of_a_buffer) {
  set_up();
  write_at(x, 0, SIZE, TARN_HOST, NULL, 9);
  break_later();
  assert_ok(tarn_synced_prefetch(x, 0, SIZE, at0, broken, NULL));
  let_run();
  tarn_status status = tarn_synced_destroy(x);
  ck_assert(status == TARN_OK || status == TARN_E_DEVICE);
  end_broken();
  close_devices();  // nothing was left there
}

// The host's bytes were to come by a stream that has failed, and the device
// closes before a call has found that.
TEST(the_end_of_a_device) {
  set_up();
  tarn_access a;
  write_at(x, 0, SIZE, at1, NULL, 10);
  assert_ok(
      tarn_synced_begin(x, 0, 100, TARN_HOST, TARN_WRITE_DISCARD, broken, &a));
  break_later();
  assert_ok(tarn_synced_end(&a));
  let_run();
  end_broken();
  told_lost = 0;
  assert_ok(tarn_synced_trace(note_lost, NULL));
  assert_ok(tarn_device_close(sim0));
  ck_assert_uint_eq(info_of(x, TARN_HOST).lost, 100);
  ck_assert_uint_eq(told_lost, 100);
  expect_at(x, 100, SIZE - 100, TARN_HOST, 10);
  assert_ok(tarn_synced_trace(NULL, NULL));
  assert_ok(tarn_synced_destroy(x));
  assert_ok(tarn_device_close(sim1));
}
