// more.h - functions and numbers of CUDA's driver interface that programs use
// and the plug-in does not, declared as plugins/cuda/api.h declares its own.
// declared.c compares them with cuda.h.
#ifndef TARN_TESTS_CUDA_MORE_H_
#define TARN_TESTS_CUDA_MORE_H_

#include "cuda/api.h"

typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;

typedef void tarn__cu_host_function(void *user);

// X(field, name in CUDA, name in HIP, arguments)
#define TARN__CU_MORE(X)                                                \
  X(CtxSetCurrent, cuCtxSetCurrent, none, (CUcontext context))          \
  X(CtxGetDevice, cuCtxGetDevice, none, (CUdevice * out))               \
  X(DevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2, hipDeviceReset,  \
    (CUdevice device))                                                  \
  X(DevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState,               \
    hipDevicePrimaryCtxGetState,                                        \
    (CUdevice device, unsigned *out_flags, int *out_active))            \
  X(DeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool,                 \
    hipDeviceGetDefaultMemPool, (CUmemoryPool * out, CUdevice device))  \
  X(MemAllocAsync, cuMemAllocAsync, hipMallocAsync,                     \
    (CUdeviceptr * out, size_t size, CUstream stream))                  \
  X(MemPoolTrimTo, cuMemPoolTrimTo, hipMemPoolTrimTo,                   \
    (CUmemoryPool pool, size_t keep))                                   \
  X(LaunchHostFunc, cuLaunchHostFunc, hipLaunchHostFunc,                \
    (CUstream stream, tarn__cu_host_function * function, void *user))   \
  X(StreamBeginCapture, cuStreamBeginCapture_v2, hipStreamBeginCapture, \
    (CUstream stream, unsigned mode))                                   \
  X(StreamEndCapture, cuStreamEndCapture, hipStreamEndCapture,          \
    (CUstream stream, CUgraph * out))                                   \
  X(GraphInstantiate, cuGraphInstantiateWithFlags,                      \
    hipGraphInstantiateWithFlags,                                       \
    (CUgraphExec * out, CUgraph graph, unsigned long long flags))       \
  X(GraphLaunch, cuGraphLaunch, hipGraphLaunch,                         \
    (CUgraphExec graph, CUstream stream))                               \
  X(GraphExecDestroy, cuGraphExecDestroy, hipGraphExecDestroy,          \
    (CUgraphExec graph))                                                \
  X(GraphDestroy, cuGraphDestroy, hipGraphDestroy, (CUgraph graph))

// X(name, value): TARN__CU_name is CUDA_name.
#define TARN__CU_MORE_RESULTS(X)            \
  X(ERROR_DEVICE_UNAVAILABLE, 46)           \
  X(ERROR_UNSUPPORTED_PTX_VERSION, 222)     \
  X(ERROR_NOT_FOUND, 500)                   \
  X(ERROR_ILLEGAL_ADDRESS, 700)             \
  X(ERROR_ASSERT, 710)                      \
  X(ERROR_LAUNCH_FAILED, 719)               \
  X(ERROR_STREAM_CAPTURE_INVALIDATED, 901)  \
  X(ERROR_STREAM_CAPTURE_MERGE, 902)        \
  X(ERROR_STREAM_CAPTURE_UNMATCHED, 903)    \
  X(ERROR_STREAM_CAPTURE_UNJOINED, 904)     \
  X(ERROR_STREAM_CAPTURE_ISOLATION, 905)    \
  X(ERROR_STREAM_CAPTURE_IMPLICIT, 906)     \
  X(ERROR_CAPTURED_EVENT, 907)              \
  X(ERROR_STREAM_CAPTURE_WRONG_THREAD, 908) \
  X(ERROR_UNKNOWN, 999)

// X(name, value): TARN__CU_name is CU_name.
#define TARN__CU_MORE_NUMBERS(X)          \
  X(EVENT_DEFAULT, 0)                     \
  X(STREAM_DEFAULT, 0)                    \
  X(STREAM_CAPTURE_MODE_GLOBAL, 0)        \
  X(STREAM_CAPTURE_MODE_THREAD_LOCAL, 1)  \
  X(STREAM_CAPTURE_STATUS_ACTIVE, 1)      \
  X(STREAM_CAPTURE_STATUS_INVALIDATED, 2) \
  X(MEM_ATTACH_HOST, 2)                   \
  X(MEM_ALLOC_GRANULARITY_RECOMMENDED, 1) \
  X(POINTER_ATTRIBUTE_CONTEXT, 1)         \
  X(POINTER_ATTRIBUTE_DEVICE_POINTER, 3)  \
  X(POINTER_ATTRIBUTE_HOST_POINTER, 4)    \
  X(DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1)

enum { TARN__CU_MORE_RESULTS(TARN__CU_ENUMERATOR) };
enum { TARN__CU_MORE_NUMBERS(TARN__CU_ENUMERATOR) };

#endif  // TARN_TESTS_CUDA_MORE_H_
