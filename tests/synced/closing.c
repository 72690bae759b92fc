// Devices that close: a buffer with memory there keeps the device open, a
// buffer that had memory there does not.
#include <stdio.h>

#include "sim/kit.h"
#include "support/on_devices.h"
#include "synced/core.h"
#include "tarn/synced.h"
#include "tarn/traffic.h"

enum { SIZE = 1000 };

static tarn_synced *buffer_for(const char *name, tarn_device *device) {
  tarn_synced_options options = {
      .struct_size = sizeof options, .name = name, .device = device};
  tarn_synced *buffer = NULL;
  assert_ok(tarn_synced_create(SIZE, &options, &buffer));
  return buffer;
}

static void write_all(tarn_synced *buffer, unsigned char value) {
  tarn_access access;
  assert_ok(tarn_synced_begin(buffer, 0, TARN_ALL, TARN_HOST,
                              TARN_WRITE_DISCARD, NULL, &access));
  memset(access.pointer, value, access.size);
  assert_ok(tarn_synced_end(&access));
}

static void assert_all(tarn_synced *buffer, unsigned char value) {
  tarn_access access;
  assert_ok(tarn_synced_begin(buffer, 0, TARN_ALL, TARN_HOST, TARN_READ, NULL,
                              &access));
  const unsigned char *bytes = access.pointer;
  for (size_t i = 0; i < access.size; i++)
    require(bytes[i] == value);
  assert_ok(tarn_synced_end(&access));
}

static void read_at(tarn_synced *buffer, tarn_place place,
                    tarn_stream *stream) {
  tarn_access access;
  assert_ok(tarn_synced_begin(buffer, 0, TARN_ALL, place, TARN_READ, stream,
                              &access));
  assert_ok(tarn_synced_end(&access));
}

// --- who keeps a device open -----------------------------------------------

TEST_ON(who_has_memory_there, TEST_NEEDS_DISCRETE) {
  tarn_synced *buffer = buffer_for("weights", NULL);
  write_all(buffer, 3);
  read_at(buffer, tarn_place_on(device), NULL);
  assert_status(tarn_device_close(device), TARN_E_STATE);
  assert_error_says("weights");
  read_at(buffer, tarn_place_on(device), NULL);  // it is still open
  assert_all(buffer, 3);
  assert_ok(tarn_synced_destroy(buffer));
}

TEST_ON(who_has_pinned_memory, TEST_NEEDS_DISCRETE) {
  tarn_synced *buffer = buffer_for("pinned", device);
  write_all(buffer, 3);
  assert_status(tarn_device_close(device), TARN_E_STATE);
  assert_error_says("pinned");
  assert_ok(tarn_synced_destroy(buffer));
}

TEST_ON(not_who_ended_before, TEST_NEEDS_DISCRETE) {
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_create(device, &stream));
  tarn_synced *buffer = buffer_for(NULL, device);
  write_all(buffer, 3);
  read_at(buffer, tarn_place_on(device), stream);
  assert_ok(tarn_synced_destroy(buffer));
  assert_ok(tarn_stream_destroy(stream));
}

// Named it, but never was there.
TEST_ON(not_who_only_names_it, TEST_NEEDS_DISCRETE) {
  tarn_synced *buffer = buffer_for(NULL, device);
  close_device(device);
  write_all(buffer, 4);
  assert_all(buffer, 4);
  assert_status(tarn_synced_push(buffer, 0, TARN_ALL, NULL, NULL),
                TARN_E_STATE);
  assert_ok(tarn_synced_destroy(buffer));
}

// --- who goes on without it ------------------------------------------------

static tarn_status assert_place_text(void *context,
                                     const tarn_traffic *traffic) {
  char text[64];
  (void)context;
  tarn_place_text(traffic->from, text, sizeof text);
  require(strcmp(text, "host") == 0 || strcmp(text, "nowhere") == 0);
  tarn_place_text(traffic->to, text, sizeof text);
  require(strcmp(text, "host") == 0 || strcmp(text, "nowhere") == 0);
  return TARN_OK;
}

TEST_ON(who_left_before, TEST_NEEDS_DISCRETE) {
  char name[64];
  snprintf(name, sizeof name, "%s", tarn_device_name(device));
  tarn_synced *buffer = buffer_for(NULL, NULL);
  write_all(buffer, 5);
  read_at(buffer, tarn_place_on(device), NULL);
  assert_ok(tarn_synced_evict(buffer, tarn_place_on(device)));
  close_device(device);
  assert_all(buffer, 5);
  assert_ok(tarn_synced_traffic(buffer, assert_place_text, NULL));
  assert_ok(tarn_synced_traffic(NULL, assert_place_text, NULL));

  device = open_device(name);  // the place is a new one
  read_at(buffer, tarn_place_on(device), NULL);
  assert_all(buffer, 5);
  assert_ok(tarn_synced_destroy(buffer));
}

// The host's bytes came by a stream that is gone; that the buffer has not
// looked since is no reason to keep the device open.
TEST_ON(who_still_knows_of_a_stream, TEST_NEEDS_DISCRETE) {
  tarn_stream *stream = NULL;
  tarn_access access;
  assert_ok(tarn_stream_create(device, &stream));
  tarn_synced *buffer = buffer_for(NULL, NULL);
  tarn_place there = tarn_place_on(device);
  assert_ok(tarn_synced_begin(buffer, 0, TARN_ALL, there, TARN_READ_WRITE, NULL,
                              &access));
  assert_ok(tarn_synced_end(&access));
  assert_ok(tarn_synced_prefetch(buffer, 0, TARN_ALL, TARN_HOST, stream, NULL));
  assert_ok(tarn_stream_synchronize(stream));
  assert_ok(tarn_stream_destroy(stream));
  assert_ok(tarn_synced_evict(buffer, there));
  close_device(device);
  assert_all(buffer, 0);
  assert_ok(tarn_synced_destroy(buffer));
}

// Memory of the host, for which a device's stream has worked.
TEST_ON(a_stream_that_read_the_host, TEST_NEEDS_DISCRETE) {
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_create(device, &stream));
  tarn_synced *buffer = buffer_for(NULL, NULL);
  write_all(buffer, 6);
  read_at(buffer, TARN_HOST, stream);  // a use of the host, on the stream
  assert_status(tarn_device_close(device), TARN_E_STATE);  // the stream
  assert_ok(tarn_stream_destroy(stream));
  close_device(device);
  write_all(buffer, 7);
  assert_all(buffer, 7);
  assert_ok(tarn_synced_destroy(buffer));
}

// --- one device after the other --------------------------------------------

// Places of devices that are gone count no more among those that a buffer may
// be at.
TEST_ON(more_than_there_may_be_at_once, TEST_NEEDS_DISCRETE) {
  tarn_synced *buffer = buffer_for(NULL, NULL);
  write_all(buffer, 8);
  for (int i = 0; i < 100; i++) {
    tarn_device *second = open_second(device);
    read_at(buffer, tarn_place_on(second), NULL);
    assert_ok(tarn_synced_evict(buffer, tarn_place_on(second)));
    close_device(second);
  }
  assert_all(buffer, 8);
  assert_ok(tarn_synced_destroy(buffer));
}
