// ResNet-50, version 1.5 (the 3 x 3 convolution of a block has its stride), on
// images of 224 x 224: 53 convolutions, 25,557,032 parameters.
#include "trace/workload.h"

enum { SIDE = 224, COLOURS = 3, CLASSES = 1000, STEM = 64, EXPANSION = 4 };

static const struct stage {
  size_t blocks;
  size_t width;  // channels within a block; it ends in EXPANSION as many
  size_t stride;
} stages[] = {{3, 64, 1}, {4, 128, 2}, {6, 256, 2}, {3, 512, 2}};
enum { STAGES = sizeof stages / sizeof *stages };

static tarn__trace_image conv_norm(tarn__trace_tape *tape, const char *conv,
                                   const char *norm, tarn__trace_image x,
                                   size_t channels, size_t kernel,
                                   size_t stride) {
  tarn__trace_image y =
      tarn__layer_conv(tape, conv, x, channels, kernel, stride);
  y.tensor = tarn__layer_norm(tape, norm, y.tensor, y.channels, y.channels);
  return y;
}

// 1 x 1 to |width|, 3 x 3, 1 x 1 to four times that, plus the way around, which
// has a 1 x 1 of its own where the shape changes.
static tarn__trace_image bottleneck(tarn__trace_tape *tape, tarn__trace_image x,
                                    size_t width, size_t stride) {
  size_t wide = tarn__elements(width, EXPANSION, 1, 1);
  tarn__trace_image around = x;
  tarn__trace_image y = conv_norm(tape, "conv1", "bn1", x, width, 1, 1);
  y.tensor = tarn__layer_unary(tape, TARN__LAYER_RELU, "relu1", y.tensor);
  y = conv_norm(tape, "conv2", "bn2", y, width, 3, stride);
  y.tensor = tarn__layer_unary(tape, TARN__LAYER_RELU, "relu2", y.tensor);
  y = conv_norm(tape, "conv3", "bn3", y, wide, 1, 1);
  if (stride != 1 || x.channels != wide) {
    around =
        conv_norm(tape, "downsample.0", "downsample.1", x, wide, 1, stride);
  }
  y.tensor = tarn__layer_binary(tape, TARN__LAYER_ADD, "add", y.tensor,
                                around.tensor, y.tensor.count);
  y.tensor = tarn__layer_unary(tape, TARN__LAYER_RELU, "relu3", y.tensor);
  return y;
}

static tarn__trace_image stem(tarn__trace_tape *tape, size_t batch) {
  size_t count = tarn__elements(batch, COLOURS, SIDE, SIDE);
  tarn__trace_image x = {.batch = batch, .channels = COLOURS, .side = SIDE};
  x.tensor = tarn__tape_input(tape, "images", count, sizeof(float));
  x = conv_norm(tape, "conv1", "bn1", x, STEM, 7, 2);
  x.tensor = tarn__layer_unary(tape, TARN__LAYER_RELU, "relu", x.tensor);
  return tarn__layer_max_pool(tape, "maxpool", x, 2);
}

tarn__trace_tape_tensor tarn__net_resnet50(tarn__trace_tape *tape,
                                           size_t batch) {
  tarn__trace_tape_tensor labels =
      tarn__tape_input(tape, "labels", batch, sizeof(int64_t));
  tarn__trace_image x = stem(tape, batch);
  for (size_t s = 0; s < STAGES; s++) {
    for (size_t b = 0; b < stages[s].blocks; b++) {
      tarn__tape_scope(tape, "layer%zu.%zu", s + 1, b);
      x = bottleneck(tape, x, stages[s].width, b == 0 ? stages[s].stride : 1);
    }
  }
  tarn__tape_scope(tape, "%s", "");
  tarn__trace_tape_tensor features = tarn__layer_binary(
      tape, TARN__LAYER_MAP, "avgpool", x.tensor, (tarn__trace_tape_tensor){0},
      tarn__elements(batch, x.channels, 1, 1));
  tarn__trace_tape_tensor logits =
      tarn__layer_linear(tape, "fc", features, x.channels, CLASSES);
  return tarn__layer_loss(tape, "loss", logits, labels);
}
