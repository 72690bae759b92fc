// ReLU, with what its backward reads kept as the output or as bits. At zero
// the slope is zero.
#include "layers.h"

void net_relu_forward(size_t count, const net_real *x, net_real *y) {
  for (size_t i = 0; i < count; i++)
    y[i] = x[i] > 0 ? x[i] : 0;
}

void net_relu_backward(size_t count, const net_real *y, const net_real *dy,
                       net_real *dx) {
  for (size_t i = 0; i < count; i++) {
    net_real slope = dy[i];  // read in any case: then there is no branch
    dx[i] = y[i] > 0 ? slope : 0;
  }
}

// Bit i % 8 of byte i / 8 belongs to element i; bits beyond |count| are 0.
static size_t end_of_byte(size_t byte, size_t count) {
  return byte * 8 + 8 < count ? 8 : count - byte * 8;
}

void net_relu_mask_forward(size_t count, const net_real *x, net_real *y,
                           uint8_t *mask) {
  for (size_t byte = 0; byte < net_mask_bytes(count); byte++) {
    unsigned bits = 0;
    for (size_t bit = 0; bit < end_of_byte(byte, count); bit++)
      bits |= (unsigned)(x[byte * 8 + bit] > 0) << bit;
    mask[byte] = (uint8_t)bits;
  }
  net_relu_forward(count, x, y);
}

void net_relu_mask_backward(size_t count, const uint8_t *mask,
                            const net_real *dy, net_real *dx) {
  for (size_t byte = 0; byte < net_mask_bytes(count); byte++) {
    for (size_t bit = 0; bit < end_of_byte(byte, count); bit++) {
      size_t i = byte * 8 + bit;
      dx[i] = mask[byte] >> bit & 1 ? dy[i] : 0;
    }
  }
}
