// Evicting the memory of a place, and invalidating bytes.
#include <stdio.h>

#include "caffe_kit.h"

static size_t live_at(tarn_place place) {
  tarn_pool *pool = NULL;
  tarn_pool_stats stats = {.struct_size = sizeof stats};
  assert_ok(tarn_pool_of(place, &pool));
  assert_ok(tarn_pool_query(pool, &stats));
  return stats.live_blocks;
}

static size_t live_on(tarn_device *device) {
  return live_at(tarn_place_on(device));
}

// --- evict -----------------------------------------------------------------

TEST_X(an_only_copy_goes_to_the_host) {
  write_range(x, 0, SIZE, tarn_place_on(gpu), 1);
  ck_assert_uint_eq(live_on(gpu), 1);
  assert_ok(tarn_synced_evict(x, tarn_place_on(gpu)));
  ck_assert_uint_eq(live_on(gpu), 0);
  ck_assert_uint_eq(d2h().copies, 1);
  ck_assert_uint_eq(d2h().bytes_moved, SIZE);
  tarn_synced_info info = info_at(tarn_place_on(gpu));
  ck_assert_uint_eq(info.memory, 0);
  ck_assert_uint_eq(info.valid, 0);
  assert_head(x, TARN_HEAD_AT_CPU);
  assert_range(x, 0, SIZE, TARN_HOST, 1);
  assert_range(x, 0, SIZE, tarn_place_on(gpu), 1);  // it may come back
}

TEST_X(the_host_s_goes_to_the_device) {
  write_range(x, 0, SIZE, TARN_HOST, 1);
  tarn_place pinned = {gpu, TARN_PLACE_HOST};
  ck_assert_uint_eq(live_at(pinned), 1);
  assert_ok(tarn_synced_evict(x, TARN_HOST));
  ck_assert_uint_eq(live_at(pinned), 0);
  ck_assert_uint_eq(h2d().bytes_moved, SIZE);
  assert_head(x, TARN_HEAD_AT_GPU);
  assert_range(x, 0, SIZE, TARN_HOST, 1);
}

// However it is pinned, the host is one place.
TEST_X(the_host_by_another_name) {
  write_range(x, 0, SIZE, TARN_HOST, 1);
  assert_ok(tarn_synced_evict(x, (tarn_place){other, TARN_PLACE_HOST}));
  ck_assert_uint_eq(info_at(TARN_HOST).memory, 0);
  assert_head(x, TARN_HEAD_AT_GPU);
}

TEST_X(only_what_is_nowhere_else_is_copied) {
  write_range(x, 0, SIZE, tarn_place_on(gpu), 1);
  assert_range(x, 0, 1000, TARN_HOST, 1);
  assert_range(x, 2000, 1000, tarn_place_on(other), 1);
  assert_ok(tarn_synced_traffic_reset(x));
  assert_ok(tarn_synced_evict(x, tarn_place_on(gpu)));
  ck_assert_uint_eq(d2h().copies, 2);  // 1000..2000 and 3000..
  ck_assert_uint_eq(all_moved(), SIZE - 2000);
  assert_range(x, 2000, 1000, tarn_place_on(other), 1);
  assert_range(x, 0, SIZE, TARN_HOST, 1);
}

TEST_X(stale_and_unwritten_bytes_are_not_copied) {
  assert_range(x, 0, 10, tarn_place_on(gpu), 0);  // unwritten
  write_range(x, 10, 10, tarn_place_on(gpu), 1);
  write_range(x, 10, 10, TARN_HOST, 2);
  assert_ok(tarn_synced_evict(x, tarn_place_on(gpu)));
  ck_assert_uint_eq(all_copies(), 0);
  assert_range(x, 0, 10, TARN_HOST, 0);
  assert_range(x, 10, 10, TARN_HOST, 2);
  ck_assert_uint_eq(live_on(gpu), 0);
}

