// A net of two layers, described, planned and placed by tarn/model.h, and
// trained for two rounds with plain loops:
//
//   x ─► fc1 ─► relu ─► fc2 ─► loss        wanted, what y should be
//
// It prints what its memory comes to, and where each part lies and when.
#include <stdio.h>
#include <stdlib.h>
#include <tarn/tarn.h>

enum { BATCH = 32, IN = 4, HIDDEN = 16, PASSES = 8 };

typedef struct net {
  tarn_model *model;
  tarn_tensor *x, *wanted;  // fed: no step writes them
  tarn_tensor *w1, *w2;     // learnable
  tarn_tensor *h, *a, *y;   // of fc1, relu and fc2
  tarn_tensor *mask;        // relu's cache: where h was positive, as bits
  tarn_step *fc1, *relu, *fc2, *loss;
} net;

static void check(tarn_status status) {
  if (status == TARN_OK) return;
  fprintf(stderr, "model: %s: %s\n", tarn_status_name(status),
          tarn_last_error());
  exit(EXIT_FAILURE);
}

// --- the description -------------------------------------------------------

static tarn_tensor *add(net *n, tarn_tensor_kind kind, const char *name,
                        int64_t rows, int64_t columns) {
  const int64_t dims[] = {rows, columns};
  tarn_tensor *t;
  check(tarn_model_add(n->model, kind, name, TARN_DTYPE_F32,
                       (tarn_shape){dims, 2}, &t));
  return t;
}

static void add_tensors(net *n) {
  n->x = add(n, TARN_OUTPUT, "x", TARN_DIM_BATCH, IN);
  n->wanted = add(n, TARN_OUTPUT, "wanted", TARN_DIM_BATCH, 1);
  n->w1 = add(n, TARN_PARAM, "fc1.weight", IN, HIDDEN);
  n->h = add(n, TARN_OUTPUT, "fc1.out", TARN_DIM_BATCH, HIDDEN);
  n->a = add(n, TARN_OUTPUT, "relu.out", TARN_DIM_BATCH, HIDDEN);
  n->w2 = add(n, TARN_PARAM, "fc2.weight", HIDDEN, 1);
  n->y = add(n, TARN_OUTPUT, "fc2.out", TARN_DIM_BATCH, 1);
}

// y = x w; backward x is read again, and x and w get their diffs. What is fed
// needs none.
static tarn_step *add_linear(net *n, const char *name, tarn_tensor *x,
                             tarn_tensor *w, tarn_tensor *y) {
  tarn_step *step;
  check(tarn_model_step(n->model, name, &step));
  check(tarn_step_reads(step, TARN_FORWARD, x, TARN_DATA));
  check(tarn_step_reads(step, TARN_FORWARD, w, TARN_DATA));
  check(tarn_step_writes(step, TARN_FORWARD, y, TARN_DATA));
  check(tarn_step_reads(step, TARN_BACKWARD, x, TARN_DATA));
  check(tarn_step_reads(step, TARN_BACKWARD, w, TARN_DATA));
  check(tarn_step_reads(step, TARN_BACKWARD, y, TARN_DIFF));
  check(tarn_step_writes(step, TARN_BACKWARD, w, TARN_DIFF));
  if (x != n->x) check(tarn_step_writes(step, TARN_BACKWARD, x, TARN_DIFF));
  return step;
}

static void add_relu(net *n) {
  check(tarn_model_step(n->model, "relu", &n->relu));
  check(tarn_step_replaces(n->relu, TARN_FORWARD, n->h, TARN_DATA, n->a,
                           TARN_DATA));
  check(tarn_step_replaces(n->relu, TARN_BACKWARD, n->a, TARN_DIFF, n->h,
                           TARN_DIFF));
  check(tarn_step_caches(n->relu, "relu.mask", TARN_DTYPE_BOOL, n->a->shape,
                         true, &n->mask));
}

// Forward it only looks; backward y's diff may take the place of y.
static void add_loss(net *n) {
  check(tarn_model_step(n->model, "loss", &n->loss));
  check(tarn_step_reads(n->loss, TARN_FORWARD, n->y, TARN_DATA));
  check(tarn_step_reads(n->loss, TARN_FORWARD, n->wanted, TARN_DATA));
  check(tarn_step_reads(n->loss, TARN_BACKWARD, n->wanted, TARN_DATA));
  check(tarn_step_replaces(n->loss, TARN_BACKWARD, n->y, TARN_DATA, n->y,
                           TARN_DIFF));
}

static void describe(net *n) {
  check(tarn_model_create(
      &(tarn_model_options){.struct_size = sizeof(tarn_model_options),
                            .name = "small",
                            .max_batch = BATCH},
      &n->model));
  add_tensors(n);
  n->fc1 = add_linear(n, "fc1", n->x, n->w1, n->h);
  add_relu(n);
  n->fc2 = add_linear(n, "fc2", n->a, n->w2, n->y);
  add_loss(n);
}

// --- the plan, in words ----------------------------------------------------

