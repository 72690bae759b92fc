// driver.h - the functions of libOpenCL.so.1, which is loaded when the plug-in
// is first used, and the words for their errors.
//
//   const tarn__opencl_driver *cl = tarn__opencl_driver_get();
//   cl_int error = cl->Finish(queue);
//   if (error != CL_SUCCESS)
//     tarn__opencl_say(error, "clFinish");
//
// The declarations are those of the distribution's headers: a pointer has the
// type of the function that it stands for.
#ifndef TARN_PLUGINS_OPENCL_DRIVER_H_
#define TARN_PLUGINS_OPENCL_DRIVER_H_

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#endif
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <stdbool.h>

#include "common/plugin.h"
#include "tarn/base.h"

// Every driver has these: they are of OpenCL 1.2.
#define TARN__OPENCL_REQUIRED(X) \
  X(GetPlatformIDs)              \
  X(GetPlatformInfo)             \
  X(GetDeviceIDs)                \
  X(GetDeviceInfo)               \
  X(CreateContext)               \
  X(RetainContext)               \
  X(ReleaseContext)              \
  X(GetContextInfo)              \
  X(CreateCommandQueue)          \
  X(RetainCommandQueue)          \
  X(ReleaseCommandQueue)         \
  X(GetCommandQueueInfo)         \
  X(CreateBuffer)                \
  X(ReleaseMemObject)            \
  X(GetMemObjectInfo)            \
  X(EnqueueReadBuffer)           \
  X(EnqueueWriteBuffer)          \
  X(EnqueueCopyBuffer)           \
  X(EnqueueFillBuffer)           \
  X(EnqueueMapBuffer)            \
  X(EnqueueUnmapMemObject)       \
  X(EnqueueMarkerWithWaitList)   \
  X(EnqueueBarrierWithWaitList)  \
  X(CreateUserEvent)             \
  X(SetUserEventStatus)          \
  X(SetEventCallback)            \
  X(WaitForEvents)               \
  X(GetEventInfo)                \
  X(RetainEvent)                 \
  X(ReleaseEvent)                \
  X(Flush)                       \
  X(Finish)                      \
  X(CreateProgramWithSource)     \
  X(CreateProgramWithBinary)     \
  X(BuildProgram)                \
  X(GetProgramInfo)              \
  X(GetProgramBuildInfo)         \
  X(ReleaseProgram)              \
  X(CreateKernel)                \
  X(ReleaseKernel)               \
  X(SetKernelArg)                \
  X(EnqueueNDRangeKernel)        \
  X(GetExtensionFunctionAddressForPlatform)

// Of OpenCL 2.0 and 3.0: NULL where the loader lacks them.
#define TARN__OPENCL_OPTIONAL(X) \
  X(SVMAlloc)                    \
  X(SVMFree)                     \
  X(EnqueueSVMMemcpy)            \
  X(EnqueueSVMMemFill)           \
  X(EnqueueSVMMap)               \
  X(EnqueueSVMUnmap)             \
  X(SetKernelArgSVMPointer)      \
  X(SetKernelExecInfo)           \
  X(CreateBufferWithProperties)

typedef struct tarn__opencl_driver {
#define TARN__OPENCL_FIELD(name) __typeof__(cl##name) *(name);
  TARN__OPENCL_REQUIRED(TARN__OPENCL_FIELD)
  TARN__OPENCL_OPTIONAL(TARN__OPENCL_FIELD)
#undef TARN__OPENCL_FIELD
} tarn__opencl_driver;

// Loads the loader at the first call. NULL, with the thread's text: it cannot
// be loaded, or lacks a function that every driver has.
const tarn__opencl_driver *tarn__opencl_load(void);

// The functions, once tarn__opencl_load has given them.
const tarn__opencl_driver *tarn__opencl_driver_get(void);

// --- cl_ext_buffer_device_address, which distributions' headers lack --------

typedef cl_ulong tarn__opencl_address;

enum {
  TARN__OPENCL_MEM_PRIVATE_ADDRESS = 0x5000,  // a property of buffers
  TARN__OPENCL_MEM_DEVICE_ADDRESS = 0x5001,   // a query of buffers
  TARN__OPENCL_EXEC_DEVICE_POINTERS = 0x5002  // an information for kernels
};

typedef cl_int CL_API_CALL tarn__opencl_set_device_pointer(
    cl_kernel kernel, cl_uint argument, tarn__opencl_address address);

// --- errors ----------------------------------------------------------------

// The thread's text becomes "WHAT: CL_OUT_OF_RESOURCES (-5)", and what the
// driver said of the context since the last one. Returns C_FAILED for a lack of
// memory or resources, C_ERROR for a wrong argument, C_INTERNAL_ERROR for all
// else.
__attribute__((cold)) C_Status tarn__opencl_say(cl_int error, const char *what);

// The same for a command that failed later: |status| is its event's. Returns
// C_INTERNAL_ERROR.
__attribute__((cold)) C_Status tarn__opencl_say_failed(cl_int status,
                                                       const char *what);

// Takes down what a driver says of a context: the function for clCreateContext.
void CL_CALLBACK tarn__opencl_hear(const char *words, const void *details,
                                   size_t details_size, void *unused);

// The same meaning as a status of the extension: TARN_E_NOMEM, TARN_E_INVALID,
// TARN_E_DEVICE.
tarn_status tarn__opencl_answer(C_Status status);

#endif  // TARN_PLUGINS_OPENCL_DRIVER_H_
