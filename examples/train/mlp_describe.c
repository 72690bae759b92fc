// The net as a model: what each step reads, writes and may replace. From this
// alone the model knows when each byte is needed.
#include <math.h>
#include <stdio.h>

#include "job/try.h"
#include "mlp.h"
#include "nets/hold.h"
#include "nets/layers.h"
#include "nets/random.h"

// --- tensors ---------------------------------------------------------------

static tarn_status add(mlp *m, tarn_tensor_kind kind, const char *layer,
                       const char *name, tarn_dtype dtype, int64_t rows,
                       int64_t columns, tarn_tensor **out) {
  char text[64];
  const int64_t dims[] = {rows, columns};
  snprintf(text, sizeof text, "%s.%s", layer, name);
  return tarn_model_add(m->model, kind, text, dtype, (tarn_shape){dims, 2},
                        out);
}

static tarn_status add_param(mlp *m, const char *layer, const char *name,
                             size_t rows, size_t columns, tarn_tensor **out,
                             tarn_tensor **out_speed) {
  TRY(add(m, TARN_PARAM, layer, name, TARN_DTYPE_F32, (int64_t)rows,
          (int64_t)columns, out));
  return tarn_model_add_state(m->model, *out, "speed", TARN_DTYPE_F32,
                              out_speed);
}

static tarn_status add_output(mlp *m, const char *layer, size_t columns,
                              tarn_tensor **out) {
  return add(m, TARN_OUTPUT, layer, "out", TARN_DTYPE_F32, TARN_DIM_BATCH,
             (int64_t)columns, out);
}

// --- layers ----------------------------------------------------------------

// Backward it needs |w| turned, for the time of that pass only.
static tarn_status passes_gradient_on(mlp *m, mlp_layer *l, const char *name,
                                      tarn_tensor *x) {
  TRY(add(m, TARN_OUTPUT, name, "turned", TARN_DTYPE_F32, (int64_t)l->outputs,
          (int64_t)l->inputs, &l->turned));
  TRY(tarn_step_writes(l->linear, TARN_BACKWARD, l->turned, TARN_DATA));
  TRY(tarn_step_reads(l->linear, TARN_BACKWARD, x, TARN_DATA));
  return tarn_step_writes(l->linear, TARN_BACKWARD, x, TARN_DIFF);
}

// |x| NULL: rows of the table, which are no tensor of the model.
static tarn_status add_linear(mlp *m, mlp_layer *l, const char *name,
                              tarn_tensor *x) {
  l->first = m->params;
  m->params += (l->inputs + 1) * l->outputs;
  TRY(add_param(m, name, "weight", l->inputs, l->outputs, &l->w, &l->w_speed));
  TRY(add_param(m, name, "bias", 1, l->outputs, &l->b, &l->b_speed));
  TRY(add_output(m, name, l->outputs, &l->y));
  TRY(tarn_model_step(m->model, name, &l->linear));
  if (x != NULL) TRY(tarn_step_reads(l->linear, TARN_FORWARD, x, TARN_DATA));
  TRY(tarn_step_writes(l->linear, TARN_FORWARD, l->y, TARN_DATA));
  TRY(tarn_step_reads(l->linear, TARN_BACKWARD, l->y, TARN_DIFF));
  l->out = l->y;
  return x == NULL ? TARN_OK : passes_gradient_on(m, l, name, x);
}

// Backward it reads its output, so that its input can be replaced.
static tarn_status add_relu(mlp *m, mlp_layer *l, const char *name) {
  TRY(add_output(m, name, l->outputs, &l->out));
  TRY(tarn_model_step(m->model, name, &l->relu));
  TRY(tarn_step_replaces(l->relu, TARN_FORWARD, l->y, TARN_DATA, l->out,
                         TARN_DATA));
  TRY(tarn_step_reads(l->relu, TARN_BACKWARD, l->out, TARN_DATA));
  return tarn_step_replaces(l->relu, TARN_BACKWARD, l->out, TARN_DIFF, l->y,
                            TARN_DIFF);
}

static tarn_status add_loss(mlp *m, tarn_tensor *scores) {
  TRY(add(m, TARN_OUTPUT, "loss", "labels", TARN_DTYPE_I32, TARN_DIM_BATCH, 1,
          &m->labels));
  TRY(tarn_model_step(m->model, "loss", &m->loss));
  TRY(tarn_step_writes(m->loss, TARN_FORWARD, m->labels, TARN_DATA));
  TRY(tarn_step_reads(m->loss, TARN_FORWARD, scores, TARN_DATA));
  TRY(tarn_step_reads(m->loss, TARN_BACKWARD, m->labels, TARN_DATA));
  return tarn_step_replaces(m->loss, TARN_BACKWARD, scores, TARN_DATA, scores,
                            TARN_DIFF);
}

static tarn_status describe(mlp *m, size_t width) {
  static const char *const names[LAYERS] = {"fc1", "fc2", "fc3", "scores"};
  static const char *const relus[LAYERS] = {"relu1", "relu2", "relu3", NULL};
  tarn_tensor *x = NULL;
  for (size_t i = 0; i < LAYERS; i++) {
    mlp_layer *l = &m->layers[i];
    l->inputs = i == 0 ? FEATURES : width;
    l->outputs = i == LAYERS - 1 ? CLASSES : width;
    TRY(add_linear(m, l, names[i], x));
    if (relus[i] != NULL) TRY(add_relu(m, l, relus[i]));
    x = l->out;
  }
  return add_loss(m, x);
}

// --- the start -------------------------------------------------------------

// Weights as before a ReLU; biases are zeros.
static tarn_status start(const mlp *m, const mlp_layer *l, net_random *random) {
  net_hold h = {.home = m->home};
  float *w = net_hold_write(&h, l->w, TARN_DATA, NET_SET);
  float *b = net_hold_write(&h, l->b, TARN_DATA, NET_SET);
  if (h.status == TARN_OK) {
    net_init_kaiming(random, l->inputs, 1, l->inputs * l->outputs, w);
    for (size_t i = 0; i < l->outputs; i++)
      b[i] = 0;
  }
  return net_hold_end(&h);
}

static tarn_status plan(mlp *m) {
  tarn_model_plan_options options = {.struct_size = sizeof options,
                                     .home = m->home};
  // Memory of the host beside it, which the device pins.
  if (!tarn_place_equal(m->home, TARN_HOST))
    options.compute = (tarn_place){m->home.device, TARN_PLACE_HOST};
  return tarn_model_plan(m->model, &options);
}

tarn_status mlp_init(mlp *m, const mlp_options *options) {
  net_random random = {.state = options->seed};
  *m = (mlp){.home = options->home,
             .slices = options->slices,
             .slice = options->slice};
  const tarn_model_options of_model = {
      .struct_size = sizeof of_model,
      .name = "mlp",
      .max_batch = (int64_t)(options->slices * options->slice)};
  TRY(tarn_model_create(&of_model, &m->model));
  TRY(describe(m, options->width));
  TRY(plan(m));
  TRY(tarn_model_place(m->model));
  for (size_t i = 0; i < LAYERS; i++)
    TRY(start(m, &m->layers[i], &random));
  return TARN_OK;
}

tarn_status mlp_end(mlp *m) {
  tarn_model *model = m->model;
  m->model = NULL;
  return tarn_model_destroy(model);
}
