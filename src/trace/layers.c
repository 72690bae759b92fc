// The allocations of each op.
//
// Invariant: sizes come from shapes alone; a shape that overflows has 0
// elements, and its op has no output.
#include "trace/workload.h"

enum {
  F32 = sizeof(float),
  INDEX = sizeof(int64_t),
  MASK = 1,
  LINEAR_WORKSPACE = 1 << 20,  // what PyTorch gives cuBLASLt for one call
};

static size_t floats(size_t count) {
  return tarn__elements(count, F32, 1, 1);
}

tarn__trace_tape_tensor tarn__layer_binary(
    tarn__trace_tape *tape, tarn__trace_layer kind, const char *name,
    tarn__trace_tape_tensor a, tarn__trace_tape_tensor b, size_t count) {
  tarn__trace_tape_op op = {
      .inputs = {a, b},
      .saves_inputs = kind == TARN__LAYER_GELU || kind == TARN__LAYER_PRODUCT,
      .saves_output = kind == TARN__LAYER_SOFTMAX || kind == TARN__LAYER_RELU,
      .passes_gradient = kind == TARN__LAYER_ADD};
  return tarn__tape_op(tape, name, count, &op);
}

tarn__trace_tape_tensor tarn__layer_unary(tarn__trace_tape *tape,
                                          tarn__trace_layer kind,
                                          const char *name,
                                          tarn__trace_tape_tensor x) {
  tarn__trace_tape_tensor none = {0};
  return tarn__layer_binary(tape, kind, name, x, none, x.count);
}

tarn__trace_tape_tensor tarn__layer_linear(tarn__trace_tape *tape,
                                           const char *name,
                                           tarn__trace_tape_tensor x,
                                           size_t from, size_t to) {
  size_t count = tarn__elements(x.count / from, to, 1, 1);
  tarn__trace_tape_op op = {
      .inputs = {x},
      .params = {floats(to), floats(tarn__elements(from, to, 1, 1))},
      .workspace = LINEAR_WORKSPACE,
      .saves_inputs = true};
  return tarn__tape_op(tape, name, count, &op);
}

tarn__trace_tape_tensor tarn__layer_dropout(tarn__trace_tape *tape,
                                            const char *name,
                                            tarn__trace_tape_tensor x) {
  tarn__trace_tape_op op = {.inputs = {x},
                            .kept = {tarn__elements(x.count, MASK, 1, 1)}};
  return tarn__tape_op(tape, name, x.count, &op);
}

tarn__trace_tape_tensor tarn__layer_norm(tarn__trace_tape *tape,
                                         const char *name,
                                         tarn__trace_tape_tensor x,
                                         size_t groups, size_t width) {
  tarn__trace_tape_op op = {.inputs = {x},
                            .kept = {floats(groups), floats(groups)},
                            .params = {floats(width), floats(width)},
                            .saves_inputs = true};
  return tarn__tape_op(tape, name, x.count, &op);
}

tarn__trace_tape_tensor tarn__layer_loss(tarn__trace_tape *tape,
                                         const char *name,
                                         tarn__trace_tape_tensor logits,
                                         tarn__trace_tape_tensor labels) {
  tarn__trace_tape_tensor logs =
      tarn__layer_unary(tape, TARN__LAYER_SOFTMAX, "log_softmax", logits);
  tarn__trace_tape_op op = {
      .inputs = {logs, labels}, .kept = {floats(1)}, .saves_inputs = true};
  return tarn__tape_op(tape, name, 1, &op);
}

// --- on images -------------------------------------------------------------

static size_t pixels(const tarn__trace_image *x) {
  return tarn__elements(x->batch, x->channels, x->side, x->side);
}

// The column matrix into which one image is unfolded for a matrix product.
static size_t columns(const tarn__trace_image *x, size_t kernel, size_t side) {
  size_t patch = tarn__elements(x->channels, kernel, kernel, 1);
  return kernel == 1 ? 0 : floats(tarn__elements(patch, side, side, 1));
}

tarn__trace_image tarn__layer_conv(tarn__trace_tape *tape, const char *name,
                                   tarn__trace_image x, size_t channels,
                                   size_t kernel, size_t stride) {
  tarn__trace_image y = {.batch = x.batch,
                         .channels = channels,
                         .side = (x.side + stride - 1) / stride};
  size_t weights = tarn__elements(channels, x.channels, kernel, kernel);
  tarn__trace_tape_op op = {.inputs = {x.tensor},
                            .params = {floats(weights)},
                            .workspace = columns(&x, kernel, y.side),
                            .saves_inputs = true};
  y.tensor = tarn__tape_op(tape, name, pixels(&y), &op);
  return y;
}

tarn__trace_image tarn__layer_max_pool(tarn__trace_tape *tape, const char *name,
                                       tarn__trace_image x, size_t stride) {
  tarn__trace_image y = x;
  y.side = (x.side + stride - 1) / stride;
  tarn__trace_tape_op op = {.inputs = {x.tensor},
                            .kept = {tarn__elements(pixels(&y), INDEX, 1, 1)},
                            .saves_inputs = true};
  y.tensor = tarn__tape_op(tape, name, pixels(&y), &op);
  return y;
}
