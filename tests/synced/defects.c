// States beyond Caffe's SyncedMemory, and Caffe's defects, which Tarn does not
// have.
#include "state_kit.h"

// --- beyond the document ---------------------------------------------------

TEST_X(parts_that_differ_are_elsewhere) {
  write_range(x, 0, HALF, TARN_HOST, 1);
  assert_head(x, TARN_HEAD_AT_CPU);  // unwritten bytes do not count
  write_range(x, HALF, HALF, tarn_place_on(gpu), 2);
  assert_head(x, TARN_HEAD_ELSEWHERE);
  tarn_synced *low = view_of(x, 0, HALF);
  tarn_synced *high = view_of(x, HALF, HALF);
  assert_head(low, TARN_HEAD_AT_CPU);
  assert_head(high, TARN_HEAD_AT_GPU);
  const void *host = NULL;
  assert_ok(tarn_synced_cpu_data(x, &host));  // copies what is missing only
  ck_assert_uint_eq(d2h().bytes_moved, HALF);
  assert_pattern(host, 0, HALF, 1);
  assert_pattern((const unsigned char *)host + HALF, HALF, HALF, 2);
  assert_head(low, TARN_HEAD_AT_CPU);
  assert_head(high, TARN_SYNCED);
  assert_ok(tarn_synced_destroy(low));
  assert_ok(tarn_synced_destroy(high));
}

TEST_X(a_third_place_is_elsewhere) {
  const void *host = NULL;
  write_range(x, 0, SIZE, tarn_place_on(other), 5);
  assert_head(x, TARN_HEAD_ELSEWHERE);
  assert_status(tarn_synced_async_gpu_push(x, stream = stream_on(gpu)),
                TARN_E_STATE);
  assert_ok(tarn_synced_cpu_data(x, &host));
  assert_head(x, TARN_HEAD_AT_CPU);  // there, too
  assert_pattern(host, 0, SIZE, 5);
  assert_ok(tarn_stream_destroy(stream));
}

TEST_X(lost_bytes_are_elsewhere) {
  const void *host = NULL;
  write_at_cpu();
  assert_ok(tarn_synced_invalidate(x, 100, 1));
  assert_head(x, TARN_HEAD_ELSEWHERE);
  assert_status(tarn_synced_cpu_data(x, &host), TARN_E_STATE);
  ck_assert_ptr_null(host);
}

TEST_X(calls_of_a_view_are_about_its_range) {
  void *host = NULL;
  tarn_addr there = 0;
  write_at_cpu();
  tarn_synced *view = view_of(x, 1000, 500);
  assert_ok(tarn_synced_gpu_data(view, &there));
  ck_assert_uint_eq(h2d().bytes_moved, 500);
  assert_on(gpu, there, 1000, 500, INSIDE);
  assert_head(view, TARN_SYNCED);
  assert_ok(tarn_synced_mutable_cpu_data(view, &host));
  fill_pattern(host, 1000, 500, 9);
  assert_head(view, TARN_HEAD_AT_CPU);
  assert_head(x, TARN_HEAD_AT_CPU);
  assert_ok(tarn_synced_destroy(view));
  assert_range(x, 1000, 500, tarn_place_on(gpu), 9);
  assert_range(x, 0, 1000, tarn_place_on(gpu), INSIDE);
}

// cpu:0 is the host: nothing is ever copied, and a write for the one is a write
// for the other.
TEST_ON(cpu_0_as_the_device, TEST_NEEDS_DISCRETE) {
  void *host = NULL;
  const void *host_read = NULL;
  tarn_addr there = 0;
  open_devices(device);
  tarn_device *cpu = NULL;
  assert_ok(tarn_device_open("cpu:0", &cpu));
  x = buffer_on(cpu, SIZE);
  stream = stream_on(cpu);
  assert_head(x, TARN_UNINITIALIZED);
  assert_status(tarn_synced_async_gpu_push(x, stream), TARN_E_STATE);
  assert_ok(tarn_synced_mutable_cpu_data(x, &host));
  assert_head(x, TARN_SYNCED);
  fill_pattern(host, 0, SIZE, 6);
  assert_ok(tarn_synced_async_gpu_push(x, stream));
  assert_ok(tarn_synced_gpu_data(x, &there));
  ck_assert_uint_eq(there, (uintptr_t)host);
  assert_ok(tarn_synced_mutable_gpu_data(x, &there));
  assert_head(x, TARN_SYNCED);
  assert_ok(tarn_synced_cpu_data(x, &host_read));
  ck_assert_ptr_eq(host_read, host);
  assert_pattern(host_read, 0, SIZE, 6);
  fill_pattern(outside_host, 0, SIZE, 7);
  assert_ok(tarn_synced_set_gpu_data(x, (uintptr_t)outside_host));
  assert_head(x, TARN_SYNCED);
  assert_ok(tarn_synced_cpu_data(x, &host_read));
  ck_assert_ptr_eq(host_read, outside_host);
  assert_ok(tarn_synced_set_cpu_data(x, outside_host));
  assert_head(x, TARN_SYNCED);
  ck_assert_uint_eq(all_copies(), 0);
  assert_ok(tarn_stream_destroy(stream));
  assert_ok(tarn_synced_destroy(x));
  assert_ok(tarn_device_close(cpu));
  close_devices();
}

