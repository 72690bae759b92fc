// table_torch.h - one step of PyTorch's optimizers for sparse gradients, by one
// thread, in a Python of its own.
#ifndef TARN_BENCH_TABLE_TORCH_H_
#define TARN_BENCH_TABLE_TORCH_H_

#include <stddef.h>

#include "talk.h"

// Starts it; talk_stop ends it. NULL: |why|, TABLE_TEXT_SIZE bytes, says why
// there is none.
talk *table_torch_start(char *why);

typedef struct table_torch_job {
  const char *optimizer;  // "sgd", "adagrad", "adam"
  size_t rows;            // of the table
  size_t width;           // floats of a row
  size_t count;           // rows of the gradient, at random
} table_torch_job;

// Time of a step with coalescing, after one that does not count, whenever the
// job is another one than the last.
bool table_torch_step(talk *torch, const table_torch_job *job, double *out_ns,
                      char *why);

#endif  // TARN_BENCH_TABLE_TORCH_H_
