// Layers, as steps with what they read and write.
//
// A gradient that several steps compute is written by each: the first one
// backward makes it, the others add to it.
#include "model_layers.h"

#include <stdio.h>
#include <string.h>

typedef struct layer {
  net *n;
  tarn_step *step;
  tarn_tensor *y;
  char name[32];
} layer;

static bool failed(net *n, tarn_status status) {
  if (n->status == TARN_OK) n->status = status;
  return n->status != TARN_OK;
}

// Adds "<kind><number>" with an output of |dims|.
static layer begin(net *n, const char *kind, const int64_t *dims, size_t rank) {
  layer l = {.n = n};
  if (n->status != TARN_OK) return l;
  char text[48];
  snprintf(l.name, sizeof l.name, "%s%u", kind, n->layers++);
  snprintf(text, sizeof text, "%s.out", l.name);
  if (failed(n, tarn_model_add(n->model, TARN_OUTPUT, text, TARN_DTYPE_F32,
                               (tarn_shape){dims, rank}, &l.y))) {
    return l;
  }
  failed(n, tarn_model_step(n->model, l.name, &l.step));
  return l;
}

static layer begin_alike(net *n, const char *kind, const tarn_tensor *x) {
  if (n->status != TARN_OK) return (layer){.n = n};
  return begin(n, kind, x->shape.dims, x->shape.rank);
}

static void reads(layer *l, tarn_pass pass, tarn_tensor *t, tarn_part part) {
  if (l->n->status != TARN_OK) return;
  failed(l->n, tarn_step_reads(l->step, pass, t, part));
}

static void writes(layer *l, tarn_pass pass, tarn_tensor *t, tarn_part part) {
  if (l->n->status != TARN_OK) return;
  failed(l->n, tarn_step_writes(l->step, pass, t, part));
}

static void replaces(layer *l, tarn_pass pass, tarn_tensor *giver,
                     tarn_part giver_part, tarn_tensor *taker,
                     tarn_part taker_part) {
  if (l->n->status != TARN_OK) return;
  failed(l->n, tarn_step_replaces(l->step, pass, giver, giver_part, taker,
                                  taker_part));
}

// No step makes the fed tensors: they stand first.
static bool is_fed(const layer *l, const tarn_tensor *t) {
  return &t->node == tarn_model_list(l->n->model, TARN_OUTPUT)->next;
}

static void gives_gradient(layer *l, tarn_tensor *x) {
  if (l->n->status != TARN_OK || is_fed(l, x)) return;
  writes(l, TARN_BACKWARD, x, TARN_DIFF);
}

// Its own gradient, which is read for that of x and can give its place to it.
static void passes_gradient(layer *l, tarn_tensor *x) {
  if (l->n->status != TARN_OK) return;
  if (is_fed(l, x)) {
    reads(l, TARN_BACKWARD, l->y, TARN_DIFF);
  } else {
    replaces(l, TARN_BACKWARD, l->y, TARN_DIFF, x, TARN_DIFF);
  }
}

static void has_param(layer *l, const char *name, const int64_t *dims,
                      size_t rank) {
  if (l->n->status != TARN_OK) return;
  char text[64];
  tarn_tensor *param = NULL;
  snprintf(text, sizeof text, "%s.%s", l->name, name);
  if (failed(l->n, tarn_model_add(l->n->model, TARN_PARAM, text, TARN_DTYPE_F32,
                                  (tarn_shape){dims, rank}, &param))) {
    return;
  }
  reads(l, TARN_FORWARD, param, TARN_DATA);
  reads(l, TARN_BACKWARD, param, TARN_DATA);
  writes(l, TARN_BACKWARD, param, TARN_DIFF);
}

static void has_cache(layer *l, tarn_dtype dtype) {
  if (l->n->status != TARN_OK) return;
  char text[48];
  tarn_tensor *cache = NULL;
  snprintf(text, sizeof text, "%s.cache", l->name);
  failed(l->n,
         tarn_step_caches(l->step, text, dtype, l->y->shape, false, &cache));
}

// Reads x both ways, writes y; backward reads dy and writes dx.
static void takes(layer *l, tarn_tensor *x) {
  reads(l, TARN_FORWARD, x, TARN_DATA);
  writes(l, TARN_FORWARD, l->y, TARN_DATA);
  reads(l, TARN_BACKWARD, x, TARN_DATA);
  reads(l, TARN_BACKWARD, l->y, TARN_DIFF);
}

// --- layers ----------------------------------------------------------------

tarn_tensor *net_feed(net *n, const int64_t *dims, size_t rank) {
  int64_t all[NET_MOST_DIMS] = {TARN_DIM_BATCH};
  tarn_tensor *x = NULL;
  memcpy(all + 1, dims, rank * sizeof *dims);
  failed(n, tarn_model_add(n->model, TARN_OUTPUT, "in", TARN_DTYPE_F32,
                           (tarn_shape){all, rank + 1}, &x));
  return x;
}

