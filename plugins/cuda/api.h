// api.h - the part of a GPU driver's interface that the plug-in uses, declared
// here so that it is built on machines without the vendor's headers.
//
// Types have the vendor's names and struct tags; an enum is an unsigned. What
// cuda.h declares with macros or enumerators has another name here, CU_X being
// TARN__CU_X, so that a file can include both: tests/cuda/declared.c compares
// each function, number and struct with cuda.h. A file that does so includes
// cuda.h first, and its structs stand in for these.
//
// HIP is a column of names: the functions have the same arguments to the
// machine, but those of which the column says none. hip.c has them.
#ifndef TARN_PLUGINS_CUDA_API_H_
#define TARN_PLUGINS_CUDA_API_H_

#include <stddef.h>

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmemPoolHandle_st *CUmemoryPool;

// A CUresult.
typedef unsigned tarn__cuda_result;

typedef void tarn__cuda_callback(CUstream stream, tarn__cuda_result status,
                                 void *user);

#ifndef CUDA_VERSION

struct CUmemLocation_st {
  unsigned type;
  int id;
};

struct CUmemAllocationProp_st {
  unsigned type;
  unsigned requestedHandleTypes;
  struct CUmemLocation_st location;
  void *win32HandleMetaData;
  struct {
    unsigned char compressionType;
    unsigned char gpuDirectRDMACapable;
    unsigned short usage;
    unsigned char reserved[4];
  } allocFlags;
};

struct CUmemAccessDesc_st {
  struct CUmemLocation_st location;
  unsigned flags;
};

struct CUmemPoolProps_st {
  unsigned allocType;
  unsigned handleTypes;
  struct CUmemLocation_st location;
  void *win32SecurityAttributes;
  size_t maxSize;
  unsigned short usage;
  unsigned char reserved[54];
};

#endif  // CUDA_VERSION

// --- functions -------------------------------------------------------------
// X(field, name in CUDA, name in HIP, arguments)

