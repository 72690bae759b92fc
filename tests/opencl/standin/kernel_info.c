// What kernels say about themselves.
#include <string.h>

#include "faults.h"
#include "info.h"
#include "kernels.h"

static cl_uint count_parameters(const struct _cl_kernel *kernel) {
  const tarn_standin_kernel_entry *entry =
      standin_kernel_find(kernel->name, kernel->program->options);
  if (entry != NULL && entry->arguments != NULL) {
    return (cl_uint)strlen(entry->arguments);
  }
  cl_uint count = 0;
  for (cl_uint i = 0; i < STANDIN_ARGUMENTS_MAX; i++) {
    if (kernel->parameters[i].how != STANDIN_UNSET) count = i + 1;
  }
  return count;
}

static cl_int answer_kernel(cl_kernel kernel, cl_kernel_info name,
                            const standin_answer *answer) {
  switch (name) {
    case CL_KERNEL_FUNCTION_NAME:
      return standin_answer_text(answer, kernel->name);
    case CL_KERNEL_NUM_ARGS:
      return standin_answer_uint(answer, count_parameters(kernel));
    case CL_KERNEL_REFERENCE_COUNT:
      return standin_answer_uint(answer, kernel->object.refs);
    case CL_KERNEL_CONTEXT:
      return standin_answer_pointer(answer, kernel->program->context);
    case CL_KERNEL_PROGRAM:
      return standin_answer_pointer(answer, kernel->program);
    case CL_KERNEL_ATTRIBUTES:
      return standin_answer_text(answer, "");
    default:
      return STANDIN_UNKNOWN;
  }
}

cl_int clGetKernelInfo(cl_kernel kernel, cl_kernel_info param_name,
                       size_t param_value_size, void *param_value,
                       size_t *param_value_size_ret) {
  ENTER();
  const standin_answer answer = {param_value_size, param_value,
                                 param_value_size_ret};
  standin_lock();
  cl_int error = standin_check(kernel, STANDIN_KERNEL);
  if (error == CL_SUCCESS) error = answer_kernel(kernel, param_name, &answer);
  standin_unlock();
  return standin_answered(error);
}

static cl_int answer_work_group(cl_kernel_work_group_info name,
                                const standin_answer *answer) {
  const size_t none[3] = {0};
  switch (name) {
    case CL_KERNEL_WORK_GROUP_SIZE:
      return standin_answer_size(answer, STANDIN_WORK_GROUP_MAX);
    case CL_KERNEL_COMPILE_WORK_GROUP_SIZE:
      return standin_answer_bytes(answer, none, sizeof none);
    case CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE:
      return standin_answer_size(answer, 16);
    case CL_KERNEL_LOCAL_MEM_SIZE:
    case CL_KERNEL_PRIVATE_MEM_SIZE:
      return standin_answer_ulong(answer, 0);
    default:
      return STANDIN_UNKNOWN;
  }
}

cl_int clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id device,
                                cl_kernel_work_group_info param_name,
                                size_t param_value_size, void *param_value,
                                size_t *param_value_size_ret) {
  ENTER();
  const standin_answer answer = {param_value_size, param_value,
                                 param_value_size_ret};
  standin_lock();
  cl_int error = standin_check(kernel, STANDIN_KERNEL);
  if (error == CL_SUCCESS && device != NULL) {
    error = standin_check(device, STANDIN_DEVICE);
  }
  if (error == CL_SUCCESS) error = answer_work_group(param_name, &answer);
  standin_unlock();
  return standin_answered(error);
}
