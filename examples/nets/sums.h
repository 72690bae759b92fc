// sums.h - long sums, private to the layers.
//
// They run in STRANDS at once, which a compiler may keep in one vector. (In
// one strand each addition waits for the last, and floating point may not be
// reordered.)
#ifndef TARN_EXAMPLES_NETS_SUMS_H_
#define TARN_EXAMPLES_NETS_SUMS_H_

#include <stddef.h>

#include "real.h"

enum { STRANDS = 16 };

typedef struct net_strands {
  net_real at[STRANDS];
} net_strands;

static inline double net_strands_sum(const net_strands *strands) {
  double sum = 0;
  for (size_t i = 0; i < STRANDS; i++)
    sum += (double)strands->at[i];
  return sum;
}

static inline double net_sum(size_t count, const net_real *values) {
  net_strands strands = {{0}};
  size_t whole = count - count % STRANDS;
  for (size_t i = 0; i < whole; i += STRANDS)
    for (size_t lane = 0; lane < STRANDS; lane++)
      strands.at[lane] += values[i + lane];
  for (size_t i = whole; i < count; i++)
    strands.at[i - whole] += values[i];
  return net_strands_sum(&strands);
}

#endif  // TARN_EXAMPLES_NETS_SUMS_H_
