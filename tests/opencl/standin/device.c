// Devices: what they say about themselves.
#include <stdio.h>
#include <string.h>

#include "faults.h"
#include "info.h"
#include "kernels.h"
#include "platform.h"
#include "report.h"

enum { COMPUTE_UNITS = 2 };

cl_device_type standin_device_type(const struct _cl_device_id *device) {
  char text[STANDIN_TEXT_SIZE];
  standin_word(STANDIN_DEVICE_TYPES, device->number, text);
  if (strcmp(text, "gpu") == 0) return CL_DEVICE_TYPE_GPU;
  if (strcmp(text, "accelerator") == 0) return CL_DEVICE_TYPE_ACCELERATOR;
  if (strcmp(text, "custom") == 0) return CL_DEVICE_TYPE_CUSTOM;
  return CL_DEVICE_TYPE_CPU;
}

// --- clGetDeviceIDs --------------------------------------------------------

// CL_DEVICE_TYPE_ALL has all bits, and means all but custom ones.
static bool is_wanted(const struct _cl_device_id *device, cl_device_type type) {
  cl_device_type own = standin_device_type(device);
  if (type == CL_DEVICE_TYPE_ALL) return own != CL_DEVICE_TYPE_CUSTOM;
  if ((type & CL_DEVICE_TYPE_DEFAULT) != 0 && device->number == 0) return true;
  return (own & type) != 0;
}

static cl_int list_devices(cl_platform_id platform, cl_device_type type,
                           cl_uint num_entries, cl_device_id *out,
                           cl_uint *num_devices) {
  cl_int error = standin_check(platform, STANDIN_PLATFORM);
  if (error != CL_SUCCESS) return error;
  cl_uint found = 0;
  for (cl_uint i = 0; i < standin_device_count(); i++) {
    cl_device_id device = standin_device(platform, i);
    if (device == NULL) return CL_OUT_OF_HOST_MEMORY;
    if (!is_wanted(device, type)) continue;
    if (out != NULL && found < num_entries) out[found] = device;
    found++;
  }
  if (num_devices != NULL) *num_devices = found;
  return found > 0 ? CL_SUCCESS : CL_DEVICE_NOT_FOUND;
}

cl_int clGetDeviceIDs(cl_platform_id platform, cl_device_type device_type,
                      cl_uint num_entries, cl_device_id *devices,
                      cl_uint *num_devices) {
  ENTER();
  if ((devices == NULL) != (num_entries == 0) ||
      (devices == NULL && num_devices == NULL)) {
    return standin_wrong(CL_INVALID_VALUE, "%u entries at %p",
                         (unsigned)num_entries, (void *)devices);
  }
  standin_bind_process();
  standin_lock();
  cl_int error =
      list_devices(platform, device_type, num_entries, devices, num_devices);
  standin_unlock();
  return error;
}

static cl_int check_device(cl_device_id device) {
  standin_lock();
  cl_int error = standin_check(device, STANDIN_DEVICE);
  standin_unlock();
  return error;
}

// A device that is no part of another is never given back.
cl_int clRetainDevice(cl_device_id device) {
  ENTER();
  return check_device(device);
}

cl_int clReleaseDevice(cl_device_id device) {
  ENTER();
  return check_device(device);
}

// --- clGetDeviceInfo -------------------------------------------------------

static cl_int answer_words(cl_device_id device, cl_device_info name,
                           const standin_answer *answer) {
  char text[STANDIN_TEXT_SIZE], part[STANDIN_TEXT_SIZE];
  switch (name) {
    case CL_DEVICE_NAME:
      standin_text(STANDIN_DEVICE_NAME, part);
      snprintf(text, sizeof text, "%.200s %u", part, (unsigned)device->number);
      return standin_answer_text(answer, text);
    case CL_DEVICE_VENDOR:
      return standin_answer_text(answer, "Tarn's tests");
    case CL_DRIVER_VERSION:
      return standin_answer_text(answer, "no driver");
    case CL_DEVICE_PROFILE:
      return standin_answer_text(answer, "FULL_PROFILE");
    case CL_DEVICE_VERSION:
      standin_version_text("OpenCL ", text);
      return standin_answer_text(answer, text);
    case CL_DEVICE_OPENCL_C_VERSION:
      return standin_answer_text(answer, "OpenCL C 1.2 ");
    case CL_DEVICE_EXTENSIONS:
      standin_extensions(text);
      return standin_answer_text(answer, text);
    default:
      return STANDIN_UNKNOWN;
  }
}

static cl_device_svm_capabilities svm_capabilities(void) {
  cl_device_svm_capabilities result = 0;
  if (standin_has_coarse()) result |= CL_DEVICE_SVM_COARSE_GRAIN_BUFFER;
  if (standin_has_fine()) {
    result |= CL_DEVICE_SVM_FINE_GRAIN_BUFFER | CL_DEVICE_SVM_ATOMICS;
  }
  return result;
}

