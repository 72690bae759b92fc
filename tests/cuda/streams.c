// What the plug-in owes the driver's streams, over the stand-in: captures of
// other threads go on, what is left is ended with the device, and nothing that
// is the program's is. Nothing here says anything of a driver.
#include <stdatomic.h>

#include "cuda/gpu.h"
#include "cuda/standin/api.h"
#include "over.h"
#include "support/threads.h"

static struct C_Device_st zero = {0};
static struct C_Device_st one = {1};

// The plug-in alone: no library counts what is there.
static void open_devices(void) {
  over_begin(0);
  ck_assert_int_eq(tarn__cuda_init_device(&zero), C_SUCCESS);
  ck_assert_int_eq(tarn__cuda_init_device(&one), C_SUCCESS);
}

static void close_devices(void) {
  ck_assert_int_eq(tarn__cuda_deinit_device(&zero), C_SUCCESS);
  ck_assert_int_eq(tarn__cuda_deinit_device(&one), C_SUCCESS);
  over_assert_clean("streams", 0);
}

FIXTURE(open_devices, close_devices);

static void fine(C_Status status) {
  ck_assert_msg(status == C_SUCCESS, "%d: %s", (int)status, tarn__text_line());
}

static void ok(tarn__cuda_result error) {
  ck_assert_uint_eq(error, TARN__CU_SUCCESS);
}

static C_Stream stream_on(C_Device device) {
  C_Stream stream = NULL;
  fine(tarn__cuda_create_stream(device, &stream));
  ck_assert_ptr_nonnull(stream);
  return stream;
}

static C_Event event_on(C_Device device) {
  C_Event event = NULL;
  fine(tarn__cuda_create_event(device, &event));
  return event;
}

static void *block_on(C_Device device, size_t size) {
  void *block = NULL;
  fine(tarn__cuda_device_memory_allocate(device, &block, size));
  return block;
}

static void enter_context(int device) {
  CUcontext context = NULL;
  ok(cuDevicePrimaryCtxRetain(&context, device));
  ok(cuCtxPushCurrent_v2(context));
}

static void leave_context(int device) {
  CUcontext context = NULL;
  ok(cuCtxPopCurrent_v2(&context));
  ok(cuDevicePrimaryCtxRelease_v2(device));
}

// --- ends ------------------------------------------------------------------

static void assert_not_destroyed(C_Device device, C_Stream stream) {
  ck_assert_int_eq(tarn__cuda_destroy_stream(device, stream), C_ERROR);
  ck_assert_ptr_nonnull(
      strstr(tarn__text_line(), "not a stream that was created here"));
}

TEST(streams_of_others_are_not_destroyed) {
  CUstream native = NULL;
  C_Stream made = stream_on(&zero);
  enter_context(0);
  ok(cuStreamCreate(&native, TARN__CU_STREAM_NON_BLOCKING));
  assert_not_destroyed(&zero, (C_Stream)(void *)native);
  assert_not_destroyed(&zero, (C_Stream)(void *)TARN__CU_STREAM_LEGACY);
  assert_not_destroyed(&zero, (C_Stream)(void *)TARN__CU_STREAM_PER_THREAD);
  assert_not_destroyed(&zero, NULL);
  assert_not_destroyed(&one, made);
  ok(cuStreamSynchronize(native));
  ok(cuStreamDestroy_v2(native));
  leave_context(0);
  fine(tarn__cuda_destroy_stream(&zero, made));
  assert_not_destroyed(&zero, made);
}

static void count_call(C_Device device, C_Stream stream, void *user_data,
                       C_Status *status) {
  (void)stream;
  if (device->id == 0 && *status == C_SUCCESS)
    atomic_fetch_add((atomic_int *)user_data, 1);
}

// The fixture finds that nothing lives in the driver.
TEST(what_is_left_ends_with_the_device) {
  static atomic_int calls;
  size_t known = tarn_host_memory();
  C_Stream stream = stream_on(&zero);
  C_Event event = event_on(&zero);
  fine(tarn__cuda_stream_add_callback(&zero, stream, count_call, &calls));
  fine(tarn__cuda_record_event(&zero, stream, event));
  fine(tarn__cuda_deinit_device(&zero));
  ck_assert_int_eq(atomic_load(&calls), 1);
  ck_assert_uint_eq(tarn_host_memory(), known);
  fine(tarn__cuda_init_device(&zero));
}

