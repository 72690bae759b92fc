// Contexts: devices of one platform, and the count of what hangs on them.
//
// What CL_CONTEXT_REFERENCE_COUNT says has the program's references and one for
// each queue, event, program and block of memory, as PoCL's count has.
#include <string.h>

#include "faults.h"
#include "info.h"
#include "objects.h"
#include "report.h"
#include "settings.h"

typedef void(CL_CALLBACK *notify_function)(const char *text, const void *info,
                                           size_t size, void *data);

static cl_int check_devices(cl_uint count, const cl_device_id *devices) {
  if (count == 0 || count > STANDIN_DEVICES_MAX || devices == NULL) {
    return standin_wrong(CL_INVALID_VALUE, "%u devices at %p", (unsigned)count,
                         (const void *)devices);
  }
  for (cl_uint i = 0; i < count; i++) {
    cl_int error = standin_check(devices[i], STANDIN_DEVICE);
    if (error != CL_SUCCESS) return error;
    if (devices[i]->platform != devices[0]->platform) {
      return standin_wrong(CL_INVALID_DEVICE, "devices of two platforms");
    }
  }
  return CL_SUCCESS;
}

// The only property is the platform. |out_size|: bytes, with the end.
static cl_int check_properties(const cl_context_properties *properties,
                               cl_platform_id platform, size_t *out_size) {
  *out_size = 0;
  if (properties == NULL) return CL_SUCCESS;
  size_t at = 0;
  for (; properties[at] != 0 && at < 2; at += 2) {
    if (properties[at] != CL_CONTEXT_PLATFORM) {
      return standin_wrong(CL_INVALID_PROPERTY, "property 0x%llx",
                           (unsigned long long)properties[at]);
    }
    if (properties[at + 1] != (cl_context_properties)(intptr_t)platform) {
      return standin_wrong(CL_INVALID_PLATFORM,
                           "the devices are of another platform");
    }
  }
  *out_size = (at + 1) * sizeof *properties;
  return CL_SUCCESS;
}

static cl_int make_context(const cl_context_properties *properties,
                           cl_uint count, const cl_device_id *devices,
                           cl_context *out) {
  size_t properties_size = 0;
  cl_int error = check_devices(count, devices);
  if (error != CL_SUCCESS) return error;
  error = check_properties(properties, devices[0]->platform, &properties_size);
  if (error != CL_SUCCESS) return error;
  cl_context made = standin_new(STANDIN_CONTEXT, sizeof(struct _cl_context));
  if (made == NULL) return CL_OUT_OF_HOST_MEMORY;
  made->device_count = count;
  memcpy(made->devices, devices, count * sizeof *devices);
  if (properties_size > 0) {
    memcpy(made->properties, properties, properties_size);
  }
  made->properties_size = properties_size;
  *out = made;
  return CL_SUCCESS;
}

// With a text in the setting, no context is made, and the program hears why.
static cl_int fail_by_setting(notify_function notify, void *data) {
  char text[STANDIN_TEXT_SIZE];
  standin_text(STANDIN_CONTEXT_FAILS, text);
  if (text[0] == 0) return CL_SUCCESS;
  if (notify != NULL) notify(text, NULL, 0, data);
  return CL_OUT_OF_RESOURCES;
}

cl_context clCreateContext(const cl_context_properties *properties,
                           cl_uint num_devices, const cl_device_id *devices,
                           void(CL_CALLBACK *pfn_notify)(const char *errinfo,
                                                         const void *info,
                                                         size_t cb, void *data),
                           void *user_data, cl_int *errcode_ret) {
  ENTER_MAKER(errcode_ret);
  cl_context made = NULL;
  cl_int error = CL_SUCCESS;
  if (pfn_notify == NULL && user_data != NULL) {
    error = standin_wrong(CL_INVALID_VALUE, "data without a function");
  }
  if (error == CL_SUCCESS) error = fail_by_setting(pfn_notify, user_data);
  if (error == CL_SUCCESS) {
    standin_lock();
    error = make_context(properties, num_devices, devices, &made);
    standin_unlock();
  }
  standin_tell(errcode_ret, error);
  return made;
}

cl_int clRetainContext(cl_context context) {
  ENTER();
  return standin_retain(context, STANDIN_CONTEXT);
}

cl_int clReleaseContext(cl_context context) {
  ENTER();
  return standin_release(context, STANDIN_CONTEXT);
}

static cl_int answer_context(cl_context context, cl_context_info name,
                             const standin_answer *answer) {
  switch (name) {
    case CL_CONTEXT_REFERENCE_COUNT:
      return standin_answer_uint(answer, standin_references(context));
    case CL_CONTEXT_NUM_DEVICES:
      return standin_answer_uint(answer, context->device_count);
    case CL_CONTEXT_DEVICES:
      return standin_answer_bytes(
          answer, context->devices,
          context->device_count * sizeof *context->devices);
    case CL_CONTEXT_PROPERTIES:
      return standin_answer_bytes(answer, context->properties,
                                  context->properties_size);
    default:
      return STANDIN_UNKNOWN;
  }
}

cl_int clGetContextInfo(cl_context context, cl_context_info param_name,
                        size_t param_value_size, void *param_value,
                        size_t *param_value_size_ret) {
  ENTER();
  const standin_answer answer = {param_value_size, param_value,
                                 param_value_size_ret};
  standin_lock();
  cl_int error = standin_check(context, STANDIN_CONTEXT);
  if (error == CL_SUCCESS) error = answer_context(context, param_name, &answer);
  standin_unlock();
  return standin_answered(error);
}
