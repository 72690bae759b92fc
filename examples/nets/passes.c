// What each kind of layer does: it holds the bytes it told the model about, and
// computes.
#include <assert.h>
#include <string.h>

#include "net.h"

static size_t batch_of(const net *n) {
  return (size_t)tarn_model_batch(n->model);
}

// The gradient of |x|, or NULL where it is not needed.
static net_real *gradient_of(const net *n, net_hold *h, const tarn_tensor *x,
                             net_write write) {
  if (x == n->fed) return NULL;
  return net_hold_write(h, x, TARN_DIFF, write);
}

// --- linear ----------------------------------------------------------------

static tarn_status linear_forward(net *n, const net_layer *l) {
  net_hold h = net_hold_of(n);
  net_linear linear = l->linear;
  linear.batch = batch_of(n);
  const net_real *x = net_hold_read(&h, l->x, TARN_DATA);
  const net_real *w = net_hold_read(&h, l->w, TARN_DATA);
  const net_real *b = net_hold_read(&h, l->b, TARN_DATA);
  net_real *y = net_hold_write(&h, l->y, TARN_DATA, NET_SET);
  if (h.status == TARN_OK) net_linear_forward(&linear, x, w, b, y);
  return net_hold_end(&h);
}

static tarn_status linear_backward(net *n, const net_layer *l) {
  net_hold h = net_hold_of(n);
  net_linear linear = l->linear;
  linear.batch = batch_of(n);
  assert(l->into_x == NET_SET);
  const net_real *x = net_hold_read(&h, l->x, TARN_DATA);
  const net_real *w = net_hold_read(&h, l->w, TARN_DATA);
  const net_real *dy = net_hold_read(&h, l->y, TARN_DIFF);
  net_real *dx = gradient_of(n, &h, l->x, NET_SET);
  net_real *dw = net_hold_write(&h, l->w, TARN_DIFF, NET_SET);
  net_real *db = net_hold_write(&h, l->b, TARN_DIFF, NET_SET);
  if (h.status == TARN_OK) net_linear_backward(&linear, x, w, dy, dx, dw, db);
  return net_hold_end(&h);
}

const net_kind net_linear_kind = {linear_forward, linear_backward};

// --- convolution -----------------------------------------------------------

static tarn_status conv_forward(net *n, const net_layer *l) {
  net_hold h = net_hold_of(n);
  net_conv conv = l->conv;
  conv.batch = batch_of(n);
  const net_real *x = net_hold_read(&h, l->x, TARN_DATA);
  const net_real *w = net_hold_read(&h, l->w, TARN_DATA);
  const net_real *b = net_hold_read(&h, l->b, TARN_DATA);
  net_real *y = net_hold_write(&h, l->y, TARN_DATA, NET_SET);
  if (h.status == TARN_OK) net_conv_forward(&conv, x, w, b, y, n->work_at);
  return net_hold_end(&h);
}

static tarn_status conv_backward(net *n, const net_layer *l) {
  net_hold h = net_hold_of(n);
  net_conv conv = l->conv;
  conv.batch = batch_of(n);
  const net_real *x = net_hold_read(&h, l->x, TARN_DATA);
  const net_real *w = net_hold_read(&h, l->w, TARN_DATA);
  const net_real *dy = net_hold_read(&h, l->y, TARN_DIFF);
  net_real *dx = gradient_of(n, &h, l->x, l->into_x);
  net_real *dw = net_hold_write(&h, l->w, TARN_DIFF, NET_SET);
  net_real *db = net_hold_write(&h, l->b, TARN_DIFF, NET_SET);
  if (h.status == TARN_OK)
    net_conv_backward(&conv, x, w, dy, dx, l->into_x, dw, db, n->work_at);
  return net_hold_end(&h);
}

const net_kind net_conv_kind = {conv_forward, conv_backward};

// --- element by element ----------------------------------------------------

static tarn_status relu_forward(net *n, const net_layer *l) {
  net_hold h = net_hold_of(n);
  const net_real *x = net_hold_read(&h, l->x, TARN_DATA);
  net_real *y = net_hold_write(&h, l->y, TARN_DATA, NET_SET);
  if (h.status == TARN_OK) net_relu_forward(tarn_tensor_count(l->y), x, y);
  return net_hold_end(&h);
}

