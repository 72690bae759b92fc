// timelines_kit.h - timelines under test: a device with two
// streams, one of which can be held up.
#ifndef TARN_TESTS_SYNCED_TIMELINES_KIT_H_
#define TARN_TESTS_SYNCED_TIMELINES_KIT_H_

#include "support/faults.h"
#include "support/hold.h"
#include "support/on_devices.h"
#include "synced/timelines.h"
#include "tarn/sim.h"

static tarn_stream *stream;
static tarn_stream *other;
static tarn__synced_timelines timelines;
static hold held;

static inline tarn_stream *stream_of(tarn_device *of) {
  tarn_stream *made = NULL;
  assert_ok(tarn_stream_create(of, &made));
  return made;
}

static inline void tear_down(void *context) {
  (void)context;
  ck_assert_ptr_null(timelines.first);
  tarn__timelines_deinit(&timelines);
  assert_ok(tarn_stream_destroy(stream));
  assert_ok(tarn_stream_destroy(other));
  ck_assert_uint_eq(tarn_sim_misuses(NULL, 0), 0);
}

static inline void set_up(tarn_device *device) {
  stream = stream_of(device);
  other = stream_of(device);
  timelines = (tarn__synced_timelines){.first = NULL};
  after_test(tear_down, NULL);
}

// A test on each device with streams.
#define TEST_TIMELINES(name) TEST_SET_ON(name, TEST_NEEDS_STREAMS, set_up)

// What is queued on |stream| from now on comes after go_on.
static inline void hold_up(void) {
  hold_begin(&held, stream);
}

static inline void go_on(void) {
  hold_end(&held);
}

static inline tarn__synced_timeline *timeline_of(tarn_stream *of) {
  tarn__synced_timeline *timeline = NULL;
  assert_ok(tarn__timeline_of(&timelines, of, &timeline));
  ck_assert_ptr_nonnull(timeline);
  return timeline;
}

static inline uint64_t point(tarn__synced_timeline *timeline, tarn_stream *of) {
  tarn__synced_point *made = NULL;
  assert_ok(tarn__timeline_begin_point(timeline, &made));
  ck_assert(timeline->busy);
  assert_ok(tarn__point_record(made, of));
  uint64_t number = tarn__timeline_end_point(timeline, made);
  ck_assert(!timeline->busy);
  return number;
}

static inline tarn_status wait_for(tarn__synced_timeline *timeline,
                                   uint64_t number) {
  tarn__synced_point *wanted = tarn__timeline_hold_point(timeline, number);
  if (wanted == NULL) return TARN_OK;
  tarn_status status = tarn__point_wait(wanted);
  tarn__timeline_release_point(timeline, wanted, status);
  return status;
}

#endif  // TARN_TESTS_SYNCED_TIMELINES_KIT_H_
