// kernels.h - the functions that stand for kernels.
#ifndef TARN_TESTS_CUDA_STANDIN_KERNELS_H_
#define TARN_TESTS_CUDA_STANDIN_KERNELS_H_

#include "cuda/standin.h"

bool standin_kernel_add(const tarn_standin_kernel *kernel);

// NULL: there is none of that name.
const tarn_standin_kernel *standin_kernel_find(const char *name);

#endif  // TARN_TESTS_CUDA_STANDIN_KERNELS_H_