static void count_failure(C_Device device, C_Stream stream, void *user_data,
                          C_Status *status) {
  (void)stream;
  if (device->id == 0 && *status != C_SUCCESS &&
      strstr(tarn__text_line(), "CUDA_ERROR_") != NULL) {
    atomic_fetch_add((atomic_int *)user_data, 1);
  }
}

// How a program may learn that a stream has failed.
static C_Status wait_for(int how, C_Stream stream, C_Event event) {
  if (how == 0) return tarn__cuda_synchronize_stream(&zero, stream);
  if (how == 1) return tarn__cuda_synchronize_event(&zero, event);
  return tarn__cuda_destroy_stream(&zero, stream);
}

// The driver's wait returns at once where a context has failed, and its calls
// may come later. Behind the plug-in's, none do.
TEST_LOOP(callbacks_have_come_when_a_wait_fails, 3) {
  for (int round = 0; round < 50; round++) {
    atomic_int calls = 0;
    C_Stream stream = stream_on(&zero);
    C_Event event = event_on(&zero);
    tarn_standin_hold(true);
    tarn_standin_fail_command(1, TARN__CU_ERROR_ILLEGAL_ADDRESS);
    fine(tarn__cuda_record_event(&zero, stream, event));
    fine(tarn__cuda_stream_add_callback(&zero, stream, count_failure, &calls));
    fine(tarn__cuda_record_event(&zero, stream, event));
    fine(tarn__cuda_stream_add_callback(&zero, stream, count_failure, &calls));
    tarn_standin_hold(false);
    C_Status status = wait_for(_i, stream, event);
    ck_assert_int_eq(atomic_load(&calls), 2);
    ck_assert(_i == 2 || status == C_INTERNAL_ERROR);
    fine(tarn__cuda_deinit_device(&zero));
    fine(tarn__cuda_init_device(&zero));
  }
}

// The context was destroyed by the program: its callbacks may never come.
TEST_LOOP(what_a_destroyed_context_took_is_forgotten, 3) {
  atomic_int calls = 0;
  size_t known = tarn_host_memory();
  C_Stream stream = stream_on(&zero);
  C_Event event = event_on(&zero);
  tarn_standin_hold(true);
  fine(tarn__cuda_stream_add_callback(&zero, stream, count_failure, &calls));
  fine(tarn__cuda_record_event(&zero, stream, event));
  ok(cuDevicePrimaryCtxReset_v2(0));
  tarn_standin_hold(false);
  ck_assert_int_ne(wait_for(_i, stream, event), C_SUCCESS);
  ck_assert_ptr_nonnull(strstr(tarn__text_line(), "CUDA_ERROR_"));
  ck_assert_int_eq(atomic_load(&calls), 1);
  fine(tarn__cuda_deinit_device(&zero));
  ck_assert_uint_eq(tarn_host_memory(), known);
  over_set("");  // to the stand-in the device gave back what it did not have
  fine(tarn__cuda_init_device(&zero));
}

// --- two devices -----------------------------------------------------------

TEST(streams_wait_for_events_of_another_device) {
  enum { SIZE = 1 << 20 };
  static char sent[SIZE];
  static char seen[SIZE];
  C_Stream streams[2] = {stream_on(&zero), stream_on(&one)};
  C_Event event = event_on(&zero);
  void *from = block_on(&zero, SIZE);
  void *to = block_on(&one, SIZE);
  memset(sent, 7, SIZE);
  fine(tarn__cuda_async_memory_copy_h2d(&zero, streams[0], from, sent, SIZE));
  fine(tarn__cuda_async_memory_copy_p2p(&one, &zero, streams[0], to, from,
                                        SIZE));
  fine(tarn__cuda_record_event(&zero, streams[0], event));
  fine(tarn__cuda_stream_wait_event(&one, streams[1], event));
  fine(tarn__cuda_async_memory_copy_d2h(&one, streams[1], seen, to, SIZE));
  fine(tarn__cuda_synchronize_stream(&one, streams[1]));
  ck_assert_mem_eq(seen, sent, SIZE);
  ck_assert_int_eq(tarn__cuda_query_event(&one, event), C_ERROR);
  fine(tarn__cuda_memory_copy_p2p(&zero, &one, from, to, SIZE));
  fine(tarn__cuda_device_memory_deallocate(&one, to, SIZE));
  fine(tarn__cuda_device_memory_deallocate(&zero, from, SIZE));
}

// --- captures --------------------------------------------------------------

