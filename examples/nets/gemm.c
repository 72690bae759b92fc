// The one file that knows OpenBLAS.
#include "gemm.h"

#include <assert.h>
#include <cblas.h>
#include <limits.h>

#ifdef NET_F64
#define BLAS_GEMM cblas_dgemm
#else
#define BLAS_GEMM cblas_sgemm
#endif

static blasint blas_size(size_t size) {
  assert(size > 0 && size <= INT_MAX);
  return (blasint)size;
}

static CBLAS_TRANSPOSE transposition(net_matrix matrix) {
  return matrix.turned ? CblasTrans : CblasNoTrans;
}

void net_gemm(net_matrix a, net_matrix b, net_write write, net_real *out) {
  size_t rows = a.turned ? a.columns : a.rows;
  size_t inner = a.turned ? a.rows : a.columns;
  size_t columns = b.turned ? b.rows : b.columns;
  assert(inner == (b.turned ? b.columns : b.rows));
  BLAS_GEMM(CblasRowMajor, transposition(a), transposition(b), blas_size(rows),
            blas_size(columns), blas_size(inner), 1, a.at, blas_size(a.columns),
            b.at, blas_size(b.columns), write == NET_ADD ? 1 : 0, out,
            blas_size(columns));
}

void net_blas_one_thread(void) {
  openblas_set_num_threads(1);
}
