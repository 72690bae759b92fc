// Buffers that use the same bytes in turn: the next buffer waits for the work
// queued on the bytes of the previous one, and for no other.
#include <string.h>

#include "support/faults.h"
#include "support/hold.h"
#include "support/on_devices.h"
#include "synced/core.h"
#include "tarn/sim.h"

enum { SIZE = 4096 };

static tarn_place there;
static tarn_addr memory;
static tarn_synced *first;
static tarn_synced *second;
static tarn_stream *stream;  // of the first
static tarn_stream *other;   // of the second
static hold holds[2];        // of them |begun| have begun, and |ended| ended
static size_t begun;
static size_t ended;

static tarn_synced *create(size_t size) {
  tarn_synced *made = NULL;
  tarn_wrap_options options = {.struct_size = sizeof options,
                               .flags = TARN_WRAP_EMPTY | TARN_WRAP_FILL};
  assert_ok(tarn_synced_create(size, NULL, &made));
  assert_ok(tarn_synced_wrap(made, there, memory, &options));
  return made;
}

static void tear_down(void *context) {
  (void)context;
  assert_ok(tarn_synced_destroy(first));
  assert_ok(tarn_synced_destroy(second));
  assert_ok(tarn_stream_destroy(stream));
  assert_ok(tarn_stream_destroy(other));
  assert_ok(tarn_device_deallocate(there, memory, SIZE));
  ck_assert_uint_eq(tarn_sim_misuses(NULL, 0), 0);
}

static void set_up(tarn_device *device) {
  there = tarn_place_on(device);
  assert_ok(tarn_device_allocate(there, SIZE, &memory));
  assert_ok(tarn_stream_create(device, &stream));
  assert_ok(tarn_stream_create(device, &other));
  first = create(SIZE);
  second = create(SIZE);
  after_test(tear_down, NULL);
}

static void hold_up(tarn_stream *on) {
  hold_begin(&holds[begun++], on);
}

static void go_on(void) {
  hold_end(&holds[ended++]);
}

static void use(tarn_synced *buffer, uint32_t mode, tarn_stream *on) {
  tarn_access access;
  assert_ok(tarn_synced_begin(buffer, 0, TARN_ALL, there, mode, on, &access));
  assert_ok(tarn_synced_end(&access));
}

// The turn goes from the one to the other.
static void hand_over(tarn_synced *from, tarn_synced *to) {
  assert_ok(tarn_synced_suspend(from, "it is another's turn"));
  assert_ok(tarn_synced_follow(to, from));
  assert_ok(tarn_synced_resume(to));
}

static size_t timelines_of(const tarn_synced *buffer) {
  size_t count = 0;
  for (const tarn__synced_timeline *timeline = buffer->core->timelines.first;
       timeline != NULL; timeline = timeline->next)
    count++;
  return count;
}

// --- which accesses wait ---------------------------------------------------

#define TEST_FOLLOW(name) TEST_SET_ON(name, TEST_NEEDS_STREAMS, set_up)

TEST_FOLLOW(the_next_one_waits_for_the_work_of_the_one_before) {
  hold_up(stream);
  use(first, TARN_WRITE_DISCARD, stream);
  hand_over(first, second);
  use(second, TARN_WRITE_DISCARD, other);
  assert_status(tarn_stream_query(other), TARN_PENDING);
  // And the one after that for both.
  hand_over(second, first);
  use(first, TARN_WRITE_DISCARD, stream);
  go_on();
  assert_ok(tarn_stream_synchronize(stream));
  assert_ok(tarn_stream_query(other));
}

TEST_FOLLOW(the_host_waits_as_well) {
  use(first, TARN_WRITE_DISCARD, stream);
  use(first, TARN_READ, other);
  hand_over(first, second);
  use(second, TARN_WRITE_DISCARD, NULL);
  assert_ok(tarn_stream_query(stream));
  assert_ok(tarn_stream_query(other));
  ck_assert_uint_eq(timelines_of(second), 0);
}

TEST_FOLLOW(who_only_reads_does_not_wait_for_readers) {
  use(first, TARN_WRITE_DISCARD, NULL);
  use(second, TARN_WRITE_DISCARD, NULL);
  hold_up(stream);
  use(first, TARN_READ, stream);
  assert_ok(tarn_synced_follow(second, first));
  use(second, TARN_READ, other);
  assert_ok(tarn_stream_synchronize(other));
  use(second, TARN_READ_WRITE, other);
  assert_status(tarn_stream_query(other), TARN_PENDING);
  go_on();
  assert_ok(tarn_stream_synchronize(other));
}

