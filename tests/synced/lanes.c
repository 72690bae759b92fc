// The streams that are at work on a buffer: positions, who waits for them, what
// is kept and when it goes. On the host's device and on a simulated one.
#include <string.h>

#include "lanes_kit.h"
#include "support/fake_plugin.h"

// --- positions -------------------------------------------------------------

START_TEST(a_position_is_over_when_the_stream_has_got_there) {
  set_up(names[_i]);
  tarn__synced_timeline *lane = lane_of(stream);
  ck_assert_uint_eq(mark(lane, stream), 1);
  hold_up();
  ck_assert_uint_eq(mark(lane, stream), 2);
  ck_assert_uint_eq(lane->mark_count, 2);
  assert_ok(wait_for(lane, 1));
  ck_assert(tarn__lane_is_over(lane, 1));
  ck_assert(!tarn__lane_is_over(lane, 2));
  ck_assert(!tarn__lane_is_void(lane, 2));
  tarn__synced_point *second = tarn__lane_hold_mark(lane, 2);
  ck_assert_ptr_nonnull(second);
  assert_status(tarn__mark_query(second), TARN_PENDING);
  tarn__lane_release_mark(lane, second, TARN_PENDING);
  ck_assert_uint_eq(lane->mark_count, 1);
  go_on();
  assert_ok(wait_for(lane, 2));
  ck_assert_uint_eq(lane->done, 2);
  ck_assert_uint_eq(lane->mark_count, 0);
  ck_assert_ptr_null(tarn__lane_hold_mark(lane, 2));
  tarn__lane_release(lane);
  tear_down();
}
END_TEST

START_TEST(a_later_position_stands_for_all_before) {
  set_up(names[_i]);
  tarn__synced_timeline *lane = lane_of(stream);
  tarn__synced_point *first = NULL;
  hold_up();
  for (uint64_t i = 1; i <= 5; i++)
    ck_assert_uint_eq(mark(lane, stream), i);
  first = tarn__lane_hold_mark(lane, 1);
  go_on();
  assert_ok(wait_for(lane, 4));
  // The first is held, the last is not known to be reached.
  ck_assert_uint_eq(lane->done, 4);
  ck_assert_uint_eq(lane->mark_count, 2);
  assert_ok(tarn__mark_wait(first));
  tarn__lane_release_mark(lane, first, TARN_OK);
  ck_assert_uint_eq(lane->done, 4);
  ck_assert_uint_eq(lane->mark_count, 1);
  tarn__lane_release(lane);
  tear_down();
}
END_TEST

START_TEST(of_many_marks_the_oldest_are_dropped) {
  set_up(names[_i]);
  tarn__synced_timeline *lane = lane_of(stream);
  hold_up();
  uint64_t last = 0;
  tarn__synced_point *kept = NULL;
  for (int i = 0; i < 3 * TARN__MOST_MARKS; i++) {
    last = mark(lane, stream);
    if (i == 0) kept = tarn__lane_hold_mark(lane, 1);
  }
  ck_assert_uint_eq(lane->mark_count, TARN__MOST_MARKS);
  ck_assert_ptr_eq(lane->marks, kept);
  tarn__synced_point *next = tarn__lane_hold_mark(lane, 2);
  ck_assert_uint_eq(next->number, last - TARN__MOST_MARKS + 2);
  go_on();
  assert_ok(tarn__mark_wait(next));
  tarn__lane_release_mark(lane, next, TARN_OK);
  tarn__lane_release_mark(lane, kept, TARN_PENDING);
  ck_assert(tarn__lane_is_over(lane, 2));
  ck_assert(!tarn__lane_is_over(lane, last));
  assert_ok(wait_for(lane, last));
  tarn__lane_release(lane);
  tear_down();
}
END_TEST

