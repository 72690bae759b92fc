// Streams and events of others: one object for one handle, counted.
#include <stdint.h>
#include <unistd.h>

#include "adopt_kit.h"
#include "support/child.h"
#include "support/faults.h"
#include "tarn/pool.h"

// --- one object for one handle ---------------------------------------------

TEST(the_same_handle_gives_the_same_stream) {
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
}

TEST(handles_of_two_devices_are_apart) {
  tarn_device *device = open_fake();
  tarn_device *second = open_device("fake:1");
  C_Stream native = native_stream(device);
  tarn_stream *stream = adopt(device, native);
  tarn_stream *other = adopt(second, native);
  ck_assert_ptr_ne(stream, other);
  ck_assert_ptr_eq(tarn_stream_device(other), second);
  assert_ok(tarn_stream_destroy(other));
  assert_ok(tarn_stream_destroy(stream));
  end_native_stream(device, native);
  fake_seen.wrong_device = 0;  // by the calls of this test itself
}

TEST(a_stream_that_tarn_made_is_counted_too) {
  static int cell;
  tarn_device *device = open_fake();
  tarn_stream *made = stream_on(device);
  ck_assert_ptr_eq(adopt(device, tarn_stream_native(made)), made);
  queue_native(device, tarn_stream_native(made), &cell);
  assert_ok(tarn_stream_destroy(made));
  ck_assert_int_eq(cell, 0);  // that was not the last one
  ck_assert_uint_eq(fake_seen.streams, 1);
  end_stream(made);
  ck_assert_int_eq(cell, 1);
  ck_assert_uint_eq(fake_seen.streams, 0);
}

TEST(many_streams_are_found_and_nothing_is_kept) {
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
}

// --- what cannot be adopted ------------------------------------------------

TEST(without_streams_none_is_adopted) {
  fake.missing = MISSES_STREAMS | MISSES_EVENTS;
  tarn_device *device = open_fake();
  tarn_stream *stream = (tarn_stream *)&one;
  assert_status(tarn_stream_adopt(device, &stream, &stream),
                TARN_E_UNSUPPORTED);
  ck_assert_ptr_null(stream);
  assert_error_says("fake:0 has no streams");
}

TEST(without_a_slot_null_is_no_stream) {
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
}

TEST(without_events_none_is_adopted) {
  fake.missing = MISSES_EVENTS;
  tarn_device *device = open_fake();
  tarn_event *event = (tarn_event *)&one;
  assert_status(tarn_event_adopt(device, &event, &event), TARN_E_UNSUPPORTED);
  ck_assert_ptr_null(event);
  assert_error_says("fake:0 has no events");
}

// --- the default stream ----------------------------------------------------

TEST(null_is_the_default_stream_of_the_plug_in) {
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
}

TEST(sim_has_a_default_stream) {
  unsigned char bytes[4096] = {7};
  unsigned char back[4096] = {0};
  tarn_device *sim = open_device("sim:0");
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
}

// --- events ----------------------------------------------------------------

TEST(the_same_handle_gives_the_same_event) {
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
}

// Tarn has not recorded it, so only the driver knows.
TEST(the_driver_is_asked_about_an_adopted_event) {
  static int cell;
  tarn_device *device = open_fake();
  C_Stream native = native_stream(device);
  C_Event mark = native_event(device);
  tarn_event *event = NULL;
  assert_ok(tarn_event_adopt(device, mark, &event));
  assert_ok(tarn_event_query(event));  // never recorded
  queue_native(device, native, &cell);
  ck_assert_int_eq(device->abi->record_event(&device->handle, native, mark),
                   C_SUCCESS);
  assert_status(tarn_event_query(event), TARN_PENDING);

  tarn_stream *waiting = stream_on(device);
  assert_ok(tarn_stream_wait_event(waiting, event));
  ck_assert_int_eq(cell, 0);
  assert_ok(tarn_stream_synchronize(waiting));
  ck_assert_int_eq(cell, 1);
  assert_ok(tarn_event_query(event));

  // The owner records it again: it is pending again.
  cell = 0;
  queue_native(device, native, &cell);
  ck_assert_int_eq(device->abi->record_event(&device->handle, native, mark),
                   C_SUCCESS);
  assert_status(tarn_event_query(event), TARN_PENDING);
  assert_ok(tarn_event_synchronize(event));
  ck_assert_int_eq(cell, 1);
  assert_ok(tarn_event_record(event, waiting));
  assert_ok(tarn_event_query(event));

  assert_ok(tarn_event_destroy(event));
  end_native_event(device, mark);
  end_stream(waiting);
  end_native_stream(device, native);
}

// An event of Tarn's own, whose handle another part of the program records.
TEST(the_driver_is_asked_about_an_event_that_tarn_made_too) {
  static int cell;
  tarn_device *device = open_fake();
  C_Stream native = native_stream(device);
  tarn_event *event = NULL;
  tarn_event *made = event_on(device);
  C_Event mark = tarn_event_native(made);
  assert_ok(tarn_event_adopt(device, mark, &event));
  queue_native(device, native, &cell);
  ck_assert_int_eq(device->abi->record_event(&device->handle, native, mark),
                   C_SUCCESS);
  assert_status(tarn_event_query(event), TARN_PENDING);
  assert_ok(tarn_event_synchronize(event));
  ck_assert_int_eq(cell, 1);
  end_event(made);
  assert_ok(tarn_event_destroy(event));
  ck_assert_uint_eq(fake_seen.events, 0);  // Tarn's, which ends it
  end_native_stream(device, native);
}

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

// Whatever fails: once the stream is gone, its queued work is done, or a call
// has reported that the driver failed to wait; nothing is kept.
static void come_and_go(void *context) {
  const natives *n = context;
  static int cell;
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

TEST(whatever_fails_order_holds) {
  faults_install();
  fake.strikes = true;
  tarn_device *device = open_fake();
  natives n = {device, native_stream(device), native_event(device)};
  ck_assert_uint_gt(faults_sweep(come_and_go, &n), 10);
  end_native_event(device, n.event);
  end_native_stream(device, n.stream);
  ck_assert_uint_eq(fake_seen.events, 0);
}

// --- forks -----------------------------------------------------------------

TEST(a_child_frees_host_memory_only) {
  static int cell;
  tarn_device *device = open_fake();
  C_Stream native = native_stream(device);
  C_Event mark = native_event(device);
  tarn_event *event = NULL;
  tarn_stream *stream = adopt(device, native);
  queue_native(device, native, &cell);
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
  close_device(device);
  ck_assert_uint_eq(fake_seen.events, 0);
}
