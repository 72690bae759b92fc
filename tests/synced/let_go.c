// Releases of outside memory: the deleter is called once, and memory with
// TARN_WRAP_SYNC_BACK has the newest bytes.
#include "support/strategy.h"
#include "wrap_kit.h"

static unsigned char outside_too[SIZE];

// --- letting go ------------------------------------------------------------

TEST_ON(another_wrap_lets_go, TEST_NEEDS_DISCRETE) {
  open_wrapped(device, 0, &mine);
  wrap_host(outside_too, 0, NULL);
  ck_assert_int_eq(mine.calls, 1);
  ck_assert_uint_eq(mine.address, address_of(outside));
  ck_assert(tarn_place_equal(mine.place, TARN_HOST));
  ck_assert_uint_eq(mine.size, SIZE);
  close_x();
  ck_assert_int_eq(mine.calls, 1);
}

TEST_ON(eviction_lets_go, TEST_NEEDS_DISCRETE) {
  open_wrapped(device, 0, &mine);
  assert_ok(tarn_synced_evict(x, TARN_HOST));
  ck_assert_int_eq(mine.calls, 1);
  ck_assert_uint_eq(info_at(TARN_HOST).memory, 0);
  assert_head(x, TARN_HEAD_AT_GPU);
  assert_range(x, 0, SIZE, TARN_HOST, OUTSIDE);
  close_x();
  ck_assert_int_eq(mine.calls, 1);
}

TEST_ON(the_last_handle_lets_go, TEST_NEEDS_DISCRETE) {
  open_wrapped(device, 0, &mine);
  tarn_synced *view = view_of(x, 1, 2);
  assert_ok(tarn_synced_destroy(x));
  ck_assert_int_eq(mine.calls, 0);
  assert_range(view, 0, TARN_ALL, TARN_HOST, OUTSIDE);
  assert_ok(tarn_synced_destroy(view));
  ck_assert_int_eq(mine.calls, 1);
  close_devices();
}

// The same memory once more is no reason to keep it: who wraps it again gets
// it back from the first one.
TEST_ON(the_same_memory_again, TEST_NEEDS_DISCRETE) {
  owner again = {0};
  open_wrapped(device, 0, &mine);
  wrap_host(outside, 0, &again);
  ck_assert_int_eq(mine.calls, 1);
  ck_assert_int_eq(again.calls, 0);
  ck_assert(is_outside(outside));
  close_x();
  ck_assert_int_eq(mine.calls, 1);
  ck_assert_int_eq(again.calls, 1);
}

TEST_ON(two_places_have_each_their_own, TEST_NEEDS_DISCRETE) {
  owner theirs = {0};
  open_wrapped(device, 0, &mine);
  tarn_addr address = device_memory(7);
  assert_ok(try_wrap(tarn_place_on(gpu), address, 0, &theirs));
  assert_head(x, TARN_HEAD_AT_GPU);
  assert_range(x, 0, SIZE, TARN_HOST, 7);  // filled: it has a deleter
  assert_pattern(outside, 0, SIZE, 7);
  assert_ok(tarn_synced_evict(x, tarn_place_on(gpu)));
  ck_assert_int_eq(theirs.calls, 1);
  ck_assert_int_eq(mine.calls, 0);
  free_device_memory(address);
  close_x();
  ck_assert_int_eq(mine.calls, 1);
  ck_assert_int_eq(theirs.calls, 1);
}

TEST_X_ASYNC(work_that_is_queued_there_is_waited_for) {
  hold held;
  tarn_addr address = device_memory(OUTSIDE);
  assert_ok(try_wrap(tarn_place_on(gpu), address, 0, &mine));
  tarn_stream *stream = stream_on(gpu);
  hold_begin(&held, stream);
  tarn_access access;
  assert_ok(tarn_synced_begin(x, 0, TARN_ALL, tarn_place_on(gpu),
                              TARN_WRITE_DISCARD, stream, &access));
  unsigned char bytes[SIZE];
  fill_pattern(bytes, 0, SIZE, 9);
  assert_ok(tarn_copy_h2d(gpu, access.address, bytes, SIZE, stream));
  assert_ok(tarn_synced_end(&access));
  ck_assert_uint_eq(info_at(tarn_place_on(gpu)).pending, SIZE);
  hold_end(&held);
  assert_ok(tarn_synced_destroy(x));
  assert_on(gpu, address, 0, SIZE, 9);  // it has landed by now
  ck_assert_int_eq(mine.calls, 1);
  assert_ok(tarn_stream_destroy(stream));
  free_device_memory(address);
  close_devices();
}

