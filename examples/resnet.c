// resnet - a residual net of 14 layers without normalisation that learns waves
// under noise, with all of its memory in a tarn_model.
//
//   3x3 conv to 16, ReLU
//   stages of 16, 32 and 64 channels, of two blocks each:
//
//       x ─┬─ 3x3 conv ─ ReLU ─ 3x3 conv ─ add ─ ReLU ─
//          └───────── as it is, or 1x1 ─────┘
//
//   the mean of each channel, linear to 10
#include <stdio.h>

#include "nets/program.h"

// "<block>.<layer>", until the next call.
static const char *named(const char *block, const char *layer) {
  static char name[NET_NAME_SIZE];
  snprintf(name, sizeof name, "%s.%s", block, layer);
  return name;
}

static net_conv conv(size_t out, size_t kernel, size_t stride) {
  return (net_conv){.out = out, .kernel = kernel, .stride = stride};
}

// A branch starts as nothing, since its last layer starts as zeros: what keeps
// the net in bounds where nothing is normalised.
static tarn_tensor *block(net *n, const char *name, tarn_tensor *x, size_t out,
                          size_t stride) {
  static const double with_half = 0.7071067811865476;
  tarn_tensor *past = x;
  if (stride != 1)
    past = net_then_conv(n, named(name, "shortcut"), x, conv(out, 1, stride),
                         with_half);
  tarn_tensor *y =
      net_then_conv(n, named(name, "conv1"), x, conv(out, 3, stride), 1);
  y = net_then_relu(n, named(name, "relu1"), y);
  y = net_then_conv(n, named(name, "conv2"), y, conv(out, 3, 1), 0);
  y = net_then_add(n, named(name, "add"), y, past);
  return net_then_relu(n, named(name, "relu2"), y);
}

static tarn_tensor *stage(net *n, size_t index, tarn_tensor *x) {
  char name[NET_NAME_SIZE];
  size_t channels = (size_t)16 << index;
  snprintf(name, sizeof name, "stage%zu.block1", index + 1);
  x = block(n, name, x, channels, index == 0 ? 1 : 2);
  snprintf(name, sizeof name, "stage%zu.block2", index + 1);
  return block(n, name, x, channels, 1);
}

static void describe(net *n, const net_options *options) {
  (void)options;
  tarn_tensor *x = net_feed(n, (int64_t[]){3, 32, 32}, 3);
  x = net_then_relu(n, "relu", net_then_conv(n, "conv", x, conv(16, 3, 1), 1));
  for (size_t i = 0; i < 3; i++)
    x = stage(n, i, x);
  x = net_then_mean(n, "mean", x);
  net_then_loss(n, net_then_linear(n, "scores", x, NET_CLASSES));
}

int main(int argc, char **argv) {
  static const net_example resnet = {
      .name = "resnet",
      .images = {.channels = 3, .height = 32, .width = 32},
      .describe = describe,
      .sgd = {.rate = 0.01, .momentum = 0.9, .decay = 1e-4},
      .defaults = {.batch = 128, .steps = 80, .device = "cpu:0"},
  };
  return net_program(&resnet, argc, argv);
}
