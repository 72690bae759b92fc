// Images to columns and back, one tap of the kernel at a time.
//
// Where the stride is 1, all that a tap sees is the channel, shifted: one copy
// for all rows, in which the ends of rows are then wrong, having come around
// from the next row, and are cleared. At any other stride it goes row by row.
//
//      channel      tap at the left     shifted by 1, copied and cleared
//       a b c           . a b                  [.]a b
//       d e f           . d e               c->[.]d e
//       g h i           . g h               f->[.]g h
#include "columns.h"

#include <string.h>

// The outputs [first, last) along one axis for which a tap lies inside the
// image; the others see the padding.
typedef struct reach {
  size_t first;
  size_t last;
} reach;

// One tap of one layer: where it is in the kernel, and what it reaches.
typedef struct net_tap {
  const net_conv *layer;
  size_t height;  // of the output
  size_t width;
  size_t down;  // in the kernel
  size_t right;
  reach rows;
  reach columns;
} net_tap;

// |size| pixels, the tap at |offset| of the kernel's extent along that axis.
static reach reach_of(const net_conv *layer, size_t size, size_t offset) {
  size_t pad = layer->kernel / 2;
  size_t count = net_conv_size(layer, size);
  reach inside = {.first = 0, .last = 0};
  if (offset < pad)
    inside.first = (pad - offset + layer->stride - 1) / layer->stride;
  if (size + pad > offset)
    inside.last = (size + pad - offset - 1) / layer->stride + 1;
  if (inside.last > count) inside.last = count;
  if (inside.first > inside.last) inside.first = inside.last;
  return inside;
}

static net_tap tap_at(const net_conv *layer, size_t down, size_t right) {
  return (net_tap){.layer = layer,
                   .height = net_conv_size(layer, layer->height),
                   .width = net_conv_size(layer, layer->width),
                   .down = down,
                   .right = right,
                   .rows = reach_of(layer, layer->height, down),
                   .columns = reach_of(layer, layer->width, right)};
}

// Where output |at| of an axis finds the tap at |offset|; inside only.
static size_t source_of(const net_conv *layer, size_t at, size_t offset) {
  return at * layer->stride + offset - layer->kernel / 2;
}

// Zeros where the tap sees padding.
static void clear_padding(const net_tap *tap, net_real *out) {
  size_t first = tap->rows.first * tap->width;
  size_t last = tap->rows.last * tap->width;
  memset(out, 0, first * sizeof *out);
  memset(out + last, 0, (tap->height * tap->width - last) * sizeof *out);
  for (size_t x = 0; x < tap->columns.first; x++)
    for (size_t i = first + x; i < last; i += tap->width)
      out[i] = 0;
  for (size_t x = tap->columns.last; x < tap->width; x++)
    for (size_t i = first + x; i < last; i += tap->width)
      out[i] = 0;
}

// --- stride 1: shifted -----------------------------------------------------

// What is copied: |count| elements from |in| of the channel to |out|.
typedef struct shifted {
  size_t in;
  size_t out;
  size_t count;
} shifted;

// From the first output that the tap reaches to the last.
static shifted shifted_by(const net_tap *tap) {
  const net_conv *layer = tap->layer;
  shifted shift = {.in = 0, .out = 0, .count = 0};
  if (tap->rows.first == tap->rows.last ||
      tap->columns.first == tap->columns.last)
    return shift;
  shift.in = source_of(layer, tap->rows.first, tap->down) * layer->width +
             source_of(layer, tap->columns.first, tap->right);
  shift.out = tap->rows.first * tap->width + tap->columns.first;
  shift.count =
      (tap->rows.last - 1) * tap->width + tap->columns.last - shift.out;
  return shift;
}

static void take_shifted(const net_tap *tap, const net_real *channel,
                         net_real *out) {
  shifted shift = shifted_by(tap);
  memcpy(out + shift.out, channel + shift.in, shift.count * sizeof *out);
  clear_padding(tap, out);
}

static void return_shifted(const net_tap *tap, net_real *out,
                           net_real *channel) {
  shifted shift = shifted_by(tap);
  clear_padding(tap, out);
  for (size_t i = 0; i < shift.count; i++)
    channel[shift.in + i] += out[shift.out + i];
}

// --- any stride: row by row ------------------------------------------------

// The element of the channel at the tap's first output of row |y|.
static size_t row_start(const net_tap *tap, size_t y) {
  const net_conv *layer = tap->layer;
  return source_of(layer, y, tap->down) * layer->width +
         source_of(layer, tap->columns.first, tap->right);
}

static void take_rows(const net_tap *tap, const net_real *channel,
                      net_real *out) {
  size_t stride = tap->layer->stride;
  size_t count = tap->columns.last - tap->columns.first;
  clear_padding(tap, out);
  for (size_t y = tap->rows.first; y < tap->rows.last && count > 0; y++) {
    const net_real *from = channel + row_start(tap, y);
    net_real *to = out + y * tap->width + tap->columns.first;
    for (size_t i = 0; i < count; i++)
      to[i] = from[i * stride];
  }
}

static void return_rows(const net_tap *tap, net_real *out, net_real *channel) {
  size_t stride = tap->layer->stride;
  size_t count = tap->columns.last - tap->columns.first;
  clear_padding(tap, out);
  for (size_t y = tap->rows.first; y < tap->rows.last && count > 0; y++) {
    const net_real *from = out + y * tap->width + tap->columns.first;
    net_real *to = channel + row_start(tap, y);
    for (size_t i = 0; i < count; i++)
      to[i * stride] += from[i];
  }
}

// --- all taps --------------------------------------------------------------

void net_columns_take(const net_conv *layer, const net_real *image,
                      net_real *columns) {
  for (size_t i = 0; i < net_taps(layer); i++) {
    size_t place = i % (layer->kernel * layer->kernel);
    const net_real *channel =
        image + i / (layer->kernel * layer->kernel) * net_pixels_in(layer);
    net_tap tap = tap_at(layer, place / layer->kernel, place % layer->kernel);
    net_real *out = columns + i * net_pixels_out(layer);
    if (layer->stride == 1)
      take_shifted(&tap, channel, out);
    else
      take_rows(&tap, channel, out);
  }
}

void net_columns_return(const net_conv *layer, net_real *columns,
                        net_real *image) {
  for (size_t i = 0; i < net_taps(layer); i++) {
    size_t place = i % (layer->kernel * layer->kernel);
    net_real *channel =
        image + i / (layer->kernel * layer->kernel) * net_pixels_in(layer);
    net_tap tap = tap_at(layer, place / layer->kernel, place % layer->kernel);
    net_real *out = columns + i * net_pixels_out(layer);
    if (layer->stride == 1)
      return_shifted(&tap, out, channel);
    else
      return_rows(&tap, out, channel);
  }
}
