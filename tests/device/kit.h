// kit.h - what tests of the device room open. It is closed after the test, or
// by the functions that end it.
#ifndef TARN_TESTS_DEVICE_KIT_H_
#define TARN_TESTS_DEVICE_KIT_H_

#include "support/fake_extension.h"
#include "support/fake_plugin.h"
#include "support/places.h"
#include "support/run.h"

// --- devices ---------------------------------------------------------------

static inline tarn_device *open_fake(void) {
  return open_device("fake:0");
}

// --- streams and events ----------------------------------------------------

static inline void destroy_stream(void *stream) {
  assert_ok(tarn_stream_destroy(stream));
}

static inline tarn_stream *stream_on(tarn_device *device) {
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_create(device, &stream));
  after_test(destroy_stream, stream);
  return stream;
}

static inline void end_stream(tarn_stream *stream) {
  forget(stream);
  destroy_stream(stream);
}

// The same for one that has failed.
static inline void end_failed_stream(tarn_stream *stream) {
  forget(stream);
  assert_status(tarn_stream_destroy(stream), TARN_E_DEVICE);
}

static inline void destroy_event(void *event) {
  assert_ok(tarn_event_destroy(event));
}

static inline tarn_event *event_on(tarn_device *device) {
  tarn_event *event = NULL;
  assert_ok(tarn_event_create(device, &event));
  after_test(destroy_event, event);
  return event;
}

static inline void end_event(tarn_event *event) {
  forget(event);
  destroy_event(event);
}

// --- memory ----------------------------------------------------------------

static inline tarn_addr take(tarn_device *device, size_t size) {
  tarn_addr addr = 0;
  assert_ok(tarn_device_allocate(tarn_place_on(device), size, &addr));
  ck_assert_uint_ne(addr, 0);
  return addr;
}

static inline void give(tarn_device *device, tarn_addr addr, size_t size) {
  assert_ok(tarn_device_deallocate(tarn_place_on(device), addr, size));
}

// --- the fake --------------------------------------------------------------

#define MISSES_EVENTS                                            \
  (FAKE_MISSES(create_event) | FAKE_MISSES(record_event) |       \
   FAKE_MISSES(destroy_event) | FAKE_MISSES(synchronize_event) | \
   FAKE_MISSES(query_event) | FAKE_MISSES(stream_wait_event))
#define MISSES_STREAMS                                           \
  (FAKE_MISSES(create_stream) | FAKE_MISSES(destroy_stream) |    \
   FAKE_MISSES(synchronize_stream) | FAKE_MISSES(query_stream) | \
   FAKE_MISSES(stream_add_callback))

static const int one = 1;
static const int two = 2;

// Queues a copy of |*value| to |*cell|, both in host memory. The fake plug-in
// makes it when a thread waits for the stream.
static inline void queue_write(tarn_stream *stream, int *cell,
                               const int *value) {
  assert_ok(tarn_copy_h2d(tarn_stream_device(stream), tarn_addr_of(cell), value,
                          sizeof *cell, stream));
}

#endif  // TARN_TESTS_DEVICE_KIT_H_
