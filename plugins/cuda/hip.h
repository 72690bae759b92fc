// hip.h - the part of HIP that is not as in CUDA: what hip.c calls, and which
// numbers it turns into which. Declared here for the same reason as api.h.
//
// Versions are HIP's own numbers: TARN__HIP_VERSION(6, 2) of release 6.2.
#ifndef TARN_PLUGINS_CUDA_HIP_H_
#define TARN_PLUGINS_CUDA_HIP_H_

#include "api.h"

#define TARN__HIP_VERSION(major, minor) ((major)*10000000 + (minor)*100000)

// What hipPointerGetAttributes tells, hipPointerAttribute_t.
typedef struct tarn__cuda_hip_pointer {
  unsigned type;
  int device;
  void *device_address;
  void *host_address;
  int is_managed;
  unsigned flags;
} tarn__cuda_hip_pointer;

// --- functions -------------------------------------------------------------
// X(name, result, arguments): beside the column of api.h.

#define TARN__HIP_REQUIRED(X)                                              \
  X(hipRuntimeGetVersion, tarn__cuda_result, (int *out))                   \
  X(hipGetErrorName, const char *, (tarn__cuda_result error))              \
  X(hipGetErrorString, const char *, (tarn__cuda_result error))            \
  X(hipDeviceGetAttribute, tarn__cuda_result,                              \
    (int *out, unsigned attribute, CUdevice device))                       \
  X(hipGetDevice, tarn__cuda_result, (CUdevice * out))                     \
  X(hipSetDevice, tarn__cuda_result, (CUdevice device))                    \
  X(hipPointerGetAttributes, tarn__cuda_result,                            \
    (tarn__cuda_hip_pointer * out, const void *address))                   \
  X(hipMemcpyPeerAsync, tarn__cuda_result,                                 \
    (void *dst, CUdevice dst_device, const void *src, CUdevice src_device, \
     size_t size, CUstream stream))

// --- numbers ---------------------------------------------------------------

// X(CUDA's name, HIP's name, HIP's number), the same from 5.0 to 7.1. HIP has
// no attribute for memory of file descriptors: where it has ranges, it may.
#define TARN__HIP_ATTRIBUTES(X)                                                \
  X(WARP_SIZE, WarpSize, 87)                                                   \
  X(MULTIPROCESSOR_COUNT, MultiprocessorCount, 63)                             \
  X(COMPUTE_CAPABILITY_MAJOR, ComputeCapabilityMajor, 23)                      \
  X(COMPUTE_CAPABILITY_MINOR, ComputeCapabilityMinor, 61)                      \
  X(UNIFIED_ADDRESSING, UnifiedAddressing, 85)                                 \
  X(MANAGED_MEMORY, ManagedMemory, 24)                                         \
  X(CONCURRENT_MANAGED_ACCESS, ConcurrentManagedAccess, 9)                     \
  X(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM,                                   \
    CanUseHostPointerForRegisteredMem, 4)                                      \
  X(VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, VirtualMemoryManagementSupported, 89) \
  X(HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,                               \
    VirtualMemoryManagementSupported, 89)                                      \
  X(MEMORY_POOLS_SUPPORTED, MemoryPoolsSupported, 88)

// X(name, number): types of memory of a tarn__cuda_hip_pointer.
#define TARN__HIP_MEMORY_5(X) \
  X(Host, 0)                  \
  X(Device, 1)
#define TARN__HIP_MEMORY_6(X) \
  X(Unregistered, 0)          \
  X(Host, 1)                  \
  X(Device, 2)                \
  X(Managed, 3)

#endif  // TARN_PLUGINS_CUDA_HIP_H_
