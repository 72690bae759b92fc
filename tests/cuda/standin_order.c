// The order of work in the stand-in: streams, events, callbacks, pools.
#include <stdatomic.h>
#include <stdlib.h>

#include "standin_ground.h"

enum { SMALL = 64 };

static void destroy_stream(CUstream stream) {
  done(cuStreamDestroy_v2(stream));
}

// --- streams ---------------------------------------------------------------

TEST(work_does_not_begin_before_it_may) {
  ground on = ground_open();
  CUdeviceptr block = ground_block(SMALL);
  tarn_standin_hold(true);
  done(cuMemsetD8Async(block, 1, SMALL, on.stream));
  gives(cuStreamQuery(on.stream), TARN__CU_ERROR_NOT_READY);
  ck_assert_uint_eq(tarn_standin_queued(), 1);
  tarn_standin_hold(false);
  done(cuStreamSynchronize(on.stream));
  done(cuStreamQuery(on.stream));
  ck_assert_uint_eq(tarn_standin_queued(), 0);
  assert_all(tarn_standin_translate(block, SMALL), SMALL, 1);
  done(cuMemFree_v2(block));
  assert_misuses(0);
  ground_close(&on);
}
END_TEST

// What the callbacks of a test have seen, in their order.
static atomic_int seen[8];
static atomic_size_t seen_count;

static void see(int what) {
  atomic_store(&seen[atomic_fetch_add(&seen_count, 1) % 8], what);
}

static void see_callback(CUstream stream, tarn__cuda_result status,
                         void *user) {
  (void)stream;
  see((int)(intptr_t)user + (int)status);
}

static void see_function(void *user) {
  see((int)(intptr_t)user);
}

static void call_back(CUstream stream, intptr_t number) {
  done(cuStreamAddCallback(stream, see_callback, (void *)number, 0));
}

static void assert_seen(size_t count, const int *expected) {
  ck_assert_uint_eq(atomic_load(&seen_count), count);
  for (size_t i = 0; i < count; i++)
    ck_assert_int_eq(atomic_load(&seen[i]), expected[i]);
}

TEST(events_order_streams) {
  ground on = ground_open();
  CUstream other = ground_stream(TARN__CU_STREAM_NON_BLOCKING);
  CUevent event = ground_event();
  done(cuEventQuery(event));
  tarn_standin_hold(true);
  call_back(on.stream, 1);
  done(cuEventRecord(event, on.stream));
  done(cuStreamWaitEvent(other, event, 0));
  call_back(other, 2);
  gives(cuEventQuery(event), TARN__CU_ERROR_NOT_READY);
  tarn_standin_hold(false);
  done(cuEventSynchronize(event));
  done(cuEventQuery(event));
  done(cuStreamSynchronize(other));
  assert_seen(2, (int[]){1, 2});
  done(cuEventDestroy_v2(event));
  destroy_stream(other);
  ground_close(&on);
}
END_TEST

// NULL and CU_STREAM_LEGACY are one.
TEST(the_legacy_stream_waits_for_blocking_streams_and_they_for_it) {
  ground on = ground_open();
  CUstream blocking = ground_stream(TARN__CU_STREAM_DEFAULT);
  tarn_standin_hold(true);
  call_back(blocking, 1);
  call_back(NULL, 2);
  call_back(blocking, 3);
  call_back(TARN__CU_STREAM_LEGACY, 4);
  call_back(TARN__CU_STREAM_PER_THREAD, 5);
  tarn_standin_hold(false);
  done(cuStreamSynchronize(NULL));
  done(cuStreamSynchronize(TARN__CU_STREAM_PER_THREAD));
  assert_seen(5, (int[]){1, 2, 3, 4, 5});
  destroy_stream(blocking);
  ground_close(&on);
}
END_TEST

// Holds |stream| up until |gate| is true.
static void wait_for_gate(void *user) {
  while (!atomic_load((atomic_bool *)user)) {
  }
}

static void close_gate(CUstream stream, atomic_bool *gate) {
  done(cuLaunchHostFunc(stream, wait_for_gate, gate));
}

TEST(a_non_blocking_stream_waits_for_no_legacy_one) {
  ground on = ground_open();
  atomic_bool gate = false;
  close_gate(NULL, &gate);
  call_back(on.stream, 1);
  done(cuStreamSynchronize(on.stream));
  gives(cuStreamQuery(NULL), TARN__CU_ERROR_NOT_READY);
  atomic_store(&gate, true);
  done(cuStreamSynchronize(NULL));
  assert_seen(1, (int[]){1});
  ground_close(&on);
}
END_TEST

