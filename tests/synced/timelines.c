// The streams that are at work on a buffer: positions, what waits for them,
// what is kept and when it goes. On each device with streams.
#include <string.h>

#include "support/fake_plugin.h"
#include "timelines_kit.h"

// --- positions -------------------------------------------------------------

TEST_TIMELINES(a_position_is_over_when_the_stream_has_got_there) {
  tarn__synced_timeline *timeline = timeline_of(stream);
  ck_assert_uint_eq(point(timeline, stream), 1);
  hold_up();
  ck_assert_uint_eq(point(timeline, stream), 2);
  ck_assert_uint_eq(timeline->point_count, 2);
  assert_ok(wait_for(timeline, 1));
  ck_assert(tarn__timeline_is_over(timeline, 1));
  ck_assert(!tarn__timeline_is_over(timeline, 2));
  ck_assert(!tarn__timeline_is_void(timeline, 2));
  tarn__synced_point *second = tarn__timeline_hold_point(timeline, 2);
  ck_assert_ptr_nonnull(second);
  assert_status(tarn__point_query(second), TARN_PENDING);
  tarn__timeline_release_point(timeline, second, TARN_PENDING);
  ck_assert_uint_eq(timeline->point_count, 1);
  go_on();
  assert_ok(wait_for(timeline, 2));
  ck_assert_uint_eq(timeline->done, 2);
  ck_assert_uint_eq(timeline->point_count, 0);
  ck_assert_ptr_null(tarn__timeline_hold_point(timeline, 2));
  tarn__timeline_release(timeline);
}

TEST_TIMELINES(a_later_position_stands_for_all_before) {
  tarn__synced_timeline *timeline = timeline_of(stream);
  tarn__synced_point *first = NULL;
  hold_up();
  for (uint64_t i = 1; i <= 5; i++)
    ck_assert_uint_eq(point(timeline, stream), i);
  first = tarn__timeline_hold_point(timeline, 1);
  go_on();
  assert_ok(wait_for(timeline, 4));
  // The first is held, the last is not known to be reached.
  ck_assert_uint_eq(timeline->done, 4);
  ck_assert_uint_eq(timeline->point_count, 2);
  assert_ok(tarn__point_wait(first));
  tarn__timeline_release_point(timeline, first, TARN_OK);
  ck_assert_uint_eq(timeline->done, 4);
  ck_assert_uint_eq(timeline->point_count, 1);
  tarn__timeline_release(timeline);
}

TEST_TIMELINES(of_many_points_the_oldest_are_dropped) {
  tarn__synced_timeline *timeline = timeline_of(stream);
  hold_up();
  uint64_t last = 0;
  tarn__synced_point *kept = NULL;
  for (int i = 0; i < 3 * TARN__MOST_POINTS; i++) {
    last = point(timeline, stream);
    if (i == 0) kept = tarn__timeline_hold_point(timeline, 1);
  }
  ck_assert_uint_eq(timeline->point_count, TARN__MOST_POINTS);
  ck_assert_ptr_eq(timeline->points, kept);
  tarn__synced_point *next = tarn__timeline_hold_point(timeline, 2);
  ck_assert_uint_eq(next->number, last - TARN__MOST_POINTS + 2);
  go_on();
  assert_ok(tarn__point_wait(next));
  tarn__timeline_release_point(timeline, next, TARN_OK);
  tarn__timeline_release_point(timeline, kept, TARN_PENDING);
  ck_assert(tarn__timeline_is_over(timeline, 2));
  ck_assert(!tarn__timeline_is_over(timeline, last));
  assert_ok(wait_for(timeline, last));
  tarn__timeline_release(timeline);
}

