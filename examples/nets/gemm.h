// gemm.h - products of matrices, by OpenBLAS on one thread.
#ifndef TARN_EXAMPLES_NETS_GEMM_H_
#define TARN_EXAMPLES_NETS_GEMM_H_

#include <stdbool.h>
#include <stddef.h>

#include "layers.h"

// A matrix [rows, columns] in memory, which the product takes as it is or
// |turned|, rows for columns.
typedef struct net_matrix {
  const net_real *at;
  size_t rows;
  size_t columns;
  bool turned;
} net_matrix;

// out = a * b, or out = out + a * b. All dense; |out| overlaps neither.
void net_gemm(net_matrix a, net_matrix b, net_write write, net_real *out);

// One thread for every product from here on: what a program that measures
// calls first. (OpenBLAS has as many as there are cores otherwise.)
void net_blas_one_thread(void);

#endif  // TARN_EXAMPLES_NETS_GEMM_H_