TEST(a_stream_that_is_destroyed_does_its_work) {
  ground on = ground_open();
  CUstream other = ground_stream(TARN__CU_STREAM_NON_BLOCKING);
  tarn_standin_hold(true);
  call_back(other, 7);
  destroy_stream(other);
  tarn_standin_hold(false);
  ck_assert_uint_eq(tarn_standin_live("stream"), 1);
  assert_seen(1, (int[]){7});
  ground_close(&on);
}
END_TEST

// --- failures --------------------------------------------------------------

// As documented: callbacks are told, host functions are not called.
TEST(a_failure_sticks_and_callbacks_hear_of_it) {
  enum { FAILURE = TARN__CU_ERROR_LAUNCH_FAILED };
  ground on = ground_open();
  CUdeviceptr block = ground_block(SMALL);
  tarn_standin_hold(true);
  tarn_standin_fail_command(1, FAILURE);
  done(cuMemsetD8Async(block, 1, SMALL, on.stream));
  done(cuLaunchHostFunc(on.stream, see_function, (void *)1));
  call_back(on.stream, 1000);
  tarn_standin_hold(false);
  gives(cuStreamSynchronize(on.stream), FAILURE);
  assert_seen(1, (int[]){1000 + FAILURE});
  gives(cuMemFree_v2(block), FAILURE);
  gives(cuStreamDestroy_v2(on.stream), FAILURE);
  ck_assert_uint_eq(tarn_standin_faults(), 1);
  done(cuDevicePrimaryCtxReset_v2(0));
  ck_assert_uint_eq(tarn_standin_live(NULL), 1);
  assert_misuses(0);
}
END_TEST

TEST(calls_fail_where_they_are_told_to) {
  ground on = ground_open();
  CUdeviceptr block = 0;
  tarn_standin_fail_call("cuMemAlloc_v2", 2, TARN__CU_ERROR_OUT_OF_MEMORY,
                         false);
  done(cuMemAlloc_v2(&block, SMALL));
  gives(cuMemFree_v2(block + 1), TARN__CU_ERROR_INVALID_VALUE);
  gives(cuMemAlloc_v2(&block, SMALL), TARN__CU_ERROR_OUT_OF_MEMORY);
  tarn_standin_fail_call(NULL, 1, TARN__CU_ERROR_UNKNOWN, true);
  done(cuMemFree_v2(block));
  gives(cuStreamQuery(on.stream), TARN__CU_ERROR_UNKNOWN);
  gives(cuStreamQuery(on.stream), TARN__CU_ERROR_UNKNOWN);
  tarn_standin_fail_call(NULL, 0, 0, false);
  ck_assert_uint_eq(tarn_standin_faults(), 3);
  ck_assert_uint_eq(tarn_standin_calls("cuMemAlloc_v2"), 2);
  ground_close(&on);
}
END_TEST

TEST(a_lost_device_does_nothing_any_more) {
  enum { LOST = TARN__CU_ERROR_DEVICE_UNAVAILABLE };
  ground on = ground_open();
  CUdeviceptr block = ground_block(SMALL);
  done(cuMemsetD8Async(block, 1, SMALL, on.stream));
  done(cuStreamSynchronize(on.stream));
  tarn_standin_hold(true);
  done(cuMemsetD8Async(block, 2, SMALL, on.stream));
  call_back(on.stream, 1000);
  tarn_standin_lose(2, LOST);
  done(cuCtxPushCurrent_v2(on.context));
  gives(cuCtxPopCurrent_v2(NULL), LOST);
  tarn_standin_hold(false);
  gives(cuStreamSynchronize(on.stream), LOST);
  gives(cuMemFree_v2(block), LOST);
  ck_assert_uint_eq(tarn_standin_live("device"), 1);  // when all is over
  tarn_standin_lose(0, 0);
  assert_seen(1, (int[]){1000 + LOST});
  assert_all(tarn_standin_translate(block, SMALL), SMALL, 1);
}
END_TEST

TEST(a_context_ends_with_all_that_is_in_it) {
  ground on = ground_open();
  CUdeviceptr block = ground_block(SMALL);
  CUcontext again = NULL;
  int active = 1;
  unsigned flags = 1;
  done(cuDevicePrimaryCtxReset_v2(0));
  ck_assert_uint_eq(tarn_standin_live(NULL), 1);  // it is held still
  ck_assert_uint_eq(tarn_standin_bytes(), 0);
  done(cuDevicePrimaryCtxGetState(0, &flags, &active));
  ck_assert_int_eq(active, 0);
  gives(cuMemAlloc_v2(&block, SMALL), TARN__CU_ERROR_CONTEXT_IS_DESTROYED);
  done(cuDevicePrimaryCtxRetain(&again, 0));
  ck_assert_ptr_eq(again, on.context);
  done(cuMemAlloc_v2(&block, SMALL));
  done(cuMemFree_v2(block));
  done(cuDevicePrimaryCtxRelease_v2(0));
  done(cuDevicePrimaryCtxRelease_v2(0));
  ck_assert_uint_eq(tarn_standin_live(NULL), 0);
  assert_misuses(0);
}
END_TEST

