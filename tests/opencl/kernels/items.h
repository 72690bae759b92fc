// items.h - calls kernels written in OpenCL C as the functions that they are.
//
// clang compiles OpenCL C for the host, and a kernel becomes a function with
// the kernel's name. A table of the shared object that the stand-in's setting
// KERNELS names holds, for each, a function that runs it for all work items:
//
//   void scale(void *rows, float by);  // in the .cl: a __global float *
//
//   static int32_t run_scale(const tarn_standin_launch *launch) {
//     EACH_ITEM(launch) scale(MEMORY(launch, 0), VALUE(launch, 1, float));
//     return 0;
//   }
//
// Work items run one behind the other: a kernel with a barrier is beyond this.
#ifndef TARN_TESTS_OPENCL_KERNELS_ITEMS_H_
#define TARN_TESTS_OPENCL_KERNELS_ITEMS_H_

#include "opencl/standin.h"

// Argument |i| of the launch.
#define VALUE(launch, i, type) (*(const type *)(launch)->arguments[i].value)
#define MEMORY(launch, i) VALUE(launch, i, pointer)

typedef void *pointer;

#define EACH_ITEM(launch) for (items_begin(launch); items_next();)

// On this thread: the work items of |launch|, in the order of their numbers.
void items_begin(const tarn_standin_launch *launch);

// False behind the last.
bool items_next(void);

#endif  // TARN_TESTS_OPENCL_KERNELS_ITEMS_H_