// Out of memory that another takes the place of, a stream still reads.
TEST_LOOP_ON(reads_that_are_queued_are_waited_for, 2,
             TEST_NEEDS_DISCRETE | TEST_NEEDS_STREAMS, open_x) {
  hold held;
  tarn_addr first = device_memory(OUTSIDE);
  tarn_addr second = device_memory(7);
  assert_ok(try_wrap(tarn_place_on(gpu), first, 0, &mine));
  tarn_stream *stream = stream_on(gpu);
  hold_begin(&held, stream);
  assert_ok(tarn_synced_pull(x, 0, TARN_ALL, stream, NULL));
  pthread_t thread = hold_end_later(&held);
  if (_i == 0) {
    assert_ok(try_wrap(tarn_place_on(gpu), second, 0, NULL));
  } else {
    assert_ok(tarn_synced_evict(x, tarn_place_on(gpu)));
  }
  assert_ok(tarn_stream_query(stream));
  ck_assert_int_eq(mine.calls, 1);
  join_thread(thread);
  assert_range(x, 0, SIZE, TARN_HOST, _i == 0 ? 7 : OUTSIDE);
  assert_ok(tarn_synced_destroy(x));
  assert_ok(tarn_stream_destroy(stream));
  free_device_memory(first);
  free_device_memory(second);
  close_devices();
}

static tarn_synced *named_by_deleter;

// No lock is held: a deleter may use the library, this buffer's room included.
static void take_back_and_call(void *context, tarn_place place,
                               tarn_addr address, size_t size) {
  take_back(context, place, address, size);
  tarn_synced *fresh = NULL;
  tarn_pool *pool = NULL;
  void *host = NULL;
  assert_ok(tarn_pool_of(TARN_HOST, &pool));
  assert_ok(tarn_synced_create(16, NULL, &fresh));
  assert_ok(tarn_synced_mutable_cpu_data(fresh, &host));
  assert_ok(tarn_synced_destroy(fresh));
  if (named_by_deleter != NULL) {
    (void)info_of(named_by_deleter, 0, TARN_ALL, place);
  }
}

TEST_X(a_deleter_may_call_the_library) {
  tarn_wrap_options options = with(0, &mine);
  options.deleter = take_back_and_call;
  assert_ok(tarn_synced_wrap(x, TARN_HOST, address_of(outside), &options));
  named_by_deleter = x;
  assert_ok(tarn_synced_wrap(x, TARN_HOST, address_of(outside_too), &options));
  ck_assert_int_eq(mine.calls, 1);
  assert_ok(tarn_synced_evict(x, TARN_HOST));
  ck_assert_int_eq(mine.calls, 2);
  wrap_host(outside, 0, NULL);
  named_by_deleter = NULL;
  assert_ok(tarn_synced_wrap(x, TARN_HOST, address_of(outside), &options));
  close_x();
  ck_assert_int_eq(mine.calls, 3);
}

// --- back to its owner -----------------------------------------------------

TEST_LOOP_ON(synced_back_at_the_end, 2, TEST_NEEDS_DISCRETE, (void)) {
  open_wrapped(device, TARN_WRAP_SYNC_BACK, _i == 0 ? NULL : &mine);
  write_range(x, 0, HALF, tarn_place_on(gpu), 1);
  assert_pattern(outside, 0, SIZE, OUTSIDE);
  close_x();
  assert_pattern(outside, 0, HALF, 1);
  assert_pattern(outside + HALF, HALF, HALF, OUTSIDE);
  ck_assert_int_eq(mine.calls, _i);
}

TEST_ON(synced_back_when_evicted, TEST_NEEDS_DISCRETE) {
  open_wrapped(device, TARN_WRAP_SYNC_BACK, &mine);
  write_range(x, 0, SIZE, tarn_place_on(gpu), 1);
  assert_ok(tarn_synced_evict(x, TARN_HOST));
  assert_pattern(outside, 0, SIZE, 1);
  ck_assert_int_eq(mine.calls, 1);
  assert_head(x, TARN_HEAD_AT_GPU);
}