START_TEST(the_last_mark_is_kept_though_all_others_are_held) {
  tarn__synced_point *kept[2 * TARN__MOST_MARKS];
  enum { KEPT = sizeof kept / sizeof kept[0] };
  set_up(names[_i]);
  tarn__synced_timeline *lane = lane_of(stream);
  hold_up();
  for (size_t i = 0; i < KEPT; i++)
    kept[i] = tarn__lane_hold_mark(lane, mark(lane, stream));
  ck_assert_uint_eq(lane->mark_count, KEPT);
  uint64_t last = mark(lane, stream);
  tarn__synced_point *wanted = tarn__lane_hold_mark(lane, last);
  ck_assert_uint_eq(wanted->number, last);
  tarn__lane_release_mark(lane, wanted, TARN_PENDING);
  go_on();
  for (size_t i = 0; i < KEPT; i++)
    tarn__lane_release_mark(lane, kept[i], TARN_PENDING);
  assert_ok(wait_for(lane, last));
  tarn__lane_release(lane);
  tear_down();
}
END_TEST

// That the lane has no mark there, and that to ask for one changed nothing.
static void assert_no_mark(tarn__synced_timeline *lane, uint64_t number) {
  size_t holds = lane->holds;
  ck_assert_ptr_null(tarn__lane_hold_mark(lane, number));
  ck_assert_ptr_null(tarn__lane_share(lane, number));
  ck_assert_uint_eq(lane->holds, holds);
}

START_TEST(a_position_that_is_not_issued_has_no_mark) {
  set_up(names[_i]);
  tarn__synced_point *made = NULL;
  tarn__synced_timeline *lane = lane_of(stream);
  assert_no_mark(lane, 1);
  hold_up();
  ck_assert_uint_eq(mark(lane, stream), 1);
  assert_no_mark(lane, 2);
  // Nor has one that a thread is just making.
  assert_ok(tarn__lane_begin_mark(lane, &made));
  assert_no_mark(lane, 2);
  assert_ok(tarn__mark_record(made, stream));
  assert_no_mark(lane, 2);
  ck_assert_uint_eq(tarn__lane_end_mark(lane, made), 2);
  go_on();
  assert_ok(wait_for(lane, 2));
  ck_assert_uint_eq(lane->done, 2);
  tarn__lane_release(lane);
  tear_down();
}
END_TEST

START_TEST(behind_reached_marks_that_others_hold_there_is_none) {
  tarn__synced_point *others[3];
  enum { OTHERS = sizeof others / sizeof others[0] };
  set_up(names[_i]);
  tarn__synced_timeline *lane = lane_of(stream);
  for (size_t i = 0; i < OTHERS; i++) {
    others[i] = tarn__lane_hold_mark(lane, mark(lane, stream));
    ck_assert_ptr_nonnull(others[i]);
  }
  assert_ok(wait_for(lane, OTHERS));
  ck_assert_uint_eq(lane->done, lane->issued);
  ck_assert_uint_eq(lane->mark_count, OTHERS);
  assert_no_mark(lane, lane->done + 1);
  for (size_t i = 0; i < OTHERS; i++)
    tarn__lane_release_mark(lane, others[i], TARN_PENDING);
  ck_assert_uint_eq(lane->mark_count, 0);
  tarn__lane_release(lane);
  tear_down();
}
END_TEST

static void note(void *context, tarn_status status) {
  ck_assert_int_eq(status, TARN_OK);
  *(bool *)context = true;
}

START_TEST(another_stream_waits_and_the_host_does_not) {
  set_up(names[_i]);
  bool came = false;
  tarn__synced_timeline *lane = lane_of(stream);
  hold_up();
  tarn__synced_point *wanted = tarn__lane_hold_mark(lane, mark(lane, stream));
  assert_ok(tarn__mark_join(wanted, other));
  assert_ok(tarn__mark_join(wanted, stream));  // which is in order anyway
  tarn__lane_release_mark(lane, wanted, TARN_PENDING);
  assert_ok(tarn_stream_add_callback(other, note, &came));
  assert_status(tarn_stream_query(other), TARN_PENDING);
  go_on();
  assert_ok(tarn_stream_synchronize(other));
  ck_assert(came);
  tarn__lane_release(lane);
  tear_down();
}
END_TEST

START_TEST(a_stream_may_end_before_its_lane) {
  set_up(names[_i]);
  tarn_stream *brief = stream_of(device);
  tarn__synced_timeline *lane = lane_of(brief);
  uint64_t number = mark(lane, brief);
  assert_ok(tarn_stream_destroy(brief));
  assert_ok(wait_for(lane, number));
  ck_assert(!lane->failed);
  tarn__lane_release(lane);
  tear_down();
}
END_TEST

