// Captures in the stand-in: what they record, and what ends them.
#include <pthread.h>
#include <stdlib.h>

#include "standin_ground.h"

enum {
  SMALL = 64,
  GLOBAL = TARN__CU_STREAM_CAPTURE_MODE_GLOBAL,
  THREAD_LOCAL = TARN__CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
  RELAXED = TARN__CU_STREAM_CAPTURE_MODE_RELAXED,
};

static unsigned status_of(CUstream stream) {
  unsigned status = 9;
  done(cuStreamIsCapturing(stream, &status));
  return status;
}

static CUgraphExec end_and_instantiate(CUstream stream) {
  CUgraph graph = NULL;
  CUgraphExec exec = NULL;
  done(cuStreamEndCapture(stream, &graph));
  done(cuGraphInstantiateWithFlags(&exec, graph, 0));
  done(cuGraphDestroy(graph));
  return exec;
}

static void assert_broken(CUstream stream, tarn__cuda_result error) {
  CUgraph graph = NULL;
  gives(cuStreamEndCapture(stream, &graph), error);
  ck_assert_ptr_null(graph);
  ck_assert_uint_eq(status_of(stream), TARN__CU_STREAM_CAPTURE_STATUS_NONE);
}

static void exchange(unsigned mode, unsigned expected) {
  done(cuThreadExchangeStreamCaptureMode(&mode));
  ck_assert_uint_eq(mode, expected);
}

// --- recording -------------------------------------------------------------

TEST(a_graph_does_what_was_recorded_each_time) {
  ground on = ground_open();
  CUdeviceptr first = ground_block(SMALL), second = ground_block(SMALL);
  unsigned char *bytes = tarn_standin_translate(second, SMALL);
  memset(bytes, 0, SMALL);
  done(cuStreamBeginCapture_v2(on.stream, GLOBAL));
  ck_assert_uint_eq(status_of(on.stream),
                    TARN__CU_STREAM_CAPTURE_STATUS_ACTIVE);
  done(cuMemsetD8Async(first, 6, SMALL, on.stream));
  done(cuMemcpyDtoDAsync_v2(second, first, SMALL, on.stream));
  CUgraphExec exec = end_and_instantiate(on.stream);
  assert_all(bytes, SMALL, 0);
  for (int i = 0; i < 2; i++) {
    memset(bytes, 0, SMALL);
    done(cuGraphLaunch(exec, on.stream));
    done(cuStreamSynchronize(on.stream));
    assert_all(bytes, SMALL, 6);
  }
  done(cuGraphExecDestroy(exec));
  done(cuMemFree_v2(first));
  done(cuMemFree_v2(second));
  assert_misuses(0);
  ground_close(&on);
}
END_TEST

TEST(a_stream_joins_by_an_event_and_is_joined_by_another) {
  ground on = ground_open();
  CUstream other = ground_stream(TARN__CU_STREAM_NON_BLOCKING);
  CUevent fork = ground_event(), join = ground_event();
  CUdeviceptr block = ground_block(SMALL);
  done(cuStreamBeginCapture_v2(on.stream, THREAD_LOCAL));
  done(cuEventRecord(fork, on.stream));
  done(cuStreamWaitEvent(other, fork, 0));
  ck_assert_uint_eq(status_of(other), TARN__CU_STREAM_CAPTURE_STATUS_ACTIVE);
  done(cuMemsetD8Async(block, 4, SMALL, other));
  done(cuEventRecord(join, other));
  done(cuStreamWaitEvent(on.stream, join, 0));
  CUgraphExec exec = end_and_instantiate(on.stream);
  ck_assert_uint_eq(status_of(other), TARN__CU_STREAM_CAPTURE_STATUS_NONE);
  done(cuGraphLaunch(exec, other));
  done(cuStreamSynchronize(other));
  assert_all(tarn_standin_translate(block, SMALL), SMALL, 4);
  assert_misuses(0);
  refuses(cuEventQuery(join), TARN__CU_ERROR_CAPTURED_EVENT, "in a capture");
  done(cuGraphExecDestroy(exec));
  done(cuEventDestroy_v2(fork));
  done(cuEventDestroy_v2(join));
  done(cuMemFree_v2(block));
  done(cuStreamDestroy_v2(other));
  ground_close(&on);
}
END_TEST

