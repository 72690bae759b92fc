// table_torch.h - one step of PyTorch's optimizers for sparse gradients, by one
// thread, in a Python of its own.
#ifndef TARN_BENCH_TABLE_TORCH_H_
#define TARN_BENCH_TABLE_TORCH_H_

#include <stdbool.h>
#include <stddef.h>

typedef struct table_torch table_torch;

// TARN_BENCH_PYTHON of the environment names the Python. NULL: |why|,
// TABLE_TEXT_SIZE bytes, says why there is none.
table_torch *table_torch_start(char *why);

typedef struct table_torch_job {
  const char *optimizer;  // "sgd", "adagrad", "adam"
  size_t rows;            // of the table
  size_t width;           // floats of a row
  size_t count;           // rows of the gradient, at random
} table_torch_job;

// Time of a step with coalescing, after one that does not count, whenever the
// job is another one than the last.
bool table_torch_step(table_torch *t, const table_torch_job *job,
                      double *out_ns, char *why);

// NULL is allowed.
void table_torch_stop(table_torch *t);

#endif  // TARN_BENCH_TABLE_TORCH_H_
