// Events: queued -> submitted -> running -> complete, or ended with a negative
// status; in numbers, always downward.
//
// A callback is due when the number is not above its own. After a failure none
// comes, unless a setting says so: so PoCL does it, against the specification.
#include "events.h"

#include <stdlib.h>

#include "faults.h"
#include "info.h"
#include "report.h"
#include "settings.h"

static _Thread_local bool in_callback;

// --- their state -----------------------------------------------------------

static void end_event(void *object) {
  cl_event event = object;
  while (event->callbacks != NULL) {
    standin_callback *callback = event->callbacks;
    event->callbacks = callback->next;
    free(callback);
  }
  if (event->queue != NULL) standin_unuse(event->queue);
  standin_unuse(event->context);
}

cl_event standin_event_new(cl_context context, cl_command_queue queue,
                           cl_command_type type) {
  standin_ends_with(STANDIN_EVENT, end_event);
  cl_event made = standin_new(STANDIN_EVENT, sizeof(struct _cl_event));
  if (made == NULL) return NULL;
  made->context = context;
  made->queue = queue;
  made->type = type;
  made->status = queue != NULL ? CL_QUEUED : CL_SUBMITTED;
  standin_use(context);
  if (queue != NULL) standin_use(queue);
  return made;
}

static bool is_due(const standin_callback *callback, cl_int status) {
  if (status < 0 && standin_number(STANDIN_FAILED_CALLBACKS) == 0) return false;
  return status <= callback->type;
}

void standin_event_advance(cl_event event, cl_int status,
                           standin_callback **due) {
  event->status = status;
  while (*due != NULL)
    due = &(*due)->next;
  standin_callback **at = &event->callbacks;
  while (*at != NULL) {
    standin_callback *callback = *at;
    if (!is_due(callback, status)) {
      at = &callback->next;
      continue;
    }
    *at = callback->next;
    callback->next = NULL;
    callback->status = status < 0 ? status : callback->type;
    *due = callback;
    due = &callback->next;
  }
  standin_tell_all();
}

void standin_callbacks_run(standin_callback *due) {
  bool before = in_callback;
  in_callback = true;
  while (due != NULL) {
    standin_callback *callback = due;
    due = callback->next;
    callback->function(callback->event, callback->status, callback->data);
    free(callback);
  }
  in_callback = before;
}

bool standin_in_callback(void) {
  return in_callback;
}

cl_int standin_may_wait(void) {
  if (!in_callback) return CL_SUCCESS;
  return standin_wrong(CL_INVALID_OPERATION, "waits in a callback");
}

// --- waiting ---------------------------------------------------------------

static cl_int check_listed(cl_context context, cl_event event) {
  if (!standin_is(event, STANDIN_EVENT)) {
    (void)standin_check(event, STANDIN_EVENT);
    return CL_INVALID_EVENT_WAIT_LIST;
  }
  if (event->context == context) return CL_SUCCESS;
  return standin_wrong(CL_INVALID_CONTEXT, "event %p is of another context",
                       (void *)event);
}

cl_int standin_check_list(cl_context context, cl_uint count,
                          const cl_event *list) {
  if ((count == 0) != (list == NULL)) {
    return standin_wrong(CL_INVALID_EVENT_WAIT_LIST, "%u events at %p",
                         (unsigned)count, (const void *)list);
  }
  for (cl_uint i = 0; i < count; i++) {
    cl_int error = check_listed(context, list[i]);
    if (error != CL_SUCCESS) return error;
  }
  return CL_SUCCESS;
}

// A wait for a command flushes its queue.
static void flush_for(cl_event event) {
  if (event->queue == NULL) return;
  event->queue->flushed = event->queue->queued;
  standin_tell_all();
}

cl_int standin_event_wait(cl_event event) {
  standin_use(event);
  flush_for(event);
  while (event->status > CL_COMPLETE)
    standin_wait_any();
  cl_int status = event->status;
  standin_unuse(event);
  return status;
}

static cl_int check_waited(cl_uint count, const cl_event *list) {
  for (cl_uint i = 0; i < count; i++) {
    cl_int error = standin_check(list[i], STANDIN_EVENT);
    if (error != CL_SUCCESS) return error;
  }
  return standin_check_list(list[0]->context, count, list);
}

// All flush first: one may be behind another.
static cl_int wait_for(cl_uint count, const cl_event *list) {
  cl_int error = check_waited(count, list);
  if (error != CL_SUCCESS) return error;
  for (cl_uint i = 0; i < count; i++)
    flush_for(list[i]);
  for (cl_uint i = 0; i < count; i++) {
    if (standin_event_wait(list[i]) < 0) {
      error = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    }
  }
  return error;
}

cl_int clWaitForEvents(cl_uint num_events, const cl_event *event_list) {
  ENTER();
  if (num_events == 0 || event_list == NULL) {
    return standin_wrong(CL_INVALID_VALUE, "%u events at %p",
                         (unsigned)num_events, (const void *)event_list);
  }
  cl_int error = standin_may_wait();
  if (error != CL_SUCCESS) return error;
  standin_lock();
  error = wait_for(num_events, event_list);
  standin_unlock();
  return error;
}

