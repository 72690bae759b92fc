// rows_args.h - what rows.c tells the kernels of rows.cu, and what they tell
// queue.c. No struct has gaps.
#ifndef TARN_PLUGINS_CUDA_ROWS_ARGS_H_
#define TARN_PLUGINS_CUDA_ROWS_ARGS_H_

#include <stdint.h>

// The first row that a call found to be wrong, of the first such call of a
// stream since the host has looked. Zero-filled: none.
typedef struct tarn__cuda_fault {
  uint64_t serial;    // of the call, above 0; written last
  uint64_t position;  // of the index, of all of the call
  int64_t index;
  uint64_t count;  // rows of the table
} tarn__cuda_fault;

#endif  // TARN_PLUGINS_CUDA_ROWS_ARGS_H_