// --- pools -----------------------------------------------------------------

static const struct CUmemPoolProps_st pool_properties = {
    .allocType = TARN__CU_MEM_ALLOCATION_TYPE_PINNED,
    .location = {TARN__CU_MEM_LOCATION_TYPE_DEVICE, 0},
};

static CUmemoryPool make_pool(uint64_t threshold) {
  CUmemoryPool pool = NULL;
  done(cuMemPoolCreate(&pool, &pool_properties));
  done(cuMemPoolSetAttribute(pool, TARN__CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                             &threshold));
  return pool;
}

static CUdeviceptr take(CUmemoryPool pool, CUstream stream) {
  CUdeviceptr block = 0;
  done(cuMemAllocFromPoolAsync(&block, SMALL, pool, stream));
  return block;
}

TEST(memory_is_used_again_in_the_order_of_a_stream) {
  ground on = ground_open();
  CUmemoryPool pool = make_pool(UINT64_MAX);
  CUstream other = ground_stream(TARN__CU_STREAM_NON_BLOCKING);
  tarn_standin_hold(true);
  CUdeviceptr first = take(pool, on.stream);
  done(cuMemsetD8Async(first, 1, SMALL, on.stream));
  done(cuMemFreeAsync(first, on.stream));
  CUdeviceptr second = take(pool, other);
  ck_assert_uint_ne(second, first);
  CUdeviceptr third = take(pool, on.stream);
  ck_assert_uint_eq(third, first);
  done(cuMemsetD8Async(third, 2, SMALL, on.stream));
  done(cuMemFreeAsync(third, on.stream));
  done(cuMemFreeAsync(second, other));
  tarn_standin_hold(false);
  done(cuCtxSynchronize());
  ck_assert_uint_eq(tarn_standin_bytes(), 1024);
  ck_assert_uint_eq(take(pool, other), second);
  done(cuMemFreeAsync(second, other));
  destroy_stream(other);
  done(cuMemPoolDestroy(pool));
  assert_misuses(0);
  ground_close(&on);
}
END_TEST

// Which has room for as much as takes as much.
TEST(memory_that_is_used_again_is_there_to_its_end) {
  ground on = ground_open();
  CUmemoryPool pool = make_pool(UINT64_MAX);
  CUdeviceptr first = 0, second = 0;
  done(cuMemAllocFromPoolAsync(&first, 7681, pool, on.stream));
  done(cuMemFreeAsync(first, on.stream));
  done(cuMemAllocFromPoolAsync(&second, 8192, pool, on.stream));
  ck_assert_uint_eq(first, second);
  done(cuMemsetD8Async(second, 8, 8192, on.stream));
  done(cuMemFreeAsync(second, on.stream));
  done(cuStreamSynchronize(on.stream));
  done(cuMemPoolDestroy(pool));
  assert_misuses(0);
  ground_close(&on);
}
END_TEST

TEST(a_pool_gives_back_what_is_over_its_threshold) {
  ground on = ground_open();
  CUmemoryPool pool = make_pool(600);
  uint64_t reserved = 0;
  CUdeviceptr first = take(pool, on.stream), second = take(pool, on.stream);
  done(cuMemFreeAsync(first, on.stream));
  done(cuMemFreeAsync(second, on.stream));
  done(cuMemPoolGetAttribute(pool, TARN__CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
                             &reserved));
  ck_assert_uint_eq(reserved, 1024);
  done(cuStreamSynchronize(on.stream));
  done(cuMemPoolGetAttribute(pool, TARN__CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
                             &reserved));
  ck_assert_uint_eq(reserved, 512);
  done(cuMemPoolTrimTo(pool, 0));
  ck_assert_uint_eq(tarn_standin_bytes(), 0);
  done(cuMemPoolDestroy(pool));
  assert_misuses(0);
  ground_close(&on);
}
END_TEST

TEST(pools_do_not_keep_memory_that_another_request_needs) {
  ck_assert(tarn_standin_set("CAPACITY", "1024"));
  ground on = ground_open();
  CUmemoryPool pool = make_pool(UINT64_MAX);
  CUdeviceptr block = take(pool, on.stream), large = 0;
  done(cuMemFreeAsync(block, on.stream));
  done(cuStreamSynchronize(on.stream));
  done(cuMemAllocFromPoolAsync(&large, 1024, pool, on.stream));
  gives(cuMemAllocFromPoolAsync(&block, 1, pool, on.stream),
        TARN__CU_ERROR_OUT_OF_MEMORY);
  done(cuMemFree_v2(large));
  done(cuMemPoolDestroy(pool));
  assert_misuses(0);
  ground_close(&on);
}
END_TEST