TEST_X(where_there_is_nothing) {
  assert_ok(tarn_synced_evict(x, TARN_HOST));
  assert_ok(tarn_synced_evict(x, tarn_place_on(other)));
  write_range(x, 0, SIZE, TARN_HOST, 1);
  assert_ok(tarn_synced_evict(x, tarn_place_on(gpu)));
  assert_ok(tarn_synced_evict(x, tarn_place_on(gpu)));
  assert_range(x, 0, SIZE, TARN_HOST, 1);
  assert_status(tarn_synced_evict(NULL, TARN_HOST), TARN_E_INVALID);
  assert_status(tarn_synced_evict(x, (tarn_place){NULL, TARN_PLACE_DEVICE}),
                TARN_E_INVALID);
}

TEST_X(not_while_an_access_is_open_there) {
  write_range(x, 0, SIZE, TARN_HOST, 1);
  tarn_access access;
  begin_on(&access, x, 5, 1, tarn_place_on(gpu), TARN_READ);
  assert_status(tarn_synced_evict(x, tarn_place_on(gpu)), TARN_E_STATE);
  assert_error_says("open");
  assert_error_says(tarn_device_name(gpu));
  ck_assert_uint_eq(info_at(tarn_place_on(gpu)).memory, SIZE);
  assert_on(gpu, access.address, 5, 1, 1);
  assert_ok(tarn_synced_end(&access));
  assert_ok(tarn_synced_evict(x, tarn_place_on(gpu)));
  begin_on(&access, x, 0, SIZE, TARN_HOST, TARN_READ);  // elsewhere: none of it
  assert_range(x, 0, SIZE, tarn_place_on(gpu), 1);
  assert_ok(tarn_synced_evict(x, tarn_place_on(gpu)));
  assert_ok(tarn_synced_end(&access));
}

// What is being written elsewhere may be cancelled: it is no other copy.
TEST_X(not_what_a_write_elsewhere_may_fall_back_on) {
  write_range(x, 0, SIZE, TARN_HOST, 1);
  tarn_access access;
  begin_on(&access, x, 5, 10, tarn_place_on(gpu), TARN_READ_WRITE);
  assert_status(tarn_synced_evict(x, TARN_HOST), TARN_E_STATE);
  assert_error_names("open for writing at ", gpu, "");
  put_on(gpu, access.address, 5, 10, 2);
  size_t lost = 1;
  assert_ok(tarn_synced_cancel(&access, &lost));
  ck_assert_uint_eq(lost, 0);
  assert_range(x, 0, SIZE, TARN_HOST, 1);
  assert_ok(tarn_synced_evict(x, TARN_HOST));
  assert_range(x, 0, SIZE, tarn_place_on(gpu), 1);
}

TEST_LOOP_ON(the_host_s_only_copy_without_a_device, 2, TEST_NEEDS_DISCRETE,
             (void)) {
  open_devices(device);
  tarn_device *cpu = NULL;
  assert_ok(tarn_device_open("cpu:0", &cpu));
  x = buffer_on(_i == 0 ? NULL : cpu, SIZE);
  write_range(x, 0, SIZE, TARN_HOST, 1);
  assert_status(tarn_synced_evict(x, TARN_HOST), TARN_E_STATE);
  assert_error_says("only copy");
  assert_range(x, 0, SIZE, TARN_HOST, 1);
  assert_range(x, 0, SIZE, tarn_place_on(other), 1);
  assert_ok(tarn_synced_evict(x, TARN_HOST));  // there is another copy now
  assert_range(x, 0, SIZE, tarn_place_on(other), 1);
  assert_ok(tarn_synced_destroy(x));
  assert_ok(tarn_device_close(cpu));
  close_devices();
}

TEST_X(of_the_whole_buffer_through_a_view) {
  write_range(x, 0, SIZE, tarn_place_on(gpu), 1);
  tarn_synced *view = view_of(x, 1, 1);
  assert_ok(tarn_synced_evict(view, tarn_place_on(gpu)));
  ck_assert_uint_eq(live_on(gpu), 0);
  ck_assert_uint_eq(d2h().bytes_moved, SIZE);
  assert_range(x, 0, SIZE, TARN_HOST, 1);
  assert_ok(tarn_synced_destroy(view));
}