static tarn_status print_slot(void *context, const tarn_model_slot *slot) {
  char line[PASSES + 1] = "........";
  (void)context;
  for (uint64_t t = slot->first; t <= slot->last; t++)
    line[t] = '#';
  printf("  %-9s %s  %5zu  %5zu  %s\n", slot->tensor->name,
         slot->part == TARN_DATA ? "data" : "diff", slot->offset, slot->size,
         line);
  return TARN_OK;
}

static void print_plan(const net *n) {
  tarn_model_needs r = {.struct_size = sizeof r};
  check(tarn_model_report(n->model, &r));
  printf("params %zu, naive %zu, planned %zu, bound %zu bytes: %s\n",
         r.kinds[TARN_PARAM], r.naive, r.planned, r.bound,
         tarn_plan_answer_name(r.answer));
  printf("  part           offset   size  when\n");
  check(tarn_model_each_slot(n->model, print_slot, NULL));
}

// --- bytes -----------------------------------------------------------------

static float *begin(tarn_tensor *t, tarn_synced *bytes, uint32_t mode,
                    tarn_access *out_access) {
  check(tarn_synced_begin(bytes, 0, tarn_tensor_size(t), TARN_HOST, mode, NULL,
                          out_access));
  return out_access->pointer;
}

static void end(tarn_access *accesses, size_t count) {
  for (size_t i = 0; i < count; i++)
    check(tarn_synced_end(&accesses[i]));
}

static float number(uint32_t *seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return (float)(*seed >> 8) / (float)(1 << 23) - 1;
}

static void fill(tarn_tensor *t, uint32_t *seed) {
  tarn_access access;
  float *v = begin(t, t->data, TARN_WRITE_DISCARD, &access);
  for (size_t i = 0; i < tarn_tensor_count(t); i++)
    v[i] = number(seed);
  end(&access, 1);
}

static void feed(const net *n) {
  uint32_t seed = 1;
  fill(n->w1, &seed);
  fill(n->w2, &seed);
  fill(n->x, &seed);
  tarn_access a[2];
  const float *x = begin(n->x, n->x->data, TARN_READ, &a[0]);
  float *wanted = begin(n->wanted, n->wanted->data, TARN_WRITE_DISCARD, &a[1]);
  for (size_t b = 0; b < BATCH; b++)
    wanted[b] = x[b * IN] - (x[b * IN + 1] > 0 ? x[b * IN + 1] : 0);
  end(a, 2);
}

// --- layers ----------------------------------------------------------------

static void linear_forward(tarn_tensor *x, tarn_tensor *w, tarn_tensor *y) {
  size_t in = (size_t)w->shape.dims[0], out = (size_t)w->shape.dims[1];
  tarn_access a[3];
  const float *xs = begin(x, x->data, TARN_READ, &a[0]);
  const float *ws = begin(w, w->data, TARN_READ, &a[1]);
  float *ys = begin(y, y->data, TARN_WRITE_DISCARD, &a[2]);
  for (size_t b = 0; b < BATCH; b++) {
    for (size_t j = 0; j < out; j++) {
      float sum = 0;
      for (size_t i = 0; i < in; i++)
        sum += xs[b * in + i] * ws[i * out + j];
      ys[b * out + j] = sum;
    }
  }
  end(a, 3);
}

static void linear_weight_diff(tarn_tensor *x, tarn_tensor *w, tarn_tensor *y) {
  size_t in = (size_t)w->shape.dims[0], out = (size_t)w->shape.dims[1];
  tarn_access a[3];
  const float *xs = begin(x, x->data, TARN_READ, &a[0]);
  const float *dy = begin(y, y->diff, TARN_READ, &a[1]);
  float *dw = begin(w, w->diff, TARN_WRITE_DISCARD, &a[2]);
  for (size_t i = 0; i < in; i++) {
    for (size_t j = 0; j < out; j++) {
      float sum = 0;
      for (size_t b = 0; b < BATCH; b++)
        sum += xs[b * in + i] * dy[b * out + j];
      dw[i * out + j] = sum;
    }
  }
  end(a, 3);
}

static void linear_input_diff(tarn_tensor *x, tarn_tensor *w, tarn_tensor *y) {
  size_t in = (size_t)w->shape.dims[0], out = (size_t)w->shape.dims[1];
  tarn_access a[3];
  const float *ws = begin(w, w->data, TARN_READ, &a[0]);
  const float *dy = begin(y, y->diff, TARN_READ, &a[1]);
  float *dx = begin(x, x->diff, TARN_WRITE_DISCARD, &a[2]);
  for (size_t b = 0; b < BATCH; b++) {
    for (size_t i = 0; i < in; i++) {
      float sum = 0;
      for (size_t j = 0; j < out; j++)
        sum += dy[b * out + j] * ws[i * out + j];
      dx[b * in + i] = sum;
    }
  }
  end(a, 3);
}

