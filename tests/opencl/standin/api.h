// api.h - OpenCL as the distribution declares it: the compiler compares each
// function of the stand-in with the real declaration.
//
// A loader exports the functions of the core. Those of extensions are found by
// clGetExtensionFunctionAddressForPlatform alone, so they are hidden.
#ifndef TARN_TESTS_OPENCL_STANDIN_API_H_
#define TARN_TESTS_OPENCL_STANDIN_API_H_

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS

#define CL_API_ENTRY __attribute__((visibility("default")))
#include <CL/cl.h>
#undef CL_API_ENTRY
#define CL_API_ENTRY __attribute__((visibility("hidden")))
#include <CL/cl_ext.h>

#include "address_ext.h"

#endif  // TARN_TESTS_OPENCL_STANDIN_API_H_
