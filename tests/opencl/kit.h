// kit.h - the plug-in opencl and the driver under it, for tests of the plug-in
// itself. Where the machine has no driver, programs skip by name.
//
// A process that has asked a driver for its devices must not fork: only tests,
// which run in processes of their own, open a device.
#ifndef TARN_TESTS_OPENCL_KIT_H_
#define TARN_TESTS_OPENCL_KIT_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opencl/driver.h"
#include "support/driver.h"
#include "support/effort.h"
#include "support/places.h"
#include "support/run.h"

// The functions of the loader that the plug-in uses as well.
static inline const tarn__opencl_driver *driver(void) {
  const tarn__opencl_driver *cl = tarn__opencl_load();
  ck_assert_ptr_nonnull(cl);
  return cl;
}

// The main function of the programs. Sanitizers find faults in drivers, which
// are none of Tarn's: with them the plug-in runs over the stand-in.
static inline int run_with_driver(void) {
#if defined(TARN_TESTS_ASAN) || defined(TARN_TESTS_TSAN)
  return skip_program("a driver", "this is a build with a sanitizer");
#endif
  char reason[512];
  bool is_there = driver_is_there("opencl:0", reason, sizeof reason);
  return is_there ? run_tests() : skip_program("a driver", reason);
}

// --- a program with queues and events of its own ---------------------------

// The context of the device's streams.
static inline cl_context context_of(tarn_stream *stream) {
  cl_context context = NULL;
  ck_assert_int_eq(driver()->GetCommandQueueInfo(
                       tarn_stream_native(stream), CL_QUEUE_CONTEXT,
                       sizeof(cl_context), &context, NULL),
                   CL_SUCCESS);
  return context;
}

static inline cl_device_id device_of(tarn_stream *stream) {
  cl_device_id device = NULL;
  ck_assert_int_eq(
      driver()->GetCommandQueueInfo(tarn_stream_native(stream), CL_QUEUE_DEVICE,
                                    sizeof(cl_device_id), &device, NULL),
      CL_SUCCESS);
  return device;
}

// A queue of the program's own beside |stream|.
static inline cl_command_queue queue_beside(
    tarn_stream *stream, cl_command_queue_properties properties) {
  cl_int error = CL_SUCCESS;
  cl_command_queue queue = driver()->CreateCommandQueue(
      context_of(stream), device_of(stream), properties, &error);
  ck_assert_int_eq(error, CL_SUCCESS);
  return queue;
}

// How many hold |queue|.
static inline cl_uint holders_of(cl_command_queue queue) {
  cl_uint count = 0;
  ck_assert_int_eq(
      driver()->GetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT,
                                    sizeof count, &count, NULL),
      CL_SUCCESS);
  return count;
}

// Waits until nobody but the test holds |queue|. A thread of the driver's lets
// go of an event when its callback has returned, which may be a moment later.
static inline void await_last_holder_of(cl_command_queue queue) {
  for (int i = 0; i < 5000 && holders_of(queue) != 1; i++)
    usleep(1000);
  ck_assert_uint_eq(holders_of(queue), 1);
}

// Work on |queue| that waits until the gate is opened, or broken.
typedef struct gate {
  cl_event opener;
  cl_event work;  // held: PoCL ends the process where an event fails that
                  // nobody holds
} gate;

static inline gate close_gate(tarn_stream *stream, cl_command_queue queue) {
  cl_int error = CL_SUCCESS;
  gate g = {driver()->CreateUserEvent(context_of(stream), &error), NULL};
  ck_assert_int_eq(error, CL_SUCCESS);
  ck_assert_int_eq(
      driver()->EnqueueMarkerWithWaitList(queue, 1, &g.opener, &g.work),
      CL_SUCCESS);
  return g;
}

static inline void set_gate(gate g, cl_int status) {
  ck_assert_int_eq(driver()->SetUserEventStatus(g.opener, status), CL_SUCCESS);
  (void)driver()->WaitForEvents(1, &g.work);
  ck_assert_int_eq(driver()->ReleaseEvent(g.opener), CL_SUCCESS);
  ck_assert_int_eq(driver()->ReleaseEvent(g.work), CL_SUCCESS);
}

static inline tarn_stream *stream_on(tarn_device *device) {
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_create(device, &stream));
  return stream;
}

#endif  // TARN_TESTS_OPENCL_KIT_H_