TEST_X_ASYNC(work_that_is_queued_is_waited_for) {
  hold held;
  unsigned char bytes[SIZE];
  tarn_stream *stream = stream_on(gpu);
  tarn_access access;
  assert_ok(tarn_synced_begin(x, 0, TARN_ALL, tarn_place_on(gpu),
                              TARN_WRITE_DISCARD, stream, &access));
  hold_begin(&held, stream);
  fill_pattern(bytes, 0, SIZE, 3);
  assert_ok(tarn_copy_h2d(gpu, access.address, bytes, SIZE, stream));
  assert_ok(tarn_synced_end(&access));
  hold_end(&held);
  assert_ok(tarn_synced_evict(x, tarn_place_on(gpu)));
  assert_range(x, 0, SIZE, TARN_HOST, 3);
  ck_assert_uint_eq(live_on(gpu), 0);
  assert_ok(tarn_stream_destroy(stream));
}

TEST(a_copy_that_fails_changes_nothing) {
  open_x(sim());
  write_range(x, 0, SIZE, tarn_place_on(gpu), 1);
  assert_ok(tarn_sim_faults("memory_copy_d2h@1+,async_memory_copy_d2h@1+"));
  assert_status(tarn_synced_evict(x, tarn_place_on(gpu)), TARN_E_DEVICE);
  assert_ok(tarn_sim_faults(NULL));
  ck_assert_uint_eq(info_at(tarn_place_on(gpu)).memory, SIZE);
  assert_head(x, TARN_HEAD_AT_GPU);
  assert_range(x, 0, SIZE, tarn_place_on(gpu), 1);
  assert_ok(tarn_synced_evict(x, tarn_place_on(gpu)));
  assert_range(x, 0, SIZE, TARN_HOST, 1);
}

TEST(no_room_for_the_copy_changes_nothing) {
  tarn_addr taken = 0;
  open_full(&taken);
  void *host = NULL;
  assert_ok(tarn_synced_mutable_cpu_data(x, &host));
  memset(host, 5, LARGE);
  assert_status(tarn_synced_evict(x, TARN_HOST), TARN_FULL);
  assert_head(x, TARN_HEAD_AT_CPU);
  ck_assert_uint_eq(info_at(TARN_HOST).memory, LARGE);
  const void *still = NULL;
  assert_ok(tarn_synced_cpu_data(x, &still));
  ck_assert_ptr_eq(still, host);
  give_room(taken);
  assert_ok(tarn_synced_evict(x, TARN_HOST));
  assert_head(x, TARN_HEAD_AT_GPU);
}

// A stream that failed has lost what it was to write. That is not the
// eviction's fault: what is left goes.
TEST(after_a_stream_has_failed) {
  unsigned char bytes[HALF] = {0};
  open_x(sim());
  write_range(x, 0, SIZE, tarn_place_on(gpu), 1);
  tarn_stream *stream = stream_on(gpu);
  tarn_access access;
  assert_ok(tarn_synced_begin(x, 0, HALF, tarn_place_on(gpu), TARN_READ_WRITE,
                              stream, &access));
  assert_ok(tarn_sim_faults("async_memory_copy_h2d@1+,memory_copy_h2d@1+"));
  assert_status(tarn_copy_h2d(gpu, access.address, bytes, HALF, stream),
                TARN_E_DEVICE);
  assert_status(tarn_synced_end(&access), TARN_E_DEVICE);
  assert_ok(tarn_sim_faults(NULL));
  assert_ok(tarn_synced_evict(x, tarn_place_on(gpu)));
  ck_assert_uint_eq(live_on(gpu), 0);
  ck_assert_uint_eq(info_at(TARN_HOST).lost, HALF);
  assert_range(x, HALF, HALF, TARN_HOST, 1);
  (void)tarn_stream_destroy(stream);
}

