// The stand-in's queues: order, callbacks, and what fails, at once or later.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "standin_ground.h"

enum { SMALL = 64 };

// --- order -----------------------------------------------------------------

TEST(commands_run_later_and_in_order) {
  ground on = ground_with("none");
  unsigned char bytes[SMALL] = {1}, out[SMALL] = {0};
  cl_mem buffer = ground_buffer(&on, 0, SMALL);
  cl_event event;
  tarn_standin_hold(true);
  done(clEnqueueWriteBuffer(on.queue, buffer, CL_FALSE, 0, SMALL, bytes, 0,
                            NULL, &event));
  done(clEnqueueReadBuffer(on.queue, buffer, CL_FALSE, 0, SMALL, out, 0, NULL,
                           NULL));
  const unsigned char pattern = 3;
  done(clEnqueueFillBuffer(on.queue, buffer, &pattern, 1, 0, SMALL, 0, NULL,
                           NULL));
  ck_assert_uint_eq(tarn_standin_queued(), 3);
  gives(event_status(event), CL_QUEUED);
  bytes[0] = 2;
  tarn_standin_hold(false);
  done(clFinish(on.queue));
  gives(event_status(event), CL_COMPLETE);
  ck_assert_uint_eq(out[0], 2);
  done(clEnqueueReadBuffer(on.queue, buffer, CL_TRUE, 0, SMALL, out, 0, NULL,
                           NULL));
  assert_all(out, SMALL, 3);
  done(clReleaseEvent(event));
  done(clReleaseMemObject(buffer));
  ground_close(&on);
}
END_TEST

TEST(memory_that_a_command_needs_outlives_its_release) {
  ground on = ground_with("none");
  unsigned char out[SMALL];
  cl_mem buffer = ground_buffer(&on, 0, SMALL);
  const unsigned char pattern = 3;
  tarn_standin_hold(true);
  done(clEnqueueFillBuffer(on.queue, buffer, &pattern, 1, 0, SMALL, 0, NULL,
                           NULL));
  done(clEnqueueReadBuffer(on.queue, buffer, CL_FALSE, 0, SMALL, out, 0, NULL,
                           NULL));
  done(clReleaseMemObject(buffer));
  tarn_standin_hold(false);
  done(clFinish(on.queue));
  assert_all(out, SMALL, 3);
  assert_misuses(0);
  ground_close(&on);
}
END_TEST

TEST(a_queue_waits_for_an_event_of_another) {
  ground on = ground_with("none");
  cl_command_queue other = ground_queue(&on);
  cl_int error = CL_SUCCESS;
  cl_event gate = clCreateUserEvent(on.context, &error), first, second;
  done(error);
  done(clEnqueueMarkerWithWaitList(on.queue, 1, &gate, &first));
  done(clEnqueueBarrierWithWaitList(other, 1, &first, &second));
  ck_assert_uint_eq(tarn_standin_queued(), 2);
  ck_assert_int_gt(event_status(second), CL_COMPLETE);
  done(clSetUserEventStatus(gate, CL_COMPLETE));
  done(clWaitForEvents(1, &second));
  gives(event_status(first), CL_COMPLETE);
  done(clReleaseEvent(gate));
  done(clReleaseEvent(first));
  done(clReleaseEvent(second));
  done(clReleaseCommandQueue(other));
  ground_close(&on);
}
END_TEST

TEST(a_lazy_driver_begins_after_a_flush) {
  ground on = ground_with("none");
  cl_event event;
  ck_assert(tarn_standin_set("LAZY", "1"));
  done(clEnqueueMarkerWithWaitList(on.queue, 0, NULL, &event));
  ck_assert_uint_eq(tarn_standin_live("event"), 1);
  gives(event_status(event), CL_QUEUED);
  done(clFlush(on.queue));
  ck_assert_uint_eq(tarn_standin_live("event"), 1);
  gives(event_status(event), CL_COMPLETE);
  done(clReleaseEvent(event));
  ground_close(&on);
}
END_TEST

typedef struct told {
  pthread_t thread;
  _Atomic int count;
  _Atomic int status;
} told;

static void CL_CALLBACK tell(cl_event event, cl_int status, void *out) {
  (void)event;
  told *to = out;
  to->thread = pthread_self();
  to->status = status;
  to->count++;
}

