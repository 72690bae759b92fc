// events.h - the state of an event, and who is told of it.
#ifndef TARN_TESTS_OPENCL_STANDIN_EVENTS_H_
#define TARN_TESTS_OPENCL_STANDIN_EVENTS_H_

#include "objects.h"

struct standin_callback {
  standin_callback *next;
  cl_event event;
  cl_int type;
  cl_int status;
  void(CL_CALLBACK *function)(cl_event event, cl_int status, void *data);
  void *data;
};

// With the lock held. A new one with one reference; NULL: no host memory.
cl_event standin_event_new(cl_context context, cl_command_queue queue,
                           cl_command_type type);

// With the lock held. Moves the callbacks that are due now to the end of |due|.
void standin_event_advance(cl_event event, cl_int status,
                           standin_callback **due);

// Without the lock. Calls and ends them.
void standin_callbacks_run(standin_callback *due);

// True on a thread that is in a callback, where nothing may wait.
bool standin_in_callback(void);

// CL_SUCCESS, or a wrong use: this thread is in a callback.
cl_int standin_may_wait(void);

// With the lock held: what a wait list must be for a command of |context|.
cl_int standin_check_list(cl_context context, cl_uint count,
                          const cl_event *list);

// With the lock held. Waits until the event has ended; returns its status.
cl_int standin_event_wait(cl_event event);

#endif  // TARN_TESTS_OPENCL_STANDIN_EVENTS_H_