static tarn_status relu_backward(net *n, const net_layer *l) {
  net_hold h = net_hold_of(n);
  assert(l->into_x == NET_SET);
  const net_real *y = net_hold_read(&h, l->y, TARN_DATA);
  const net_real *dy = net_hold_read(&h, l->y, TARN_DIFF);
  net_real *dx = net_hold_write(&h, l->x, TARN_DIFF, NET_SET);
  if (h.status == TARN_OK)
    net_relu_backward(tarn_tensor_count(l->y), y, dy, dx);
  return net_hold_end(&h);
}

const net_kind net_relu_kind = {relu_forward, relu_backward};

static tarn_status add_forward(net *n, const net_layer *l) {
  net_hold h = net_hold_of(n);
  const net_real *a = net_hold_read(&h, l->x, TARN_DATA);
  const net_real *b = net_hold_read(&h, l->other, TARN_DATA);
  net_real *y = net_hold_write(&h, l->y, TARN_DATA, NET_SET);
  if (h.status == TARN_OK) net_add(tarn_tensor_count(l->y), a, b, y);
  return net_hold_end(&h);
}

// dx = dy: no work where it has its place.
static void copy_unless_there(size_t count, const net_real *from,
                              net_real *to) {
  if (to != from) memcpy(to, from, count * sizeof *to);
}

static tarn_status add_backward(net *n, const net_layer *l) {
  net_hold h = net_hold_of(n);
  size_t count = tarn_tensor_count(l->y);
  assert(l->into_x == NET_SET);
  const net_real *dy = net_hold_read(&h, l->y, TARN_DIFF);
  net_real *da = net_hold_write(&h, l->x, TARN_DIFF, NET_SET);
  net_real *db = net_hold_write(&h, l->other, TARN_DIFF, l->into_other);
  if (h.status == TARN_OK) {
    copy_unless_there(count, dy, da);
    if (l->into_other == NET_ADD) net_add(count, db, da, db);
    if (l->into_other == NET_SET) copy_unless_there(count, da, db);
  }
  return net_hold_end(&h);
}

const net_kind net_add_kind = {add_forward, add_backward};

// --- the mean of each channel ----------------------------------------------

static tarn_status mean_forward(net *n, const net_layer *l) {
  net_hold h = net_hold_of(n);
  size_t count = tarn_tensor_count(l->y);
  const net_real *x = net_hold_read(&h, l->x, TARN_DATA);
  net_real *y = net_hold_write(&h, l->y, TARN_DATA, NET_SET);
  if (h.status == TARN_OK)
    net_mean_forward(count, tarn_tensor_count(l->x) / count, x, y);
  return net_hold_end(&h);
}

static tarn_status mean_backward(net *n, const net_layer *l) {
  net_hold h = net_hold_of(n);
  size_t count = tarn_tensor_count(l->y);
  assert(l->into_x == NET_SET);
  const net_real *dy = net_hold_read(&h, l->y, TARN_DIFF);
  net_real *dx = net_hold_write(&h, l->x, TARN_DIFF, NET_SET);
  if (h.status == TARN_OK)
    net_mean_backward(count, tarn_tensor_count(l->x) / count, dy, dx);
  return net_hold_end(&h);
}

const net_kind net_mean_kind = {mean_forward, mean_backward};

// --- loss ------------------------------------------------------------------

static tarn_status loss_forward(net *n, const net_layer *l) {
  net_hold h = net_hold_of(n);
  const net_real *scores = net_hold_read(&h, l->x, TARN_DATA);
  const int32_t *labels = net_hold_read(&h, n->labels, TARN_DATA);
  if (h.status == TARN_OK)
    n->score = net_softmax_loss(batch_of(n), (size_t)l->x->shape.dims[1],
                                scores, labels, NULL);
  return net_hold_end(&h);
}

static tarn_status loss_backward(net *n, const net_layer *l) {
  net_hold h = net_hold_of(n);
  const net_real *scores = net_hold_read(&h, l->x, TARN_DATA);
  const int32_t *labels = net_hold_read(&h, n->labels, TARN_DATA);
  net_real *slopes = net_hold_write(&h, l->x, TARN_DIFF, NET_SET);
  if (h.status == TARN_OK)
    net_softmax_loss(batch_of(n), (size_t)l->x->shape.dims[1], scores, labels,
                     slopes);
  return net_hold_end(&h);
}

const net_kind net_loss_kind = {loss_forward, loss_backward};