// Every driver has these.
#define TARN__CU_REQUIRED(X)                                                \
  X(Init, cuInit, hipInit, (unsigned flags))                                \
  X(DriverGetVersion, cuDriverGetVersion, none, (int *out))                 \
  X(GetErrorName, cuGetErrorName, none,                                     \
    (tarn__cuda_result error, const char **out))                            \
  X(GetErrorString, cuGetErrorString, none,                                 \
    (tarn__cuda_result error, const char **out))                            \
  X(DeviceGetCount, cuDeviceGetCount, hipGetDeviceCount, (int *out))        \
  X(DeviceGet, cuDeviceGet, hipDeviceGet, (CUdevice * out, int ordinal))    \
  X(DeviceGetName, cuDeviceGetName, hipDeviceGetName,                       \
    (char *out, int size, CUdevice device))                                 \
  X(DeviceTotalMem, cuDeviceTotalMem_v2, hipDeviceTotalMem,                 \
    (size_t * out, CUdevice device))                                        \
  X(DeviceGetAttribute, cuDeviceGetAttribute, none,                         \
    (int *out, unsigned attribute, CUdevice device))                        \
  X(DevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, none,                 \
    (CUcontext * out, CUdevice device))                                     \
  X(DevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, none,            \
    (CUdevice device))                                                      \
  X(CtxGetCurrent, cuCtxGetCurrent, none, (CUcontext * out))                \
  X(CtxPushCurrent, cuCtxPushCurrent_v2, none, (CUcontext context))         \
  X(CtxPopCurrent, cuCtxPopCurrent_v2, none, (CUcontext * out))             \
  X(CtxSynchronize, cuCtxSynchronize, hipDeviceSynchronize, (void))         \
  X(StreamCreate, cuStreamCreate, hipStreamCreateWithFlags,                 \
    (CUstream * out, unsigned flags))                                       \
  X(StreamDestroy, cuStreamDestroy_v2, hipStreamDestroy, (CUstream stream)) \
  X(StreamQuery, cuStreamQuery, hipStreamQuery, (CUstream stream))          \
  X(StreamSynchronize, cuStreamSynchronize, hipStreamSynchronize,           \
    (CUstream stream))                                                      \
  X(StreamWaitEvent, cuStreamWaitEvent, hipStreamWaitEvent,                 \
    (CUstream stream, CUevent event, unsigned flags))                       \
  X(StreamAddCallback, cuStreamAddCallback, hipStreamAddCallback,           \
    (CUstream stream, tarn__cuda_callback * callback, void *user,           \
     unsigned flags))                                                       \
  X(EventCreate, cuEventCreate, hipEventCreateWithFlags,                    \
    (CUevent * out, unsigned flags))                                        \
  X(EventDestroy, cuEventDestroy_v2, hipEventDestroy, (CUevent event))      \
  X(EventRecord, cuEventRecord, hipEventRecord,                             \
    (CUevent event, CUstream stream))                                       \
  X(EventQuery, cuEventQuery, hipEventQuery, (CUevent event))               \
  X(EventSynchronize, cuEventSynchronize, hipEventSynchronize,              \
    (CUevent event))                                                        \
  X(MemGetInfo, cuMemGetInfo_v2, hipMemGetInfo,                             \
    (size_t * out_free, size_t * out_total))                                \
  X(MemAlloc, cuMemAlloc_v2, hipMalloc, (CUdeviceptr * out, size_t size))   \
  X(MemFree, cuMemFree_v2, hipFree, (CUdeviceptr address))                  \
  X(MemHostAlloc, cuMemHostAlloc, hipHostMalloc,                            \
    (void **out, size_t size, unsigned flags))                              \
  X(MemFreeHost, cuMemFreeHost, hipHostFree, (void *ptr))                   \
  X(MemAllocManaged, cuMemAllocManaged, hipMallocManaged,                   \
    (CUdeviceptr * out, size_t size, unsigned flags))                       \
  X(MemHostRegister, cuMemHostRegister_v2, hipHostRegister,                 \
    (void *ptr, size_t size, unsigned flags))                               \
  X(MemHostUnregister, cuMemHostUnregister, hipHostUnregister, (void *ptr)) \
  X(MemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync,              \
    (CUdeviceptr dst, const void *src, size_t size, CUstream stream))       \
  X(MemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync,              \
    (void *dst, CUdeviceptr src, size_t size, CUstream stream))             \
  X(MemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync,              \
    (CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream))       \
  X(MemcpyPeerAsync, cuMemcpyPeerAsync, none,                               \
    (CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,               \
     CUcontext src_context, size_t size, CUstream stream))                  \
  X(MemsetD8Async, cuMemsetD8Async, hipMemsetD8Async,                       \
    (CUdeviceptr dst, unsigned char value, size_t size, CUstream stream))   \
  X(PointerGetAttribute, cuPointerGetAttribute, none,                       \
    (void *out, unsigned attribute, CUdeviceptr address))                   \
  X(MemGetAddressRange, cuMemGetAddressRange_v2, hipMemGetAddressRange,     \
    (CUdeviceptr * out_base, size_t * out_size, CUdeviceptr address))

