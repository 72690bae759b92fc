// Layers as steps of a model: what each reads, writes and may replace, forward
// and backward. From this alone the model knows when each byte is needed.
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "net.h"

enum { MOST_DIMS = 8 };

static bool failed(net *n, tarn_status status) {
  if (n->status == TARN_OK) n->status = status;
  return n->status != TARN_OK;
}

// --- tensors ---------------------------------------------------------------

static tarn_tensor *add_tensor(net *n, tarn_tensor_kind kind, const char *name,
                               const char *suffix, tarn_dtype dtype,
                               tarn_shape shape) {
  char text[NET_NAME_SIZE];
  tarn_tensor *tensor = NULL;
  snprintf(text, sizeof text, "%s%s", name, suffix);
  if (n->status != TARN_OK) return NULL;
  failed(n, tarn_model_add(n->model, kind, text, dtype, shape, &tensor));
  return tensor;
}

static void add_param(net *n, tarn_tensor **out_tensor, const char *name,
                      const char *suffix, tarn_shape shape, size_t fan_in,
                      double gain) {
  net_param p = {.fan_in = fan_in, .gain = gain, .decays = fan_in != 0};
  assert(n->param_count < NET_MOST_PARAMS);
  p.tensor = add_tensor(n, TARN_PARAM, name, suffix, TARN_DTYPE_F32, shape);
  if (n->status != TARN_OK ||
      failed(n, tarn_model_add_state(n->model, p.tensor, "speed",
                                     TARN_DTYPE_F32, &p.speed))) {
    return;
  }
  n->params[n->param_count++] = p;
  *out_tensor = p.tensor;
}

// --- what steps do ---------------------------------------------------------

static void reads(net *n, const net_layer *l, tarn_pass pass, tarn_tensor *t,
                  tarn_part part) {
  if (n->status != TARN_OK) return;
  failed(n, tarn_step_reads(l->step, pass, t, part));
}

static void writes(net *n, const net_layer *l, tarn_pass pass, tarn_tensor *t,
                   tarn_part part) {
  if (n->status != TARN_OK) return;
  failed(n, tarn_step_writes(l->step, pass, t, part));
}

static void replaces(net *n, const net_layer *l, tarn_pass pass,
                     tarn_tensor *giver, tarn_part giver_part,
                     tarn_tensor *taker, tarn_part taker_part) {
  if (n->status != TARN_OK) return;
  failed(n, tarn_step_replaces(l->step, pass, giver, giver_part, taker,
                               taker_part));
}

// A layer after |l| takes |x| too. Backward it comes to its gradient first, so
// |l| does not write it, but adds to it.
static void comes_later(net *n, net_layer *l, tarn_tensor *x) {
  if (l->x != x && l->other != x) return;
  if (l->x == x) l->into_x = NET_ADD;
  if (l->other == x) l->into_other = NET_ADD;
  reads(n, l, TARN_BACKWARD, x, TARN_DIFF);
}

static void comes_first(net *n, const net_layer *l, tarn_tensor *x) {
  for (net_layer *i = n->layers; i != l; i++)
    comes_later(n, i, x);
}

// The gradient of what is fed is not needed.
static void writes_gradient(net *n, const net_layer *l, tarn_tensor *x) {
  if (x == n->fed) return;
  comes_first(n, l, x);
  writes(n, l, TARN_BACKWARD, x, TARN_DIFF);
}

// The gradient of x is made of that of y, and can take its place.
static void passes_gradient(net *n, const net_layer *l) {
  comes_first(n, l, l->x);
  replaces(n, l, TARN_BACKWARD, l->y, TARN_DIFF, l->x, TARN_DIFF);
}

// --- layers ----------------------------------------------------------------

static net_layer *add_layer(net *n, const char *name, const net_kind *kind,
                            tarn_tensor *x) {
  assert(n->layer_count < NET_MOST_LAYERS);
  net_layer *l = &n->layers[n->layer_count];
  *l = (net_layer){.kind = kind, .x = x};
  if (n->status != TARN_OK) return l;
  if (!failed(n, tarn_model_step(n->model, name, &l->step))) n->layer_count++;
  return l;
}

static void add_output(net *n, net_layer *l, const char *name,
                       tarn_shape shape) {
  l->y = add_tensor(n, TARN_OUTPUT, name, ".out", TARN_DTYPE_F32, shape);
}

// What layers with weights have in common.
static void learns(net *n, net_layer *l) {
  reads(n, l, TARN_FORWARD, l->x, TARN_DATA);
  reads(n, l, TARN_FORWARD, l->w, TARN_DATA);
  reads(n, l, TARN_FORWARD, l->b, TARN_DATA);
  writes(n, l, TARN_FORWARD, l->y, TARN_DATA);
  reads(n, l, TARN_BACKWARD, l->x, TARN_DATA);
  reads(n, l, TARN_BACKWARD, l->w, TARN_DATA);
  reads(n, l, TARN_BACKWARD, l->y, TARN_DIFF);
  writes(n, l, TARN_BACKWARD, l->w, TARN_DIFF);
  writes(n, l, TARN_BACKWARD, l->b, TARN_DIFF);
  writes_gradient(n, l, l->x);
}

void net_begin(net *n, const char *name, int64_t max_batch) {
  const tarn_model_options options = {
      .struct_size = sizeof options, .name = name, .max_batch = max_batch};
  memset(n, 0, sizeof *n);
  n->status = tarn_model_create(&options, &n->model);
}

