// The mean over each channel's pixels, and the sum of two branches.
#include "layers.h"
#include "sums.h"

void net_add(size_t count, const net_real *a, const net_real *b, net_real *y) {
  for (size_t i = 0; i < count; i++)
    y[i] = a[i] + b[i];
}

void net_mean_forward(size_t count, size_t area, const net_real *x,
                      net_real *y) {
  for (size_t row = 0; row < count; row++)
    y[row] = (net_real)(net_sum(area, x + row * area) / (double)area);
}

void net_mean_backward(size_t count, size_t area, const net_real *dy,
                       net_real *dx) {
  for (size_t row = 0; row < count; row++)
    for (size_t i = 0; i < area; i++)
      dx[row * area + i] = dy[row] / (net_real)area;
}