// NULL where the driver is older than they are, or of another vendor.
#define TARN__CU_OPTIONAL(X)                                                  \
  X(ThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode,       \
    hipThreadExchangeStreamCaptureMode, (unsigned *mode))                     \
  X(StreamIsCapturing, cuStreamIsCapturing, hipStreamIsCapturing,             \
    (CUstream stream, unsigned *out))                                         \
  X(MemGetAllocationGranularity, cuMemGetAllocationGranularity,               \
    hipMemGetAllocationGranularity,                                           \
    (size_t * out, const struct CUmemAllocationProp_st *properties,           \
     unsigned option))                                                        \
  X(MemAddressReserve, cuMemAddressReserve, hipMemAddressReserve,             \
    (CUdeviceptr * out, size_t size, size_t align, CUdeviceptr address,       \
     unsigned long long flags))                                               \
  X(MemAddressFree, cuMemAddressFree, hipMemAddressFree,                      \
    (CUdeviceptr address, size_t size))                                       \
  X(MemCreate, cuMemCreate, hipMemCreate,                                     \
    (CUmemGenericAllocationHandle * out, size_t size,                         \
     const struct CUmemAllocationProp_st *properties,                         \
     unsigned long long flags))                                               \
  X(MemRelease, cuMemRelease, hipMemRelease,                                  \
    (CUmemGenericAllocationHandle memory))                                    \
  X(MemMap, cuMemMap, hipMemMap,                                              \
    (CUdeviceptr address, size_t size, size_t offset,                         \
     CUmemGenericAllocationHandle memory, unsigned long long flags))          \
  X(MemUnmap, cuMemUnmap, hipMemUnmap, (CUdeviceptr address, size_t size))    \
  X(MemSetAccess, cuMemSetAccess, hipMemSetAccess,                            \
    (CUdeviceptr address, size_t size,                                        \
     const struct CUmemAccessDesc_st *rights, size_t count))                  \
  X(MemExportToShareableHandle, cuMemExportToShareableHandle,                 \
    hipMemExportToShareableHandle,                                            \
    (void *out, CUmemGenericAllocationHandle memory, unsigned type,           \
     unsigned long long flags))                                               \
  X(MemImportFromShareableHandle, cuMemImportFromShareableHandle,             \
    hipMemImportFromShareableHandle,                                          \
    (CUmemGenericAllocationHandle * out, void *handle, unsigned type))        \
  X(MemPoolCreate, cuMemPoolCreate, hipMemPoolCreate,                         \
    (CUmemoryPool * out, const struct CUmemPoolProps_st *properties))         \
  X(MemPoolDestroy, cuMemPoolDestroy, hipMemPoolDestroy, (CUmemoryPool pool)) \
  X(MemPoolTrimTo, cuMemPoolTrimTo, hipMemPoolTrimTo,                         \
    (CUmemoryPool pool, size_t kept))                                         \
  X(MemPoolGetAttribute, cuMemPoolGetAttribute, hipMemPoolGetAttribute,       \
    (CUmemoryPool pool, unsigned attribute, void *value))                     \
  X(MemPoolSetAttribute, cuMemPoolSetAttribute, hipMemPoolSetAttribute,       \
    (CUmemoryPool pool, unsigned attribute, void *value))                     \
  X(MemAllocFromPoolAsync, cuMemAllocFromPoolAsync, hipMallocFromPoolAsync,   \
    (CUdeviceptr * out, size_t size, CUmemoryPool pool, CUstream stream))     \
  X(MemFreeAsync, cuMemFreeAsync, hipFreeAsync,                               \
    (CUdeviceptr address, CUstream stream))                                   \
  X(ModuleLoadData, cuModuleLoadData, none,                                   \
    (CUmodule * out, const void *image))                                      \
  X(ModuleUnload, cuModuleUnload, none, (CUmodule module))                    \
  X(ModuleGetFunction, cuModuleGetFunction, none,                             \
    (CUfunction * out, CUmodule module, const char *name))                    \
  X(LaunchKernel, cuLaunchKernel, none,                                       \
    (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,  \
     unsigned block_x, unsigned block_y, unsigned block_z,                    \
     unsigned shared_size, CUstream stream, void **arguments, void **extra))

// --- numbers ---------------------------------------------------------------
// X(name, value): TARN__CU_name is CU_name, or for results CUDA_name.