tarn_tensor *net_linear(net *n, tarn_tensor *x, int64_t features) {
  if (n->status != TARN_OK) return NULL;
  size_t rank = x->shape.rank;
  int64_t dims[NET_MOST_DIMS];
  memcpy(dims, x->shape.dims, rank * sizeof *dims);
  int64_t weight[] = {dims[rank - 1], features};
  dims[rank - 1] = features;
  layer l = begin(n, "linear", dims, rank);
  has_param(&l, "weight", weight, 2);
  has_param(&l, "bias", &features, 1);
  takes(&l, x);
  gives_gradient(&l, x);
  return l.y;
}

tarn_tensor *net_conv(net *n, tarn_tensor *x, int64_t channels, int64_t side,
                      int64_t stride, int64_t padding, bool bias) {
  if (n->status != TARN_OK) return NULL;
  const int64_t *in = x->shape.dims;
  int64_t weight[] = {channels, in[1], side, side};
  int64_t dims[] = {in[0], channels, (in[2] + 2 * padding - side) / stride + 1,
                    (in[3] + 2 * padding - side) / stride + 1};
  layer l = begin(n, "conv", dims, 4);
  has_param(&l, "weight", weight, 4);
  if (bias) has_param(&l, "bias", &channels, 1);
  takes(&l, x);
  gives_gradient(&l, x);
  return l.y;
}

tarn_tensor *net_norm(net *n, tarn_tensor *x, int64_t features) {
  layer l = begin_alike(n, "norm", x);
  has_param(&l, "scale", &features, 1);
  has_param(&l, "shift", &features, 1);
  takes(&l, x);
  passes_gradient(&l, x);
  return l.y;
}

tarn_tensor *net_relu(net *n, tarn_tensor *x) {
  layer l = begin_alike(n, "relu", x);
  replaces(&l, TARN_FORWARD, x, TARN_DATA, l.y, TARN_DATA);
  reads(&l, TARN_BACKWARD, l.y, TARN_DATA);
  passes_gradient(&l, x);
  return l.y;
}

tarn_tensor *net_gelu(net *n, tarn_tensor *x) {
  layer l = begin_alike(n, "gelu", x);
  takes(&l, x);
  passes_gradient(&l, x);
  return l.y;
}

tarn_tensor *net_softmax(net *n, tarn_tensor *x) {
  layer l = begin_alike(n, "softmax", x);
  replaces(&l, TARN_FORWARD, x, TARN_DATA, l.y, TARN_DATA);
  reads(&l, TARN_BACKWARD, l.y, TARN_DATA);
  passes_gradient(&l, x);
  return l.y;
}

tarn_tensor *net_dropout(net *n, tarn_tensor *x) {
  layer l = begin_alike(n, "dropout", x);
  has_cache(&l, TARN_DTYPE_BOOL);
  replaces(&l, TARN_FORWARD, x, TARN_DATA, l.y, TARN_DATA);
  passes_gradient(&l, x);
  return l.y;
}

tarn_tensor *net_add(net *n, tarn_tensor *x, tarn_tensor *y) {
  layer l = begin_alike(n, "add", x);
  reads(&l, TARN_FORWARD, y, TARN_DATA);
  replaces(&l, TARN_FORWARD, x, TARN_DATA, l.y, TARN_DATA);
  gives_gradient(&l, y);
  passes_gradient(&l, x);
  return l.y;
}

tarn_tensor *net_max_pool(net *n, tarn_tensor *x, int64_t side, int64_t stride,
                          int64_t padding) {
  if (n->status != TARN_OK) return NULL;
  const int64_t *in = x->shape.dims;
  int64_t dims[] = {in[0], in[1], (in[2] + 2 * padding - side) / stride + 1,
                    (in[3] + 2 * padding - side) / stride + 1};
  layer l = begin(n, "pool", dims, 4);
  has_cache(&l, TARN_DTYPE_I32);
  reads(&l, TARN_FORWARD, x, TARN_DATA);
  writes(&l, TARN_FORWARD, l.y, TARN_DATA);
  reads(&l, TARN_BACKWARD, l.y, TARN_DIFF);
  gives_gradient(&l, x);
  return l.y;
}

tarn_tensor *net_mean(net *n, tarn_tensor *x) {
  if (n->status != TARN_OK) return NULL;
  layer l = begin(n, "mean", x->shape.dims, 2);
  reads(&l, TARN_FORWARD, x, TARN_DATA);
  writes(&l, TARN_FORWARD, l.y, TARN_DATA);
  reads(&l, TARN_BACKWARD, l.y, TARN_DIFF);
  gives_gradient(&l, x);
  return l.y;
}

tarn_tensor *net_product(net *n, tarn_tensor *x, tarn_tensor *y,
                         const int64_t *dims, size_t rank) {
  layer l = begin(n, "product", dims, rank);
  takes(&l, x);
  reads(&l, TARN_FORWARD, y, TARN_DATA);
  reads(&l, TARN_BACKWARD, y, TARN_DATA);
  gives_gradient(&l, x);
  gives_gradient(&l, y);
  return l.y;
}

void net_loss(net *n, tarn_tensor *x) {
  layer l = {.n = n, .y = x};
  if (n->status != TARN_OK) return;
  if (failed(n, tarn_model_step(n->model, "loss", &l.step))) return;
  reads(&l, TARN_FORWARD, x, TARN_DATA);
  replaces(&l, TARN_BACKWARD, x, TARN_DATA, x, TARN_DIFF);
}