// --- on a thread that must not wait -----------------------------------------

typedef struct asked {
  tarn_status statuses[10];
  tarn_synced_state head;
} asked;

static void ask_all(void *context, tarn_status status) {
  (void)status;
  asked *of = context;
  const void *host = NULL;
  void *mutable_host = NULL;
  tarn_addr device = 0;
  tarn_synced_info info = {.struct_size = sizeof info};
  tarn_status *next = of->statuses;
  of->head = tarn_synced_head(x);
  *next++ = tarn_synced_cpu_data(x, &host);
  *next++ = tarn_synced_mutable_cpu_data(x, &mutable_host);
  *next++ = tarn_synced_gpu_data(x, &device);
  *next++ = tarn_synced_mutable_gpu_data(x, &device);
  *next++ = tarn_synced_set_cpu_data(x, outside_host);
  *next++ = tarn_synced_set_gpu_data(x, 4096);
  *next++ = tarn_synced_async_gpu_push(x, stream);
  *next++ = tarn_synced_evict(x, TARN_HOST);
  *next++ = tarn_synced_invalidate(x, 0, SIZE);
  *next = tarn_synced_query(x, 0, SIZE, TARN_HOST, &info);
}

TEST_X(a_stream_s_callback_is_refused) {
  asked of = {.head = TARN_SYNCED};
  write_at_cpu();
  stream = stream_on(gpu);
  assert_ok(tarn_stream_add_callback(stream, ask_all, &of));
  assert_ok(tarn_stream_synchronize(stream));
  for (size_t i = 0; i < 10; i++)
    ck_assert_int_eq(of.statuses[i], TARN_E_STATE);
  ck_assert_int_eq(of.head, TARN_UNINITIALIZED);
  assert_head(x, TARN_HEAD_AT_CPU);
  assert_range(x, 0, SIZE, TARN_HOST, INSIDE);
  assert_ok(tarn_stream_destroy(stream));
}

// --- Caffe's defects ------------------------------------------------

// "async_push says SYNCED before the copy has landed".
TEST_X_ASYNC(synced_is_said_when_the_copy_has_landed) {
  hold held;
  write_at_cpu();
  stream = stream_on(gpu);
  hold_begin(&held, stream);
  assert_ok(tarn_synced_async_gpu_push(x, stream));
  assert_head(x, TARN_HEAD_AT_CPU);
  tarn_synced_info info = info_at(tarn_place_on(gpu));
  ck_assert_uint_eq(info.valid, SIZE);
  ck_assert_uint_eq(info.pending, SIZE);
  assert_ok(tarn_synced_async_gpu_push(x, stream));  // on its way already
  hold_end(&held);
  assert_ok(tarn_stream_synchronize(stream));
  assert_head(x, TARN_SYNCED);
  ck_assert_uint_eq(info_at(tarn_place_on(gpu)).pending, 0);
  ck_assert_uint_eq(h2d().copies, 1);
  assert_ok(tarn_stream_destroy(stream));
}

