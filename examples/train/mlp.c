// The net at work: each pass of a layer holds the bytes that it told the model
// about, and computes.
//
// Work and waiting. With the widths by default, 127, 256, 256, 256 and 4, there
// are 165,000 weights. A row of the table costs 6 operations for each of them,
// forward and backward, and is 512 bytes that are gathered: 1,900 operations
// for each gathered byte. A batch is gathered in less than a hundredth of the
// time that it is computed in, so what prefetching hides is little; it shows
// with
// --width 32, where it is 170 operations. Sums of gradients move 4 bytes for
// each weight and slice, whatever the batch is; of 256 rows, a slice costs 380
// operations for each of these bytes. The rest of what a step waits for is the
// slowest rank.
#include "mlp.h"

#include "job/try.h"
#include "matrix.h"
#include "nets/hold.h"
#include "nets/layers.h"

static size_t rows_of(const mlp *m) {
  return m->slices * m->slice;
}

// --- linear ----------------------------------------------------------------

// The input of layer |i|: the layer before, or the features of rows, which end
// with a number that is none.
static matrix input(net_hold *h, const mlp *m, size_t i, tarn_synced *rows) {
  size_t width = m->layers[i].inputs;
  if (i == 0) return (matrix){net_hold_read_all(h, rows), ROW, 1};
  return (matrix){net_hold_read(h, m->layers[i - 1].out, TARN_DATA), width, 1};
}

static tarn_status linear_forward(const mlp *m, size_t i, tarn_synced *rows) {
  net_hold h = {.home = m->home};
  const mlp_layer *l = &m->layers[i];
  TRY(tarn_model_enter(l->linear, TARN_FORWARD));
  matrix x = input(&h, m, i, rows);
  const float *w = net_hold_read(&h, l->w, TARN_DATA);
  const float *b = net_hold_read(&h, l->b, TARN_DATA);
  float *y = net_hold_write(&h, l->y, TARN_DATA, NET_SET);
  if (h.status == TARN_OK)
    matrix_product(rows_of(m), l->inputs, l->outputs, x, w, b, y);
  return net_hold_end(&h);
}

static void sum_rows(size_t rows, size_t columns, const float *from,
                     float *sum) {
  for (size_t j = 0; j < columns; j++)
    sum[j] = 0;
  for (size_t i = 0; i < rows; i++)
    for (size_t j = 0; j < columns; j++)
      sum[j] += from[i * columns + j];
}

// The gradients of weights and biases, of each slice by itself.
static void learn(const mlp *m, const mlp_layer *l, matrix x, const float *dy,
                  float *gradients, size_t stride) {
  for (size_t s = 0; s < m->slices; s++) {
    const float *slope = dy + s * m->slice * l->outputs;
    float *dw = gradients + s * stride + l->first;
    matrix turned = {x.at + s * m->slice * x.row, x.column, x.row};
    matrix_product(l->inputs, m->slice, l->outputs, turned, slope, NULL, dw);
    sum_rows(m->slice, l->outputs, slope, dw + l->inputs * l->outputs);
  }
}

static tarn_status linear_backward(const mlp *m, size_t i, tarn_synced *rows,
                                   float *gradients, size_t stride) {
  net_hold h = {.home = m->home};
  const mlp_layer *l = &m->layers[i];
  TRY(tarn_model_enter(l->linear, TARN_BACKWARD));
  matrix x = input(&h, m, i, rows);
  const float *dy = net_hold_read(&h, l->y, TARN_DIFF);
  if (h.status == TARN_OK) learn(m, l, x, dy, gradients, stride);
  if (l->turned != NULL) {
    const float *w = net_hold_read(&h, l->w, TARN_DATA);
    float *turned = net_hold_write(&h, l->turned, TARN_DATA, NET_SET);
    float *dx = net_hold_write(&h, m->layers[i - 1].out, TARN_DIFF, NET_SET);
    if (h.status == TARN_OK) {
      matrix_turn(l->inputs, l->outputs, w, turned);
      matrix_product(rows_of(m), l->outputs, l->inputs,
                     (matrix){dy, l->outputs, 1}, turned, NULL, dx);
    }
  }
  return net_hold_end(&h);
}

// --- relu ------------------------------------------------------------------

static tarn_status relu_forward(const mlp *m, const mlp_layer *l) {
  net_hold h = {.home = m->home};
  TRY(tarn_model_enter(l->relu, TARN_FORWARD));
  const float *y = net_hold_read(&h, l->y, TARN_DATA);
  float *out = net_hold_write(&h, l->out, TARN_DATA, NET_SET);
  if (h.status == TARN_OK) net_relu_forward(tarn_tensor_count(l->y), y, out);
  return net_hold_end(&h);
}

