// caffe_kit.h - a buffer between the host and two devices, and what is to be
// seen of it from outside: contents, memory, traffic.
#ifndef TARN_TESTS_SYNCED_CAFFE_KIT_H_
#define TARN_TESTS_SYNCED_CAFFE_KIT_H_

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/hold.h"
#include "support/on_devices.h"
#include "tarn/sim.h"
#include "tarn/synced.h"
#include "tarn/traffic.h"

enum { SIZE = 4096, HALF = SIZE / 2 };

static tarn_device *gpu;
static tarn_device *other;  // of the same plug-in
static tarn_synced *x;

static inline tarn_synced *buffer_on(tarn_device *device, size_t size) {
  tarn_synced_options options = {
      .struct_size = sizeof options, .name = "x", .device = device};
  tarn_synced *buffer = NULL;
  assert_ok(tarn_synced_create(size, &options, &buffer));
  return buffer;
}

static inline tarn_synced *view_of(tarn_synced *buffer, size_t offset,
                                   size_t size) {
  tarn_synced *view = NULL;
  assert_ok(tarn_synced_view(buffer, offset, size, &view));
  return view;
}

static inline void end_x(void *context) {
  (void)context;
  assert_ok(tarn_synced_destroy(x));
  ck_assert_uint_eq(tarn_sim_misuses(NULL, 0), 0);
}

// Until close_devices, or close_x, or the end of the test. Devices refuse to
// close while memory is held there.
static inline void open_devices(tarn_device *device) {
  gpu = device;
  other = open_second(device);
  after_test(end_x, &gpu);
}

static inline void close_devices(void) {
  forget(&gpu);
  close_device(other);
  close_device(gpu);
  ck_assert_uint_eq(tarn_sim_misuses(NULL, 0), 0);
}

static inline void close_x(void) {
  assert_ok(tarn_synced_destroy(x));
  close_devices();
}

static inline void open_x(tarn_device *device) {
  open_devices(device);
  x = buffer_on(gpu, SIZE);
}

// Tests of |x|; ASYNC: that hold a stream up.
#define TEST_X(name) TEST_SET_ON(name, TEST_NEEDS_DISCRETE, open_x)
#define TEST_X_ASYNC(name) \
  TEST_SET_ON(name, TEST_NEEDS_DISCRETE | TEST_NEEDS_STREAMS, open_x)

// For tests of calls that fail, and of what only sim can do or reports.
static inline tarn_device *sim(void) {
  return open_device("sim:0");
}

enum { CAPACITY = 4 << 20, LARGE = 1 << 20 };

// A large |x|, and a device that has no room for it before give_room.
static inline void open_full(tarn_addr *out_taken) {
  tarn_sim_options options = {.struct_size = sizeof options,
                              .capacity = CAPACITY};
  assert_ok(tarn_sim_configure(&options));
  open_devices(sim());
  assert_ok(tarn_device_allocate(tarn_place_on(gpu), CAPACITY - LARGE / 2,
                                 out_taken));
  x = buffer_on(gpu, LARGE);
}

static inline void give_room(tarn_addr taken) {
  assert_ok(
      tarn_device_deallocate(tarn_place_on(gpu), taken, CAPACITY - LARGE / 2));
}

static inline tarn_stream *stream_on(tarn_device *device) {
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_create(device, &stream));
  return stream;
}

// --- a stream that is held up ----------------------------------------------

static inline void *run_hold_end_later(void *context) {
  struct timespec some = {.tv_nsec = 20000000L};
  nanosleep(&some, NULL);
  hold_end(context);
  return NULL;
}

// Another thread does, in a while: a call that does not wait is too early.
static inline pthread_t hold_end_later(hold *held) {
  pthread_t thread;
  ck_assert_int_eq(pthread_create(&thread, NULL, run_hold_end_later, held), 0);
  return thread;
}

