// Convolution, image by image, as products of matrices; the columns of one
// image are in |work|.
//
//   forward   y       = w  * columns
//   backward  dw      = dy * columns'   summed over images
//             columns = w' * dy         the gradient, in place of the columns,
//             dx      = ... returned to the pixels that they came from
#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "columns.h"
#include "gemm.h"
#include "layers.h"
#include "sums.h"

size_t net_conv_work(const net_conv *layer) {
  return net_taps(layer) * net_pixels_out(layer);
}

static net_matrix weights(const net_conv *layer, const net_real *w,
                          bool turned) {
  return (net_matrix){w, layer->out, net_taps(layer), turned};
}

static net_matrix columns(const net_conv *layer, const net_real *work,
                          bool turned) {
  return (net_matrix){work, net_taps(layer), net_pixels_out(layer), turned};
}

// --- forward ---------------------------------------------------------------

// The bias goes where the product is added to.
static void spread_bias(size_t channels, size_t pixels, const net_real *b,
                        net_real *y) {
  for (size_t channel = 0; channel < channels; channel++)
    for (size_t i = 0; i < pixels; i++)
      y[channel * pixels + i] = b[channel];
}

void net_conv_forward(const net_conv *layer, const net_real *x,
                      const net_real *w, const net_real *b, net_real *y,
                      net_real *work) {
  assert(layer->kernel % 2 == 1 && layer->stride > 0);
  size_t pixels = net_pixels_out(layer);
  for (size_t image = 0; image < layer->batch; image++) {
    net_columns_take(layer, x, work);
    spread_bias(layer->out, pixels, b, y);
    net_gemm(weights(layer, w, false), columns(layer, work, false), NET_ADD, y);
    x += layer->in * net_pixels_in(layer);
    y += layer->out * pixels;
  }
}

// --- backward --------------------------------------------------------------

static void add_sums(size_t channels, size_t pixels, const net_real *dy,
                     net_real *db) {
  for (size_t channel = 0; channel < channels; channel++)
    db[channel] += (net_real)net_sum(pixels, dy + channel * pixels);
}

static void image_slope(const net_conv *layer, const net_real *w,
                        net_matrix slope, net_write write, net_real *dx,
                        net_real *work) {
  if (write == NET_SET)
    memset(dx, 0, layer->in * net_pixels_in(layer) * sizeof *dx);
  net_gemm(weights(layer, w, true), slope, NET_SET, work);
  net_columns_return(layer, work, dx);
}

void net_conv_backward(const net_conv *layer, const net_real *x,
                       const net_real *w, const net_real *dy, net_real *dx,
                       net_write write, net_real *dw, net_real *db,
                       net_real *work) {
  assert(layer->kernel % 2 == 1 && layer->stride > 0);
  size_t pixels = net_pixels_out(layer);
  size_t size = layer->in * net_pixels_in(layer);
  memset(db, 0, layer->out * sizeof *db);
  for (size_t image = 0; image < layer->batch; image++) {
    net_matrix slope = {dy, layer->out, pixels, false};
    net_columns_take(layer, x + image * size, work);
    net_gemm(slope, columns(layer, work, true), image == 0 ? NET_SET : NET_ADD,
             dw);
    add_sums(layer->out, pixels, dy, db);
    if (dx != NULL)
      image_slope(layer, w, slope, write, dx + image * size, work);
    dy += layer->out * pixels;
  }
}
