// Trials of layers and small nets. Each takes the values that it works on from
// the run's vector, part by part, and gives the gradient of each back.
//
// A layer by itself has as its loss the sum of its outputs, each times a fixed
// number, which is then what backward gets as dy. The nets have softmax's loss
// and a weight decay, whose gradient is read off a step of SGD.
#include "net_trial.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "nets/layers.h"
#include "nets/random.h"

#ifdef NET_F64
#define net_trial_run_it net_trial_f64
#else
#define net_trial_run_it net_trial_f32
#endif

enum { SCRATCH = 1 << 16 };

// One run under way.
typedef struct workbench {
  const double *values;
  net_trial_run *run;
  net_real *slopes_at[NET_TRIAL_PARTS];
  size_t used;
  net_real scratch[SCRATCH];
} workbench;

// Memory that holds nonsense, which a layer has to overwrite.
static net_real *scratch(workbench *bench, size_t count) {
  assert(bench->used + count <= SCRATCH);
  net_real *at = bench->scratch + bench->used;
  bench->used += count;
  for (size_t i = 0; i < count; i++)
    at[i] = 77;
  return at;
}

// The next |count| values of the vector. |*slope|: where their gradient goes.
static net_real *take(workbench *bench, const char *name, size_t count,
                      net_real **slope) {
  net_trial_run *run = bench->run;
  assert(run->part_count < NET_TRIAL_PARTS);
  assert(run->count + count <= NET_TRIAL_VALUES);
  net_real *at = scratch(bench, count);
  for (size_t i = 0; i < count; i++)
    at[i] = (net_real)bench->values[run->count + i];
  *slope = scratch(bench, count);
  bench->slopes_at[run->part_count] = *slope;
  run->parts[run->part_count++] = (net_trial_part){name, count};
  run->count += count;
  return at;
}

// Which of |y| are on becomes part of the run's pattern.
static void note_pattern(workbench *bench, size_t count, const net_real *y) {
  for (size_t i = 0; i < count; i++)
    bench->run->pattern = bench->run->pattern * 0x100000001b3 + (y[i] > 0) + 1;
}

// The fixed numbers that a layer's outputs are weighed with.
static net_real *weights_of(workbench *bench, size_t count) {
  net_random random = {.state = 5};
  net_real *dy = scratch(bench, count);
  for (size_t i = 0; i < count; i++)
    dy[i] = (net_real)net_random_bell(&random);
  return dy;
}

static double weigh(size_t count, const net_real *y, const net_real *dy) {
  double sum = 0;
  for (size_t i = 0; i < count; i++)
    sum += (double)y[i] * (double)dy[i];
  return sum;
}

// --- layers by themselves --------------------------------------------------

static double try_linear(workbench *bench) {
  net_linear layer = {.batch = 3, .inputs = 7, .outputs = 5};
  net_real *dx = NULL, *dw = NULL, *db = NULL;
  net_real *x = take(bench, "x", 21, &dx);
  net_real *w = take(bench, "w", 35, &dw);
  net_real *b = take(bench, "b", 5, &db);
  net_real *y = scratch(bench, 15);
  net_real *dy = weights_of(bench, 15);
  net_linear_forward(&layer, x, w, b, y);
  net_linear_backward(&layer, x, w, dy, dx, dw, db);
  return weigh(15, y, dy);
}

static double try_conv(workbench *bench, net_conv layer) {
  net_real *dx = NULL, *dw = NULL, *db = NULL;
  size_t inputs = layer.batch * layer.in * layer.height * layer.width;
  size_t outputs = layer.batch * layer.out *
                   net_conv_size(&layer, layer.height) *
                   net_conv_size(&layer, layer.width);
  net_real *x = take(bench, "x", inputs, &dx);
  net_real *w =
      take(bench, "w", layer.out * layer.in * layer.kernel * layer.kernel, &dw);
  net_real *b = take(bench, "b", layer.out, &db);
  net_real *y = scratch(bench, outputs);
  net_real *dy = weights_of(bench, outputs);
  net_real *work = scratch(bench, net_conv_work(&layer));
  net_conv_forward(&layer, x, w, b, y, work);
  net_conv_backward(&layer, x, w, dy, dx, NET_SET, dw, db, work);
  return weigh(outputs, y, dy);
}

