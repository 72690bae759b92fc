// The images that examples/nets makes: the same each time, balanced, unlike in
// training and held out, and worth a net: a small one learns them, a linear
// one does not.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/run.h"

#ifdef TARN_HAS_NETS
#include "nets/dataset.h"
#include "nets/gemm.h"
#include "nets/layers.h"
#include "nets/random.h"

enum { BATCH = 64, SIDE = 28, INPUTS = SIDE * SIDE, HIDDEN = 96 };

static const net_dataset grey = {.channels = 1, .height = SIDE, .width = SIDE};

static net_real images[BATCH * INPUTS];
static int32_t labels[BATCH];

TEST(an_image_is_the_same_in_every_batch) {
  net_real alone[INPUTS];
  int32_t label = -1;
  net_batch_make(&grey, NET_TRAINING, 1000, BATCH, images, labels);
  for (uint64_t i = 0; i < BATCH; i++) {
    net_batch_make(&grey, NET_TRAINING, 1000 + i, 1, alone, &label);
    ck_assert_int_eq(label, labels[i]);
    ck_assert_mem_eq(alone, images + i * INPUTS, sizeof alone);
  }
}

// The numbers of the first image, so that a change of the procedure is seen.
TEST(the_procedure_stays_what_it_is) {
  net_batch_make(&grey, NET_TRAINING, 0, 1, images, labels);
  ck_assert_int_eq(labels[0], 5);
  ck_assert_float_eq_tol(images[0], -0.692006111F, 1e-6F);
  ck_assert_float_eq_tol(images[INPUTS - 1], 0.0803596899F, 1e-6F);
}

TEST(parts_and_indices_have_images_of_their_own) {
  net_real other[INPUTS];
  int32_t label = 0;
  net_batch_make(&grey, NET_TRAINING, 0, BATCH, images, labels);
  for (uint64_t i = 0; i < BATCH; i++) {
    net_batch_make(&grey, NET_HELD_OUT, i, 1, other, &label);
    for (uint64_t j = 0; j < BATCH; j++)
      ck_assert_mem_ne(other, images + j * INPUTS, sizeof other);
  }
}

TEST(classes_are_balanced_and_grey_in_the_mean) {
  enum { ROUNDS = 32 };
  size_t count[NET_CLASSES] = {0};
  static double sum[NET_CLASSES];
  for (uint64_t round = 0; round < ROUNDS; round++) {
    net_batch_make(&grey, NET_TRAINING, round * BATCH, BATCH, images, labels);
    for (size_t i = 0; i < BATCH; i++) {
      count[labels[i]]++;
      sum[labels[i]] += (double)images[i * INPUTS + INPUTS / 2];
    }
  }
  for (size_t class = 0; class < NET_CLASSES; class ++) {
    require(count[class] > ROUNDS * BATCH / 20);
    require(fabs(sum[class] / (double)count[class]) < 0.2);
  }
}

TEST(colours_share_the_wave) {
  static const net_dataset colour = {.channels = 3, .height = 32, .width = 32};
  static net_real image[3 * 32 * 32];
  net_batch_make(&colour, NET_TRAINING, 3, 1, image, labels);
  double apart = 0, together = 0;
  for (size_t i = 0; i < 1024; i++) {
    together += (double)image[i] * (double)image[1024 + i];
    apart += (double)image[i] * (double)image[i];
  }
  require(together > 0.5 * apart);  // noise and strength are the rest
  ck_assert_mem_ne(image, image + 1024, 1024 * sizeof *image);
}

// --- worth a net -----------------------------------------------------------

static net_real *zeros(size_t count) {
  net_real *memory = calloc(count, sizeof *memory);
  ck_assert_ptr_nonnull(memory);
  return memory;
}

// A linear layer that learns.
typedef struct linear_learner {
  net_linear layer;
  net_real *w, *dw, *vw;
  net_real *b, *db, *vb;
} linear_learner;

static linear_learner make_learner(net_random *random, size_t inputs,
                                   size_t outputs, double gain) {
  size_t count = inputs * outputs;
  linear_learner made = {.layer = {BATCH, inputs, outputs},
                         .w = zeros(count),
                         .dw = zeros(count),
                         .vw = zeros(count),
                         .b = zeros(outputs),
                         .db = zeros(outputs),
                         .vb = zeros(outputs)};
  net_init_kaiming(random, inputs, gain, count, made.w);
  return made;
}

static void drop_learner(linear_learner *learner) {
  free(learner->w);
  free(learner->dw);
  free(learner->vw);
  free(learner->b);
  free(learner->db);
  free(learner->vb);
}

static void learn(linear_learner *learner, const net_real *x,
                  const net_real *dy, net_real *dx) {
  static const net_sgd sgd = {.rate = 0.03, .momentum = 0.9};
  const net_linear *layer = &learner->layer;
  net_linear_backward(layer, x, learner->w, dy, dx, learner->dw, learner->db);
  net_sgd_step(&sgd, layer->inputs * layer->outputs, learner->w, learner->dw,
               learner->vw);
  net_sgd_step(&sgd, layer->outputs, learner->b, learner->db, learner->vb);
}

// Trains a net with or without a hidden layer; returns its accuracy on images
// that are held out.
static double accuracy_after(bool with_hidden, size_t steps) {
  enum { HELD_OUT = 8 };
  net_random random = {.state = 1};
  size_t width = with_hidden ? HIDDEN : INPUTS;
  linear_learner first = make_learner(&random, INPUTS, HIDDEN, 1);
  linear_learner last = make_learner(&random, width, NET_CLASSES, 0.1);
  net_real *hidden = zeros((size_t)BATCH * HIDDEN);
  net_real *slope = zeros((size_t)BATCH * HIDDEN);
  net_real scores[BATCH * NET_CLASSES];
  const net_real *input = with_hidden ? hidden : images;
  size_t correct = 0;
  for (uint64_t step = 0; step < steps + HELD_OUT; step++) {
    bool training = step < steps;
    net_batch_make(&grey, training ? NET_TRAINING : NET_HELD_OUT, step * BATCH,
                   BATCH, images, labels);
    net_linear_forward(&first.layer, images, first.w, first.b, hidden);
    net_relu_forward((size_t)BATCH * HIDDEN, hidden, hidden);
    net_linear_forward(&last.layer, input, last.w, last.b, scores);
    size_t right =
        net_softmax_loss(BATCH, NET_CLASSES, scores, labels, scores).correct;
    correct += training ? 0 : right;
    if (!training) continue;
    learn(&last, input, scores, with_hidden ? slope : NULL);
    if (!with_hidden) continue;
    net_relu_backward((size_t)BATCH * HIDDEN, hidden, slope, slope);
    learn(&first, images, slope, NULL);
  }
  drop_learner(&first);
  drop_learner(&last);
  free(hidden);
  free(slope);
  return (double)correct / (HELD_OUT * BATCH);
}

TEST(a_small_net_learns_them_and_a_linear_one_does_not) {
  net_blas_one_thread();
  double net = accuracy_after(true, 300);
  double linear = accuracy_after(false, 300);
  ck_assert_msg(net >= 0.9, "the net: %g", net);
  ck_assert_msg(linear <= 0.5, "the linear one: %g", linear);
}

#else

int main(void) {
  return skip_program("nets_dataset", "no OpenBLAS, or no examples built");
}

#endif