// Written by a stream and pulled behind that: nothing has landed, so the two
// cannot be in step yet.
TEST_X_ASYNC(synced_is_not_said_before_the_write_has_landed) {
  hold held;
  tarn_access access;
  open_outside();
  hold_begin(&held, stream);
  assert_ok(tarn_synced_begin(x, 0, TARN_ALL, tarn_place_on(gpu),
                              TARN_WRITE_DISCARD, stream, &access));
  assert_ok(tarn_copy_h2d(gpu, access.address, outside_host, SIZE, stream));
  assert_ok(tarn_synced_end(&access));
  assert_head(x, TARN_HEAD_AT_GPU);
  assert_ok(tarn_synced_pull(x, 0, TARN_ALL, stream, NULL));
  assert_head(x, TARN_HEAD_AT_GPU);
  hold_end(&held);
  assert_ok(tarn_stream_synchronize(stream));
  assert_head(x, TARN_SYNCED);
  assert_range(x, 0, SIZE, TARN_HOST, OUTSIDE);
  assert_ok(tarn_synced_destroy(x));
  close_outside();
  close_devices();
}

// The host writes while a copy out of its memory is queued: the write waits,
// so that what was pushed is what was there.
TEST_X_ASYNC(a_write_does_not_overtake_the_push) {
  hold held;
  tarn_addr there = 0;
  void *host = NULL;
  assert_ok(tarn_synced_gpu_data(x, &there));
  write_at_cpu();
  stream = stream_on(gpu);
  hold_begin(&held, stream);
  assert_ok(tarn_synced_async_gpu_push(x, stream));
  assert_range(x, 0, SIZE, TARN_HOST, INSIDE);  // a read waits for nothing
  pthread_t thread = hold_end_later(&held);
  assert_ok(tarn_synced_mutable_cpu_data(x, &host));
  memset(host, 0xee, SIZE);
  join_thread(thread);
  assert_ok(tarn_stream_synchronize(stream));
  assert_on(gpu, there, 0, SIZE, INSIDE);
  assert_head(x, TARN_HEAD_AT_CPU);
  assert_ok(tarn_stream_destroy(stream));
}

// "no async pull".
TEST_X_ASYNC(there_is_an_asynchronous_pull) {
  hold held;
  tarn_event *event = NULL;
  write_at_gpu();
  stream = stream_on(gpu);
  assert_ok(tarn_event_create(gpu, &event));
  hold_begin(&held, stream);
  assert_ok(tarn_synced_pull(x, 0, TARN_ALL, stream, event));
  assert_head(x, TARN_HEAD_AT_GPU);
  ck_assert_int_eq(tarn_event_query(event), TARN_PENDING);
  hold_end(&held);
  assert_ok(tarn_event_synchronize(event));
  assert_head(x, TARN_SYNCED);
  assert_range(x, 0, SIZE, TARN_HOST, INSIDE);
  ck_assert_uint_eq(d2h().copies, 1);
  assert_ok(tarn_event_destroy(event));
  assert_ok(tarn_stream_destroy(stream));
}

// Caffe's to_cpu() copies into the memory of set_cpu_data.
TEST_X(a_read_fills_the_memory_that_was_set) {
  const void *host = NULL;
  tarn_addr there = 0;
  fill_pattern(outside_host, 0, SIZE, OUTSIDE);
  assert_ok(tarn_synced_set_cpu_data(x, outside_host));
  assert_ok(tarn_synced_mutable_gpu_data(x, &there));
  put_on(gpu, there, 0, SIZE, 8);
  assert_ok(tarn_synced_cpu_data(x, &host));
  ck_assert_ptr_eq(host, outside_host);
  assert_pattern(outside_host, 0, SIZE, 8);
  ck_assert(info_at(TARN_HOST).borrowed);
  ck_assert_uint_eq(d2h().copies, 1);
  assert_head(x, TARN_SYNCED);
}

// And to_gpu() into that of set_gpu_data.
TEST_X(a_read_fills_the_device_memory_that_was_set) {
  void *host = NULL;
  tarn_addr there = 0;
  open_outside();
  assert_ok(tarn_synced_set_gpu_data(x, outside_device));
  assert_ok(tarn_synced_mutable_cpu_data(x, &host));
  fill_pattern(host, 0, SIZE, 8);
  assert_ok(tarn_synced_gpu_data(x, &there));
  ck_assert_uint_eq(there, outside_device);
  assert_on(gpu, outside_device, 0, SIZE, 8);
  ck_assert(info_at(tarn_place_on(gpu)).borrowed);
  put_on(gpu, outside_device, 0, SIZE, OUTSIDE);
  assert_ok(tarn_synced_destroy(x));
  close_outside();
  close_devices();
}