// --- the functions of OpenCL -----------------------------------------------

cl_int clRetainEvent(cl_event event) {
  ENTER();
  return standin_retain(event, STANDIN_EVENT);
}

cl_int clReleaseEvent(cl_event event) {
  ENTER();
  return standin_release(event, STANDIN_EVENT);
}

static cl_int answer_event(cl_event event, cl_event_info name,
                           const standin_answer *answer) {
  switch (name) {
    case CL_EVENT_COMMAND_EXECUTION_STATUS:
      return standin_answer_int(answer, event->status);
    case CL_EVENT_COMMAND_QUEUE:
      return standin_answer_pointer(answer, event->queue);
    case CL_EVENT_CONTEXT:
      return standin_answer_pointer(answer, event->context);
    case CL_EVENT_COMMAND_TYPE:
      return standin_answer_uint(answer, event->type);
    case CL_EVENT_REFERENCE_COUNT:
      return standin_answer_uint(answer, event->object.refs);
    default:
      return STANDIN_UNKNOWN;
  }
}

cl_int clGetEventInfo(cl_event event, cl_event_info param_name,
                      size_t param_value_size, void *param_value,
                      size_t *param_value_size_ret) {
  ENTER();
  const standin_answer answer = {param_value_size, param_value,
                                 param_value_size_ret};
  standin_lock();
  cl_int error = standin_check(event, STANDIN_EVENT);
  if (error == CL_SUCCESS) error = answer_event(event, param_name, &answer);
  standin_unlock();
  return standin_answered(error);
}

cl_event clCreateUserEvent(cl_context context, cl_int *errcode_ret) {
  ENTER_MAKER(errcode_ret);
  cl_event made = NULL;
  standin_lock();
  cl_int error = standin_check(context, STANDIN_CONTEXT);
  if (error == CL_SUCCESS) {
    made = standin_event_new(context, NULL, CL_COMMAND_USER);
    if (made == NULL) error = CL_OUT_OF_HOST_MEMORY;
  }
  standin_unlock();
  standin_tell(errcode_ret, error);
  return made;
}

static cl_int settle(cl_event event, cl_int status, standin_callback **due) {
  cl_int error = standin_check(event, STANDIN_EVENT);
  if (error != CL_SUCCESS) return error;
  if (event->type != CL_COMMAND_USER) {
    return standin_wrong(CL_INVALID_EVENT, "event %p is a command's",
                         (void *)event);
  }
  if (status > CL_COMPLETE) {
    return standin_wrong(CL_INVALID_VALUE, "a status of %d", (int)status);
  }
  if (event->settled) {
    return standin_wrong(CL_INVALID_OPERATION, "event %p has its status",
                         (void *)event);
  }
  event->settled = true;
  standin_event_advance(event, status, due);
  return CL_SUCCESS;
}

// Callbacks come on the thread that settles it.
cl_int clSetUserEventStatus(cl_event event, cl_int execution_status) {
  ENTER();
  standin_callback *due = NULL;
  standin_lock();
  cl_int error = settle(event, execution_status, &due);
  if (due != NULL) standin_use(event);
  standin_unlock();
  if (due == NULL) return error;
  standin_callbacks_run(due);
  standin_lock();
  standin_unuse(event);
  standin_unlock();
  return error;
}

static cl_int add_callback(cl_event event, const standin_callback *wanted,
                           standin_callback **due) {
  cl_int error = standin_check(event, STANDIN_EVENT);
  if (error != CL_SUCCESS) return error;
  standin_callback *made = malloc(sizeof *made);
  if (made == NULL) return CL_OUT_OF_HOST_MEMORY;
  *made = *wanted;
  standin_callback **at = &event->callbacks;
  while (*at != NULL)
    at = &(*at)->next;
  *at = made;
  if (event->status <= wanted->type) {
    standin_event_advance(event, event->status, due);
  }
  return CL_SUCCESS;
}

// One that is due already comes on this thread, before the return.
cl_int clSetEventCallback(cl_event event, cl_int command_exec_callback_type,
                          void(CL_CALLBACK *pfn_notify)(cl_event event,
                                                        cl_int status,
                                                        void *user_data),
                          void *user_data) {
  ENTER();
  if (pfn_notify == NULL || command_exec_callback_type < CL_COMPLETE ||
      command_exec_callback_type > CL_SUBMITTED) {
    return standin_wrong(CL_INVALID_VALUE, "a callback for status %d",
                         (int)command_exec_callback_type);
  }
  const standin_callback wanted = {.event = event,
                                   .type = command_exec_callback_type,
                                   .function = pfn_notify,
                                   .data = user_data};
  standin_callback *due = NULL;
  standin_lock();
  cl_int error = add_callback(event, &wanted, &due);
  if (due != NULL) standin_use(event);
  standin_unlock();
  if (due == NULL) return error;
  standin_callbacks_run(due);
  standin_lock();
  standin_unuse(event);
  standin_unlock();
  return error;
}