typedef struct beside {
  C_Stream stream;
  C_Event event;
  void *block;
} beside;

// All that queues nothing on the stream that captures.
static void *use_device(void *context) {
  const beside *b = context;
  char bytes[64] = {0};
  C_Stream stream = NULL;
  C_Event event = NULL;
  expect(tarn__cuda_create_stream(&zero, &stream) == C_SUCCESS);
  expect(tarn__cuda_create_event(&zero, &event) == C_SUCCESS);
  expect(tarn__cuda_memory_copy_h2d(&zero, b->block, bytes, sizeof bytes) ==
         C_SUCCESS);
  expect(tarn__cuda_device_memory_set(&zero, b->block, 1, sizeof bytes) ==
         C_SUCCESS);
  expect(tarn__cuda_async_memory_copy_d2h(&zero, stream, bytes, b->block,
                                          sizeof bytes) == C_SUCCESS);
  expect(tarn__cuda_record_event(&zero, stream, event) == C_SUCCESS);
  expect(tarn__cuda_synchronize_event(&zero, event) == C_SUCCESS);
  expect(tarn__cuda_query_event(&zero, event) == C_SUCCESS);
  expect(tarn__cuda_query_event(&zero, b->event) == C_SUCCESS);
  expect(tarn__cuda_synchronize_stream(&zero, stream) == C_SUCCESS);
  expect(tarn__cuda_query_stream(&zero, stream) == C_SUCCESS);
  expect(tarn__cuda_destroy_event(&zero, event) == C_SUCCESS);
  expect(tarn__cuda_destroy_stream(&zero, stream) == C_SUCCESS);
  expect(bytes[0] == 1 && bytes[63] == 1);
  return NULL;
}

// By another thread, and by the one that captures.
TEST_LOOP(calls_do_not_end_a_capture, 2) {
  beside b = {stream_on(&zero), event_on(&zero), block_on(&zero, 64)};
  CUgraph graph = NULL;
  CUstream native = (CUstream)(void *)b.stream;
  fine(tarn__cuda_record_event(&zero, b.stream, b.event));
  fine(tarn__cuda_synchronize_event(&zero, b.event));
  enter_context(0);
  ok(cuStreamBeginCapture_v2(native, TARN__CU_STREAM_CAPTURE_MODE_GLOBAL));
  if (_i == 0) {
    run_threads_on(use_device, 1, &b);
  } else {
    (void)use_device(&b);
  }
  assert_as_expected();
  ok(cuStreamEndCapture(native, &graph));
  ok(cuGraphDestroy(graph));
  leave_context(0);
  fine(tarn__cuda_device_memory_deallocate(&zero, b.block, 64));
}

// A wait on a stream that captures is a part of the graph.
TEST(a_captured_stream_waits_for_another) {
  enum { SIZE = 64 };
  static const char sent[SIZE] = {3};
  char seen[SIZE] = {0};
  C_Stream streams[2] = {stream_on(&zero), stream_on(&zero)};
  C_Event events[2] = {event_on(&zero), event_on(&zero)};
  void *block = block_on(&zero, SIZE);
  CUstream native = (CUstream)(void *)streams[0];
  CUgraph graph = NULL;
  CUgraphExec made = NULL;
  enter_context(0);
  ok(cuStreamBeginCapture_v2(native, TARN__CU_STREAM_CAPTURE_MODE_GLOBAL));
  fine(tarn__cuda_record_event(&zero, streams[0], events[0]));
  fine(tarn__cuda_stream_wait_event(&zero, streams[1], events[0]));
  fine(tarn__cuda_async_memory_copy_h2d(&zero, streams[1], block, sent, SIZE));
  fine(tarn__cuda_record_event(&zero, streams[1], events[1]));
  fine(tarn__cuda_stream_wait_event(&zero, streams[0], events[1]));
  ok(cuStreamEndCapture(native, &graph));
  ok(cuGraphInstantiateWithFlags(&made, graph, 0));
  ok(cuGraphLaunch(made, native));
  fine(tarn__cuda_synchronize_stream(&zero, streams[0]));
  fine(tarn__cuda_memory_copy_d2h(&zero, seen, block, SIZE));
  ck_assert_mem_eq(seen, sent, SIZE);
  ok(cuGraphExecDestroy(made));
  ok(cuGraphDestroy(graph));
  leave_context(0);
  fine(tarn__cuda_device_memory_deallocate(&zero, block, SIZE));
}