tarn_tensor *net_feed(net *n, const int64_t *dims, size_t rank) {
  int64_t all[MOST_DIMS] = {TARN_DIM_BATCH};
  assert(rank < MOST_DIMS);
  memcpy(all + 1, dims, rank * sizeof *dims);
  n->fed = add_tensor(n, TARN_OUTPUT, "images", "", TARN_DTYPE_F32,
                      (tarn_shape){all, rank + 1});
  n->labels = add_tensor(n, TARN_OUTPUT, "labels", "", TARN_DTYPE_I32,
                         (tarn_shape){all, 1});
  return n->fed;
}

tarn_tensor *net_then_linear(net *n, const char *name, tarn_tensor *x,
                             size_t outputs) {
  if (n->status != TARN_OK) return NULL;
  int64_t width = (int64_t)outputs;
  const int64_t weight[] = {x->shape.dims[1], width};
  const int64_t out[] = {TARN_DIM_BATCH, width};
  net_layer *l = add_layer(n, name, &net_linear_kind, x);
  l->linear =
      (net_linear){.inputs = (size_t)x->shape.dims[1], .outputs = outputs};
  add_param(n, &l->w, name, ".weight", (tarn_shape){weight, 2},
            l->linear.inputs, 1);
  add_param(n, &l->b, name, ".bias", (tarn_shape){&width, 1}, 0, 0);
  add_output(n, l, name, (tarn_shape){out, 2});
  learns(n, l);
  return l->y;
}

static void note_work(net *n, const net_conv *conv) {
  size_t count = net_conv_work(conv);
  if (count > n->work_count) n->work_count = count;
}

tarn_tensor *net_then_conv(net *n, const char *name, tarn_tensor *x,
                           net_conv conv, double gain) {
  if (n->status != TARN_OK) return NULL;
  conv.in = (size_t)x->shape.dims[1];
  conv.height = (size_t)x->shape.dims[2];
  conv.width = (size_t)x->shape.dims[3];
  const int64_t side = (int64_t)conv.kernel, channels = (int64_t)conv.out;
  const int64_t weight[] = {channels, (int64_t)conv.in, side, side};
  const int64_t out[] = {TARN_DIM_BATCH, channels,
                         (int64_t)net_conv_size(&conv, conv.height),
                         (int64_t)net_conv_size(&conv, conv.width)};
  net_layer *l = add_layer(n, name, &net_conv_kind, x);
  l->conv = conv;
  note_work(n, &conv);
  add_param(n, &l->w, name, ".weight", (tarn_shape){weight, 4},
            conv.in * conv.kernel * conv.kernel, gain);
  add_param(n, &l->b, name, ".bias", (tarn_shape){&channels, 1}, 0, 0);
  add_output(n, l, name, (tarn_shape){out, 4});
  learns(n, l);
  return l->y;
}

// Backward it reads its output, not its input, which so can be replaced.
tarn_tensor *net_then_relu(net *n, const char *name, tarn_tensor *x) {
  if (n->status != TARN_OK) return NULL;
  net_layer *l = add_layer(n, name, &net_relu_kind, x);
  add_output(n, l, name, x->shape);
  replaces(n, l, TARN_FORWARD, x, TARN_DATA, l->y, TARN_DATA);
  reads(n, l, TARN_BACKWARD, l->y, TARN_DATA);
  passes_gradient(n, l);
  return l->y;
}

// The gradient goes to both: to |x| in its place, to |other| as a copy.
tarn_tensor *net_then_add(net *n, const char *name, tarn_tensor *x,
                          tarn_tensor *other) {
  if (n->status != TARN_OK) return NULL;
  net_layer *l = add_layer(n, name, &net_add_kind, x);
  l->other = other;
  add_output(n, l, name, x->shape);
  reads(n, l, TARN_FORWARD, other, TARN_DATA);
  replaces(n, l, TARN_FORWARD, x, TARN_DATA, l->y, TARN_DATA);
  writes_gradient(n, l, other);
  passes_gradient(n, l);
  return l->y;
}

tarn_tensor *net_then_mean(net *n, const char *name, tarn_tensor *x) {
  if (n->status != TARN_OK) return NULL;
  net_layer *l = add_layer(n, name, &net_mean_kind, x);
  add_output(n, l, name, (tarn_shape){x->shape.dims, 2});
  reads(n, l, TARN_FORWARD, x, TARN_DATA);
  writes(n, l, TARN_FORWARD, l->y, TARN_DATA);
  reads(n, l, TARN_BACKWARD, l->y, TARN_DIFF);
  writes_gradient(n, l, x);
  return l->y;
}

// Its gradient takes the place of the scores.
void net_then_loss(net *n, tarn_tensor *scores) {
  if (n->status != TARN_OK) return;
  net_layer *l = add_layer(n, "loss", &net_loss_kind, scores);
  reads(n, l, TARN_FORWARD, scores, TARN_DATA);
  reads(n, l, TARN_FORWARD, n->labels, TARN_DATA);
  reads(n, l, TARN_BACKWARD, n->labels, TARN_DATA);
  comes_first(n, l, scores);
  replaces(n, l, TARN_BACKWARD, scores, TARN_DATA, scores, TARN_DIFF);
}