TEST_TIMELINES(the_last_point_is_kept_though_all_others_are_held) {
  tarn__synced_point *kept[2 * TARN__MOST_POINTS];
  enum { KEPT = sizeof kept / sizeof kept[0] };
  tarn__synced_timeline *timeline = timeline_of(stream);
  hold_up();
  for (size_t i = 0; i < KEPT; i++)
    kept[i] = tarn__timeline_hold_point(timeline, point(timeline, stream));
  ck_assert_uint_eq(timeline->point_count, KEPT);
  uint64_t last = point(timeline, stream);
  tarn__synced_point *wanted = tarn__timeline_hold_point(timeline, last);
  ck_assert_uint_eq(wanted->number, last);
  tarn__timeline_release_point(timeline, wanted, TARN_PENDING);
  go_on();
  for (size_t i = 0; i < KEPT; i++)
    tarn__timeline_release_point(timeline, kept[i], TARN_PENDING);
  assert_ok(wait_for(timeline, last));
  tarn__timeline_release(timeline);
}

// That the timeline has no point there, and that to ask for one changed
// nothing.
static void assert_no_point(tarn__synced_timeline *timeline, uint64_t number) {
  size_t holds = timeline->holds;
  ck_assert_ptr_null(tarn__timeline_hold_point(timeline, number));
  ck_assert_ptr_null(tarn__timeline_share(timeline, number));
  ck_assert_uint_eq(timeline->holds, holds);
}

TEST_TIMELINES(a_position_that_is_not_issued_has_no_point) {
  tarn__synced_point *made = NULL;
  tarn__synced_timeline *timeline = timeline_of(stream);
  assert_no_point(timeline, 1);
  hold_up();
  ck_assert_uint_eq(point(timeline, stream), 1);
  assert_no_point(timeline, 2);
  // Nor has one that a thread is just making.
  assert_ok(tarn__timeline_begin_point(timeline, &made));
  assert_no_point(timeline, 2);
  assert_ok(tarn__point_record(made, stream));
  assert_no_point(timeline, 2);
  ck_assert_uint_eq(tarn__timeline_end_point(timeline, made), 2);
  go_on();
  assert_ok(wait_for(timeline, 2));
  ck_assert_uint_eq(timeline->done, 2);
  tarn__timeline_release(timeline);
}

TEST_TIMELINES(behind_reached_points_that_others_hold_there_is_none) {
  tarn__synced_point *others[3];
  enum { OTHERS = sizeof others / sizeof others[0] };
  tarn__synced_timeline *timeline = timeline_of(stream);
  for (size_t i = 0; i < OTHERS; i++) {
    others[i] = tarn__timeline_hold_point(timeline, point(timeline, stream));
    ck_assert_ptr_nonnull(others[i]);
  }
  assert_ok(wait_for(timeline, OTHERS));
  ck_assert_uint_eq(timeline->done, timeline->issued);
  ck_assert_uint_eq(timeline->point_count, OTHERS);
  assert_no_point(timeline, timeline->done + 1);
  for (size_t i = 0; i < OTHERS; i++)
    tarn__timeline_release_point(timeline, others[i], TARN_PENDING);
  ck_assert_uint_eq(timeline->point_count, 0);
  tarn__timeline_release(timeline);
}

static void note(void *context, tarn_status status) {
  ck_assert_int_eq(status, TARN_OK);
  *(bool *)context = true;
}

TEST_TIMELINES(another_stream_waits_and_the_host_does_not) {
  bool came = false;
  tarn__synced_timeline *timeline = timeline_of(stream);
  hold_up();
  tarn__synced_point *wanted =
      tarn__timeline_hold_point(timeline, point(timeline, stream));
  assert_ok(tarn__point_join(wanted, other));
  assert_ok(tarn__point_join(wanted, stream));  // which is in order anyway
  tarn__timeline_release_point(timeline, wanted, TARN_PENDING);
  assert_ok(tarn_stream_add_callback(other, note, &came));
  assert_status(tarn_stream_query(other), TARN_PENDING);
  go_on();
  assert_ok(tarn_stream_synchronize(other));
  ck_assert(came);
  tarn__timeline_release(timeline);
}

