// The kernels of the plug-in's rows.cu as functions of the host, for the
// stand-in, and for tests that call them by themselves.
#include "shim.h"
// Before anything else.
#include "cuda/rows.cu"
#include "cuda/standin.h"

template <typename ARGUMENTS>
static unsigned run(const tarn_standin_launch *launch, unsigned threads,
                    void (*kernel)(ARGUMENTS)) {
  enum { CUDA_ERROR_INVALID_VALUE = 1 };
  if (launch->grid[1] != 1 || launch->grid[2] != 1 ||
      launch->block[0] != threads || launch->block[1] != 1 ||
      launch->block[2] != 1 || launch->shared_size != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  gridDim.x = launch->grid[0];
  blockDim.x = threads;
  for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++)
    kernel(*(const ARGUMENTS *)launch->arguments);
  return 0;
}

static unsigned threads_of(int kernel) {
  return kernel <= TARN__CUDA_KERNEL_gather_16 ? TARN__CUDA_GATHER_THREADS
                                               : TARN__CUDA_SCATTER_THREADS;
}

#define RUN(name)                                                          \
  static unsigned run_##name(const tarn_standin_launch *launch) {          \
    return run(launch, threads_of(TARN__CUDA_KERNEL_##name), tarn_##name); \
  }                                                                        \
  static unsigned run_##name##_many(const tarn_standin_launch *launch) {   \
    return run(launch, threads_of(TARN__CUDA_KERNEL_##name),               \
               tarn_##name##_many);                                        \
  }

TARN__CUDA_KERNELS(RUN)

#define ENTRIES(name)                             \
  {"tarn_" #name, sizeof(rows_args), run_##name}, \
      {"tarn_" #name "_many", sizeof(rows_many), run_##name##_many},

extern "C" {
TARN_STANDIN_API extern const tarn_standin_kernel tarn_standin_kernels[];
const tarn_standin_kernel tarn_standin_kernels[] = {
    TARN__CUDA_KERNELS(ENTRIES){}};
}
