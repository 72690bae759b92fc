// faults_kit.h - a scenario with synced buffers of which any call
// may fail, and what must be true of their bytes when nothing fails any more.
#ifndef TARN_TESTS_SYNCED_FAULTS_KIT_H_
#define TARN_TESTS_SYNCED_FAULTS_KIT_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/effort.h"
#include "support/fake_plugin.h"
#include "support/faults.h"
#include "support/run.h"
#include "tarn/sim.h"
#include "tarn/synced.h"
#include "tarn/traffic.h"

enum { SIZE = 1024, PART = 64, PARTS = SIZE / PART, STREAMS = 3 };

// One run of a scenario.
static struct {
  const char *names[2];
  tarn_device *devices[2];
  tarn_stream *streams[STREAMS];  // the first is the host
  tarn_synced *buffer;
  unsigned char value[SIZE];
  bool may_be_lost[SIZE];
  bool on_stream[SIZE];  // its newest value was written by work on a stream
  bool invalid[SIZE];
  size_t told_lost;
  size_t failures;
} run;

// What a stream copies from, as long as it may.
static unsigned char patterns[256][SIZE];

static void make_patterns(void) {
  for (int c = 0; c < 256; c++) {
    for (size_t i = 0; i < SIZE; i++) {
      patterns[c][i] = (unsigned char)((size_t)c + i * 7 + (i >> 6));
    }
  }
}

// True if it went well. What did not has a reason and a text.
static bool well(tarn_status status) {
  if (status == TARN_OK) return true;
  if (status == TARN_E_INVALID || status == TARN_E_UNSUPPORTED) {
    ck_abort_msg("%s: %s", tarn_status_name(status), tarn_last_error());
  }
  require(status < 0 || status == TARN_FULL);
  require(tarn_last_error()[0] != '\0');
  run.failures++;
  return false;
}

static void count_lost(void *context, const tarn_synced_event *event) {
  (void)context;
  if (event->what == TARN_SYNCED_LOST) run.told_lost += event->size;
}

// ---------------------------------------------------------------------------
// Steps, each of which may fail
// ---------------------------------------------------------------------------

static tarn_place device_place(int index) {
  return tarn_place_on(run.devices[index]);
}

static void point_lost(size_t at, size_t size) {
  memset(run.may_be_lost + at, 1, size);
}

static bool fill(const tarn_access *a, tarn_place place, int stream,
                 const unsigned char *bytes) {
  if (a->pointer != NULL && run.streams[stream] == NULL) {
    memcpy(a->pointer, bytes, a->size);
    return true;
  }
  return well(tarn_copy_h2d(place.device, a->address, bytes, a->size,
                            run.streams[stream]));
}

static void committed(size_t at, size_t size, int stream,
                      const unsigned char *bytes) {
  for (size_t i = 0; i < size; i++) {
    run.value[at + i] = bytes[i];
    run.on_stream[at + i] = run.streams[stream] != NULL;
    run.may_be_lost[at + i] = false;
    run.invalid[at + i] = false;
  }
}

static void put(tarn_synced *buffer, size_t at, size_t size, tarn_place place,
                uint32_t mode, int stream, int pattern) {
  tarn_access a;
  size_t start = 0;
  if (buffer != run.buffer) start = SIZE / 4;  // the one view there is
  if (!well(tarn_synced_begin(buffer, at, size, place, mode,
                              run.streams[stream], &a))) {
    require(a.buffer == NULL && a.address == 0 && a.size == 0);
    return;
  }
  const unsigned char *bytes = patterns[pattern] + start + at;
  if (!fill(&a, place, stream, bytes)) {
    size_t lost = 0;
    well(tarn_synced_cancel(&a, &lost));
    if (lost > 0) point_lost(start + at, size);
  } else if (well(tarn_synced_end(&a))) {
    committed(start + at, size, stream, bytes);
  } else {
    point_lost(start + at, size);
  }
  require(a.buffer == NULL);
}

// Begins to write and thinks better of it.
static void cancel(size_t at, size_t size, tarn_place place, int stream) {
  tarn_access a;
  if (!well(tarn_synced_begin(run.buffer, at, size, place, TARN_READ_WRITE,
                              run.streams[stream], &a))) {
    return;
  }
  (void)fill(&a, place, stream, patterns[99] + at);
  size_t lost = 0;
  size_t told = run.told_lost;
  well(tarn_synced_cancel(&a, &lost));
  require(run.told_lost - told >= lost);
  if (lost > 0) point_lost(at, size);
}

static void take_away(size_t at, size_t size) {
  if (!well(tarn_synced_invalidate(run.buffer, at, size))) return;
  memset(run.invalid + at, 1, size);
}