START_TEST(what_is_done_at_once_is_reached_at_once) {
  fake.null_handles = true;
  fake_add();
  set_up("fake:0");
  tarn__synced_timeline *lane = lane_of(stream);
  ck_assert_uint_eq(mark(lane, stream), 1);
  ck_assert_uint_eq(lane->done, 1);
  ck_assert_uint_eq(lane->mark_count, 0);
  ck_assert_ptr_null(tarn__lane_hold_mark(lane, 1));
  tarn__lane_release(lane);
  tear_down();
}
END_TEST

// --- when lanes go ---------------------------------------------------------

static bool is_any(const tarn__synced_use *use, void *context) {
  (void)context;
  return use->number > 0;
}

START_TEST(a_lane_goes_with_its_last_use_or_hold) {
  tarn__synced_spans spans;
  set_up(names[_i]);
  tarn__spans_init(&spans, 100);
  assert_ok(tarn__spans_reserve(&spans, 0, 100, 1));
  hold_up();
  tarn__synced_timeline *lane = lane_of(stream);
  ck_assert_ptr_eq(lane_of(stream), lane);
  tarn__synced_use use = {.lane = lane, .number = mark(lane, stream)};
  tarn__span_use(&spans, spans.first, use);
  assert_ok(tarn__spans_reserve(&spans, 10, 20, 0));
  tarn__synced_span *span = tarn__spans_cut(&spans, 10, 20);
  ck_assert_uint_eq(lane->uses, 3);
  tarn__lane_release(lane);
  tarn__lane_release(lane);
  ck_assert_ptr_eq(lanes.first, lane);
  tarn__span_forget(&spans, span, is_any, NULL);
  ck_assert_ptr_eq(lanes.first, lane);
  // With a mark that is not reached, and is nobody's business any more.
  tarn__spans_deinit(&spans);
  ck_assert_ptr_null(lanes.first);
  go_on();
  tear_down();
}
END_TEST

START_TEST(lanes_are_told_apart_and_go_in_any_order) {
  set_up(names[_i]);
  tarn__synced_timeline *first = lane_of(stream);
  tarn__synced_timeline *second = lane_of(other);
  ck_assert_ptr_ne(first, second);
  ck_assert_uint_eq(first->serial, tarn_stream_serial(stream));
  tarn__lane_hold(first);
  tarn__lane_release(first);
  tarn__lane_release(first);
  ck_assert_ptr_eq(lanes.first, second);
  tarn__lane_release(second);
  tear_down();
}
END_TEST

// --- failures --------------------------------------------------------------

START_TEST(what_was_reached_before_a_failure_stays) {
  set_up("sim:0");
  tarn__synced_timeline *lane = lane_of(stream);
  for (int i = 0; i < 4; i++)
    ck_assert_uint_ne(mark(lane, stream), 0);
  tarn__synced_point *later = tarn__lane_hold_mark(lane, 4);
  assert_ok(tarn_sim_faults("synchronize_event@1"));
  assert_status(wait_for(lane, 3), TARN_E_DEVICE);
  assert_error_says("synchronize_event");
  ck_assert(lane->failed);
  ck_assert_uint_eq(lane->done, 2);
  ck_assert(tarn__lane_is_over(lane, 2) && !tarn__lane_is_void(lane, 2));
  ck_assert(tarn__lane_is_over(lane, 3) && tarn__lane_is_void(lane, 3));
  ck_assert_ptr_null(tarn__lane_hold_mark(lane, 4));
  ck_assert_uint_eq(lane->mark_count, 1);
  // Somebody waited for a later one, and that has come.
  tarn__lane_release_mark(lane, later, TARN_OK);
  ck_assert(!tarn__lane_is_void(lane, 4));
  ck_assert_uint_eq(lane->mark_count, 0);
  tarn__lane_release(lane);
  tear_down();
}
END_TEST

START_TEST(the_host_waits_for_what_a_failed_stream_has_queued) {
  bool came = false;
  set_up("sim:0");
  tarn__synced_timeline *lane = lane_of(stream);
  tarn__synced_point *wanted = tarn__lane_hold_mark(lane, mark(lane, stream));
  hold_up();
  assert_ok(tarn_stream_add_callback(stream, note, &came));
  go_on();
  assert_ok(tarn_sim_faults("query_event@1,synchronize_event@1"));
  assert_status(tarn__mark_query(wanted), TARN_E_DEVICE);
  ck_assert(came);
  tarn__lane_release_mark(lane, wanted, TARN_E_DEVICE);
  ck_assert(tarn__lane_is_void(lane, 1));
  tarn__lane_release(lane);
  tear_down();
}
END_TEST