static double try_conv_3x3(workbench *bench) {
  return try_conv(bench, (net_conv){.batch = 2,
                                    .in = 3,
                                    .out = 4,
                                    .height = 5,
                                    .width = 7,
                                    .kernel = 3,
                                    .stride = 1});
}

static double try_conv_3x3_stride_2(workbench *bench) {
  return try_conv(bench, (net_conv){.batch = 2,
                                    .in = 3,
                                    .out = 5,
                                    .height = 6,
                                    .width = 7,
                                    .kernel = 3,
                                    .stride = 2});
}

static double try_conv_1x1_stride_2(workbench *bench) {
  return try_conv(bench, (net_conv){.batch = 3,
                                    .in = 4,
                                    .out = 3,
                                    .height = 7,
                                    .width = 6,
                                    .kernel = 1,
                                    .stride = 2});
}

static double try_conv_tiny(workbench *bench) {
  return try_conv(bench, (net_conv){.batch = 2,
                                    .in = 2,
                                    .out = 2,
                                    .height = 1,
                                    .width = 2,
                                    .kernel = 3,
                                    .stride = 1});
}

static double try_conv_5x5(workbench *bench) {
  return try_conv(bench, (net_conv){.batch = 1,
                                    .in = 2,
                                    .out = 2,
                                    .height = 4,
                                    .width = 1,
                                    .kernel = 5,
                                    .stride = 3});
}

static double try_relu(workbench *bench) {
  net_real *dx = NULL;
  net_real *x = take(bench, "x", 37, &dx);
  net_real *dy = weights_of(bench, 37);
  net_real *y = scratch(bench, 37);
  net_relu_forward(37, x, y);
  note_pattern(bench, 37, y);
  net_relu_backward(37, y, dy, dx);
  return weigh(37, y, dy);
}

static double try_relu_mask(workbench *bench) {
  net_real *dx = NULL;
  net_real *x = take(bench, "x", 37, &dx);
  net_real *dy = weights_of(bench, 37);
  uint8_t mask[5];
  net_relu_mask_forward(37, x, x, mask);
  note_pattern(bench, 37, x);
  net_relu_mask_backward(37, mask, dy, dx);
  return weigh(37, x, dy);
}

static double try_mean(workbench *bench) {
  net_real *dx = NULL;
  net_real *x = take(bench, "x", 210, &dx);
  net_real *dy = weights_of(bench, 6);
  net_real *y = scratch(bench, 6);
  net_mean_forward(6, 35, x, y);
  net_mean_backward(6, 35, dy, dx);
  return weigh(6, y, dy);
}

static double try_add(workbench *bench) {
  net_real *da = NULL, *db = NULL;
  net_real *a = take(bench, "a", 19, &da);
  net_real *b = take(bench, "b", 19, &db);
  net_real *dy = weights_of(bench, 19);
  net_add(19, a, b, a);
  memcpy(da, dy, 19 * sizeof *da);
  memcpy(db, dy, 19 * sizeof *db);
  return weigh(19, a, dy);
}

static double try_softmax(workbench *bench) {
  static const int32_t labels[4] = {2, 0, 6, 2};
  net_real *dx = NULL;
  net_real *x = take(bench, "scores", 28, &dx);
  return net_softmax_loss(4, 7, x, labels, dx).loss;
}

// --- nets ------------------------------------------------------------------

// Adds the decay's gradient to |dw| and returns its loss: a step of SGD at
// rate 1 without momentum takes off the whole gradient.
static double decay(workbench *bench, size_t count, const net_real *w,
                    net_real *dw) {
  net_sgd sgd = {.rate = 1, .momentum = 0, .decay = 0.3};
  net_real *after = scratch(bench, count);
  net_real *v = scratch(bench, count);
  memcpy(after, w, count * sizeof *after);
  double loss = net_sgd_step(&sgd, count, after, dw, v);
  for (size_t i = 0; i < count; i++)
    dw[i] = w[i] - after[i];
  return loss;
}

static const int32_t net_labels[4] = {1, 0, 2, 1};

// The parameters of one layer of a net.
typedef struct learned {
  size_t count;  // of w
  net_real *w;
  net_real *dw;
  net_real *b;
  net_real *db;
} learned;