// Bytes of |place| that can be read are the newest.
static void look(tarn_synced *buffer, size_t at, size_t size, tarn_place place,
                 int stream) {
  static unsigned char got[SIZE];
  size_t start = buffer != run.buffer ? SIZE / 4 : 0;
  tarn_access a;
  if (!well(tarn_synced_begin(buffer, at, size, place, TARN_READ,
                              run.streams[stream], &a))) {
    return;
  }
  bool read = true;
  if (a.pointer != NULL && run.streams[stream] == NULL) {
    memcpy(got, a.pointer, size);
  } else {
    memset(got, 0, size);
    read = well(
        tarn_copy_d2h(place.device, got, a.address, size, run.streams[stream]));
    if (stream != 0 && run.streams[stream] != NULL) {
      read = well(tarn_stream_synchronize(run.streams[stream])) && read;
    }
  }
  if (read) require(memcmp(got, run.value + start + at, size) == 0);
  well(tarn_synced_end(&a));
}

// ---------------------------------------------------------------------------
// The end of a run, where nothing fails any more
// ---------------------------------------------------------------------------

static void check_part(size_t at) {
  tarn_synced_info info = {.struct_size = sizeof info};
  tarn_access a;
  tarn_status status =
      tarn_synced_begin(run.buffer, at, PART, TARN_HOST, TARN_READ, NULL, &a);
  if (status == TARN_OK) {
    require(!run.invalid[at]);
    const unsigned char *got = a.pointer;
    for (size_t i = 0; i < PART; i++) {
      if (got[i] == run.value[at + i]) continue;
      ck_abort_msg("byte %zu is %u, not %u", at + i, got[i], run.value[at + i]);
    }
    assert_ok(tarn_synced_end(&a));
    return;
  }
  if (status != TARN_E_STATE) {
    ck_abort_msg("part at %zu: %s: %s", at, tarn_status_name(status),
                 tarn_last_error());
  }
  assert_ok(tarn_synced_query(run.buffer, at, PART, TARN_HOST, &info));
  require(info.lost > 0);
  bool may = false;
  for (size_t i = at; i < at + PART; i++) {
    may |= run.may_be_lost[i] || run.invalid[i] || run.on_stream[i];
  }
  if (!may) ck_abort_msg("part at %zu: %s", at, tarn_last_error());
}

static void check_all(void) {
  for (int i = 1; i < STREAMS; i++) {
    if (run.streams[i] != NULL) (void)!tarn_stream_synchronize(run.streams[i]);
  }
  for (size_t at = 0; at < SIZE && run.buffer != NULL; at += PART) {
    check_part(at);
  }
}

static void open_devices(void) {
  for (int i = 0; i < 2; i++) {
    run.devices[i] = NULL;
    well(tarn_device_open(run.names[i], &run.devices[i]));
  }
  for (int i = 1; i < STREAMS; i++) {
    run.streams[i] = NULL;
    tarn_device *device = run.devices[(i - 1) % 2];
    if (device != NULL) well(tarn_stream_create(device, &run.streams[i]));
  }
}

static void close_devices(void) {
  for (int i = 1; i < STREAMS; i++) {
    if (run.streams[i] != NULL) (void)tarn_stream_destroy(run.streams[i]);
  }
  for (int i = 0; i < 2; i++) {
    if (run.devices[i] != NULL) assert_ok(tarn_device_close(run.devices[i]));
  }
}

static void drop_idle(void) {
  tarn_pool *pool = NULL;
  assert_ok(tarn_pool_of(TARN_HOST, &pool));
  assert_ok(tarn_pool_trim(pool, 0));
}

// |play| between open and closed devices, the end without faults.
static void run_scenario(void (*play)(void)) {
  memset(run.value, 0, sizeof run.value);
  memset(run.may_be_lost, 0, sizeof run.may_be_lost);
  memset(run.on_stream, 0, sizeof run.on_stream);
  memset(run.invalid, 0, sizeof run.invalid);
  run.buffer = NULL;
  run.told_lost = 0;
  open_devices();
  if (run.devices[0] != NULL && run.devices[1] != NULL &&
      run.streams[1] != NULL && run.streams[2] != NULL) {
    tarn_synced_options options = {.struct_size = sizeof options,
                                   .name = "faulty",
                                   .device = run.devices[0]};
    if (well(tarn_synced_create(SIZE, &options, &run.buffer))) {
      play();
    } else {
      require(run.buffer == NULL);
    }
  }
  (void)faults_disarm();
  (void)!tarn_sim_faults(NULL);
  check_all();
  if (run.buffer != NULL) (void)tarn_synced_destroy(run.buffer);
  close_devices();
  drop_idle();
}

#endif  // TARN_TESTS_SYNCED_FAULTS_KIT_H_