static tarn_status relu_backward(const mlp *m, const mlp_layer *l) {
  net_hold h = {.home = m->home};
  TRY(tarn_model_enter(l->relu, TARN_BACKWARD));
  const float *out = net_hold_read(&h, l->out, TARN_DATA);
  const float *slope = net_hold_read(&h, l->out, TARN_DIFF);
  float *dy = net_hold_write(&h, l->y, TARN_DIFF, NET_SET);
  if (h.status == TARN_OK)
    net_relu_backward(tarn_tensor_count(l->y), out, slope, dy);
  return net_hold_end(&h);
}

// --- loss ------------------------------------------------------------------

static void copy_labels(const mlp *m, const float *rows, int32_t *labels,
                        size_t counts[CLASSES]) {
  for (size_t i = 0; i < rows_of(m); i++) {
    labels[i] = (int32_t)rows[i * ROW + FEATURES];
    counts[labels[i]]++;
  }
}

static void score_slices(const mlp *m, const float *scores,
                         const int32_t *labels, mlp_outcome *out) {
  for (size_t s = 0; s < m->slices; s++) {
    size_t first = s * m->slice;
    net_score score = net_softmax_loss(
        m->slice, CLASSES, scores + first * CLASSES, labels + first, NULL);
    out->loss[s] = score.loss;
    out->correct += score.correct;
  }
}

static tarn_status loss_forward(const mlp *m, tarn_synced *rows,
                                mlp_outcome *out) {
  net_hold h = {.home = m->home};
  TRY(tarn_model_enter(m->loss, TARN_FORWARD));
  const float *at = net_hold_read_all(&h, rows);
  const float *scores = net_hold_read(&h, m->layers[LAYERS - 1].out, TARN_DATA);
  int32_t *labels = net_hold_write(&h, m->labels, TARN_DATA, NET_SET);
  *out = (mlp_outcome){0};
  if (h.status == TARN_OK) {
    copy_labels(m, at, labels, out->labels);
    score_slices(m, scores, labels, out);
  }
  return net_hold_end(&h);
}

// Slice by slice, since a slope is a share of its slice's mean.
static tarn_status loss_backward(const mlp *m) {
  net_hold h = {.home = m->home};
  const tarn_tensor *of = m->layers[LAYERS - 1].out;
  TRY(tarn_model_enter(m->loss, TARN_BACKWARD));
  const float *scores = net_hold_read(&h, of, TARN_DATA);
  const int32_t *labels = net_hold_read(&h, m->labels, TARN_DATA);
  float *slopes = net_hold_write(&h, of, TARN_DIFF, NET_SET);
  for (size_t s = 0; h.status == TARN_OK && s < m->slices; s++) {
    size_t first = s * m->slice, at = first * CLASSES;
    (void)net_softmax_loss(m->slice, CLASSES, scores + at, labels + first,
                           slopes + at);
  }
  return net_hold_end(&h);
}

// --- passes ----------------------------------------------------------------

tarn_status mlp_forward(mlp *m, tarn_synced *rows, mlp_outcome *out) {
  for (size_t i = 0; i < LAYERS; i++) {
    TRY(linear_forward(m, i, rows));
    if (m->layers[i].relu != NULL) TRY(relu_forward(m, &m->layers[i]));
  }
  return loss_forward(m, rows, out);
}

tarn_status mlp_backward(mlp *m, tarn_synced *rows, float *gradients,
                         size_t stride) {
  TRY(loss_backward(m));
  for (size_t i = LAYERS; i-- > 0;) {
    if (m->layers[i].relu != NULL) TRY(relu_backward(m, &m->layers[i]));
    TRY(linear_backward(m, i, rows, gradients, stride));
  }
  return tarn_model_leave(m->model);
}

// --- learning --------------------------------------------------------------

static tarn_status take(const mlp *m, const tarn_tensor *param,
                        const float *mean) {
  net_hold h = {.home = m->home};
  float *diff = net_hold_write(&h, param, TARN_DIFF, NET_SET);
  for (size_t i = 0; h.status == TARN_OK && i < tarn_tensor_count(param); i++)
    diff[i] = mean[i];
  return net_hold_end(&h);
}

static tarn_status descend(const mlp *m, const tarn_tensor *param,
                           const tarn_tensor *speed, double rate) {
  const net_sgd sgd = {.rate = rate, .momentum = 0.9};
  net_hold h = {.home = m->home};
  const float *diff = net_hold_read(&h, param, TARN_DIFF);
  float *w = net_hold_write(&h, param, TARN_DATA, NET_ADD);
  float *v = net_hold_write(&h, speed, TARN_DATA, NET_ADD);
  if (h.status == TARN_OK)
    (void)net_sgd_step(&sgd, tarn_tensor_count(param), w, diff, v);
  return net_hold_end(&h);
}

tarn_status mlp_descend(mlp *m, const float *mean, double rate) {
  for (size_t i = 0; i < LAYERS; i++) {
    const mlp_layer *l = &m->layers[i];
    const float *at = mean + l->first;
    TRY(take(m, l->w, at));
    TRY(take(m, l->b, at + l->inputs * l->outputs));
    TRY(descend(m, l->w, l->w_speed, rate));
    TRY(descend(m, l->b, l->b_speed, rate));
  }
  return TARN_OK;
}
