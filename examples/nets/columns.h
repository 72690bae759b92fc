// columns.h - an image as the matrix that turns a convolution into a product.
//
//   one column for each pixel of the output: what the kernel sees there,
//   channel by channel, row by row
//
//        [in * kernel * kernel, pixels of the output]
//
// A row of it is one tap of the kernel at all pixels.
#ifndef TARN_EXAMPLES_NETS_COLUMNS_H_
#define TARN_EXAMPLES_NETS_COLUMNS_H_

#include "layers.h"

static inline size_t net_pixels_in(const net_conv *layer) {
  return layer->height * layer->width;
}

static inline size_t net_pixels_out(const net_conv *layer) {
  return net_conv_size(layer, layer->height) *
         net_conv_size(layer, layer->width);
}

// Values that the kernel sees at once.
static inline size_t net_taps(const net_conv *layer) {
  return layer->in * layer->kernel * layer->kernel;
}

// Fills |columns| from one image.
void net_columns_take(const net_conv *layer, const net_real *image,
                      net_real *columns);

// Adds each of |columns| to where it was taken from: the way back for
// gradients. Leaves zeros in |columns| where the padding was seen.
void net_columns_return(const net_conv *layer, net_real *columns,
                        net_real *image);

#endif  // TARN_EXAMPLES_NETS_COLUMNS_H_
