// The linear layer: three products of matrices, and the bias.
#include <string.h>

#include "gemm.h"
#include "layers.h"

// The bias goes where the product is added to: no second pass over y.
void net_linear_forward(const net_linear *layer, const net_real *x,
                        const net_real *w, const net_real *b, net_real *y) {
  for (size_t row = 0; row < layer->batch; row++)
    memcpy(y + row * layer->outputs, b, layer->outputs * sizeof *b);
  net_gemm((net_matrix){x, layer->batch, layer->inputs, false},
           (net_matrix){w, layer->inputs, layer->outputs, false}, NET_ADD, y);
}

static void sum_rows(size_t rows, size_t columns, const net_real *from,
                     net_real *sum) {
  memcpy(sum, from, columns * sizeof *sum);
  for (size_t row = 1; row < rows; row++)
    for (size_t i = 0; i < columns; i++)
      sum[i] += from[row * columns + i];
}

void net_linear_backward(const net_linear *layer, const net_real *x,
                         const net_real *w, const net_real *dy, net_real *dx,
                         net_real *dw, net_real *db) {
  net_matrix slope = {dy, layer->batch, layer->outputs, false};
  net_gemm((net_matrix){x, layer->batch, layer->inputs, true}, slope, NET_SET,
           dw);
  sum_rows(layer->batch, layer->outputs, dy, db);
  if (dx == NULL) return;
  net_gemm(slope, (net_matrix){w, layer->inputs, layer->outputs, true}, NET_SET,
           dx);
}