TEST_FOLLOW(all_streams_are_taken_over_and_each_once) {
  use(first, TARN_WRITE_DISCARD, NULL);
  hold_up(stream);
  hold_up(other);
  // Reads, writes and parts, on two streams.
  tarn_access access;
  for (size_t at = 0; at < SIZE; at += SIZE / 4) {
    assert_ok(tarn_synced_begin(first, at, SIZE / 4, there, TARN_READ, other,
                                &access));
    assert_ok(tarn_synced_end(&access));
    assert_ok(tarn_synced_begin(first, at, SIZE / 8, there, TARN_READ_WRITE,
                                stream, &access));
    assert_ok(tarn_synced_end(&access));
  }
  hand_over(first, second);
  ck_assert_uint_ge(timelines_of(second), 2);
  ck_assert_uint_le(timelines_of(second), 4);
  tarn_stream *third = NULL;
  assert_ok(tarn_stream_create(device, &third));
  use(second, TARN_WRITE_DISCARD, third);
  go_on();
  assert_status(tarn_stream_query(third), TARN_PENDING);
  go_on();
  assert_ok(tarn_stream_synchronize(third));
  assert_ok(tarn_stream_query(stream));
  assert_ok(tarn_stream_query(other));
  assert_ok(tarn_stream_destroy(third));
}

// --- nothing to wait for ---------------------------------------------------

TEST_FOLLOW(where_none_is_at_work_nothing_is_taken_over) {
  assert_ok(tarn_synced_follow(second, first));
  use(first, TARN_WRITE_DISCARD, stream);
  assert_ok(tarn_stream_synchronize(stream));
  faults_arm(1, FAULTS_FROM_NOW);
  assert_ok(tarn_synced_follow(second, first));
  ck_assert(!faults_disarm());
  ck_assert_uint_eq(timelines_of(second), 0);
}

TEST_FOLLOW(a_buffer_that_follows_itself_waits_anyway) {
  tarn_synced *view = NULL;
  assert_ok(tarn_synced_view(first, 10, 10, &view));
  assert_ok(tarn_synced_follow(first, view));
  assert_ok(tarn_synced_destroy(view));
  assert_status(tarn_synced_follow(NULL, first), TARN_E_INVALID);
  assert_status(tarn_synced_follow(first, NULL), TARN_E_INVALID);
}

TEST_FOLLOW(a_buffer_of_no_bytes_waits_for_nothing) {
  tarn_synced *empty = create(0);
  hold_up(stream);
  use(first, TARN_WRITE_DISCARD, stream);
  assert_ok(tarn_synced_follow(empty, first));
  assert_ok(tarn_synced_follow(first, empty));
  ck_assert_uint_eq(timelines_of(empty), 0);
  go_on();
  assert_ok(tarn_synced_destroy(empty));
}

TEST_FOLLOW(a_place_that_it_never_had_is_entered) {
  tarn_synced *late = NULL;
  tarn_wrap_options options = {.struct_size = sizeof options,
                               .flags = TARN_WRAP_EMPTY | TARN_WRAP_FILL};
  assert_ok(tarn_synced_create(SIZE, NULL, &late));
  hold_up(stream);
  use(first, TARN_WRITE_DISCARD, stream);
  assert_ok(tarn_synced_suspend(first, "it is another's turn"));
  assert_ok(tarn_synced_follow(late, first));
  ck_assert_uint_eq(timelines_of(late), 1);
  go_on();
  assert_ok(tarn_synced_wrap(late, there, memory, &options));
  use(late, TARN_WRITE_DISCARD, NULL);
  ck_assert_uint_eq(timelines_of(late), 0);
  assert_ok(tarn_synced_destroy(late));
}

// --- what can go wrong -----------------------------------------------------

TEST(a_failure_of_the_one_before_is_not_the_next_ones) {
  set_up(open_device("sim:0"));
  use(first, TARN_WRITE_DISCARD, stream);
  hold_up(stream);
  use(first, TARN_READ_WRITE, stream);
  hand_over(first, second);
  go_on();
  assert_ok(tarn_sim_faults("query_event@1+,synchronize_event@1+"));
  use(second, TARN_WRITE_DISCARD, NULL);
  assert_ok(tarn_sim_faults(NULL));
  tarn_access access;
  assert_ok(tarn_synced_begin(second, 0, TARN_ALL, TARN_HOST, TARN_READ, NULL,
                              &access));
  assert_ok(tarn_synced_end(&access));
  ck_assert_uint_eq(timelines_of(second), 0);
}

static void follow_without_memory(void *context) {
  tarn_status status = tarn_synced_follow(second, first);
  (void)context;
  require(status == TARN_OK || status == TARN_E_NOMEM);
  require((timelines_of(second) > 0) == (status == TARN_OK));
  // Takes away what it took over, and spare nodes: all memory is as it was.
  tarn__synced_core *core = second->core;
  tarn__spans_deinit(&core->spans);
  tarn__spans_init(&core->spans, SIZE);
  tarn__timelines_deinit(&core->timelines);
}

// The devices of the library begin with what is queued, and need no memory for
// it from then on. A test double may wait until it is asked to.
TEST_LOOP(without_memory_nothing_changes, LIBRARY_DEVICES) {
  set_up(open_device(test_devices[_i]));
  hold_up(stream);
  hold_await(&holds[0]);
  use(first, TARN_WRITE_DISCARD, stream);
  ck_assert_uint_gt(faults_sweep(follow_without_memory, NULL), 5);
  go_on();
}

int main(void) {
  faults_install();
  return run_tests();
}