START_TEST(no_mark_is_made_where_none_can_be_recorded) {
  set_up("sim:0");
  tarn__synced_point *made = NULL;
  tarn__synced_timeline *lane = lane_of(stream);
  assert_ok(tarn_sim_faults("record_event@1"));
  assert_ok(tarn__lane_begin_mark(lane, &made));
  assert_status(tarn__mark_record(made, stream), TARN_E_DEVICE);
  ck_assert_uint_eq(tarn__lane_end_mark(lane, made), 0);
  ck_assert(!lane->busy);
  ck_assert_uint_eq(lane->issued, 0);
  tarn__lane_release(lane);
  ck_assert_ptr_null(lanes.first);
  assert_status(tarn_stream_destroy(stream), TARN_E_DEVICE);
  stream = stream_of(device);
  tear_down();
}
END_TEST

START_TEST(a_mark_in_a_lane_that_failed_meanwhile_is_none) {
  set_up("sim:0");
  tarn__synced_point *made = NULL;
  tarn__synced_timeline *lane = lane_of(stream);
  tarn__synced_point *wanted = tarn__lane_hold_mark(lane, mark(lane, stream));
  assert_ok(tarn__lane_begin_mark(lane, &made));
  assert_ok(tarn__mark_record(made, stream));
  assert_ok(tarn_sim_faults("synchronize_event@1"));
  tarn__lane_release_mark(lane, wanted, tarn__mark_wait(wanted));
  ck_assert_uint_eq(tarn__lane_end_mark(lane, made), 0);
  ck_assert(!lane->busy);
  tarn__lane_release(lane);
  tear_down();
}
END_TEST

// All that takes memory, and the buffer's other lane is as it was.
static void mark_without_memory(void *context) {
  tarn__synced_timeline *lane = NULL;
  tarn__synced_point *made = NULL;
  (void)context;
  if (tarn__lane_of(&lanes, stream, &lane) != TARN_OK) {
    require(lane == NULL && lanes.first == NULL);
    return;
  }
  if (tarn__lane_begin_mark(lane, &made) == TARN_OK) {
    tarn_status status = tarn__mark_record(made, stream);
    uint64_t number = tarn__lane_end_mark(lane, made);
    require((number == 0) == (status != TARN_OK));
    if (number != 0) require(wait_for(lane, number) == TARN_OK);
  } else {
    require(made == NULL);
  }
  require(!lane->busy);
  tarn__lane_release(lane);
  tarn__lanes_deinit(&lanes);  // spare ones
}

START_TEST(without_memory_there_is_no_mark) {
  set_up(names[_i]);
  mark_without_memory(NULL);  // the station has a spare flag from now on
  ck_assert_uint_gt(faults_sweep(mark_without_memory, NULL), 3);
  tear_down();
}
END_TEST

int main(void) {
  faults_install();
  Suite *suite = suite_create("synced_lanes");
  ADD_ON_EACH(suite, "positions",
              a_position_is_over_when_the_stream_has_got_there,
              a_later_position_stands_for_all_before,
              of_many_marks_the_oldest_are_dropped,
              the_last_mark_is_kept_though_all_others_are_held,
              a_position_that_is_not_issued_has_no_mark,
              behind_reached_marks_that_others_hold_there_is_none,
              another_stream_waits_and_the_host_does_not,
              a_stream_may_end_before_its_lane);
  ADD_CASE(suite, "at once", what_is_done_at_once_is_reached_at_once);
  ADD_ON_EACH(suite, "life", a_lane_goes_with_its_last_use_or_hold,
              lanes_are_told_apart_and_go_in_any_order,
              without_memory_there_is_no_mark);
  ADD_CASE(suite, "failures", what_was_reached_before_a_failure_stays,
           the_host_waits_for_what_a_failed_stream_has_queued,
           no_mark_is_made_where_none_can_be_recorded,
           a_mark_in_a_lane_that_failed_meanwhile_is_none);
  return run_suite(suite);
}
