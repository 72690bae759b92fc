// The layers of examples/nets beyond their gradients: values against plain
// loops, what may be left out or share memory, and SGD step by step.
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "support/run.h"

#ifdef TARN_HAS_NETS
#include "nets/layers.h"
#include "nets/random.h"

enum { MOST = 4096 };

static void fill(uint64_t seed, size_t count, net_real *values) {
  net_random random = {.state = seed};
  for (size_t i = 0; i < count; i++)
    values[i] = (net_real)net_random_bell(&random);
}

static void assert_near(size_t count, const net_real *a, const net_real *b) {
  for (size_t i = 0; i < count; i++)
    ck_assert_msg(fabs((double)a[i] - (double)b[i]) < 2e-5, "%zu: %g and %g", i,
                  (double)a[i], (double)b[i]);
}

// --- linear ----------------------------------------------------------------

TEST(linear_is_a_product_and_a_bias) {
  static const net_linear layer = {.batch = 2, .inputs = 3, .outputs = 2};
  static const net_real x[] = {1, 2, 3, -1, 0, 2};
  static const net_real w[] = {1, 10, 2, 20, 3, 30};
  static const net_real b[] = {0.5F, -0.5F};
  static const net_real expected[] = {14.5F, 139.5F, 5.5F, 49.5F};
  net_real y[4] = {77, 77, 77, 77};
  net_linear_forward(&layer, x, w, b, y);
  assert_near(4, y, expected);
}

TEST(linear_without_dx_gives_the_same_rest) {
  static const net_linear layer = {.batch = 3, .inputs = 4, .outputs = 5};
  net_real x[12], w[20], dy[15], dx[12], dw[20], db[5], dw2[20], db2[5];
  fill(1, 12, x);
  fill(2, 20, w);
  fill(3, 15, dy);
  net_linear_backward(&layer, x, w, dy, dx, dw, db);
  net_linear_backward(&layer, x, w, dy, NULL, dw2, db2);
  ck_assert_mem_eq(dw, dw2, sizeof dw);
  ck_assert_mem_eq(db, db2, sizeof db);
}

// --- convolution -----------------------------------------------------------

static net_real pixel(const net_conv *layer, const net_real *channel, size_t y,
                      size_t x) {
  size_t pad = layer->kernel / 2;
  bool inside =
      y >= pad && x >= pad && y - pad < layer->height && x - pad < layer->width;
  return inside ? channel[(y - pad) * layer->width + (x - pad)] : 0;
}

// One output of one image, by its definition; |w| of its channel.
static net_real direct(const net_conv *layer, const net_real *image,
                       const net_real *w, size_t y, size_t x) {
  net_real sum = 0;
  for (size_t c = 0; c < layer->in; c++)
    for (size_t i = 0; i < layer->kernel; i++)
      for (size_t j = 0; j < layer->kernel; j++)
        sum += *w++ * pixel(layer, image + c * layer->height * layer->width,
                            y * layer->stride + i, x * layer->stride + j);
  return sum;
}

static void direct_conv(const net_conv *layer, const net_real *x,
                        const net_real *w, const net_real *b, net_real *y) {
  size_t taps = layer->in * layer->kernel * layer->kernel;
  for (size_t image = 0; image < layer->batch; image++) {
    for (size_t c = 0; c < layer->out; c++)
      for (size_t i = 0; i < net_conv_size(layer, layer->height); i++)
        for (size_t j = 0; j < net_conv_size(layer, layer->width); j++)
          *y++ = direct(layer, x, w + c * taps, i, j) + b[c];
    x += layer->in * layer->height * layer->width;
  }
}

static size_t outputs_of(const net_conv *layer) {
  return layer->batch * layer->out * net_conv_size(layer, layer->height) *
         net_conv_size(layer, layer->width);
}

static void check_conv(const net_conv *layer) {
  static net_real x[MOST], w[MOST], b[MOST], y[MOST], expected[MOST];
  static net_real work[MOST];
  fill(1, MOST, x);
  fill(2, MOST, w);
  fill(3, MOST, b);
  fill(4, MOST, work);
  require(net_conv_work(layer) <= MOST && outputs_of(layer) <= MOST);
  net_conv_forward(layer, x, w, b, y, work);
  direct_conv(layer, x, w, b, expected);
  assert_near(outputs_of(layer), y, expected);
}

TEST(convolution_is_what_its_definition_says) {
  for (size_t kernel = 1; kernel <= 5; kernel += 2)
    for (size_t stride = 1; stride <= 3; stride++)
      for (size_t height = 1; height <= 7; height++)
        for (size_t width = 1; width <= 7; width++)
          check_conv(&(net_conv){2, 3, 2, height, width, kernel, stride});
}

TEST(convolution_uses_no_more_work_than_it_says) {
  enum { WORK = 3 * 9 * 12 };
  static const net_conv layer = {1, 3, 2, 5, 7, 3, 2};
  net_real x[105], w[54], b[2], y[24], dw[54], db[2], work[WORK + 1];
  fill(1, 105, x);
  fill(2, 54, w);
  fill(3, 2, b);
  ck_assert_uint_eq(net_conv_work(&layer), WORK);
  work[WORK] = 77;
  net_conv_forward(&layer, x, w, b, y, work);
  net_conv_backward(&layer, x, w, y, x, NET_ADD, dw, db, work);
  ck_assert(work[WORK] == 77);
}