// What stands there is worthless: it goes without a copy, and only work that is
// queued is waited for.
TEST_X(a_suspended_buffer_is_evicted_too) {
  static unsigned char bytes[SIZE];
  assert_ok(tarn_synced_set_cpu_data(x, bytes));
  assert_range(x, 0, HALF, tarn_place_on(gpu), 0);
  assert_ok(tarn_synced_suspend(x, "it is another's turn"));
  assert_ok(tarn_synced_evict(x, TARN_HOST));
  assert_ok(tarn_synced_evict(x, tarn_place_on(gpu)));
  ck_assert_uint_eq(live_on(gpu), 0);
  ck_assert_uint_eq(info_at(TARN_HOST).memory, 0);
  ck_assert_uint_eq(all_copies(), 1);  // the one before
  assert_status(tarn_synced_invalidate(x, 0, 1), TARN_E_STATE);
  assert_error_says("another's turn");
  tarn_access access;
  assert_status(
      tarn_synced_begin(x, 0, 1, TARN_HOST, TARN_WRITE_DISCARD, NULL, &access),
      TARN_E_STATE);
  assert_ok(tarn_synced_resume(x));
  write_range(x, 0, SIZE, TARN_HOST, 1);
}

// Otherwise there would be contents that cannot be copied: neither to evict
// them nor to give them back.
TEST_X(a_suspended_buffer_gets_no_contents) {
  static unsigned char bytes[SIZE];
  tarn_wrap_options empty = {.struct_size = sizeof empty,
                             .flags = TARN_WRAP_EMPTY | TARN_WRAP_FILL};
  assert_ok(tarn_synced_suspend(x, "it is another's turn"));
  assert_status(tarn_synced_set_cpu_data(x, bytes), TARN_E_STATE);
  assert_error_says("another's turn");
  ck_assert_uint_eq(info_at(TARN_HOST).memory, 0);
  assert_ok(tarn_synced_wrap(x, TARN_HOST, (uintptr_t)bytes, &empty));
  assert_ok(tarn_synced_evict(x, TARN_HOST));
  assert_ok(tarn_synced_resume(x));
}

// Refused before anything is copied.
TEST_ON(without_a_refuge_nothing_is_synced_back, TEST_NEEDS_DISCRETE) {
  static unsigned char bytes[SIZE];
  tarn_wrap_options options = {.struct_size = sizeof options,
                               .flags = TARN_WRAP_SYNC_BACK};
  open_devices(device);
  x = buffer_on(NULL, SIZE);
  assert_ok(tarn_synced_wrap(x, TARN_HOST, (uintptr_t)bytes, &options));
  write_range(x, 0, HALF, tarn_place_on(gpu), 1);
  assert_status(tarn_synced_evict(x, TARN_HOST), TARN_E_STATE);
  ck_assert_uint_eq(all_copies(), 0);
  ck_assert_uint_eq(bytes[0], 0);
  options.flags = TARN_WRAP_EMPTY;
  assert_status(tarn_synced_wrap(x, TARN_HOST, (uintptr_t)bytes, &options),
                TARN_E_STATE);
  ck_assert_uint_eq(all_copies(), 0);
  close_x();
  assert_pattern(bytes, 0, HALF, 1);
}

// --- invalidate ------------------------------------------------------------

TEST_X(invalidated_bytes_cannot_be_read) {
  tarn_access access;
  write_range(x, 0, SIZE, TARN_HOST, 1);
  assert_range(x, 0, SIZE, tarn_place_on(gpu), 1);
  assert_ok(tarn_synced_invalidate(x, 100, 50));
  for (int i = 0; i < 2; i++) {
    tarn_place place = i == 0 ? TARN_HOST : tarn_place_on(gpu);
    assert_status(tarn_synced_begin(x, 149, 1, place, TARN_READ, NULL, &access),
                  TARN_E_STATE);
    assert_error_says("invalidated");
    assert_status(
        tarn_synced_begin(x, 0, SIZE, place, TARN_READ_WRITE, NULL, &access),
        TARN_E_STATE);
    assert_range(x, 0, 100, place, 1);
    assert_range(x, 150, SIZE - 150, place, 1);
    ck_assert_uint_eq(info_of(x, 0, SIZE, place).lost, 50);
    ck_assert_uint_eq(info_of(x, 0, SIZE, place).valid, SIZE - 50);
  }
}