TEST_TIMELINES(a_stream_may_end_before_its_timeline) {
  tarn_stream *brief = stream_of(device);
  tarn__synced_timeline *timeline = timeline_of(brief);
  uint64_t number = point(timeline, brief);
  assert_ok(tarn_stream_destroy(brief));
  assert_ok(wait_for(timeline, number));
  ck_assert(!timeline->failed);
  tarn__timeline_release(timeline);
}

TEST(what_is_done_at_once_is_reached_at_once) {
  fake.null_handles = true;
  set_up(open_device("fake:0"));
  tarn__synced_timeline *timeline = timeline_of(stream);
  ck_assert_uint_eq(point(timeline, stream), 1);
  ck_assert_uint_eq(timeline->done, 1);
  ck_assert_uint_eq(timeline->point_count, 0);
  ck_assert_ptr_null(tarn__timeline_hold_point(timeline, 1));
  tarn__timeline_release(timeline);
}

// --- when timelines go ------------------------------------------------------

static bool is_any(const tarn__synced_use *use, void *context) {
  (void)context;
  return use->number > 0;
}

TEST_TIMELINES(a_timeline_goes_with_its_last_use_or_hold) {
  tarn__synced_spans spans;
  tarn__spans_init(&spans, 100);
  assert_ok(tarn__spans_reserve(&spans, 0, 100, 1));
  hold_up();
  tarn__synced_timeline *timeline = timeline_of(stream);
  ck_assert_ptr_eq(timeline_of(stream), timeline);
  tarn__synced_use use = {.timeline = timeline,
                          .number = point(timeline, stream)};
  tarn__span_use(&spans, spans.first, use);
  assert_ok(tarn__spans_reserve(&spans, 10, 20, 0));
  tarn__synced_span *span = tarn__spans_cut(&spans, 10, 20);
  ck_assert_uint_eq(timeline->holds, 2 + 3);
  tarn__timeline_release(timeline);
  tarn__timeline_release(timeline);
  ck_assert_ptr_eq(timelines.first, timeline);
  tarn__span_forget(&spans, span, is_any, NULL);
  ck_assert_ptr_eq(timelines.first, timeline);
  // With a point that is not reached and not held.
  tarn__spans_deinit(&spans);
  ck_assert_ptr_null(timelines.first);
  go_on();
}

TEST_TIMELINES(timelines_are_told_apart_and_go_in_any_order) {
  tarn__synced_timeline *first = timeline_of(stream);
  tarn__synced_timeline *second = timeline_of(other);
  ck_assert_ptr_ne(first, second);
  ck_assert_uint_eq(first->serial, tarn_stream_serial(stream));
  tarn__timeline_hold(first);
  tarn__timeline_release(first);
  tarn__timeline_release(first);
  ck_assert_ptr_eq(timelines.first, second);
  tarn__timeline_release(second);
}

// --- failures --------------------------------------------------------------

TEST(what_was_reached_before_a_failure_stays) {
  set_up(open_device("sim:0"));
  tarn__synced_timeline *timeline = timeline_of(stream);
  for (int i = 0; i < 4; i++)
    ck_assert_uint_ne(point(timeline, stream), 0);
  tarn__synced_point *later = tarn__timeline_hold_point(timeline, 4);
  assert_ok(tarn_sim_faults("synchronize_event@1"));
  assert_status(wait_for(timeline, 3), TARN_E_DEVICE);
  assert_error_says("synchronize_event");
  ck_assert(timeline->failed);
  ck_assert_uint_eq(timeline->done, 2);
  ck_assert(tarn__timeline_is_over(timeline, 2) &&
            !tarn__timeline_is_void(timeline, 2));
  ck_assert(tarn__timeline_is_over(timeline, 3) &&
            tarn__timeline_is_void(timeline, 3));
  ck_assert_ptr_null(tarn__timeline_hold_point(timeline, 4));
  ck_assert_uint_eq(timeline->point_count, 1);
  // A call waited for a later one, and that has come.
  tarn__timeline_release_point(timeline, later, TARN_OK);
  ck_assert(!tarn__timeline_is_void(timeline, 4));
  ck_assert_uint_eq(timeline->point_count, 0);
  tarn__timeline_release(timeline);
}