static learned take_learned(workbench *bench, size_t count, size_t outputs) {
  learned of = {.count = count};
  of.w = take(bench, "w", count, &of.dw);
  of.b = take(bench, "b", outputs, &of.db);
  return of;
}

static double try_mlp(workbench *bench) {
  enum { BATCH = 4, LAYERS = 3 };
  static const size_t sizes[LAYERS + 1] = {7, 6, 5, 3};
  net_linear layers[LAYERS];
  learned of[LAYERS];
  net_real *y[LAYERS + 1], *dy[LAYERS + 1];
  y[0] = take(bench, "x", BATCH * sizes[0], &dy[0]);
  for (size_t i = 0; i < LAYERS; i++) {
    layers[i] = (net_linear){BATCH, sizes[i], sizes[i + 1]};
    of[i] = take_learned(bench, sizes[i] * sizes[i + 1], sizes[i + 1]);
    y[i + 1] = scratch(bench, BATCH * sizes[i + 1]);
    dy[i + 1] = scratch(bench, BATCH * sizes[i + 1]);
    net_linear_forward(&layers[i], y[i], of[i].w, of[i].b, y[i + 1]);
    if (i + 1 == LAYERS) break;
    net_relu_forward(BATCH * sizes[i + 1], y[i + 1], y[i + 1]);
    note_pattern(bench, BATCH * sizes[i + 1], y[i + 1]);
  }
  double loss =
      net_softmax_loss(BATCH, sizes[LAYERS], y[LAYERS], net_labels, dy[LAYERS])
          .loss;
  for (size_t i = LAYERS; i-- > 0;) {
    if (i + 1 < LAYERS)
      net_relu_backward(BATCH * sizes[i + 1], y[i + 1], dy[i + 1], dy[i + 1]);
    net_linear_backward(&layers[i], y[i], of[i].w, dy[i + 1], dy[i], of[i].dw,
                        of[i].db);
    loss += decay(bench, of[i].count, of[i].w, of[i].dw);
  }
  return loss;
}

// A convolution of the small net, with what it reads and writes.
typedef struct conv_branch {
  net_conv layer;
  learned of;
  size_t count;  // of y
  net_real *y;
  net_real *dy;
} conv_branch;

static conv_branch make_branch(workbench *bench, net_conv layer) {
  conv_branch made = {.layer = layer};
  made.of = take_learned(
      bench, layer.in * layer.out * layer.kernel * layer.kernel, layer.out);
  made.count = layer.batch * layer.out * net_conv_size(&layer, layer.height) *
               net_conv_size(&layer, layer.width);
  made.y = scratch(bench, made.count);
  made.dy = scratch(bench, made.count);
  return made;
}

static void go_forward(workbench *bench, const conv_branch *branch,
                       const net_real *x, bool relu) {
  net_conv_forward(&branch->layer, x, branch->of.w, branch->of.b, branch->y,
                   scratch(bench, net_conv_work(&branch->layer)));
  if (!relu) return;
  net_relu_forward(branch->count, branch->y, branch->y);
  note_pattern(bench, branch->count, branch->y);
}

// Returns the decay's loss.
static double go_back(workbench *bench, const conv_branch *branch,
                      const net_real *x, const net_real *dy, net_real *dx,
                      net_write write) {
  net_conv_backward(&branch->layer, x, branch->of.w, dy, dx, write,
                    branch->of.dw, branch->of.db,
                    scratch(bench, net_conv_work(&branch->layer)));
  return decay(bench, branch->of.count, branch->of.w, branch->of.dw);
}

