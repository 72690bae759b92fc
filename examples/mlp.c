// mlp - a perceptron of 784-4096-4096-10 that learns waves under noise, with
// all of its memory in a tarn_model.
#include <stdio.h>

#include "nets/program.h"

static void describe(net *n, const net_options *options) {
  char name[NET_NAME_SIZE];
  tarn_tensor *x = net_feed(n, (int64_t[]){784}, 1);
  for (size_t i = 0; i < options->hidden_count; i++) {
    snprintf(name, sizeof name, "fc%zu", i + 1);
    x = net_then_linear(n, name, x, options->hidden[i]);
    snprintf(name, sizeof name, "relu%zu", i + 1);
    x = net_then_relu(n, name, x);
  }
  net_then_loss(n, net_then_linear(n, "scores", x, NET_CLASSES));
}

int main(int argc, char **argv) {
  static const net_example mlp = {
      .name = "mlp",
      .images = {.channels = 1, .height = 28, .width = 28},
      .describe = describe,
      .sgd = {.rate = 0.02, .momentum = 0.9, .decay = 1e-4},
      .defaults = {.batch = 256,
                   .steps = 60,
                   .hidden = {4096, 4096},
                   .hidden_count = 2,
                   .device = "cpu:0"},
  };
  return net_program(&mlp, argc, argv);
}