// "a const read after set_cpu_data and a device write overwrites the caller's
// memory": not where it was wrapped without TARN_WRAP_FILL.
TEST_X(a_read_does_not_overwrite_the_callers_memory) {
  const void *host = NULL;
  tarn_addr there = 0;
  fill_pattern(outside_host, 0, SIZE, OUTSIDE);
  assert_ok(tarn_synced_wrap(x, TARN_HOST, (uintptr_t)outside_host, NULL));
  assert_ok(tarn_synced_mutable_gpu_data(x, &there));
  put_on(gpu, there, 0, SIZE, 8);
  assert_ok(tarn_synced_cpu_data(x, &host));
  ck_assert_ptr_ne(host, outside_host);
  assert_pattern(host, 0, SIZE, 8);
  assert_pattern(outside_host, 0, SIZE, OUTSIDE);
  ck_assert(!info_at(TARN_HOST).borrowed);
}

// The same on the device's side.
TEST_X(nor_the_callers_memory_on_the_device) {
  void *host = NULL;
  tarn_addr there = 0;
  open_outside();
  assert_ok(tarn_synced_wrap(x, tarn_place_on(gpu), outside_device, NULL));
  assert_ok(tarn_synced_mutable_cpu_data(x, &host));
  fill_pattern(host, 0, SIZE, 8);
  assert_ok(tarn_synced_gpu_data(x, &there));
  ck_assert_uint_ne(there, outside_device);
  assert_on(gpu, there, 0, SIZE, 8);
  assert_ok(tarn_synced_destroy(x));
  close_outside();
  close_devices();
}

// "write-only intent still copies".
TEST_X(who_writes_all_copies_nothing) {
  write_at_gpu();
  write_range(x, 0, SIZE, TARN_HOST, 5);
  ck_assert_uint_eq(all_copies(), 0);
  ck_assert_uint_eq(d2h().bytes_discarded, SIZE);
  assert_head(x, TARN_HEAD_AT_CPU);
}

// "any failure aborts the process": here it is a status, and the buffer still
// has what it had.
TEST(a_failing_copy_is_a_status) {
  tarn_addr device = 0;
  open_x(sim());
  write_at_cpu();
  assert_ok(tarn_sim_faults("memory_copy_h2d@1+"));
  assert_status(tarn_synced_gpu_data(x, &device), TARN_E_DEVICE);
  ck_assert_uint_eq(device, 0);
  assert_ok(tarn_sim_faults(NULL));
  assert_head(x, TARN_HEAD_AT_CPU);
  assert_ok(tarn_synced_gpu_data(x, &device));
  assert_on(gpu, device, 0, SIZE, INSIDE);
  assert_head(x, TARN_SYNCED);
}

TEST(no_room_is_a_status) {
  tarn_addr device = 0;
  tarn_addr taken = 0;
  open_full(&taken);
  void *host = NULL;
  assert_ok(tarn_synced_mutable_cpu_data(x, &host));
  assert_status(tarn_synced_gpu_data(x, &device), TARN_FULL);
  assert_head(x, TARN_HEAD_AT_CPU);
  ck_assert_uint_eq(info_at(tarn_place_on(gpu)).memory, 0);
  give_room(taken);
  assert_ok(tarn_synced_gpu_data(x, &device));
  assert_head(x, TARN_SYNCED);
}

// A copy that was queued and fails: the host's bytes are still the newest.
TEST(a_push_that_fails_loses_nothing) {
  tarn_addr device = 0;
  open_x(sim());
  write_at_cpu();
  stream = stream_on(gpu);
  assert_ok(tarn_sim_faults("async_memory_copy_h2d@1+,memory_copy_h2d@1+"));
  tarn_status status = tarn_synced_async_gpu_push(x, stream);
  if (status == TARN_OK) status = tarn_stream_synchronize(stream);
  ck_assert_int_eq(status, TARN_E_DEVICE);
  assert_ok(tarn_sim_faults(NULL));
  assert_head(x, TARN_HEAD_AT_CPU);
  assert_ok(tarn_synced_gpu_data(x, &device));
  assert_on(gpu, device, 0, SIZE, INSIDE);
  assert_head(x, TARN_SYNCED);
  (void)tarn_stream_destroy(stream);
}
