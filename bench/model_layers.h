// model_layers.h - the vocabulary in which nets are described: a call for each
// layer, which adds its parameters, its output, and its step.
//
// The first failure stays in |status|, and later calls do nothing, so that a
// net can be written down as one writes it on paper.
#ifndef TARN_BENCH_MODEL_LAYERS_H_
#define TARN_BENCH_MODEL_LAYERS_H_

#include "tarn/tarn.h"

typedef struct net {
  tarn_model *model;
  tarn_status status;
  unsigned layers;  // so far, for their names
} net;

#define NET_MOST_DIMS 8

// A fed tensor: the batch and |rank| more dimensions.
tarn_tensor *net_feed(net *n, const int64_t *dims, size_t rank);

// y = x W + b over the last dimension of |x|.
tarn_tensor *net_linear(net *n, tarn_tensor *x, int64_t features);

// A square kernel of |side|, with |padding|; |bias| says if it has one.
tarn_tensor *net_conv(net *n, tarn_tensor *x, int64_t channels, int64_t side,
                      int64_t stride, int64_t padding, bool bias);

// A norm over dimension 1 of a picture, or the last: |features| scales and
// shifts.
tarn_tensor *net_norm(net *n, tarn_tensor *x, int64_t features);

tarn_tensor *net_relu(net *n, tarn_tensor *x);
tarn_tensor *net_gelu(net *n, tarn_tensor *x);
tarn_tensor *net_softmax(net *n, tarn_tensor *x);
tarn_tensor *net_dropout(net *n, tarn_tensor *x);
tarn_tensor *net_add(net *n, tarn_tensor *x, tarn_tensor *y);
tarn_tensor *net_max_pool(net *n, tarn_tensor *x, int64_t side, int64_t stride,
                          int64_t padding);

// The mean of each picture's channel.
tarn_tensor *net_mean(net *n, tarn_tensor *x);

// An output of |dims| that is computed of two others, both read backward: a
// product of matrices.
tarn_tensor *net_product(net *n, tarn_tensor *x, tarn_tensor *y,
                         const int64_t *dims, size_t rank);

// Reads |x| and gives it a gradient: the end of the net.
void net_loss(net *n, tarn_tensor *x);

#endif  // TARN_BENCH_MODEL_LAYERS_H_
