// rows_plan.h - which kernels a call of rows needs, and what they are told.
#ifndef TARN_PLUGINS_CUDA_ROWS_PLAN_H_
#define TARN_PLUGINS_CUDA_ROWS_PLAN_H_

#include <stdbool.h>

#include "base/rows.h"
#include "rows_args.h"

typedef struct tarn__cuda_launch {
  unsigned kernel;  // its number in TARN__CUDA_KERNELS
  bool many;        // the one for several chunks
  unsigned blocks;
  unsigned threads;  // of a block
  void *arguments;   // of the kernel
} tarn__cuda_launch;

// Queues a kernel. What is not 0 is an error, and ends the plan.
typedef unsigned tarn__cuda_launcher(void *context,
                                     const tarn__cuda_launch *launch);

// The kernels of |rows|, which were checked, one after the other, for a device
// of |units| multiprocessors. They note a bad row at |fault|, as one of the
// call |serial|. Returns the first error.
unsigned tarn__cuda_rows_plan(tarn__rows_action action, const tarn_rows *rows,
                              size_t units, uint64_t fault, uint64_t serial,
                              tarn__cuda_launcher *launch, void *context);

#endif  // TARN_PLUGINS_CUDA_ROWS_PLAN_H_