// Two blocks as ResNet has them, the first with a shortcut of stride 2:
//
//   x - first - ReLU -+- conv /2 - ReLU - conv -+- add - ReLU -+- conv - ...
//                     `- 1x1 /2 ----------------'              `----------
static double try_resnet(workbench *bench) {
  enum { BATCH = 4, CLASSES = 3, WIDE = 4 };
  net_conv shape = {.batch = BATCH,
                    .in = 2,
                    .out = 3,
                    .height = 5,
                    .width = 6,
                    .kernel = 3,
                    .stride = 1};
  net_real *dx = NULL;
  net_real *x = take(bench, "x", (size_t)BATCH * 2 * 5 * 6, &dx);
  conv_branch first = make_branch(bench, shape);
  shape.in = 3;
  shape.out = WIDE;
  shape.stride = 2;
  conv_branch down = make_branch(bench, shape);
  shape.kernel = 1;
  conv_branch across = make_branch(bench, shape);
  shape = (net_conv){BATCH, WIDE, WIDE, 3, 3, 3, 1};
  conv_branch same = make_branch(bench, shape);
  conv_branch third = make_branch(bench, shape);
  conv_branch fourth = make_branch(bench, shape);
  learned last = take_learned(bench, (size_t)WIDE * CLASSES, CLASSES);
  net_linear linear = {BATCH, WIDE, CLASSES};
  size_t count = same.count;
  net_real *mean = scratch(bench, (size_t)BATCH * WIDE);
  net_real *scores = scratch(bench, (size_t)BATCH * CLASSES);

  go_forward(bench, &first, x, true);
  go_forward(bench, &down, first.y, true);
  go_forward(bench, &same, down.y, false);
  go_forward(bench, &across, first.y, false);
  net_add(count, same.y, across.y, same.y);
  net_relu_forward(count, same.y, same.y);
  note_pattern(bench, count, same.y);
  go_forward(bench, &third, same.y, true);
  go_forward(bench, &fourth, third.y, false);
  net_add(count, fourth.y, same.y, fourth.y);
  net_relu_forward(count, fourth.y, fourth.y);
  note_pattern(bench, count, fourth.y);
  net_mean_forward((size_t)BATCH * WIDE, 9, fourth.y, mean);
  net_linear_forward(&linear, mean, last.w, last.b, scores);
  double loss =
      net_softmax_loss(BATCH, CLASSES, scores, net_labels, scores).loss;

  net_real *dmean = scratch(bench, (size_t)BATCH * WIDE);
  net_linear_backward(&linear, mean, last.w, scores, dmean, last.dw, last.db);
  loss += decay(bench, last.count, last.w, last.dw);
  net_mean_backward((size_t)BATCH * WIDE, 9, dmean, fourth.dy);
  net_relu_backward(count, fourth.y, fourth.dy, fourth.dy);
  loss += go_back(bench, &fourth, third.y, fourth.dy, third.dy, NET_SET);
  net_relu_backward(count, third.y, third.dy, third.dy);
  // The sum's gradient goes to both: it is where that of the branch is added.
  loss += go_back(bench, &third, same.y, third.dy, fourth.dy, NET_ADD);
  net_relu_backward(count, same.y, fourth.dy, same.dy);
  loss += go_back(bench, &same, down.y, same.dy, down.dy, NET_SET);
  net_relu_backward(down.count, down.y, down.dy, down.dy);
  loss += go_back(bench, &down, first.y, down.dy, first.dy, NET_SET);
  loss += go_back(bench, &across, first.y, same.dy, first.dy, NET_ADD);
  net_relu_backward(first.count, first.y, first.dy, first.dy);
  loss += go_back(bench, &first, x, first.dy, dx, NET_SET);
  return loss;
}

// --- all of them -----------------------------------------------------------

static const struct {
  const char *name;
  double (*run)(workbench *bench);
} trials[] = {
    {"linear", try_linear},
    {"conv 3x3", try_conv_3x3},
    {"conv 3x3, stride 2", try_conv_3x3_stride_2},
    {"conv 1x1, stride 2", try_conv_1x1_stride_2},
    {"conv 3x3 of 1 x 2", try_conv_tiny},
    {"conv 5x5, stride 3, of 4 x 1", try_conv_5x5},
    {"relu", try_relu},
    {"relu with a mask", try_relu_mask},
    {"mean", try_mean},
    {"add", try_add},
    {"softmax", try_softmax},
    {"mlp", try_mlp},
    {"resnet", try_resnet},
};

#ifdef NET_F64
const char *net_trial_name(size_t trial) {
  return trial < sizeof trials / sizeof trials[0] ? trials[trial].name : NULL;
}
#endif

double net_trial_run_it(size_t trial, const double *values,
                        net_trial_run *run) {
  static workbench bench;
  bench.values = values;
  bench.run = run;
  bench.used = 0;
  memset(run, 0, sizeof *run);
  double loss = trials[trial].run(&bench);
  double *slope = run->slopes;
  for (size_t part = 0; part < run->part_count; part++)
    for (size_t i = 0; i < run->parts[part].count; i++)
      *slope++ = (double)bench.slopes_at[part][i];
  return loss;
}
