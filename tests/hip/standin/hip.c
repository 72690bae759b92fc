// HIP over the stand-in for CUDA's driver: a shared object called
// libamdhip64.so.N that behaves like HIP of one release, HIP_VERSION, with the
// stand-in's devices behind it. It is no driver: what passes over it has shown
// nothing about any GPU. It has no kernels.
//
// What differs from CUDA is as in HIP: devices instead of contexts, numbers of
// attributes and of types of memory, texts that are returned, no handle for the
// stream that a program names by NULL, a descriptor by its address before 7.1,
// no ranges in 5, and one mapping in a call.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cuda/api.h"
#include "cuda/hip.h"
#include "cuda/more.h"
#include "cuda/standin.h"

// What is defined here, a header of HIP's would declare.
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#define EXPORT __attribute__((visibility("default")))

#define DECLARE(field, cuda, hip, arguments) tarn__cuda_result cuda arguments;
TARN__CU_REQUIRED(DECLARE)
TARN__CU_OPTIONAL(DECLARE)
TARN__CU_MORE(DECLARE)
#undef DECLARE

// --- devices ---------------------------------------------------------------

enum { DEVICES_MAX = 64 };

static struct {
  pthread_mutex_t lock;             // guards all below
  CUcontext contexts[DEVICES_MAX];  // each is retained when it is first used
} devices = {.lock = PTHREAD_MUTEX_INITIALIZER};

static tarn__cuda_result context_of(CUdevice device, CUcontext *out) {
  tarn__cuda_result error = TARN__CU_SUCCESS;
  *out = NULL;
  if (device < 0 || device >= DEVICES_MAX) return TARN__CU_ERROR_INVALID_DEVICE;
  pthread_mutex_lock(&devices.lock);
  if (devices.contexts[device] == NULL)
    error = cuDevicePrimaryCtxRetain(&devices.contexts[device], device);
  *out = devices.contexts[device];
  pthread_mutex_unlock(&devices.lock);
  return error;
}

// HIP's devices need no end.
__attribute__((destructor)) static void release_all(void) {
  for (CUdevice d = 0; d < DEVICES_MAX; d++)
    if (devices.contexts[d] != NULL) (void)cuDevicePrimaryCtxRelease_v2(d);
}

EXPORT tarn__cuda_result hipSetDevice(CUdevice device) {
  CUcontext context = NULL;
  tarn__cuda_result error = context_of(device, &context);
  return error == TARN__CU_SUCCESS ? cuCtxSetCurrent(context) : error;
}

static tarn__cuda_result device_of(CUcontext context, CUdevice *out) {
  tarn__cuda_result error = TARN__CU_ERROR_INVALID_CONTEXT;
  pthread_mutex_lock(&devices.lock);
  for (CUdevice d = 0; d < DEVICES_MAX; d++) {
    if (devices.contexts[d] != context) continue;
    *out = d;
    error = TARN__CU_SUCCESS;
    break;
  }
  pthread_mutex_unlock(&devices.lock);
  return error;
}

// A thread that has set none has the first.
EXPORT tarn__cuda_result hipGetDevice(CUdevice *out) {
  CUcontext context = NULL;
  tarn__cuda_result error = cuCtxGetCurrent(&context);
  if (error != TARN__CU_SUCCESS) return error;
  if (context != NULL) return device_of(context, out);
  *out = 0;
  return hipSetDevice(0);
}