// In place or not: one loop, which reads an element before it writes it.
static void relu_forward(const net *n) {
  size_t count = tarn_tensor_count(n->a);
  tarn_synced *cache;
  tarn_access a[3];
  check(tarn_step_push(n->relu, TARN_DTYPE_BOOL, count, true, &cache));
  const float *h = begin(n->h, n->h->data, TARN_READ, &a[0]);
  float *out = begin(n->a, n->a->data, TARN_WRITE_DISCARD, &a[1]);
  begin(n->mask, cache, TARN_WRITE_DISCARD, &a[2]);
  unsigned char *bits = a[2].pointer;
  for (size_t i = 0; i < count; i++) {
    unsigned bit = h[i] > 0;
    unsigned before = i % 8 == 0 ? 0 : bits[i / 8];
    bits[i / 8] = (unsigned char)(before | bit << i % 8);
    out[i] = bit ? h[i] : 0;
  }
  end(a, 3);
}

static void relu_backward(const net *n) {
  size_t count = tarn_tensor_count(n->a);
  tarn_synced *cache;
  tarn_access a[3];
  check(tarn_step_pop(n->relu, TARN_DTYPE_BOOL, count, true, &cache));
  const float *da = begin(n->a, n->a->diff, TARN_READ, &a[0]);
  float *dh = begin(n->h, n->h->diff, TARN_WRITE_DISCARD, &a[1]);
  begin(n->mask, cache, TARN_READ, &a[2]);
  const unsigned char *bits = a[2].pointer;
  for (size_t i = 0; i < count; i++)
    dh[i] = bits[i / 8] >> i % 8 & 1 ? da[i] : 0;
  end(a, 3);
}

static float loss_forward(const net *n) {
  float sum = 0;
  tarn_access a[2];
  const float *y = begin(n->y, n->y->data, TARN_READ, &a[0]);
  const float *wanted = begin(n->wanted, n->wanted->data, TARN_READ, &a[1]);
  for (size_t b = 0; b < BATCH; b++)
    sum += (y[b] - wanted[b]) * (y[b] - wanted[b]) / BATCH;
  end(a, 2);
  return sum;
}

static void loss_backward(const net *n) {
  tarn_access a[3];
  const float *y = begin(n->y, n->y->data, TARN_READ, &a[0]);
  const float *wanted = begin(n->wanted, n->wanted->data, TARN_READ, &a[1]);
  float *dy = begin(n->y, n->y->diff, TARN_WRITE_DISCARD, &a[2]);
  for (size_t b = 0; b < BATCH; b++)
    dy[b] = 2 * (y[b] - wanted[b]) / BATCH;
  end(a, 3);
}

// --- a round ---------------------------------------------------------------

static float forward(const net *n) {
  check(tarn_model_enter(n->fc1, TARN_FORWARD));
  linear_forward(n->x, n->w1, n->h);
  check(tarn_model_enter(n->relu, TARN_FORWARD));
  relu_forward(n);
  check(tarn_model_enter(n->fc2, TARN_FORWARD));
  linear_forward(n->a, n->w2, n->y);
  check(tarn_model_enter(n->loss, TARN_FORWARD));
  return loss_forward(n);
}

static void backward(const net *n) {
  check(tarn_model_enter(n->loss, TARN_BACKWARD));
  loss_backward(n);
  check(tarn_model_enter(n->fc2, TARN_BACKWARD));
  linear_weight_diff(n->a, n->w2, n->y);
  linear_input_diff(n->a, n->w2, n->y);
  check(tarn_model_enter(n->relu, TARN_BACKWARD));
  relu_backward(n);
  check(tarn_model_enter(n->fc1, TARN_BACKWARD));
  linear_weight_diff(n->x, n->w1, n->h);
  check(tarn_model_leave(n->model));
}

static tarn_status descend(void *context, tarn_tensor *w) {
  tarn_access a[2];
  (void)context;
  float *v = begin(w, w->data, TARN_READ_WRITE, &a[0]);
  const float *dv = begin(w, w->diff, TARN_READ, &a[1]);
  for (size_t i = 0; i < tarn_tensor_count(w); i++)
    v[i] -= 0.1f * dv[i];
  end(a, 2);
  return TARN_OK;
}

int main(void) {
  net n = {0};
  describe(&n);
  check(tarn_model_plan(n.model, NULL));
  print_plan(&n);
  check(tarn_model_place(n.model));

  feed(&n);
  float loss[2];
  for (int round = 0; round < 2; round++) {
    loss[round] = forward(&n);
    backward(&n);
    check(tarn_model_each(n.model, TARN_PARAM, NULL, descend, NULL));
    printf("round %d: loss %.4f\n", round, (double)loss[round]);
  }

  tarn_access late;  // fc1.out lives in a round only, and is refused now
  tarn_status status = tarn_synced_begin(n.h->data, 0, TARN_ALL, TARN_HOST,
                                         TARN_READ, NULL, &late);
  printf("too late: %s: %s\n", tarn_status_name(status), tarn_last_error());
  check(tarn_model_destroy(n.model));
  return status == TARN_E_STATE && loss[1] < loss[0] ? EXIT_SUCCESS
                                                     : EXIT_FAILURE;
}