TEST(callbacks_come_on_the_queues_thread_or_at_once) {
  ground on = ground_with("none");
  told later = {.status = 1}, now = {.status = 1};
  cl_event event;
  tarn_standin_hold(true);
  done(clEnqueueMarkerWithWaitList(on.queue, 0, NULL, &event));
  done(clSetEventCallback(event, CL_COMPLETE, tell, &later));
  ck_assert_int_eq(later.count, 0);
  tarn_standin_hold(false);
  done(clFinish(on.queue));
  ck_assert_int_eq(later.count, 1);
  ck_assert_int_eq(later.status, CL_COMPLETE);
  ck_assert(!pthread_equal(later.thread, pthread_self()));
  done(clSetEventCallback(event, CL_COMPLETE, tell, &now));
  ck_assert_int_eq(now.count, 1);
  ck_assert(pthread_equal(now.thread, pthread_self()));
  done(clReleaseEvent(event));
  ground_close(&on);
}
END_TEST

static void CL_CALLBACK wait_inside(cl_event event, cl_int status, void *out) {
  (void)event;
  (void)status;
  cl_command_queue *queue = out;
  gives(clFinish(*queue), CL_INVALID_OPERATION);
}

TEST(a_callback_may_not_wait) {
  ground on = ground_with("none");
  cl_event event;
  done(clEnqueueMarkerWithWaitList(on.queue, 0, NULL, &event));
  done(clSetEventCallback(event, CL_COMPLETE, wait_inside, &on.queue));
  done(clFinish(on.queue));
  assert_misuses(1);
  done(clReleaseEvent(event));
  ground_close(&on);
}
END_TEST

// --- faults ----------------------------------------------------------------