TEST_X(written_again_they_are_good) {
  assert_ok(tarn_synced_invalidate(x, 0, TARN_ALL));
  ck_assert_uint_eq(info_at(TARN_HOST).lost, SIZE);
  ck_assert_uint_eq(info_at(TARN_HOST).unwritten, 0);
  write_range(x, 0, SIZE, tarn_place_on(gpu), 3);
  assert_range(x, 0, SIZE, TARN_HOST, 3);
  ck_assert_uint_eq(info_at(TARN_HOST).lost, 0);
}

TEST_X(they_are_not_copied_any_more) {
  write_range(x, 0, SIZE, tarn_place_on(gpu), 1);
  assert_ok(tarn_synced_invalidate(x, 0, TARN_ALL));
  assert_ok(tarn_synced_evict(x, tarn_place_on(gpu)));
  ck_assert_uint_eq(all_copies(), 0);
  write_range(x, 0, SIZE, TARN_HOST, 2);
  ck_assert_uint_eq(all_copies(), 0);
}

TEST_LOOP_ON(not_while_an_access_is_open_in_the_range, 2, TEST_NEEDS_DISCRETE,
             open_x) {
  write_range(x, 0, SIZE, TARN_HOST, 1);
  uint32_t mode = _i == 0 ? TARN_READ : TARN_WRITE_DISCARD;
  tarn_access access;
  begin_on(&access, x, 100, 100, TARN_HOST, mode);
  assert_status(tarn_synced_invalidate(x, 0, 101), TARN_E_STATE);
  assert_error_says("open");
  assert_status(tarn_synced_invalidate(x, 199, 1), TARN_E_STATE);
  assert_ok(tarn_synced_invalidate(x, 0, 100));
  assert_ok(tarn_synced_invalidate(x, 200, 1));
  assert_ok(tarn_synced_end(&access));
  assert_ok(tarn_synced_invalidate(x, 100, 100));
  ck_assert_uint_eq(info_at(TARN_HOST).lost, 201);
}

// Bytes that are on their way when they become worthless do not come back.
TEST_X_ASYNC(a_copy_that_lands_later_does_not_count) {
  hold held;
  tarn_access access;
  write_range(x, 0, SIZE, TARN_HOST, 1);
  tarn_stream *stream = stream_on(gpu);
  hold_begin(&held, stream);
  assert_ok(tarn_synced_push(x, 0, TARN_ALL, stream, NULL));
  assert_ok(tarn_synced_invalidate(x, 0, HALF));
  hold_end(&held);
  assert_ok(tarn_stream_synchronize(stream));
  assert_status(
      tarn_synced_begin(x, 0, 1, tarn_place_on(gpu), TARN_READ, NULL, &access),
      TARN_E_STATE);
  assert_range(x, HALF, HALF, tarn_place_on(gpu), 1);
  write_range(x, 0, HALF, tarn_place_on(gpu), 2);
  assert_range(x, 0, HALF, TARN_HOST, 2);
  assert_ok(tarn_stream_destroy(stream));
}

TEST_X(nothing_is_invalidated_by_nothing) {
  write_range(x, 0, SIZE, TARN_HOST, 1);
  assert_ok(tarn_synced_invalidate(x, 100, 0));
  assert_ok(tarn_synced_invalidate(x, SIZE, TARN_ALL));
  ck_assert_uint_eq(info_at(TARN_HOST).lost, 0);
  ck_assert_uint_eq(info_at(TARN_HOST).range_count, 1);
  assert_status(tarn_synced_invalidate(NULL, 0, 0), TARN_E_INVALID);
}
