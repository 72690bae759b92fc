// The course of a training: a look at the first batch, steps, another look at
// it, and images that the net has never seen.
#include "trainer.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

enum { MOST_HELD_OUT = 2048, HELD_OUT_BATCHES = 16 };

const net_result net_no_result = {NAN, NAN, NAN, NAN, NAN};

// --- steps -----------------------------------------------------------------

typedef tarn_status step_fn(net *n, const net_course *course, size_t step,
                            double *out_loss);

static uint64_t first_image(const net *n, size_t step) {
  return (uint64_t)step * (uint64_t)tarn_model_batch(n->model);
}

static net_sgd sgd_at(const net_course *course, size_t step) {
  net_sgd sgd = course->sgd;
  sgd.rate *= 1 - (double)step / (double)course->steps;
  return sgd;
}

static tarn_status train_step(net *n, const net_course *course, size_t step,
                              double *out_loss) {
  net_sgd sgd = sgd_at(course, step);
  double decay = 0;
  tarn_status status =
      net_fill(n, course->images, NET_TRAINING, first_image(n, step));
  if (status == TARN_OK) status = net_forward(n);
  if (status == TARN_OK) status = net_backward(n);
  if (status == TARN_OK) status = net_descend(n, &sgd, &decay);
  *out_loss = n->score.loss + decay;
  return status;
}

static tarn_status infer_step(net *n, const net_course *course, size_t step,
                              double *out_loss) {
  tarn_status status =
      net_fill(n, course->images, NET_HELD_OUT, first_image(n, step));
  if (status == TARN_OK) status = net_forward(n);
  *out_loss = n->score.loss;
  return status;
}

// --- looks -----------------------------------------------------------------

static tarn_status first_loss(net *n, const net_course *course,
                              double *out_loss) {
  double decay = 0;
  tarn_status status = net_fill(n, course->images, NET_TRAINING, 0);
  if (status == TARN_OK) status = net_forward(n);
  if (status == TARN_OK) status = net_decay(n, &course->sgd, &decay);
  *out_loss = n->score.loss + decay;
  return status;
}

// About MOST_HELD_OUT images, in whole batches.
static size_t held_out_batches(size_t batch) {
  size_t count = (MOST_HELD_OUT + batch - 1) / batch;
  return count < HELD_OUT_BATCHES ? count : HELD_OUT_BATCHES;
}

static tarn_status accuracy_of(net *n, const net_course *course,
                               double *out_accuracy) {
  size_t batch = (size_t)tarn_model_batch(n->model);
  size_t batches = held_out_batches(batch);
  size_t correct = 0;
  for (size_t i = 0; i < batches; i++) {
    double loss = 0;
    tarn_status status = infer_step(n, course, i, &loss);
    if (status != TARN_OK) return status;
    correct += n->score.correct;
  }
  *out_accuracy = (double)correct / (double)(batches * batch);
  return TARN_OK;
}

// --- the course ------------------------------------------------------------

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void tell(const net_course *course, size_t step, double loss) {
  if (step % 10 != 9 && step + 1 != course->steps && step != 0) return;
  fprintf(stderr, "step %4zu of %zu: loss %.4f\n", step + 1, course->steps,
          loss);
}

static tarn_status run_steps(net *n, const net_course *course, size_t first,
                             size_t end) {
  step_fn *step = course->infer ? infer_step : train_step;
  for (size_t i = first; i < end; i++) {
    double loss = 0;
    tarn_status status = step(n, course, i, &loss);
    if (status != TARN_OK) return status;
    tell(course, i, loss);
  }
  return TARN_OK;
}

// The first step takes memory for what has a place of its own; from the second
// on all is steady, and is measured.
static tarn_status measure(net *n, const net_course *course,
                           const net_meter *meter, net_result *result) {
  uint64_t before = 0, after = 0;
  tarn_status status = run_steps(n, course, 0, 1);
  if (status == TARN_OK) status = net_meter_allocations(meter, &before);
  double start = seconds();
  if (status == TARN_OK) status = run_steps(n, course, 1, course->steps);
  double taken = seconds() - start;
  if (status == TARN_OK) status = net_meter_allocations(meter, &after);
  if (status != TARN_OK || course->steps < 2) return status;
  double steady = (double)(course->steps - 1);
  result->steps_per_s = steady / taken;
  result->allocations_per_step = (double)(after - before) / steady;
  return TARN_OK;
}

tarn_status net_train(net *n, const net_course *course, const net_meter *meter,
                      net_result *out_result) {
  *out_result = net_no_result;
  tarn_status status = first_loss(n, course, &out_result->loss_first);
  if (status == TARN_OK) status = measure(n, course, meter, out_result);
  if (status == TARN_OK) status = first_loss(n, course, &out_result->loss);
  if (status == TARN_OK) status = accuracy_of(n, course, &out_result->accuracy);
  return status;
}