static cl_int answer_memory(cl_device_info name, const standin_answer *answer) {
  cl_ulong access = standin_has_usm()
                        ? CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL |
                              CL_UNIFIED_SHARED_MEMORY_ATOMIC_ACCESS_INTEL
                        : 0;
  switch (name) {
    case CL_DEVICE_GLOBAL_MEM_SIZE:
      return standin_answer_ulong(
          answer, (cl_ulong)standin_number(STANDIN_GLOBAL_SIZE));
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
      return standin_answer_ulong(answer,
                                  (cl_ulong)standin_number(STANDIN_MAX_ALLOC));
    case CL_DEVICE_MEM_BASE_ADDR_ALIGN:
      return standin_answer_uint(
          answer, (cl_uint)standin_number(STANDIN_BASE_ALIGN) * 8);
    case CL_DEVICE_MIN_DATA_TYPE_ALIGN_SIZE:
      return standin_answer_uint(answer,
                                 (cl_uint)standin_number(STANDIN_BASE_ALIGN));
    case CL_DEVICE_SVM_CAPABILITIES:
      if (standin_version() < 20) return STANDIN_UNKNOWN;
      return standin_answer_ulong(answer, svm_capabilities());
    case CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL:
    case CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL:
    case CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL:
      if (!standin_has_usm()) return STANDIN_UNKNOWN;
      return standin_answer_ulong(answer, access);
    case CL_DEVICE_CROSS_DEVICE_SHARED_MEM_CAPABILITIES_INTEL:
    case CL_DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES_INTEL:
      if (!standin_has_usm()) return STANDIN_UNKNOWN;
      return standin_answer_ulong(answer, 0);
    case CL_DEVICE_LOCAL_MEM_SIZE:
    case CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE:
      return standin_answer_ulong(answer, 65536);
    case CL_DEVICE_GLOBAL_MEM_CACHE_SIZE:
      return standin_answer_ulong(answer, 1 << 20);
    case CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE:
      return standin_answer_uint(answer, 64);
    default:
      return STANDIN_UNKNOWN;
  }
}

static cl_int answer_flags(cl_device_info name, const standin_answer *answer) {
  switch (name) {
    case CL_DEVICE_AVAILABLE:
    case CL_DEVICE_COMPILER_AVAILABLE:
    case CL_DEVICE_LINKER_AVAILABLE:
    case CL_DEVICE_ENDIAN_LITTLE:
    case CL_DEVICE_HOST_UNIFIED_MEMORY:
      return standin_answer_bool(answer, true);
    case CL_DEVICE_ERROR_CORRECTION_SUPPORT:
    case CL_DEVICE_IMAGE_SUPPORT:
      return standin_answer_bool(answer, false);
    case CL_DEVICE_QUEUE_PROPERTIES:  // also ..._ON_HOST_...: the same number
      return standin_answer_ulong(answer, CL_QUEUE_PROFILING_ENABLE);
    case CL_DEVICE_EXECUTION_CAPABILITIES:
      return standin_answer_ulong(answer, CL_EXEC_KERNEL);
    case CL_DEVICE_SINGLE_FP_CONFIG:
    case CL_DEVICE_DOUBLE_FP_CONFIG:
      return standin_answer_ulong(answer, CL_FP_ROUND_TO_NEAREST |
                                              CL_FP_INF_NAN | CL_FP_DENORM |
                                              CL_FP_FMA);
    default:
      return STANDIN_UNKNOWN;
  }
}

static cl_int answer_numbers(cl_device_id device, cl_device_info name,
                             const standin_answer *answer) {
  const size_t sizes[3] = {STANDIN_WORK_GROUP_MAX, STANDIN_WORK_GROUP_MAX,
                           STANDIN_WORK_GROUP_MAX};
  switch (name) {
    case CL_DEVICE_TYPE:
      return standin_answer_ulong(answer, standin_device_type(device));
    case CL_DEVICE_VENDOR_ID:
      return standin_answer_uint(answer, 0x7a52);
    case CL_DEVICE_PLATFORM:
      return standin_answer_pointer(answer, device->platform);
    case CL_DEVICE_PARENT_DEVICE:
      return standin_answer_pointer(answer, NULL);
    case CL_DEVICE_REFERENCE_COUNT:
      return standin_answer_uint(answer, 1);
    case CL_DEVICE_MAX_COMPUTE_UNITS:
      return standin_answer_uint(answer, COMPUTE_UNITS);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
      return standin_answer_size(answer, STANDIN_WORK_GROUP_MAX);
    case CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS:
      return standin_answer_uint(answer, 3);
    case CL_DEVICE_MAX_WORK_ITEM_SIZES:
      return standin_answer_bytes(answer, sizes, sizeof sizes);
    case CL_DEVICE_ADDRESS_BITS:
      return standin_answer_uint(answer, 64);
    case CL_DEVICE_MAX_CLOCK_FREQUENCY:
      return standin_answer_uint(answer, 1000);
    case CL_DEVICE_MAX_PARAMETER_SIZE:
      return standin_answer_size(answer, STANDIN_VALUE_MAX);
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_CHAR:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_CHAR:
      return standin_answer_uint(answer, 16);
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_INT:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_INT:
      return standin_answer_uint(answer, 4);
    default:
      return STANDIN_UNKNOWN;
  }
}

cl_int clGetDeviceInfo(cl_device_id device, cl_device_info param_name,
                       size_t param_value_size, void *param_value,
                       size_t *param_value_size_ret) {
  ENTER();
  cl_int error = check_device(device);
  if (error != CL_SUCCESS) return error;
  const standin_answer answer = {param_value_size, param_value,
                                 param_value_size_ret};
  error = answer_words(device, param_name, &answer);
  if (error == STANDIN_UNKNOWN) error = answer_memory(param_name, &answer);
  if (error == STANDIN_UNKNOWN) error = answer_flags(param_name, &answer);
  if (error == STANDIN_UNKNOWN) {
    error = answer_numbers(device, param_name, &answer);
  }
  return standin_answered(error);
}
