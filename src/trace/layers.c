// What each op allocates.
//
// Invariant: sizes come from shapes alone; a shape that does not fit gives 0
// elements, and the op then has no output at all.
#include "trace/layers.h"

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

tarn__tensor tarn__layer_map(tarn__tape *tape, const char *name,
                             tarn__tensor x) {
  tarn__op op = {.inputs = {x}, .output = floats(x.count)};
  return tarn__tape_op(tape, name, x.count, &op);
}

tarn__tensor tarn__layer_linear(tarn__tape *tape, const char *name,
                                tarn__tensor x, size_t from, size_t to) {
  size_t count = tarn__elements(x.count / from, to, 1, 1);
  tarn__op op = {.inputs = {x},
                 .output = floats(count),
                 .params = {floats(to), floats(tarn__elements(from, to, 1, 1))},
                 .workspace = LINEAR_WORKSPACE,
                 .saves_inputs = true};
  return tarn__tape_op(tape, name, count, &op);
}

tarn__tensor tarn__layer_product(tarn__tape *tape, const char *name,
                                 tarn__tensor a, tarn__tensor b, size_t count) {
  tarn__op op = {
      .inputs = {a, b}, .output = floats(count), .saves_inputs = true};
  return tarn__tape_op(tape, name, count, &op);
}

tarn__tensor tarn__layer_add(tarn__tape *tape, const char *name, tarn__tensor a,
                             tarn__tensor b) {
  tarn__op op = {
      .inputs = {a, b}, .output = floats(a.count), .passes_gradient = true};
  return tarn__tape_op(tape, name, a.count, &op);
}

tarn__tensor tarn__layer_gelu(tarn__tape *tape, const char *name,
                              tarn__tensor x) {
  tarn__op op = {
      .inputs = {x}, .output = floats(x.count), .saves_inputs = true};
  return tarn__tape_op(tape, name, x.count, &op);
}

tarn__tensor tarn__layer_softmax(tarn__tape *tape, const char *name,
                                 tarn__tensor x) {
  tarn__op op = {
      .inputs = {x}, .output = floats(x.count), .saves_output = true};
  return tarn__tape_op(tape, name, x.count, &op);
}

tarn__tensor tarn__layer_dropout(tarn__tape *tape, const char *name,
                                 tarn__tensor x) {
  tarn__op op = {.inputs = {x},
                 .output = floats(x.count),
                 .kept = {tarn__elements(x.count, MASK, 1, 1)}};
  return tarn__tape_op(tape, name, x.count, &op);
}

tarn__tensor tarn__layer_norm(tarn__tape *tape, const char *name,
                              tarn__tensor x, size_t width) {
  size_t rows = x.count / width;
  tarn__op op = {.inputs = {x},
                 .output = floats(x.count),
                 .kept = {floats(rows), floats(rows)},
                 .params = {floats(width), floats(width)},
                 .saves_inputs = true};
  return tarn__tape_op(tape, name, x.count, &op);
}

tarn__tensor tarn__layer_gather(tarn__tape *tape, const char *name,
                                tarn__tensor a, tarn__tensor b, size_t count) {
  tarn__op op = {.inputs = {a, b}, .output = floats(count)};
  return tarn__tape_op(tape, name, count, &op);
}

tarn__tensor tarn__layer_loss(tarn__tape *tape, const char *name,
                              tarn__tensor logits, tarn__tensor labels) {
  tarn__tensor logs = tarn__layer_softmax(tape, "log_softmax", logits);
  tarn__op op = {.inputs = {logs, labels},
                 .output = floats(1),
                 .kept = {floats(1)},
                 .saves_inputs = true};
  return tarn__tape_op(tape, name, 1, &op);
}

// --- on images -------------------------------------------------------------

static size_t pixels(const tarn__image *x) {
  return tarn__elements(x->batch, x->channels, x->side, x->side);
}

// The column matrix into which one image is unfolded for a matrix product.
static size_t columns(const tarn__image *x, size_t kernel, size_t side) {
  size_t patch = tarn__elements(x->channels, kernel, kernel, 1);
  return kernel == 1 ? 0 : floats(tarn__elements(patch, side, side, 1));
}

tarn__image tarn__layer_conv(tarn__tape *tape, const char *name, tarn__image x,
                             size_t channels, size_t kernel, size_t stride) {
  tarn__image y = {.batch = x.batch,
                   .channels = channels,
                   .side = (x.side + stride - 1) / stride};
  size_t weights = tarn__elements(channels, x.channels, kernel, kernel);
  tarn__op op = {.inputs = {x.tensor},
                 .output = floats(pixels(&y)),
                 .params = {floats(weights)},
                 .workspace = columns(&x, kernel, y.side),
                 .saves_inputs = true};
  y.tensor = tarn__tape_op(tape, name, pixels(&y), &op);
  return y;
}

tarn__image tarn__layer_batch_norm(tarn__tape *tape, const char *name,
                                   tarn__image x) {
  size_t statistics = floats(x.channels);
  tarn__op op = {.inputs = {x.tensor},
                 .output = floats(pixels(&x)),
                 .kept = {statistics, statistics},
                 .params = {statistics, statistics},
                 .saves_inputs = true};
  x.tensor = tarn__tape_op(tape, name, pixels(&x), &op);
  return x;
}

tarn__image tarn__layer_relu(tarn__tape *tape, const char *name,
                             tarn__image x) {
  tarn__op op = {
      .inputs = {x.tensor}, .output = floats(pixels(&x)), .saves_output = true};
  x.tensor = tarn__tape_op(tape, name, pixels(&x), &op);
  return x;
}

tarn__image tarn__layer_max_pool(tarn__tape *tape, const char *name,
                                 tarn__image x, size_t stride) {
  tarn__image y = x;
  y.side = (x.side + stride - 1) / stride;
  tarn__op op = {.inputs = {x.tensor},
                 .output = floats(pixels(&y)),
                 .kept = {tarn__elements(pixels(&y), INDEX, 1, 1)},
                 .saves_inputs = true};
  y.tensor = tarn__tape_op(tape, name, pixels(&y), &op);
  return y;
}

tarn__tensor tarn__layer_mean_pool(tarn__tape *tape, const char *name,
                                   tarn__image x) {
  size_t count = tarn__elements(x.batch, x.channels, 1, 1);
  tarn__op op = {.inputs = {x.tensor}, .output = floats(count)};
  return tarn__tape_op(tape, name, count, &op);
}
