// layers.h - the layers that examples/mlp and examples/resnet are made of.
//
// Not part of Tarn: these are functions on memory that the caller gives, and
// all that they need is an argument, so that every byte of a net can come from
// a plan. They keep nothing between calls and allocate nothing.
//
//   forward    y from x            backward    dx, dw, db from dy
//
// dx is the gradient of the loss by x, and so on; backward writes all of dw
// and db, whatever was there. Arrays are dense, the last index runs fastest:
// matrices [row, column], images [image, channel, row, column]. They do not
// overlap except where a function says so.
//
// Shapes are the caller's business: sizes are not zero, fit an int, and are
// asserted, not answered.
// Threads: any, on different outputs. Cost: the arithmetic, once over memory.
#ifndef TARN_EXAMPLES_NETS_LAYERS_H_
#define TARN_EXAMPLES_NETS_LAYERS_H_

#include <stddef.h>
#include <stdint.h>

#include "real.h"

// What becomes of the values that an output held.
typedef enum net_write {
  NET_SET,  // replaced
  NET_ADD,  // added to: a gradient that comes from two layers
} net_write;

// --- linear ----------------------------------------------------------------

// y [batch, outputs] = x [batch, inputs] * w [inputs, outputs] + b [outputs]
typedef struct net_linear {
  size_t batch;
  size_t inputs;
  size_t outputs;
} net_linear;

void net_linear_forward(const net_linear *layer, const net_real *x,
                        const net_real *w, const net_real *b, net_real *y);

// |dx| NULL: not wanted, which saves a third of the work.
void net_linear_backward(const net_linear *layer, const net_real *x,
                         const net_real *w, const net_real *dy, net_real *dx,
                         net_real *dw, net_real *db);

// --- convolution -----------------------------------------------------------

// y [batch, out, net_conv_size(height), net_conv_size(width)] =
//     x [batch, in, height, width] (*) w [out, in, kernel, kernel] + b [out]
//
// The border is padded with (kernel - 1) / 2 zeros. Works image by image: a
// product of matrices needs the columns of one image only.
typedef struct net_conv {
  size_t batch;
  size_t in;   // channels
  size_t out;  // channels
  size_t height;
  size_t width;
  size_t kernel;  // odd
  size_t stride;
} net_conv;

// What is left of |size| rows or columns.
static inline size_t net_conv_size(const net_conv *layer, size_t size) {
  return (size - 1) / layer->stride + 1;
}

// Elements of |work| that both directions need; what is in it does not matter.
size_t net_conv_work(const net_conv *layer);

void net_conv_forward(const net_conv *layer, const net_real *x,
                      const net_real *w, const net_real *b, net_real *y,
                      net_real *work);

// |dx| NULL: not wanted. |write| says what becomes of the values in dx.
void net_conv_backward(const net_conv *layer, const net_real *x,
                       const net_real *w, const net_real *dy, net_real *dx,
                       net_write write, net_real *dw, net_real *db,
                       net_real *work);

// --- element by element ----------------------------------------------------

// y = max(x, 0); |y| may be |x|.
void net_relu_forward(size_t count, const net_real *x, net_real *y);

// Reads the layer's output |y|, so that x need not be kept. |dx| may be |dy|.
void net_relu_backward(size_t count, const net_real *y, const net_real *dy,
                       net_real *dx);

// The same where y is not kept either, but one bit for each element of it.
static inline size_t net_mask_bytes(size_t count) {
  return count / 8 + (count % 8 != 0);
}

void net_relu_mask_forward(size_t count, const net_real *x, net_real *y,
                           uint8_t *mask);
void net_relu_mask_backward(size_t count, const uint8_t *mask,
                            const net_real *dy, net_real *dx);

// y = a + b; |y| may be |a|. Backward is no work: da = db = dy.
void net_add(size_t count, const net_real *a, const net_real *b, net_real *y);

// --- the mean of each channel ----------------------------------------------

// y [count] = the means of x [count, area]; for images count is batch times
// channels, and area height times width.
void net_mean_forward(size_t count, size_t area, const net_real *x,
                      net_real *y);
void net_mean_backward(size_t count, size_t area, const net_real *dy,
                       net_real *dx);

// --- loss ------------------------------------------------------------------

typedef struct net_score {
  double loss;     // mean over the batch
  size_t correct;  // how often the label has the highest score
} net_score;

// Softmax and cross-entropy of scores [batch, classes] against labels [batch],
// each less than |classes|. |dscores| may be |scores|; NULL: not wanted.
net_score net_softmax_loss(size_t batch, size_t classes, const net_real *scores,
                           const int32_t *labels, net_real *dscores);

// --- learning --------------------------------------------------------------

// The loss is softmax's plus decay / 2 times the sum of the squares of all
// weights, and what is descended is the gradient of that sum.
typedef struct net_sgd {
  double rate;
  double momentum;
  double decay;  // 0 for biases, as is the custom
} net_sgd;

// v = momentum * v + dw + decay * w, then w = w - rate * v. |v| starts as
// zeros. Returns the decay's part of the loss, of |w| as it was: computed in
// passing, when memory is read anyway.
double net_sgd_step(const net_sgd *sgd, size_t count, net_real *w,
                    const net_real *dw, net_real *v);

// That part alone.
double net_decay_loss(double decay, size_t count, const net_real *w);

#endif  // TARN_EXAMPLES_NETS_LAYERS_H_