#define TARN__CU_RESULTS(X)                    \
  X(SUCCESS, 0)                                \
  X(ERROR_INVALID_VALUE, 1)                    \
  X(ERROR_OUT_OF_MEMORY, 2)                    \
  X(ERROR_NOT_INITIALIZED, 3)                  \
  X(ERROR_DEINITIALIZED, 4)                    \
  X(ERROR_NO_DEVICE, 100)                      \
  X(ERROR_INVALID_DEVICE, 101)                 \
  X(ERROR_INVALID_IMAGE, 200)                  \
  X(ERROR_INVALID_CONTEXT, 201)                \
  X(ERROR_NO_BINARY_FOR_GPU, 209)              \
  X(ERROR_OPERATING_SYSTEM, 304)               \
  X(ERROR_INVALID_HANDLE, 400)                 \
  X(ERROR_NOT_READY, 600)                      \
  X(ERROR_LAUNCH_OUT_OF_RESOURCES, 701)        \
  X(ERROR_CONTEXT_IS_DESTROYED, 709)           \
  X(ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712) \
  X(ERROR_HOST_MEMORY_NOT_REGISTERED, 713)     \
  X(ERROR_NOT_PERMITTED, 800)                  \
  X(ERROR_NOT_SUPPORTED, 801)                  \
  X(ERROR_STREAM_CAPTURE_UNSUPPORTED, 900)

#define TARN__CU_NUMBERS(X)                                            \
  X(STREAM_NON_BLOCKING, 1)                                            \
  X(EVENT_DISABLE_TIMING, 2)                                           \
  X(STREAM_CAPTURE_MODE_RELAXED, 2)                                    \
  X(STREAM_CAPTURE_STATUS_NONE, 0)                                     \
  X(MEMHOSTALLOC_PORTABLE, 1)                                          \
  X(MEMHOSTALLOC_DEVICEMAP, 2)                                         \
  X(MEMHOSTREGISTER_PORTABLE, 1)                                       \
  X(MEMHOSTREGISTER_DEVICEMAP, 2)                                      \
  X(MEM_ATTACH_GLOBAL, 1)                                              \
  X(MEM_ALLOCATION_TYPE_PINNED, 1)                                     \
  X(MEM_HANDLE_TYPE_NONE, 0)                                           \
  X(MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1)                          \
  X(MEM_LOCATION_TYPE_DEVICE, 1)                                       \
  X(MEM_ACCESS_FLAGS_PROT_NONE, 0)                                     \
  X(MEM_ACCESS_FLAGS_PROT_READ, 1)                                     \
  X(MEM_ACCESS_FLAGS_PROT_READWRITE, 3)                                \
  X(MEM_ALLOC_GRANULARITY_MINIMUM, 0)                                  \
  X(MEMPOOL_ATTR_RELEASE_THRESHOLD, 4)                                 \
  X(MEMPOOL_ATTR_RESERVED_MEM_CURRENT, 5)                              \
  X(MEMPOOL_ATTR_USED_MEM_CURRENT, 7)                                  \
  X(POINTER_ATTRIBUTE_MEMORY_TYPE, 2)                                  \
  X(POINTER_ATTRIBUTE_IS_MANAGED, 8)                                   \
  X(POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9)                               \
  X(POINTER_ATTRIBUTE_RANGE_START_ADDR, 11)                            \
  X(POINTER_ATTRIBUTE_RANGE_SIZE, 12)                                  \
  X(POINTER_ATTRIBUTE_MEMPOOL_HANDLE, 17)                              \
  X(MEMORYTYPE_HOST, 1)                                                \
  X(MEMORYTYPE_DEVICE, 2)                                              \
  X(DEVICE_ATTRIBUTE_WARP_SIZE, 10)                                    \
  X(DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)                         \
  X(DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)                     \
  X(DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)                     \
  X(DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 41)                           \
  X(DEVICE_ATTRIBUTE_MANAGED_MEMORY, 83)                               \
  X(DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 89)                    \
  X(DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 91)      \
  X(DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 102)         \
  X(DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 103) \
  X(DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 110)     \
  X(DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 115)

#define TARN__CU_ENUMERATOR(name, value) TARN__CU_##name = (value),
enum { TARN__CU_RESULTS(TARN__CU_ENUMERATOR) };
enum { TARN__CU_NUMBERS(TARN__CU_ENUMERATOR) };

// Handles of the streams that every context has: CU_STREAM_LEGACY is what a
// program names by NULL.
#define TARN__CU_STREAM_LEGACY ((CUstream)1)
#define TARN__CU_STREAM_PER_THREAD ((CUstream)2)

#endif  // TARN_PLUGINS_CUDA_API_H_
