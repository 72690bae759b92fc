// Platforms: as many as the settings want, each with its devices. They are made
// when they are first asked for and never end.
#include "platform.h"

#include <stdio.h>
#include <string.h>

#include "faults.h"
#include "info.h"
#include "report.h"

// Guarded by the lock of objects.
static cl_platform_id platforms[STANDIN_PLATFORMS_MAX];
static cl_device_id devices[STANDIN_PLATFORMS_MAX][STANDIN_DEVICES_MAX];

static cl_uint at_most(int64_t wanted, cl_uint limit) {
  if (wanted < 0) return 0;
  return wanted < (int64_t)limit ? (cl_uint)wanted : limit;
}

cl_uint standin_platform_count(void) {
  return at_most(standin_number(STANDIN_PLATFORMS), STANDIN_PLATFORMS_MAX);
}

cl_uint standin_device_count(void) {
  return at_most(standin_number(STANDIN_DEVICES), STANDIN_DEVICES_MAX);
}

cl_platform_id standin_platform(cl_uint number) {
  if (platforms[number] == NULL) {
    cl_platform_id made =
        standin_new(STANDIN_PLATFORM, sizeof(struct _cl_platform_id));
    if (made != NULL) made->number = number;
    platforms[number] = made;
  }
  return platforms[number];
}

cl_device_id standin_device(cl_platform_id platform, cl_uint number) {
  cl_device_id *place = &devices[platform->number][number];
  if (*place == NULL) {
    *place = standin_new(STANDIN_DEVICE, sizeof(struct _cl_device_id));
    if (*place == NULL) return NULL;
    (*place)->platform = platform;
    (*place)->number = number;
  }
  return *place;
}

// --- clGetPlatformIDs ------------------------------------------------------

static cl_int no_platform(cl_uint *num_platforms) {
  if (num_platforms != NULL) *num_platforms = 0;
  if (standin_number(STANDIN_NO_PLATFORM_IS_OK) != 0) return CL_SUCCESS;
  return CL_PLATFORM_NOT_FOUND_KHR;
}

cl_int clGetPlatformIDs(cl_uint num_entries, cl_platform_id *out,
                        cl_uint *num_platforms) {
  ENTER();
  if ((out == NULL) != (num_entries == 0) ||
      (out == NULL && num_platforms == NULL)) {
    return standin_wrong(CL_INVALID_VALUE, "%u entries at %p",
                         (unsigned)num_entries, (void *)out);
  }
  cl_uint count = standin_platform_count();
  if (count == 0) return no_platform(num_platforms);
  if (num_platforms != NULL) *num_platforms = count;
  cl_int error = CL_SUCCESS;
  standin_lock();
  for (cl_uint i = 0; i < count && i < num_entries; i++) {
    out[i] = standin_platform(i);
    if (out[i] == NULL) error = CL_OUT_OF_HOST_MEMORY;
  }
  standin_unlock();
  return error;
}

// --- clGetPlatformInfo -----------------------------------------------------

void standin_version_text(const char *before, char out[STANDIN_TEXT_SIZE]) {
  snprintf(out, STANDIN_TEXT_SIZE, "%s%d.%d stand-in", before,
           standin_version() / 10, standin_version() % 10);
}

void standin_extensions(char out[STANDIN_TEXT_SIZE]) {
  snprintf(out, STANDIN_TEXT_SIZE, "cl_khr_byte_addressable_store%s%s%s",
           " cl_khr_global_int32_base_atomics cl_khr_int64_base_atomics",
           standin_has_usm() ? " cl_intel_unified_shared_memory" : "",
           standin_has_address() ? " cl_ext_buffer_device_address" : "");
}

static cl_int answer_platform(cl_platform_id platform, cl_platform_info name,
                              const standin_answer *answer) {
  char text[STANDIN_TEXT_SIZE];
  switch (name) {
    case CL_PLATFORM_PROFILE:
      return standin_answer_text(answer, "FULL_PROFILE");
    case CL_PLATFORM_VERSION:
      standin_version_text("OpenCL ", text);
      return standin_answer_text(answer, text);
    case CL_PLATFORM_NAME:
      snprintf(text, sizeof text, "Tarn's stand-in %u, no driver",
               (unsigned)platform->number);
      return standin_answer_text(answer, text);
    case CL_PLATFORM_VENDOR:
      return standin_answer_text(answer, "Tarn's tests");
    case CL_PLATFORM_EXTENSIONS:
      standin_extensions(text);
      return standin_answer_text(answer, text);
    default:
      return STANDIN_UNKNOWN;
  }
}

cl_int clGetPlatformInfo(cl_platform_id platform, cl_platform_info param_name,
                         size_t param_value_size, void *param_value,
                         size_t *param_value_size_ret) {
  ENTER();
  standin_lock();
  cl_int error = standin_check(platform, STANDIN_PLATFORM);
  standin_unlock();
  if (error != CL_SUCCESS) return error;
  const standin_answer answer = {param_value_size, param_value,
                                 param_value_size_ret};
  return standin_answered(answer_platform(platform, param_name, &answer));
}
