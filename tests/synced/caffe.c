// Misuse of the calls of Caffe's SyncedMemory, and states that Caffe does not
// have. Caffe aborts here; Tarn returns a status and changes nothing. The
// documented uses are tested in tests/documents.
#include "state_kit.h"

TEST_X(null_is_an_error_and_no_abort) {
  write_at_cpu();
  assert_status(tarn_synced_set_cpu_data(x, NULL), TARN_E_INVALID);
  assert_status(tarn_synced_set_gpu_data(x, 0), TARN_E_INVALID);
  assert_status(tarn_synced_async_gpu_push(x, NULL), TARN_E_INVALID);
  assert_status(tarn_synced_cpu_data(x, NULL), TARN_E_INVALID);
  assert_status(tarn_synced_gpu_data(x, NULL), TARN_E_INVALID);
  assert_status(tarn_synced_mutable_cpu_data(x, NULL), TARN_E_INVALID);
  assert_status(tarn_synced_mutable_gpu_data(x, NULL), TARN_E_INVALID);
  assert_head(x, TARN_HEAD_AT_CPU);
  assert_range(x, 0, SIZE, TARN_HOST, INSIDE);
}

TEST(no_buffer_is_an_error) {
  const void *host = &host;
  void *mutable_host = &host;
  tarn_addr device = 1;
  assert_status(tarn_synced_cpu_data(NULL, &host), TARN_E_INVALID);
  ck_assert_ptr_null(host);
  assert_status(tarn_synced_mutable_cpu_data(NULL, &mutable_host),
                TARN_E_INVALID);
  ck_assert_ptr_null(mutable_host);
  assert_status(tarn_synced_gpu_data(NULL, &device), TARN_E_INVALID);
  ck_assert_uint_eq(device, 0);
  device = 1;
  assert_status(tarn_synced_mutable_gpu_data(NULL, &device), TARN_E_INVALID);
  ck_assert_uint_eq(device, 0);
  assert_status(tarn_synced_set_cpu_data(NULL, &host), TARN_E_INVALID);
  assert_status(tarn_synced_set_gpu_data(NULL, 1), TARN_E_INVALID);
  assert_status(tarn_synced_async_gpu_push(NULL, NULL), TARN_E_INVALID);
  ck_assert_int_eq(tarn_synced_head(NULL), TARN_UNINITIALIZED);
}

TEST_ON(without_a_device_there_is_no_gpu, TEST_NEEDS_DISCRETE) {
  tarn_addr there = 1;
  open_devices(device);
  x = buffer_on(NULL, SIZE);
  write_at_cpu();
  tarn_stream *of_gpu = stream_on(gpu);
  assert_status(tarn_synced_gpu_data(x, &there), TARN_E_STATE);
  assert_error_says("device");
  ck_assert_uint_eq(there, 0);
  assert_status(tarn_synced_mutable_gpu_data(x, &there), TARN_E_STATE);
  assert_status(tarn_synced_set_gpu_data(x, 1), TARN_E_STATE);
  assert_status(tarn_synced_async_gpu_push(x, of_gpu), TARN_E_STATE);
  assert_head(x, TARN_HEAD_AT_CPU);
  assert_range(x, 0, SIZE, TARN_HOST, INSIDE);
  assert_ok(tarn_stream_destroy(of_gpu));
}

TEST_X(a_stream_of_another_device_cannot_push) {
  write_at_cpu();
  stream = stream_on(other);
  assert_status(tarn_synced_async_gpu_push(x, stream), TARN_E_INVALID);
  assert_head(x, TARN_HEAD_AT_CPU);
  ck_assert_uint_eq(all_copies(), 0);
  assert_ok(tarn_stream_destroy(stream));
}

TEST_X(a_view_of_a_part_cannot_be_set) {
  tarn_synced *view = view_of(x, 0, HALF);
  assert_status(tarn_synced_set_cpu_data(view, outside_host), TARN_E_INVALID);
  assert_status(tarn_synced_set_gpu_data(view, 4096), TARN_E_INVALID);
  assert_head(x, TARN_UNINITIALIZED);
  tarn_synced *all = view_of(x, 0, SIZE);
  assert_ok(tarn_synced_set_cpu_data(all, outside_host));
  assert_head(x, TARN_HEAD_AT_CPU);
  assert_ok(tarn_synced_destroy(all));
  assert_ok(tarn_synced_destroy(view));
}

// A call that would need what an open access has changes nothing.
TEST_X(an_open_access_is_in_the_way) {
  const void *host = NULL;
  void *mutable_host = NULL;
  tarn_addr there = 0;
  write_at_cpu();
  tarn_access access;
  begin_on(&access, x, 0, TARN_ALL, TARN_HOST, TARN_READ_WRITE);
  assert_status(tarn_synced_cpu_data(x, &host), TARN_E_STATE);
  assert_status(tarn_synced_gpu_data(x, &there), TARN_E_STATE);
  assert_status(tarn_synced_mutable_cpu_data(x, &mutable_host), TARN_E_STATE);
  assert_status(tarn_synced_set_cpu_data(x, outside_host), TARN_E_STATE);
  assert_ok(tarn_synced_end(&access));
  begin_on(&access, x, 0, TARN_ALL, TARN_HOST, TARN_READ);
  assert_status(tarn_synced_mutable_cpu_data(x, &mutable_host), TARN_E_STATE);
  assert_status(tarn_synced_mutable_gpu_data(x, &there), TARN_E_STATE);
  assert_ok(tarn_synced_cpu_data(x, &host));
  ck_assert_ptr_eq(host, access.pointer);
  assert_ok(tarn_synced_end(&access));
  assert_head(x, TARN_HEAD_AT_CPU);
  assert_range(x, 0, SIZE, TARN_HOST, INSIDE);
}

TEST(names_of_states) {
  ck_assert_str_eq(tarn_synced_state_name(TARN_UNINITIALIZED), "UNINITIALIZED");
  ck_assert_str_eq(tarn_synced_state_name(TARN_HEAD_AT_CPU), "HEAD_AT_CPU");
  ck_assert_str_eq(tarn_synced_state_name(TARN_HEAD_AT_GPU), "HEAD_AT_GPU");
  ck_assert_str_eq(tarn_synced_state_name(TARN_SYNCED), "SYNCED");
  ck_assert_str_eq(tarn_synced_state_name(TARN_HEAD_ELSEWHERE),
                   "HEAD_ELSEWHERE");
  ck_assert_ptr_null(tarn_synced_state_name((tarn_synced_state)99));
  ck_assert_ptr_null(tarn_synced_state_name((tarn_synced_state)-1));
}

TEST_ON(no_bytes_at_all, TEST_NEEDS_DISCRETE) {
  const void *host = NULL;
  tarn_addr there = 0;
  open_devices(device);
  x = buffer_on(gpu, 0);
  assert_ok(tarn_synced_cpu_data(x, &host));
  assert_ok(tarn_synced_gpu_data(x, &there));
  ck_assert_ptr_null(host);
  ck_assert_uint_eq(there, 0);
  assert_head(x, TARN_UNINITIALIZED);
  assert_ok(tarn_synced_set_cpu_data(x, outside_host));
  assert_head(x, TARN_UNINITIALIZED);
  ck_assert_uint_eq(all_copies(), 0);
}