TEST_ON(synced_back_when_another_takes_its_place, TEST_NEEDS_DISCRETE) {
  open_wrapped(device, TARN_WRAP_SYNC_BACK, &mine);
  write_range(x, 0, SIZE, tarn_place_on(gpu), 1);
  memset(outside_too, 3, SIZE);
  wrap_host(outside_too, 0, NULL);
  assert_pattern(outside, 0, SIZE, 1);
  ck_assert_int_eq(mine.calls, 1);
}

// Bytes that are lost have no newest value: the rest goes back.
TEST_ON(what_is_lost_is_not_synced_back, TEST_NEEDS_DISCRETE) {
  open_wrapped(device, TARN_WRAP_SYNC_BACK, NULL);
  write_range(x, 0, SIZE, tarn_place_on(gpu), 1);
  assert_ok(tarn_synced_invalidate(x, 100, 50));
  close_x();
  assert_pattern(outside, 0, 100, 1);
  assert_pattern(outside + 100, 100, 50, OUTSIDE);
  assert_pattern(outside + 150, 150, SIZE - 150, 1);
}

TEST(a_copy_back_that_fails_is_told) {
  open_wrapped(sim(), TARN_WRAP_SYNC_BACK, &mine);
  write_range(x, 0, SIZE, tarn_place_on(gpu), 1);
  assert_ok(tarn_sim_faults("memory_copy_d2h@1+,async_memory_copy_d2h@1+"));
  assert_status(tarn_synced_destroy(x), TARN_E_DEVICE);
  assert_ok(tarn_sim_faults(NULL));
  ck_assert_int_eq(mine.calls, 1);  // it has ended all the same
  close_devices();
}

// What can be, is copied; the text says what could not.
TEST(one_of_two_copies_back_fails) {
  open_wrapped(sim(), TARN_WRAP_SYNC_BACK, &mine);
  write_range(x, 0, 100, tarn_place_on(gpu), 1);
  write_range(x, 200, 100, tarn_place_on(gpu), 1);
  assert_ok(tarn_sim_faults("memory_copy_d2h@1"));
  assert_status(tarn_synced_destroy(x), TARN_E_DEVICE);
  assert_error_says("bytes 0 to 100");
  assert_ok(tarn_sim_faults(NULL));
  assert_pattern(outside, 0, 100, OUTSIDE);
  assert_pattern(outside + 200, 200, 100, 1);
  ck_assert_int_eq(mine.calls, 1);
  close_devices();
}

// What the driver does not take back then is told only if nothing else is.
TEST(the_first_failure_of_an_end_is_told) {
  open_wrapped(sim(), TARN_WRAP_SYNC_BACK, NULL);
  assert_ok(use_strategy(tarn_place_on(gpu), "no_pool"));
  write_range(x, 0, SIZE, tarn_place_on(gpu), 1);
  assert_ok(tarn_sim_faults("memory_copy_d2h@1,device_memory_deallocate@1"));
  assert_status(tarn_synced_destroy(x), TARN_E_DEVICE);
  assert_error_says("were not synced back");
  assert_ok(tarn_sim_faults(NULL));
  close_devices();
}

TEST(a_copy_back_that_fails_keeps_it_there) {
  open_wrapped(sim(), TARN_WRAP_SYNC_BACK, &mine);
  write_range(x, 0, SIZE, tarn_place_on(gpu), 1);
  assert_ok(tarn_sim_faults("memory_copy_d2h@1+,async_memory_copy_d2h@1+"));
  assert_status(tarn_synced_evict(x, TARN_HOST), TARN_E_DEVICE);
  assert_status(try_wrap(TARN_HOST, address_of(outside_too), 0, NULL),
                TARN_E_DEVICE);
  assert_ok(tarn_sim_faults(NULL));
  ck_assert_int_eq(mine.calls, 0);
  ck_assert_uint_eq(info_at(TARN_HOST).memory, SIZE);
  assert_head(x, TARN_HEAD_AT_GPU);
  assert_ok(tarn_synced_evict(x, TARN_HOST));
  ck_assert_int_eq(mine.calls, 1);
  assert_pattern(outside, 0, SIZE, 1);
}
