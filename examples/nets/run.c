// A net at work. Memory is taken by net_place, and by the first use of what is
// not planned: parameters, their gradients and speeds, and what is fed.
#include "net.h"
#include "random.h"

// --- memory ----------------------------------------------------------------

// Layers work at the host. Beside a home on a device that is memory which the
// device pins.
static tarn_place host_beside(tarn_place home) {
  if (tarn_place_equal(home, TARN_HOST)) return TARN_HOST;
  return (tarn_place){home.device, TARN_PLACE_HOST};
}

tarn_status net_plan(net *n, tarn_place home, tarn_model_mode mode) {
  const tarn_model_plan_options options = {.struct_size = sizeof options,
                                           .mode = mode,
                                           .home = home,
                                           .compute = host_beside(home)};
  n->home = home;
  bool has_way = !tarn_place_equal(home, TARN_HOST) && n->is_queued;
  if (has_way && n->way_home == NULL) {
    tarn_status status = tarn_stream_create(home.device, &n->way_home);
    if (status != TARN_OK) return status;
  }
  return tarn_model_plan(n->model, &options);
}

// What convolutions work in is no tensor of the model: a block of the host's
// pool, which they have in turn.
static tarn_status take_work(net *n) {
  tarn_pool *pool = NULL;
  if (n->work_count == 0) return TARN_OK;
  tarn_status status = tarn_pool_of(TARN_HOST, &pool);
  if (status != TARN_OK) return status;
  status = tarn_pool_alloc(pool, n->work_count * sizeof(net_real), 64, NULL,
                           &n->work);
  n->work_at = n->work.pointer;
  return status;
}

tarn_status net_place(net *n) {
  tarn_status status = take_work(n);
  return status == TARN_OK ? tarn_model_place(n->model) : status;
}

tarn_status net_end(net *n) {
  tarn_status status = tarn_model_destroy(n->model);
  if (n->work.pool != NULL) {
    tarn_status freed = tarn_pool_free(&n->work, NULL);
    if (status == TARN_OK) status = freed;
  }
  if (n->way_home != NULL) {
    tarn_status arrived = tarn_stream_destroy(n->way_home);
    if (status == TARN_OK) status = arrived;
  }
  *n = (net){0};
  return status;
}

// --- values ----------------------------------------------------------------

static tarn_status start_param(net *n, const net_param *p, net_random *random) {
  net_hold h = net_hold_of(n);
  size_t count = tarn_tensor_count(p->tensor);
  net_real *w = net_hold_write(&h, p->tensor, TARN_DATA, NET_SET);
  for (size_t i = 0; h.status == TARN_OK && i < count; i++)
    w[i] = 0;
  if (h.status == TARN_OK && p->fan_in != 0)
    net_init_kaiming(random, p->fan_in, p->gain, count, w);
  return net_hold_end(&h);
}

tarn_status net_start(net *n, uint64_t seed) {
  net_random random = {.state = seed};
  tarn_status status = TARN_OK;
  for (size_t i = 0; status == TARN_OK && i < n->param_count; i++)
    status = start_param(n, &n->params[i], &random);
  return status;
}

tarn_status net_fill(net *n, const net_dataset *images, net_part part,
                     uint64_t first) {
  net_hold h = net_hold_of(n);
  net_real *x = net_hold_write(&h, n->fed, TARN_DATA, NET_SET);
  int32_t *labels = net_hold_write(&h, n->labels, TARN_DATA, NET_SET);
  if (h.status == TARN_OK)
    net_batch_make(images, part, first, (size_t)tarn_model_batch(n->model), x,
                   labels);
  return net_hold_end(&h);
}

// --- passes ----------------------------------------------------------------

tarn_status net_forward(net *n) {
  for (size_t i = 0; i < n->layer_count; i++) {
    const net_layer *l = &n->layers[i];
    tarn_status status = tarn_model_enter(l->step, TARN_FORWARD);
    if (status == TARN_OK) status = l->kind->forward(n, l);
    if (status != TARN_OK) return status;
  }
  return TARN_OK;
}

tarn_status net_backward(net *n) {
  for (size_t i = n->layer_count; i-- > 0;) {
    const net_layer *l = &n->layers[i];
    tarn_status status = tarn_model_enter(l->step, TARN_BACKWARD);
    if (status == TARN_OK) status = l->kind->backward(n, l);
    if (status != TARN_OK) return status;
  }
  return tarn_model_leave(n->model);
}

// --- learning --------------------------------------------------------------

static net_sgd sgd_of(const net_param *p, const net_sgd *sgd) {
  net_sgd own = *sgd;
  if (!p->decays) own.decay = 0;
  return own;
}

static tarn_status descend(net *n, const net_param *p, const net_sgd *sgd,
                           double *decay) {
  net_hold h = net_hold_of(n);
  net_sgd own = sgd_of(p, sgd);
  const net_real *dw = net_hold_read(&h, p->tensor, TARN_DIFF);
  net_real *w = net_hold_write(&h, p->tensor, TARN_DATA, NET_ADD);
  net_real *v = net_hold_write(&h, p->speed, TARN_DATA, NET_ADD);
  if (h.status == TARN_OK)
    *decay += net_sgd_step(&own, tarn_tensor_count(p->tensor), w, dw, v);
  return net_hold_end(&h);
}

tarn_status net_descend(net *n, const net_sgd *sgd, double *out_decay) {
  tarn_status status = TARN_OK;
  *out_decay = 0;
  for (size_t i = 0; status == TARN_OK && i < n->param_count; i++)
    status = descend(n, &n->params[i], sgd, out_decay);
  return status;
}

static tarn_status weigh(net *n, const net_param *p, const net_sgd *sgd,
                         double *decay) {
  net_hold h = net_hold_of(n);
  net_sgd own = sgd_of(p, sgd);
  const net_real *w = net_hold_read(&h, p->tensor, TARN_DATA);
  if (h.status == TARN_OK)
    *decay += net_decay_loss(own.decay, tarn_tensor_count(p->tensor), w);
  return net_hold_end(&h);
}

tarn_status net_decay(net *n, const net_sgd *sgd, double *out_decay) {
  tarn_status status = TARN_OK;
  *out_decay = 0;
  for (size_t i = 0; status == TARN_OK && i < n->param_count; i++)
    status = weigh(n, &n->params[i], sgd, out_decay);
  return status;
}