static inline void join_thread(pthread_t thread) {
  ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

// --- traffic ---------------------------------------------------------------

typedef struct traffic_want {
  tarn_place from;
  tarn_place to;
  tarn_traffic found;
  uint64_t copies;  // of all pairs
  uint64_t moved;
} traffic_want;

static inline bool is_same_place(tarn_place a, tarn_place b) {
  bool both_host = a.kind == TARN_PLACE_HOST && b.kind == TARN_PLACE_HOST;
  return both_host || tarn_place_equal(a, b);
}

static inline tarn_status note_traffic(void *context,
                                       const tarn_traffic *traffic) {
  traffic_want *want = context;
  want->copies += traffic->copies;
  want->moved += traffic->bytes_moved;
  if (is_same_place(traffic->from, want->from) &&
      is_same_place(traffic->to, want->to)) {
    want->found = *traffic;
  }
  return TARN_OK;
}

static inline traffic_want traffic_of(tarn_synced *buffer, tarn_place from,
                                      tarn_place to) {
  traffic_want want = {.from = from, .to = to};
  assert_ok(tarn_synced_traffic(buffer, note_traffic, &want));
  return want;
}

static inline tarn_traffic between(tarn_synced *buffer, tarn_place from,
                                   tarn_place to) {
  return traffic_of(buffer, from, to).found;
}

static inline tarn_traffic h2d(void) {
  return between(x, TARN_HOST, tarn_place_on(gpu));
}

static inline tarn_traffic d2h(void) {
  return between(x, tarn_place_on(gpu), TARN_HOST);
}

static inline uint64_t all_copies(void) {
  return traffic_of(x, TARN_HOST, TARN_HOST).copies;
}

static inline uint64_t all_moved(void) {
  return traffic_of(x, TARN_HOST, TARN_HOST).moved;
}

// --- what it is like -------------------------------------------------------

static inline tarn_synced_info info_of(tarn_synced *buffer, size_t offset,
                                       size_t size, tarn_place place) {
  tarn_synced_info info = {.struct_size = sizeof info};
  assert_ok(tarn_synced_query(buffer, offset, size, place, &info));
  return info;
}

static inline tarn_synced_info info_at(tarn_place place) {
  return info_of(x, 0, TARN_ALL, place);
}

#define assert_head(buffer, expected)                                \
  ck_assert_str_eq(tarn_synced_state_name(tarn_synced_head(buffer)), \
                   tarn_synced_state_name(expected))

// --- contents --------------------------------------------------------------

static inline unsigned char pattern_at(size_t offset, unsigned seed) {
  return (unsigned char)(seed * 37 + offset * 7 + (offset >> 8));
}

static inline void fill_pattern(unsigned char *bytes, size_t offset,
                                size_t size, unsigned seed) {
  for (size_t i = 0; i < size; i++)
    bytes[i] = pattern_at(offset + i, seed);
}

// |seed| 0: zeros.
static inline void assert_pattern(const unsigned char *bytes, size_t offset,
                                  size_t size, unsigned seed) {
  for (size_t i = 0; i < size; i++) {
    unsigned char want = seed == 0 ? 0 : pattern_at(offset + i, seed);
    if (bytes[i] != want) {
      ck_abort_msg("byte %zu is %u, not %u", offset + i, bytes[i], want);
    }
  }
}

// Straight at a device's memory, past the buffer.
static inline void put_on(tarn_device *device, tarn_addr address, size_t offset,
                          size_t size, unsigned seed) {
  unsigned char bytes[SIZE];
  require(size <= sizeof bytes);
  fill_pattern(bytes, offset, size, seed);
  assert_ok(tarn_copy_h2d(device, address, bytes, size, NULL));
}

static inline void assert_on(tarn_device *device, tarn_addr address,
                             size_t offset, size_t size, unsigned seed) {
  unsigned char bytes[SIZE];
  require(size <= sizeof bytes);
  assert_ok(tarn_copy_d2h(device, bytes, address, size, NULL));
  assert_pattern(bytes, offset, size, seed);
}

static inline void begin_on(tarn_access *access, tarn_synced *buffer,
                            size_t offset, size_t size, tarn_place place,
                            uint32_t mode) {
  assert_ok(tarn_synced_begin(buffer, offset, size, place, mode, NULL, access));
}

// A write of the whole range, of what |seed| says at its offsets in the whole
// buffer.
static inline void write_range(tarn_synced *buffer, size_t offset, size_t size,
                               tarn_place place, unsigned seed) {
  tarn_access access;
  assert_ok(tarn_synced_begin(buffer, offset, size, place, TARN_WRITE_DISCARD,
                              NULL, &access));
  if (access.pointer != NULL) {
    fill_pattern(access.pointer, access.offset, access.size, seed);
  } else {
    put_on(place.device, access.address, access.offset, access.size, seed);
  }
  assert_ok(tarn_synced_end(&access));
}

static inline void assert_range(tarn_synced *buffer, size_t offset, size_t size,
                                tarn_place place, unsigned seed) {
  tarn_access access;
  assert_ok(
      tarn_synced_begin(buffer, offset, size, place, TARN_READ, NULL, &access));
  if (access.pointer != NULL) {
    assert_pattern(access.pointer, access.offset, access.size, seed);
  } else {
    assert_on(place.device, access.address, access.offset, access.size, seed);
  }
  assert_ok(tarn_synced_end(&access));
}

#endif  // TARN_TESTS_SYNCED_CAFFE_KIT_H_
