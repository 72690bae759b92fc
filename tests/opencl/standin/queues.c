// Queues: the functions of OpenCL that make them, wait for them and end them.
#include "events.h"
#include "faults.h"
#include "info.h"
#include "objects.h"
#include "report.h"
#include "settings.h"

static void end_queue(void *object) {
  cl_command_queue queue = object;
  standin_unuse(queue->context);
}

static bool has_device(const struct _cl_context *context,
                       const struct _cl_device_id *device) {
  for (cl_uint i = 0; i < context->device_count; i++) {
    if (context->devices[i] == device) return true;
  }
  return false;
}

static cl_int make_queue(cl_context context, cl_device_id device,
                         cl_command_queue_properties properties,
                         cl_command_queue *out) {
  cl_int error = standin_check(context, STANDIN_CONTEXT);
  if (error != CL_SUCCESS) return error;
  error = standin_check(device, STANDIN_DEVICE);
  if (error != CL_SUCCESS) return error;
  if (!has_device(context, device)) {
    return standin_wrong(CL_INVALID_DEVICE, "the device is not the context's");
  }
  if ((properties & ~(cl_command_queue_properties)CL_QUEUE_PROFILING_ENABLE) !=
      0) {
    return standin_wrong(CL_INVALID_QUEUE_PROPERTIES, "properties 0x%llx",
                         (unsigned long long)properties);
  }
  standin_ends_with(STANDIN_QUEUE, end_queue);
  cl_command_queue made =
      standin_new(STANDIN_QUEUE, sizeof(struct _cl_command_queue));
  if (made == NULL) return CL_OUT_OF_HOST_MEMORY;
  made->context = context;
  made->device = device;
  made->properties = properties;
  standin_use(context);
  *out = made;
  return CL_SUCCESS;
}

static cl_command_queue make_and_tell(cl_context context, cl_device_id device,
                                      cl_command_queue_properties properties,
                                      cl_int *errcode_ret) {
  cl_command_queue made = NULL;
  standin_lock();
  cl_int error = make_queue(context, device, properties, &made);
  standin_unlock();
  standin_tell(errcode_ret, error);
  return made;
}

cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device,
                                      cl_command_queue_properties properties,
                                      cl_int *errcode_ret) {
  ENTER_MAKER(errcode_ret);
  return make_and_tell(context, device, properties, errcode_ret);
}

static cl_int read_properties(const cl_queue_properties *list,
                              cl_command_queue_properties *out) {
  *out = 0;
  for (; list != NULL && list[0] != 0; list += 2) {
    if (list[0] != CL_QUEUE_PROPERTIES) {
      return standin_wrong(CL_INVALID_VALUE, "property 0x%llx",
                           (unsigned long long)list[0]);
    }
    *out = list[1];
  }
  return CL_SUCCESS;
}

cl_command_queue clCreateCommandQueueWithProperties(
    cl_context context, cl_device_id device,
    const cl_queue_properties *properties, cl_int *errcode_ret) {
  ENTER_MAKER(errcode_ret);
  cl_command_queue_properties bits = 0;
  cl_int error = standin_needs_version(20);
  if (error == CL_SUCCESS) error = read_properties(properties, &bits);
  standin_tell(errcode_ret, error);
  if (error != CL_SUCCESS) return NULL;
  return make_and_tell(context, device, bits, errcode_ret);
}

cl_int clRetainCommandQueue(cl_command_queue command_queue) {
  ENTER();
  return standin_retain(command_queue, STANDIN_QUEUE);
}

static cl_int flush(cl_command_queue queue) {
  cl_int error = standin_check(queue, STANDIN_QUEUE);
  if (error != CL_SUCCESS) return error;
  queue->flushed = queue->queued;
  standin_tell_all();
  return CL_SUCCESS;
}

// The last release flushes.
cl_int clReleaseCommandQueue(cl_command_queue command_queue) {
  ENTER();
  standin_lock();
  cl_int error = flush(command_queue);
  standin_unlock();
  if (error != CL_SUCCESS) return error;
  return standin_release(command_queue, STANDIN_QUEUE);
}

cl_int clFlush(cl_command_queue command_queue) {
  ENTER();
  standin_lock();
  cl_int error = flush(command_queue);
  standin_unlock();
  return error;
}

static cl_int finish(cl_command_queue queue) {
  cl_int error = flush(queue);
  if (error != CL_SUCCESS) return error;
  uint64_t last = queue->queued;
  standin_use(queue);
  while (queue->finished < last)
    standin_wait_any();
  bool tells = standin_number(STANDIN_FINISH_TELLS) != 0;
  if (tells && queue->failure != 0) error = queue->failure;
  bool recovers = standin_number(STANDIN_RECOVERS) != 0;
  if (recovers && queue->finished == queue->queued) queue->failure = 0;
  standin_unuse(queue);
  return error;
}

// Waits for the callbacks too. Returns CL_SUCCESS whatever the commands ended
// with, as PoCL's does, unless a setting says otherwise.
cl_int clFinish(cl_command_queue command_queue) {
  ENTER();
  cl_int error = standin_may_wait();
  if (error != CL_SUCCESS) return error;
  standin_lock();
  error = finish(command_queue);
  standin_unlock();
  return error;
}

static cl_int answer_queue(cl_command_queue queue, cl_command_queue_info name,
                           const standin_answer *answer) {
  switch (name) {
    case CL_QUEUE_CONTEXT:
      return standin_answer_pointer(answer, queue->context);
    case CL_QUEUE_DEVICE:
      return standin_answer_pointer(answer, queue->device);
    case CL_QUEUE_REFERENCE_COUNT:
      return standin_answer_uint(answer, queue->object.refs);
    case CL_QUEUE_PROPERTIES:
      return standin_answer_ulong(answer, queue->properties);
    default:
      return STANDIN_UNKNOWN;
  }
}

cl_int clGetCommandQueueInfo(cl_command_queue command_queue,
                             cl_command_queue_info param_name,
                             size_t param_value_size, void *param_value,
                             size_t *param_value_size_ret) {
  ENTER();
  const standin_answer answer = {param_value_size, param_value,
                                 param_value_size_ret};
  standin_lock();
  cl_int error = standin_check(command_queue, STANDIN_QUEUE);
  if (error == CL_SUCCESS) {
    error = answer_queue(command_queue, param_name, &answer);
  }
  standin_unlock();
  return standin_answered(error);
}