EXPORT tarn__cuda_result hipDeviceGetAttribute(int *out, unsigned attribute,
                                               CUdevice device) {
#define ASK(cuda, hip, number) \
  if (attribute == (number))   \
    return cuDeviceGetAttribute(out, TARN__CU_DEVICE_ATTRIBUTE_##cuda, device);
  TARN__HIP_ATTRIBUTES(ASK)
#undef ASK
  return TARN__CU_ERROR_INVALID_VALUE;
}

EXPORT tarn__cuda_result hipRuntimeGetVersion(int *out) {
  *out = HIP_VERSION;
  return TARN__CU_SUCCESS;
}

// --- errors ----------------------------------------------------------------

EXPORT const char *hipGetErrorName(tarn__cuda_result error) {
  const char *name = "hipErrorUnknown";
  (void)cuGetErrorName(error, &name);
  return name;
}

EXPORT const char *hipGetErrorString(tarn__cuda_result error) {
  const char *words = "hipErrorUnknown";
  (void)cuGetErrorString(error, &words);
  return words;
}

// --- streams ---------------------------------------------------------------

// HIP before 6.3 takes the handle 1 for an address.
static bool is_stream(CUstream stream) {
  return stream != TARN__CU_STREAM_LEGACY;
}

// --- memory ----------------------------------------------------------------

static tarn__cuda_result ask_pointer(const void *address, unsigned *out_type,
                                     unsigned *out_is_managed,
                                     int *out_device) {
  CUdeviceptr a = (uintptr_t)address;
  tarn__cuda_result error = cuPointerGetAttribute(
      out_type, TARN__CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a);
  if (error != TARN__CU_SUCCESS) return error;
  error = cuPointerGetAttribute(out_is_managed,
                                TARN__CU_POINTER_ATTRIBUTE_IS_MANAGED, a);
  if (error != TARN__CU_SUCCESS) return error;
  return cuPointerGetAttribute(out_device,
                               TARN__CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, a);
}

static unsigned hip_type_of(unsigned type, bool is_managed) {
#if HIP_VERSION < TARN__HIP_VERSION(6, 0)
  return is_managed || type == TARN__CU_MEMORYTYPE_HOST ? 0 : 1;
#else
  if (is_managed) return 3;
  return type == TARN__CU_MEMORYTYPE_HOST ? 1 : 2;
#endif
}

EXPORT tarn__cuda_result hipPointerGetAttributes(tarn__cuda_hip_pointer *out,
                                                 const void *address) {
  unsigned type = 0;
  unsigned is_managed = 0;
  int device = 0;
  *out = (tarn__cuda_hip_pointer){.device = -2};
  tarn__cuda_result error = ask_pointer(address, &type, &is_managed, &device);
  if (error == TARN__CU_ERROR_INVALID_VALUE &&
      HIP_VERSION >= TARN__HIP_VERSION(6, 0)) {
    return TARN__CU_SUCCESS;  // of no device, of type 0
  }
  if (error != TARN__CU_SUCCESS) return error;
  out->type = hip_type_of(type, is_managed != 0);
  out->is_managed = is_managed != 0;
  out->device = device;
  return TARN__CU_SUCCESS;
}

// Of host memory the size alone is told, as of registered memory.
EXPORT tarn__cuda_result hipMemGetAddressRange(CUdeviceptr *out_base,
                                               size_t *out_size,
                                               CUdeviceptr address) {
  unsigned type = 0;
  if (out_base == NULL || out_size == NULL) return TARN__CU_ERROR_INVALID_VALUE;
  tarn__cuda_result error = cuPointerGetAttribute(
      &type, TARN__CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
  if (error != TARN__CU_SUCCESS) return error;
  if (type == TARN__CU_MEMORYTYPE_DEVICE)
    return cuMemGetAddressRange_v2(out_base, out_size, address);
  *out_base = 0;
  return cuPointerGetAttribute(out_size, TARN__CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                               address);
}

// Calls over several mappings go wrong.
static bool is_one_mapping(CUdeviceptr address, size_t size) {
  return tarn_standin_translate(address, 1) == NULL ||
         tarn_standin_translate(address, size) != NULL;
}

EXPORT tarn__cuda_result hipMemcpyPeerAsync(void *dst, CUdevice dst_device,
                                            const void *src,
                                            CUdevice src_device, size_t size,
                                            CUstream stream) {
  CUcontext to = NULL;
  CUcontext from = NULL;
  if (!is_stream(stream)) return TARN__CU_ERROR_CONTEXT_IS_DESTROYED;
  if (!is_one_mapping((uintptr_t)dst, size) ||
      !is_one_mapping((uintptr_t)src, size)) {
    return TARN__CU_ERROR_INVALID_VALUE;
  }
  tarn__cuda_result error = context_of(dst_device, &to);
  if (error == TARN__CU_SUCCESS) error = context_of(src_device, &from);
  if (error != TARN__CU_SUCCESS) return error;
  return cuMemcpyPeerAsync((uintptr_t)dst, to, (uintptr_t)src, from, size,
                           stream);
}

// --- ranges ----------------------------------------------------------------

#if HIP_VERSION < TARN__HIP_VERSION(6, 0)
#define HAS_RANGES false
#else
#define HAS_RANGES true
#endif

EXPORT tarn__cuda_result hipMemImportFromShareableHandle(
    CUmemGenericAllocationHandle *out, void *handle, unsigned type) {
  if (!HAS_RANGES) return TARN__CU_ERROR_NOT_SUPPORTED;
#if HIP_VERSION < TARN__HIP_VERSION(7, 1)
  handle = (void *)(intptr_t) * (const int *)handle;
#endif
  return cuMemImportFromShareableHandle(out, handle, type);
}

// --- functions that are CUDA's ---------------------------------------------
// X(name in HIP, name in CUDA, arguments, the same to pass on, and a condition
// without which the call is refused)

#define PLAIN(X)                                                               \
  X(hipInit, cuInit, (unsigned flags), (flags), true)                          \
  X(hipGetDeviceCount, cuDeviceGetCount, (int *out), (out), true)              \
  X(hipDeviceGet, cuDeviceGet, (CUdevice * out, int ordinal), (out, ordinal),  \
    true)                                                                      \
  X(hipDeviceGetName, cuDeviceGetName, (char *out, int size, CUdevice device), \
    (out, size, device), true)                                                 \
  X(hipDeviceTotalMem, cuDeviceTotalMem_v2, (size_t * out, CUdevice device),   \
    (out, device), true)                                                       \
  X(hipDeviceSynchronize, cuCtxSynchronize, (void), (), true)                  \
  X(hipThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode,     \
    (unsigned *mode), (mode), true)                                            \
  X(hipMemGetInfo, cuMemGetInfo_v2, (size_t * out_free, size_t * out_total),   \
    (out_free, out_total), true)                                               \
  X(hipMalloc, cuMemAlloc_v2, (CUdeviceptr * out, size_t size), (out, size),   \
    true)                                                                      \
  X(hipFree, cuMemFree_v2, (CUdeviceptr address), (address), true)             \
  X(hipHostMalloc, cuMemHostAlloc, (void **out, size_t size, unsigned flags),  \
    (out, size, flags), true)                                                  \
  X(hipHostFree, cuMemFreeHost, (void *ptr), (ptr), true)                      \
  X(hipMallocManaged, cuMemAllocManaged,                                       \
    (CUdeviceptr * out, size_t size, unsigned flags), (out, size, flags),      \
    true)                                                                      \
  X(hipHostRegister, cuMemHostRegister_v2,                                     \
    (void *ptr, size_t size, unsigned flags), (ptr, size, flags), true)        \
  X(hipHostUnregister, cuMemHostUnregister, (void *ptr), (ptr), true)          \
  X(hipEventCreateWithFlags, cuEventCreate, (CUevent * out, unsigned flags),   \
    (out, flags), true)                                                        \
  X(hipEventDestroy, cuEventDestroy_v2, (CUevent event), (event), true)        \
  X(hipEventQuery, cuEventQuery, (CUevent event), (event), true)               \
  X(hipEventSynchronize, cuEventSynchronize, (CUevent event), (event), true)   \
  X(hipStreamCreateWithFlags, cuStreamCreate,                                  \
    (CUstream * out, unsigned flags), (out, flags), true)

#define OF_STREAMS(X)                                                         \
  X(hipStreamDestroy, cuStreamDestroy_v2, (CUstream stream), (stream),        \
    is_stream(stream))                                                        \
  X(hipStreamQuery, cuStreamQuery, (CUstream stream), (stream),               \
    is_stream(stream))                                                        \
  X(hipStreamSynchronize, cuStreamSynchronize, (CUstream stream), (stream),   \
    is_stream(stream))                                                        \
  X(hipStreamWaitEvent, cuStreamWaitEvent,                                    \
    (CUstream stream, CUevent event, unsigned flags), (stream, event, flags), \
    is_stream(stream))                                                        \
  X(hipStreamAddCallback, cuStreamAddCallback,                                \
    (CUstream stream, tarn__cuda_callback * callback, void *user,             \
     unsigned flags),                                                         \
    (stream, callback, user, flags), is_stream(stream))                       \
  X(hipStreamIsCapturing, cuStreamIsCapturing,                                \
    (CUstream stream, unsigned *out), (stream, out), is_stream(stream))       \
  X(hipEventRecord, cuEventRecord, (CUevent event, CUstream stream),          \
    (event, stream), is_stream(stream))                                       \
  X(hipMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2,                                 \
    (CUdeviceptr dst, const void *src, size_t size, CUstream stream),         \
    (dst, src, size, stream), is_stream(stream) && is_one_mapping(dst, size)) \
  X(hipMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2,                                 \
    (void *dst, CUdeviceptr src, size_t size, CUstream stream),               \
    (dst, src, size, stream), is_stream(stream) && is_one_mapping(src, size)) \
  X(hipMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2,                                 \
    (CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream),         \
    (dst, src, size, stream),                                                 \
    is_stream(stream) && is_one_mapping(dst, size) &&                         \
        is_one_mapping(src, size))                                            \
  X(hipMemsetD8Async, cuMemsetD8Async,                                        \
    (CUdeviceptr dst, unsigned char value, size_t size, CUstream stream),     \
    (dst, value, size, stream),                                               \
    is_stream(stream) && is_one_mapping(dst, size))

#define OF_POOLS(X)                                                         \
  X(hipMemPoolCreate, cuMemPoolCreate,                                      \
    (CUmemoryPool * out, const struct CUmemPoolProps_st *properties),       \
    (out, properties), true)                                                \
  X(hipMemPoolDestroy, cuMemPoolDestroy, (CUmemoryPool pool), (pool), true) \
  X(hipMemPoolGetAttribute, cuMemPoolGetAttribute,                          \
    (CUmemoryPool pool, unsigned attribute, void *value),                   \
    (pool, attribute, value), true)                                         \
  X(hipMemPoolSetAttribute, cuMemPoolSetAttribute,                          \
    (CUmemoryPool pool, unsigned attribute, void *value),                   \
    (pool, attribute, value), true)                                         \
  X(hipMemPoolTrimTo, cuMemPoolTrimTo, (CUmemoryPool pool, size_t keep),    \
    (pool, keep), true)                                                     \
  X(hipMallocFromPoolAsync, cuMemAllocFromPoolAsync,                        \
    (CUdeviceptr * out, size_t size, CUmemoryPool pool, CUstream stream),   \
    (out, size, pool, stream), is_stream(stream))                           \
  X(hipFreeAsync, cuMemFreeAsync, (CUdeviceptr address, CUstream stream),   \
    (address, stream), is_stream(stream))

#define OF_RANGES(X)                                                         \
  X(hipMemGetAllocationGranularity, cuMemGetAllocationGranularity,           \
    (size_t * out, const struct CUmemAllocationProp_st *properties,          \
     unsigned option),                                                       \
    (out, properties, option), HAS_RANGES)                                   \
  X(hipMemAddressReserve, cuMemAddressReserve,                               \
    (CUdeviceptr * out, size_t size, size_t align, CUdeviceptr address,      \
     unsigned long long flags),                                              \
    (out, size, align, address, flags), HAS_RANGES)                          \
  X(hipMemAddressFree, cuMemAddressFree, (CUdeviceptr address, size_t size), \
    (address, size), HAS_RANGES)                                             \
  X(hipMemCreate, cuMemCreate,                                               \
    (CUmemGenericAllocationHandle * out, size_t size,                        \
     const struct CUmemAllocationProp_st *properties,                        \
     unsigned long long flags),                                              \
    (out, size, properties, flags), HAS_RANGES)                              \
  X(hipMemRelease, cuMemRelease, (CUmemGenericAllocationHandle memory),      \
    (memory), HAS_RANGES)                                                    \
  X(hipMemMap, cuMemMap,                                                     \
    (CUdeviceptr address, size_t size, size_t offset,                        \
     CUmemGenericAllocationHandle memory, unsigned long long flags),         \
    (address, size, offset, memory, flags), HAS_RANGES &&offset == 0)        \
  X(hipMemUnmap, cuMemUnmap, (CUdeviceptr address, size_t size),             \
    (address, size), HAS_RANGES &&is_one_mapping(address, size))             \
  X(hipMemSetAccess, cuMemSetAccess,                                         \
    (CUdeviceptr address, size_t size,                                       \
     const struct CUmemAccessDesc_st *rights, size_t count),                 \
    (address, size, rights, count),                                          \
    HAS_RANGES &&is_one_mapping(address, size))                              \
  X(hipMemExportToShareableHandle, cuMemExportToShareableHandle,             \
    (void *out, CUmemGenericAllocationHandle memory, unsigned type,          \
     unsigned long long flags),                                              \
    (out, memory, type, flags), HAS_RANGES)

#define DEFINE(hip, cuda, parameters, arguments, condition) \
  EXPORT tarn__cuda_result hip parameters {                 \
    if (!(condition)) return TARN__CU_ERROR_INVALID_VALUE;  \
    return cuda arguments;                                  \
  }
PLAIN(DEFINE)
OF_STREAMS(DEFINE)
OF_POOLS(DEFINE)
OF_RANGES(DEFINE)
