// Stochastic gradient descent with momentum and weight decay.
//
// A step is one pass over weights, gradients and velocities, bound by memory;
// what the decay adds to the loss is summed on the way, in double from BLOCK
// to BLOCK, so that many small squares are not lost.
#include "layers.h"
#include "sums.h"

enum { BLOCK = 4096 };

static size_t block_at(size_t start, size_t count) {
  return count - start < BLOCK ? count - start : BLOCK;
}

// --- a step ----------------------------------------------------------------

// net_sgd in the type of the weights.
typedef struct factors {
  net_real rate;
  net_real momentum;
  net_real decay;
} factors;

// Returns the square of the weight as it was.
static inline net_real descend(factors by, net_real *w, net_real dw,
                               net_real *v) {
  net_real before = *w;
  net_real speed = by.momentum * *v + (dw + by.decay * before);
  *v = speed;
  *w = before - by.rate * speed;
  return before * before;
}

// At most BLOCK elements; returns the sum of the squares.
static double step_block(factors by, size_t count, net_real *restrict w,
                         const net_real *restrict dw, net_real *restrict v) {
  net_strands squares = {{0}};
  size_t whole = count - count % STRANDS;
  for (size_t i = 0; i < whole; i += STRANDS)
    for (size_t j = 0; j < STRANDS; j++)
      squares.at[j] += descend(by, &w[i + j], dw[i + j], &v[i + j]);
  for (size_t i = whole; i < count; i++)
    squares.at[i - whole] += descend(by, &w[i], dw[i], &v[i]);
  return net_strands_sum(&squares);
}

double net_sgd_step(const net_sgd *sgd, size_t count, net_real *w,
                    const net_real *dw, net_real *v) {
  factors by = {.rate = (net_real)sgd->rate,
                .momentum = (net_real)sgd->momentum,
                .decay = (net_real)sgd->decay};
  double squares = 0;
  for (size_t i = 0; i < count; i += BLOCK)
    squares += step_block(by, block_at(i, count), w + i, dw + i, v + i);
  return sgd->decay / 2 * squares;
}

// --- the loss alone --------------------------------------------------------

static double square_block(size_t count, const net_real *w) {
  net_strands squares = {{0}};
  size_t whole = count - count % STRANDS;
  for (size_t i = 0; i < whole; i += STRANDS)
    for (size_t j = 0; j < STRANDS; j++)
      squares.at[j] += w[i + j] * w[i + j];
  for (size_t i = whole; i < count; i++)
    squares.at[i - whole] += w[i] * w[i];
  return net_strands_sum(&squares);
}

double net_decay_loss(double decay, size_t count, const net_real *w) {
  double squares = 0;
  for (size_t i = 0; i < count; i += BLOCK)
    squares += square_block(block_at(i, count), w + i);
  return decay / 2 * squares;
}
