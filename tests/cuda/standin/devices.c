// Devices: how many there are, and what they say they are.
#include <stdio.h>
#include <string.h>

#include "entry.h"
#include "faults.h"
#include "report.h"
#include "settings.h"

static int device_count(void) {
  uint64_t count = standin_number(STANDIN_DEVICES);
  return count < STANDIN_DEVICES_MAX ? (int)count : STANDIN_DEVICES_MAX;
}

static tarn__cuda_result init(unsigned flags) {
  if (flags != 0) {
    return standin_wrong(TARN__CU_ERROR_INVALID_VALUE, "flags %u", flags);
  }
  tarn__cuda_result fails =
      (tarn__cuda_result)standin_number(STANDIN_INIT_FAILS);
  if (fails != TARN__CU_SUCCESS) return fails;
  if (device_count() == 0) return TARN__CU_ERROR_NO_DEVICE;
  standin_bind_process();
  return TARN__CU_SUCCESS;
}

tarn__cuda_result cuInit(unsigned flags) {
  BEGIN(STANDIN_ANYWHERE, NULL);
  return END(init(flags));
}

tarn__cuda_result cuDriverGetVersion(int *out) {
  BEGIN(STANDIN_ANYWHERE, NULL);
  *out = (int)standin_number(STANDIN_DRIVER_VERSION);
  return END(TARN__CU_SUCCESS);
}

tarn__cuda_result cuDeviceGetCount(int *out) {
  BEGIN(STANDIN_INITIALISED, NULL);
  *out = device_count();
  return END(TARN__CU_SUCCESS);
}

static tarn__cuda_result check_device(CUdevice device) {
  if (device >= 0 && device < device_count()) return TARN__CU_SUCCESS;
  return standin_wrong(TARN__CU_ERROR_INVALID_DEVICE, "device %d of %d", device,
                       device_count());
}

tarn__cuda_result cuDeviceGet(CUdevice *out, int ordinal) {
  BEGIN(STANDIN_INITIALISED, NULL);
  tarn__cuda_result error = check_device(ordinal);
  if (error == TARN__CU_SUCCESS) *out = ordinal;
  return END(error);
}

tarn__cuda_result cuDeviceGetName(char *out, int size, CUdevice device) {
  BEGIN(STANDIN_INITIALISED, NULL);
  tarn__cuda_result error = check_device(device);
  char name[STANDIN_TEXT_SIZE];
  standin_text(STANDIN_DEVICE_NAME, name);
  if (error == TARN__CU_SUCCESS) snprintf(out, (size_t)size, "%s", name);
  return END(error);
}

tarn__cuda_result cuDeviceTotalMem_v2(size_t *out, CUdevice device) {
  BEGIN(STANDIN_INITIALISED, NULL);
  tarn__cuda_result error = check_device(device);
  if (error == TARN__CU_SUCCESS) *out = standin_number(STANDIN_CAPACITY);
  return END(error);
}

// --- attributes ------------------------------------------------------------

static int has(const char *ability) {
  return !standin_has_word(STANDIN_WITHOUT, ability);
}

// -1: the stand-in has no such attribute.
static int value_of(unsigned attribute) {
  enum { WARP = 32, UNITS = 4, THREADS_MAX = 1024 };
  int capability = (int)standin_number(STANDIN_CAPABILITY);
  switch (attribute) {
    case TARN__CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return THREADS_MAX;
    case TARN__CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      return WARP;
    case TARN__CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return UNITS;
    case TARN__CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return capability / 10;
    case TARN__CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return capability % 10;
    case TARN__CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
      return 1;
    case TARN__CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case TARN__CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
      return has("managed");
    case TARN__CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
      return has("register");
    case TARN__CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case TARN__CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
      return has("ranges");
    case TARN__CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
      return has("ranges") && has("sharing");
    case TARN__CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
      return has("pools");
    default:
      return -1;
  }
}

static tarn__cuda_result answer(unsigned attribute, int *out) {
  int value = value_of(attribute);
  if (value < 0) {
    return standin_wrong(TARN__CU_ERROR_INVALID_VALUE,
                         "the stand-in has no attribute %u", attribute);
  }
  *out = value;
  return TARN__CU_SUCCESS;
}

tarn__cuda_result cuDeviceGetAttribute(int *out, unsigned attribute,
                                       CUdevice device) {
  BEGIN(STANDIN_INITIALISED, NULL);
  tarn__cuda_result error = check_device(device);
  if (error == TARN__CU_SUCCESS) error = answer(attribute, out);
  return END(error);
}