TEST(the_host_waits_for_what_a_failed_stream_has_queued) {
  bool came = false;
  set_up(open_device("sim:0"));
  tarn__synced_timeline *timeline = timeline_of(stream);
  tarn__synced_point *wanted =
      tarn__timeline_hold_point(timeline, point(timeline, stream));
  hold_up();
  assert_ok(tarn_stream_add_callback(stream, note, &came));
  go_on();
  assert_ok(tarn_sim_faults("query_event@1,synchronize_event@1"));
  assert_status(tarn__point_query(wanted), TARN_E_DEVICE);
  ck_assert(came);
  tarn__timeline_release_point(timeline, wanted, TARN_E_DEVICE);
  ck_assert(tarn__timeline_is_void(timeline, 1));
  tarn__timeline_release(timeline);
}

TEST(no_point_is_made_where_none_can_be_recorded) {
  tarn_device *device = open_device("sim:0");
  set_up(device);
  tarn__synced_point *made = NULL;
  tarn__synced_timeline *timeline = timeline_of(stream);
  assert_ok(tarn_sim_faults("record_event@1"));
  assert_ok(tarn__timeline_begin_point(timeline, &made));
  assert_status(tarn__point_record(made, stream), TARN_E_DEVICE);
  ck_assert_uint_eq(tarn__timeline_end_point(timeline, made), 0);
  ck_assert(!timeline->busy);
  ck_assert_uint_eq(timeline->issued, 0);
  tarn__timeline_release(timeline);
  ck_assert_ptr_null(timelines.first);
  assert_status(tarn_stream_destroy(stream), TARN_E_DEVICE);
  stream = stream_of(device);
}

TEST(a_point_in_a_timeline_that_failed_meanwhile_is_none) {
  set_up(open_device("sim:0"));
  tarn__synced_point *made = NULL;
  tarn__synced_timeline *timeline = timeline_of(stream);
  tarn__synced_point *wanted =
      tarn__timeline_hold_point(timeline, point(timeline, stream));
  assert_ok(tarn__timeline_begin_point(timeline, &made));
  assert_ok(tarn__point_record(made, stream));
  assert_ok(tarn_sim_faults("synchronize_event@1"));
  tarn__timeline_release_point(timeline, wanted, tarn__point_wait(wanted));
  ck_assert_uint_eq(tarn__timeline_end_point(timeline, made), 0);
  ck_assert(!timeline->busy);
  tarn__timeline_release(timeline);
}

// All that takes memory, and the buffer's other timeline is as it was.
static void point_without_memory(void *context) {
  tarn__synced_timeline *timeline = NULL;
  tarn__synced_point *made = NULL;
  (void)context;
  if (tarn__timeline_of(&timelines, stream, &timeline) != TARN_OK) {
    require(timeline == NULL && timelines.first == NULL);
    return;
  }
  if (tarn__timeline_begin_point(timeline, &made) == TARN_OK) {
    tarn_status status = tarn__point_record(made, stream);
    uint64_t number = tarn__timeline_end_point(timeline, made);
    require((number == 0) == (status != TARN_OK));
    if (number != 0) require(wait_for(timeline, number) == TARN_OK);
  } else {
    require(made == NULL);
  }
  require(!timeline->busy);
  tarn__timeline_release(timeline);
  tarn__timelines_deinit(&timelines);  // spare ones
}

TEST_TIMELINES(without_memory_there_is_no_point) {
  point_without_memory(
      NULL);  // the copy streams have a spare event from now on
  ck_assert_uint_gt(faults_sweep(point_without_memory, NULL), 3);
}

int main(void) {
  faults_install();
  return run_tests();
}