TEST(convolution_adds_to_dx_or_leaves_it_out) {
  static const net_conv layer = {2, 2, 3, 4, 5, 3, 2};
  enum { IN = 2 * 2 * 20, OUT = 2 * 3 * 6, WEIGHTS = 54 };
  net_real x[IN], w[WEIGHTS], dy[OUT], dx[IN], sum[IN], work[2 * 9 * 6];
  net_real dw[WEIGHTS], db[3], dw2[WEIGHTS], db2[3], before[IN];
  fill(1, IN, x);
  fill(2, WEIGHTS, w);
  fill(3, OUT, dy);
  fill(4, IN, before);
  memcpy(sum, before, sizeof sum);
  net_conv_backward(&layer, x, w, dy, dx, NET_SET, dw, db, work);
  net_conv_backward(&layer, x, w, dy, sum, NET_ADD, dw, db, work);
  net_add(IN, dx, before, dx);
  assert_near(IN, sum, dx);
  net_conv_backward(&layer, x, w, dy, NULL, NET_SET, dw2, db2, work);
  ck_assert_mem_eq(dw, dw2, sizeof dw);
  ck_assert_mem_eq(db, db2, sizeof db);
}

// --- element by element ----------------------------------------------------

TEST(relu_works_in_place_and_with_bits) {
  for (size_t count = 1; count <= 40; count++) {
    net_real x[40], y[40], dy[40], dx[40], dx2[40];
    uint8_t mask[6] = {77, 77, 77, 77, 77, 77};
    fill(count, 40, x);
    fill(9, 40, dy);
    x[count / 2] = 0;
    net_relu_forward(count, x, y);
    for (size_t i = 0; i < count; i++)
      require(y[i] == (x[i] > 0 ? x[i] : 0));
    net_relu_mask_forward(count, x, x, mask);
    ck_assert_mem_eq(x, y, count * sizeof *y);
    require(mask[net_mask_bytes(count)] == 77);
    net_relu_backward(count, y, dy, dx);
    net_relu_mask_backward(count, mask, dy, dx2);
    ck_assert_mem_eq(dx, dx2, count * sizeof *dx);
    net_relu_backward(count, y, dy, dy);
    ck_assert_mem_eq(dx, dy, count * sizeof *dx);
  }
}

TEST(mean_is_over_each_channel) {
  static const net_real x[] = {1, 2, 6, -1, 0, 4};
  static const net_real expected[] = {3, 1}, slope[] = {2, 2, 2, -1, -1, -1};
  static const net_real dy[] = {6, -3};
  net_real y[2], dx[6];
  net_mean_forward(2, 3, x, y);
  assert_near(2, y, expected);
  net_mean_backward(2, 3, dy, dx);
  assert_near(6, dx, slope);
}

// --- loss ------------------------------------------------------------------

TEST(loss_is_the_mean_and_counts_what_is_right) {
  static const net_real scores[] = {0, 0, 0, 0, 1, 3, 2, 0};
  static const int32_t labels[] = {2, 1};
  double row = log(exp(-2) + 1 + exp(-1) + exp(-3));
  net_score score = net_softmax_loss(2, 4, scores, labels, NULL);
  ck_assert_double_eq_tol(score.loss, (log(4) + row) / 2, 1e-7);
  ck_assert_uint_eq(score.correct, 1);
}

TEST(loss_takes_any_scores_and_their_own_place) {
  net_real scores[] = {1e30F, -1e30F, 0, -2e4F, -2e4F, -2e4F};
  static const net_real expected[] = {0, 0, 0, 1.0F / 6, -1.0F / 3, 1.0F / 6};
  static const int32_t labels[] = {0, 1};
  net_score score = net_softmax_loss(2, 3, scores, labels, scores);
  ck_assert_double_eq_tol(score.loss, log(3) / 2, 1e-7);
  assert_near(6, scores, expected);
}

// --- SGD -------------------------------------------------------------------

TEST(sgd_has_momentum_and_decay) {
  static const net_sgd sgd = {.rate = 0.1, .momentum = 0.5, .decay = 0.01};
  enum { COUNT = 4096 + 16 + 5 };  // a block, whole strands and a rest
  static net_real w[COUNT], dw[COUNT], v[COUNT];
  static double w2[COUNT], v2[COUNT];
  fill(1, COUNT, w);
  fill(2, COUNT, dw);
  for (size_t i = 0; i < COUNT; i++)
    w2[i] = (double)w[i];
  for (int step = 0; step < 3; step++) {
    double squares = 0;
    for (size_t i = 0; i < COUNT; i++) {
      squares += w2[i] * w2[i];
      v2[i] = 0.5 * v2[i] + (double)dw[i] + 0.01 * w2[i];
      w2[i] -= 0.1 * v2[i];
    }
    double alone = net_decay_loss(sgd.decay, COUNT, w);
    double passing = net_sgd_step(&sgd, COUNT, w, dw, v);
    ck_assert_double_eq_tol(passing, 0.005 * squares, 1e-4);
    ck_assert_double_eq(passing, alone);
  }
  for (size_t i = 0; i < COUNT; i++)
    require(fabs((double)w[i] - w2[i]) < 1e-5);
}

TEST(kaiming_keeps_the_size_of_values) {
  enum { IN = 64, OUT = 32 };
  static net_real w[IN * OUT];
  net_random random = {.state = 1};
  net_init_kaiming(&random, IN, 0.5, (size_t)IN * OUT, w);
  double variance = net_decay_loss(2, (size_t)IN * OUT, w) / (IN * OUT);
  ck_assert_double_eq_tol(variance, 0.25 * 2 / IN, 0.05 * 0.25 * 2 / IN);
}

#else

int main(void) {
  return skip_program("nets_layers", "no OpenBLAS, or no examples built");
}

#endif
