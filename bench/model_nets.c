// The nets themselves.
#include "model_nets.h"

#include <string.h>

#include "model_layers.h"

// --- perceptrons -----------------------------------------------------------

static tarn_status describe_perceptron(tarn_model *model, size_t hidden,
                                       int64_t width) {
  net n = {.model = model};
  tarn_tensor *x = net_feed(&n, (int64_t[]){784}, 1);
  for (size_t i = 0; i < hidden; i++)
    x = net_relu(&n, net_linear(&n, x, width));
  net_loss(&n, net_linear(&n, x, 10));
  return n.status;
}

static tarn_status describe_mlp(tarn_model *model) {
  return describe_perceptron(model, 2, 4096);
}

static tarn_status describe_mlp_16(tarn_model *model) {
  return describe_perceptron(model, 16, 1024);
}

// --- residual nets ---------------------------------------------------------

static tarn_tensor *small_block(net *n, tarn_tensor *x, int64_t channels,
                                int64_t stride) {
  tarn_tensor *shortcut =
      stride == 1 ? x : net_conv(n, x, channels, 1, stride, 0, true);
  tarn_tensor *y = net_relu(n, net_conv(n, x, channels, 3, stride, 1, true));
  y = net_conv(n, y, channels, 3, 1, 1, true);
  return net_relu(n, net_add(n, y, shortcut));
}

static tarn_status describe_resnet_14(tarn_model *model) {
  net n = {.model = model};
  tarn_tensor *x = net_feed(&n, (int64_t[]){3, 32, 32}, 3);
  x = net_relu(&n, net_conv(&n, x, 16, 3, 1, 1, true));
  for (int64_t stage = 0; stage < 3; stage++) {
    int64_t channels = (int64_t)16 << stage;
    x = small_block(&n, x, channels, stage == 0 ? 1 : 2);
    x = small_block(&n, x, channels, 1);
  }
  net_loss(&n, net_linear(&n, net_mean(&n, x), 10));
  return n.status;
}

static tarn_tensor *conv_norm(net *n, tarn_tensor *x, int64_t channels,
                              int64_t side, int64_t stride) {
  x = net_conv(n, x, channels, side, stride, side / 2, false);
  return net_norm(n, x, channels);
}

static tarn_tensor *bottleneck(net *n, tarn_tensor *x, int64_t channels,
                               int64_t stride, bool first) {
  tarn_tensor *shortcut = first ? conv_norm(n, x, 4 * channels, 1, stride) : x;
  tarn_tensor *y = net_relu(n, conv_norm(n, x, channels, 1, 1));
  y = net_relu(n, conv_norm(n, y, channels, 3, stride));
  y = conv_norm(n, y, 4 * channels, 1, 1);
  return net_relu(n, net_add(n, y, shortcut));
}

static tarn_status describe_resnet_50(tarn_model *model) {
  static const int blocks[] = {3, 4, 6, 3};
  net n = {.model = model};
  tarn_tensor *x = net_feed(&n, (int64_t[]){3, 224, 224}, 3);
  x = net_relu(&n, conv_norm(&n, x, 64, 7, 2));
  x = net_max_pool(&n, x, 3, 2, 1);
  for (int stage = 0; stage < 4; stage++) {
    for (int i = 0; i < blocks[stage]; i++) {
      int64_t stride = i == 0 && stage != 0 ? 2 : 1;
      x = bottleneck(&n, x, (int64_t)64 << stage, stride, i == 0);
    }
  }
  net_loss(&n, net_linear(&n, net_mean(&n, x), 1000));
  return n.status;
}

// --- one layer of a transformer --------------------------------------------

enum { TOKENS = 128, WIDTH = 768, HEADS = 12 };

static tarn_tensor *attention(net *n, tarn_tensor *x) {
  tarn_tensor *query = net_linear(n, x, WIDTH);
  tarn_tensor *key = net_linear(n, x, WIDTH);
  tarn_tensor *value = net_linear(n, x, WIDTH);
  int64_t weights[] = {TARN_DIM_BATCH, HEADS, TOKENS, TOKENS};
  int64_t context[] = {TARN_DIM_BATCH, TOKENS, WIDTH};
  tarn_tensor *scores = net_product(n, query, key, weights, 4);
  scores = net_dropout(n, net_softmax(n, scores));
  return net_product(n, scores, value, context, 3);
}

static tarn_status describe_bert_layer(tarn_model *model) {
  net n = {.model = model};
  tarn_tensor *x = net_feed(&n, (int64_t[]){TOKENS, WIDTH}, 2);
  tarn_tensor *y = net_linear(&n, attention(&n, x), WIDTH);
  x = net_norm(&n, net_add(&n, net_dropout(&n, y), x), WIDTH);
  y = net_gelu(&n, net_linear(&n, x, (int64_t)4 * WIDTH));
  y = net_dropout(&n, net_linear(&n, y, WIDTH));
  net_loss(&n, net_norm(&n, net_add(&n, y, x), WIDTH));
  return n.status;
}

// --- all of them -----------------------------------------------------------

static const model_net nets[] = {
    {"mlp", 256, describe_mlp, 76.4, {32.0, 16.0}, {12.0, 8.0}},
    {"mlp-16", 256, describe_mlp_16, 63.2, {64.0, 32.0}, {17.0, 2.0}},
    {"resnet-14", 128, describe_resnet_14, 0.7, {324.1, 162.0}, {68.0, 24.0}},
    {"resnet-50", 32, describe_resnet_50, 97.5, {9195, 4585}, {2603, 294}},
    {"bert-layer", 4, describe_bert_layer, 27.0, {79.5, 39.0}, {37.1, 13.5}},
};

const model_net *model_net_at(size_t index) {
  return index < sizeof nets / sizeof *nets ? &nets[index] : NULL;
}

const model_net *model_net_find(const char *name) {
  for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
    if (strcmp(nets[i].name, name) == 0) return &nets[i];
  }
  return NULL;
}