TEST(a_stream_that_is_not_joined_breaks_the_capture) {
  ground on = ground_open();
  CUstream other = ground_stream(TARN__CU_STREAM_NON_BLOCKING);
  CUevent fork = ground_event();
  CUdeviceptr block = ground_block(SMALL);
  done(cuStreamBeginCapture_v2(on.stream, RELAXED));
  done(cuEventRecord(fork, on.stream));
  done(cuStreamWaitEvent(other, fork, 0));
  done(cuMemsetD8Async(block, 4, SMALL, other));
  assert_broken(on.stream, TARN__CU_ERROR_STREAM_CAPTURE_UNJOINED);
  assert_misuses(1);
  done(cuEventDestroy_v2(fork));
  done(cuMemFree_v2(block));
  done(cuStreamDestroy_v2(other));
  ground_close(&on);
}
END_TEST

// --- what breaks one -------------------------------------------------------

static void allocate(CUstream stream) {
  CUdeviceptr block = 0;
  (void)stream;
  gives(cuMemAlloc_v2(&block, SMALL),
        TARN__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

static void query_stream(CUstream stream) {
  gives(cuStreamQuery(stream), TARN__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

static void wait_for_context(CUstream stream) {
  (void)stream;
  gives(cuCtxSynchronize(), TARN__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

static void query_event(CUstream stream) {
  CUevent event = ground_event();
  (void)stream;
  gives(cuEventQuery(event), TARN__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  done(cuEventDestroy_v2(event));
}

static void never(CUstream stream, tarn__cuda_result status, void *user) {
  (void)stream;
  (void)status;
  (void)user;
  abort();
}

static void call_back(CUstream stream) {
  gives(cuStreamAddCallback(stream, never, NULL, 0),
        TARN__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

static void wait_for_outside(CUstream stream) {
  CUevent event = ground_event();
  CUstream other = ground_stream(TARN__CU_STREAM_NON_BLOCKING);
  done(cuEventRecord(event, other));
  gives(cuStreamWaitEvent(stream, event, 0),
        TARN__CU_ERROR_STREAM_CAPTURE_ISOLATION);
  done(cuEventDestroy_v2(event));
  done(cuStreamDestroy_v2(other));
}

static void (*const breaks[])(CUstream) = {
    allocate,    query_stream, wait_for_context,
    query_event, call_back,    wait_for_outside,
};
enum { BREAKS = sizeof breaks / sizeof *breaks };

TEST_LOOP(what_may_not_be_called_breaks_a_capture, BREAKS) {
  ground on = ground_open();
  done(cuStreamBeginCapture_v2(on.stream, THREAD_LOCAL));
  breaks[_i](on.stream);
  assert_misuses(1);
  ck_assert_uint_eq(status_of(on.stream),
                    TARN__CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  gives(cuLaunchHostFunc(on.stream, NULL, NULL),
        TARN__CU_ERROR_STREAM_CAPTURE_INVALIDATED);
  assert_broken(on.stream, TARN__CU_ERROR_STREAM_CAPTURE_INVALIDATED);
  ground_close(&on);
}
END_TEST

TEST(a_relaxed_capture_permits_what_is_unsafe) {
  ground on = ground_open();
  done(cuStreamBeginCapture_v2(on.stream, RELAXED));
  done(cuMemFree_v2(ground_block(SMALL)));
  done(cuGraphExecDestroy(end_and_instantiate(on.stream)));
  assert_misuses(0);
  ground_close(&on);
}
END_TEST

TEST(a_thread_may_relax_itself) {
  ground on = ground_open();
  done(cuStreamBeginCapture_v2(on.stream, GLOBAL));
  exchange(RELAXED, GLOBAL);
  done(cuMemFree_v2(ground_block(SMALL)));
  exchange(GLOBAL, RELAXED);
  done(cuGraphExecDestroy(end_and_instantiate(on.stream)));
  assert_misuses(0);
  ground_close(&on);
}
END_TEST

TEST(the_legacy_stream_does_not_wait_for_a_capture) {
  ground on = ground_open();
  CUstream blocking = ground_stream(0);
  unsigned status = 0;
  CUdeviceptr block = ground_block(SMALL);
  done(cuStreamBeginCapture_v2(on.stream, RELAXED));
  done(cuMemsetD8Async(block, 0, SMALL, NULL));
  done(cuGraphExecDestroy(end_and_instantiate(on.stream)));
  done(cuStreamBeginCapture_v2(blocking, RELAXED));
  gives(cuStreamIsCapturing(NULL, &status),
        TARN__CU_ERROR_STREAM_CAPTURE_IMPLICIT);
  ck_assert_uint_eq(status_of(blocking), TARN__CU_STREAM_CAPTURE_STATUS_ACTIVE);
  assert_misuses(0);
  gives(cuMemsetD8Async(block, 0, SMALL, NULL),
        TARN__CU_ERROR_STREAM_CAPTURE_IMPLICIT);
  assert_broken(blocking, TARN__CU_ERROR_STREAM_CAPTURE_INVALIDATED);
  done(cuStreamDestroy_v2(blocking));
  done(cuMemFree_v2(block));
  ground_close(&on);
}
END_TEST

// --- other threads ---------------------------------------------------------

typedef struct player {
  CUcontext context;
  unsigned mode;
  tarn__cuda_result answer;
} player;

static void *allocate_there(void *argument) {
  player *p = argument;
  CUdeviceptr block = 0;
  done(cuCtxPushCurrent_v2(p->context));
  exchange(p->mode, GLOBAL);
  p->answer = cuMemAlloc_v2(&block, SMALL);
  if (p->answer == TARN__CU_SUCCESS) done(cuMemFree_v2(block));
  done(cuCtxPopCurrent_v2(NULL));
  return NULL;
}

static tarn__cuda_result allocate_in_thread(CUcontext context, unsigned mode) {
  pthread_t thread;
  player p = {context, mode, TARN__CU_SUCCESS};
  ck_assert_int_eq(pthread_create(&thread, NULL, allocate_there, &p), 0);
  ck_assert_int_eq(pthread_join(thread, NULL), 0);
  return p.answer;
}

// Of the capture, and of the other thread; whether the call breaks the capture.
static const struct {
  unsigned capture;
  unsigned thread;
  bool is_broken;
} cells[] = {
    {GLOBAL, GLOBAL, true},         {GLOBAL, THREAD_LOCAL, false},
    {GLOBAL, RELAXED, false},       {THREAD_LOCAL, GLOBAL, false},
    {THREAD_LOCAL, RELAXED, false}, {RELAXED, GLOBAL, false},
};

TEST_LOOP(another_thread_breaks_a_capture_by_the_modes_of_both,
          sizeof cells / sizeof *cells) {
  ground on = ground_open();
  done(cuStreamBeginCapture_v2(on.stream, cells[_i].capture));
  tarn__cuda_result answer = allocate_in_thread(on.context, cells[_i].thread);
  if (cells[_i].is_broken) {
    gives(answer, TARN__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_broken(on.stream, TARN__CU_ERROR_STREAM_CAPTURE_INVALIDATED);
  } else {
    gives(answer, TARN__CU_SUCCESS);
    done(cuGraphExecDestroy(end_and_instantiate(on.stream)));
  }
  ground_close(&on);
}
END_TEST
