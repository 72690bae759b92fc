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

size_t tarn__elements(size_t a, size_t b, size_t c, size_t d) {
  size_t product = 0;
  bool fits = tarn_size_mul(a, b, &product) &&
              tarn_size_mul(product, c, &product) &&
              tarn_size_mul(product, d, &product);
  return fits ? product : 0;
}

static size_t floats(size_t count) {
  return tarn__elements(count, F32, 1, 1);
}

tarn__trace_tape_tensor tarn__layer_map(tarn__trace_tape *tape,
                                        const char *name,
                                        tarn__trace_tape_tensor x) {
  tarn__trace_tape_op op = {.inputs = {x}, .output = floats(x.count)};
  return tarn__tape_op(tape, name, x.count, &op);
}

tarn__trace_tape_tensor tarn__layer_linear(tarn__trace_tape *tape,
                                           const char *name,
                                           tarn__trace_tape_tensor x,
                                           size_t from, size_t to) {
  size_t count = tarn__elements(x.count / from, to, 1, 1);
  tarn__trace_tape_op op = {
      .inputs = {x},
      .output = floats(count),
      .params = {floats(to), floats(tarn__elements(from, to, 1, 1))},
      .workspace = LINEAR_WORKSPACE,
      .saves_inputs = true};
  return tarn__tape_op(tape, name, count, &op);
}

tarn__trace_tape_tensor tarn__layer_product(tarn__trace_tape *tape,
                                            const char *name,
                                            tarn__trace_tape_tensor a,
                                            tarn__trace_tape_tensor b,
                                            size_t count) {
  tarn__trace_tape_op op = {
      .inputs = {a, b}, .output = floats(count), .saves_inputs = true};
  return tarn__tape_op(tape, name, count, &op);
}

tarn__trace_tape_tensor tarn__layer_add(tarn__trace_tape *tape,
                                        const char *name,
                                        tarn__trace_tape_tensor a,
                                        tarn__trace_tape_tensor b) {
  tarn__trace_tape_op op = {
      .inputs = {a, b}, .output = floats(a.count), .passes_gradient = true};
  return tarn__tape_op(tape, name, a.count, &op);
}

tarn__trace_tape_tensor tarn__layer_gelu(tarn__trace_tape *tape,
                                         const char *name,
                                         tarn__trace_tape_tensor x) {
  tarn__trace_tape_op op = {
      .inputs = {x}, .output = floats(x.count), .saves_inputs = true};
  return tarn__tape_op(tape, name, x.count, &op);
}

tarn__trace_tape_tensor tarn__layer_softmax(tarn__trace_tape *tape,
                                            const char *name,
                                            tarn__trace_tape_tensor x) {
  tarn__trace_tape_op op = {
      .inputs = {x}, .output = floats(x.count), .saves_output = true};
  return tarn__tape_op(tape, name, x.count, &op);
}

tarn__trace_tape_tensor tarn__layer_dropout(tarn__trace_tape *tape,
                                            const char *name,
                                            tarn__trace_tape_tensor x) {
  tarn__trace_tape_op op = {.inputs = {x},
                            .output = floats(x.count),
                            .kept = {tarn__elements(x.count, MASK, 1, 1)}};
  return tarn__tape_op(tape, name, x.count, &op);
}

tarn__trace_tape_tensor tarn__layer_norm(tarn__trace_tape *tape,
                                         const char *name,
                                         tarn__trace_tape_tensor x,
                                         size_t width) {
  size_t rows = x.count / width;
  tarn__trace_tape_op op = {.inputs = {x},
                            .output = floats(x.count),
                            .kept = {floats(rows), floats(rows)},
                            .params = {floats(width), floats(width)},
                            .saves_inputs = true};
  return tarn__tape_op(tape, name, x.count, &op);
}

tarn__trace_tape_tensor tarn__layer_gather(tarn__trace_tape *tape,
                                           const char *name,
                                           tarn__trace_tape_tensor a,
                                           tarn__trace_tape_tensor b,
                                           size_t count) {
  tarn__trace_tape_op op = {.inputs = {a, b}, .output = floats(count)};
  return tarn__tape_op(tape, name, count, &op);
}

tarn__trace_tape_tensor tarn__layer_loss(tarn__trace_tape *tape,
                                         const char *name,
                                         tarn__trace_tape_tensor logits,
                                         tarn__trace_tape_tensor labels) {
  tarn__trace_tape_tensor logs =
      tarn__layer_softmax(tape, "log_softmax", logits);
  tarn__trace_tape_op op = {.inputs = {logs, labels},
                            .output = floats(1),
                            .kept = {floats(1)},
                            .saves_inputs = true};
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
                            .output = floats(pixels(&y)),
                            .params = {floats(weights)},
                            .workspace = columns(&x, kernel, y.side),
                            .saves_inputs = true};
  y.tensor = tarn__tape_op(tape, name, pixels(&y), &op);
  return y;
}

tarn__trace_image tarn__layer_batch_norm(tarn__trace_tape *tape,
                                         const char *name,
                                         tarn__trace_image x) {
  size_t statistics = floats(x.channels);
  tarn__trace_tape_op op = {.inputs = {x.tensor},
                            .output = floats(pixels(&x)),
                            .kept = {statistics, statistics},
                            .params = {statistics, statistics},
                            .saves_inputs = true};
  x.tensor = tarn__tape_op(tape, name, pixels(&x), &op);
  return x;
}

tarn__trace_image tarn__layer_relu(tarn__trace_tape *tape, const char *name,
                                   tarn__trace_image x) {
  tarn__trace_tape_op op = {
      .inputs = {x.tensor}, .output = floats(pixels(&x)), .saves_output = true};
  x.tensor = tarn__tape_op(tape, name, pixels(&x), &op);
  return x;
}

tarn__trace_image tarn__layer_max_pool(tarn__trace_tape *tape, const char *name,
                                       tarn__trace_image x, size_t stride) {
  tarn__trace_image y = x;
  y.side = (x.side + stride - 1) / stride;
  tarn__trace_tape_op op = {.inputs = {x.tensor},
                            .output = floats(pixels(&y)),
                            .kept = {tarn__elements(pixels(&y), INDEX, 1, 1)},
                            .saves_inputs = true};
  y.tensor = tarn__tape_op(tape, name, pixels(&y), &op);
  return y;
}

tarn__trace_tape_tensor tarn__layer_mean_pool(tarn__trace_tape *tape,
                                              const char *name,
                                              tarn__trace_image x) {
  size_t count = tarn__elements(x.batch, x.channels, 1, 1);
  tarn__trace_tape_op op = {.inputs = {x.tensor}, .output = floats(count)};
  return tarn__tape_op(tape, name, count, &op);
}