TEST(a_command_fails_later_and_so_does_what_follows) {
  ground on = ground_with("none");
  unsigned char in[SMALL] = {5}, out[SMALL] = {0};
  cl_mem buffer = ground_buffer(&on, 0, SMALL);
  cl_event events[3];
  told silent = {.status = 1};
  tarn_standin_hold(true);
  tarn_standin_fail_command(2, CL_OUT_OF_RESOURCES);
  done(clEnqueueMarkerWithWaitList(on.queue, 0, NULL, &events[0]));
  done(clEnqueueWriteBuffer(on.queue, buffer, CL_FALSE, 0, SMALL, in, 0, NULL,
                            &events[1]));
  done(clEnqueueReadBuffer(on.queue, buffer, CL_FALSE, 0, SMALL, out, 0, NULL,
                           &events[2]));
  done(clSetEventCallback(events[1], CL_COMPLETE, tell, &silent));
  tarn_standin_hold(false);
  done(clFinish(on.queue));
  gives(event_status(events[0]), CL_COMPLETE);
  gives(event_status(events[1]), CL_OUT_OF_RESOURCES);
  gives(event_status(events[2]), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  ck_assert_int_eq(silent.count, 0);
  assert_all(out, SMALL, 0);
  ck_assert_uint_eq(tarn_standin_faults(), 1);
  gives(clWaitForEvents(1, &events[1]),
        CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  for (size_t i = 0; i < 3; i++)
    done(clReleaseEvent(events[i]));
  done(clReleaseMemObject(buffer));
  ground_close(&on);
}
END_TEST

TEST(a_driver_may_tell_of_a_failure_as_the_specification_has_it) {
  ground on = ground_with("none");
  told loud = {.status = 1};
  cl_event event;
  ck_assert(tarn_standin_set("FAILED_CALLBACKS", "1"));
  ck_assert(tarn_standin_set("FINISH_TELLS", "1"));
  tarn_standin_hold(true);
  tarn_standin_fail_command(1, -42);
  done(clEnqueueMarkerWithWaitList(on.queue, 0, NULL, &event));
  done(clSetEventCallback(event, CL_COMPLETE, tell, &loud));
  tarn_standin_hold(false);
  gives(clFinish(on.queue), -42);
  ck_assert_int_eq(loud.count, 1);
  ck_assert_int_eq(loud.status, -42);
  done(clReleaseEvent(event));
  ground_close(&on);
}
END_TEST

TEST(a_queue_may_work_again_after_a_failure) {
  ground on = ground_with("none");
  cl_event event;
  ck_assert(tarn_standin_set("RECOVERS", "1"));
  tarn_standin_fail_command(1, -5);
  done(clEnqueueMarkerWithWaitList(on.queue, 0, NULL, NULL));
  done(clFinish(on.queue));
  done(clEnqueueMarkerWithWaitList(on.queue, 0, NULL, &event));
  done(clFinish(on.queue));
  gives(event_status(event), CL_COMPLETE);
  done(clReleaseEvent(event));
  ground_close(&on);
}
END_TEST

TEST(a_gate_that_fails_fails_what_waits_for_it) {
  ground on = ground_with("none");
  cl_event gate = clCreateUserEvent(on.context, NULL), event;
  ck_assert(tarn_standin_set("FOLLOW_STATUS", "-1"));
  done(clEnqueueMarkerWithWaitList(on.queue, 1, &gate, &event));
  done(clSetUserEventStatus(gate, -7));
  done(clFinish(on.queue));
  gives(event_status(event), -1);
  refuses(clSetUserEventStatus(gate, 0), CL_INVALID_OPERATION, "its status");
  done(clReleaseEvent(gate));
  done(clReleaseEvent(event));
  ground_close(&on);
}
END_TEST

// A program that copies through memory of each kind, and gives up at the first
// failure, with nothing left.
static cl_int use_memory(const ground *on, cl_command_queue queue) {
  cl_int error = CL_SUCCESS;
  unsigned char bytes[SMALL] = {0};
  cl_mem buffer = clCreateBuffer(on->context, 0, SMALL, NULL, &error);
  if (buffer == NULL) return error;
  void *block = clSVMAlloc(on->context, 0, SMALL, 0);
  if (block == NULL) error = CL_OUT_OF_HOST_MEMORY;
  if (error == CL_SUCCESS) {
    error =
        clEnqueueSVMMemcpy(queue, CL_FALSE, block, bytes, SMALL, 0, NULL, NULL);
  }
  if (error == CL_SUCCESS) {
    error = clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, SMALL, bytes, 0,
                                 NULL, NULL);
  }
  // Also after an error, so that no command needs |bytes| any more.
  cl_int finished = clFinish(queue);
  if (finished != CL_SUCCESS) finished = clFinish(queue);
  done(finished);
  clSVMFree(on->context, block);
  done(clReleaseMemObject(buffer));
  return error;
}

static cl_int use_queue(const ground *on) {
  cl_int error = CL_SUCCESS;
  cl_command_queue queue =
      clCreateCommandQueueWithProperties(on->context, on->device, NULL, &error);
  if (queue == NULL) return error;
  error = use_memory(on, queue);
  done(clReleaseCommandQueue(queue));
  return error;
}

TEST(each_call_can_fail_by_its_number) {
  ground on = ground_with("coarse");
  uint64_t failed = 0;
  for (uint64_t n = 1;; n++) {
    uint64_t before = tarn_standin_faults();
    tarn_standin_fail_call(NULL, n, CL_OUT_OF_RESOURCES, false);
    cl_int error = use_queue(&on);
    if (tarn_standin_faults() == before) break;
    failed += error != CL_SUCCESS ? 1 : 0;
    ck_assert_uint_eq(tarn_standin_live(NULL), 2);
  }
  // clCreateCommandQueueWithProperties, clCreateBuffer, clSVMAlloc, the two
  // that queue; clFinish is tried again.
  ck_assert_uint_eq(failed, 5);
  ck_assert_uint_eq(tarn_standin_faults(), 6);
  assert_misuses(0);
  tarn_standin_fail_call(NULL, 0, 0, false);
  ground_close(&on);
}
END_TEST

TEST(a_named_call_fails_from_there_on) {
  setenv("TARN_STANDIN_FAIL_CALL", "clFlush:2:-5+", 1);
  ground on = ground_with("none");
  done(clFlush(on.queue));
  gives(clFlush(on.queue), CL_OUT_OF_RESOURCES);
  gives(clFlush(on.queue), CL_OUT_OF_RESOURCES);
  done(clFinish(on.queue));
  ck_assert_uint_eq(tarn_standin_calls("clFlush"), 3);
  tarn_standin_fail_call("clReleaseCommandQueue", 1, -6, false);
  gives(clReleaseCommandQueue(on.queue), -6);
  ground_close(&on);
}
END_TEST

// --- threads ---------------------------------------------------------------

static void *copy_on_a_thread(void *context) {
  const ground *on = context;
  cl_command_queue queue = ground_queue(on);
  for (int i = 0; i < 50; i++)
    done(use_memory(on, queue));
  done(clReleaseCommandQueue(queue));
  return NULL;
}

TEST(threads_have_queues_of_their_own) {
  ground on = ground_with("coarse");
  pthread_t threads[3];
  for (size_t i = 0; i < 3; i++) {
    ck_assert_int_eq(pthread_create(&threads[i], NULL, copy_on_a_thread, &on),
                     0);
  }
  for (size_t i = 0; i < 3; i++)
    pthread_join(threads[i], NULL);
  assert_misuses(0);
  ground_close(&on);
}
END_TEST
