// Gradients of the layers in examples/nets against differences, for each value
// that the loss depends on, and both types of the layers against each other.
#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include "net_trial.h"
#include "support/run.h"

#ifdef TARN_HAS_NETS
#include "nets/random.h"

static double values[NET_TRIAL_VALUES];
static net_trial_run base, moved;

static void draw_values(uint64_t seed) {
  net_random random = {.state = seed};
  for (size_t i = 0; i < NET_TRIAL_VALUES; i++)
    values[i] = net_random_bell(&random) * 0.7;
}

// The loss with value |i| moved by |by|; |*same| turns false where another
// ReLU was on, so that the difference would be taken across a kink.
static double loss_at(size_t trial, size_t i, double by, bool *same) {
  double kept = values[i];
  values[i] = kept + by;
  double loss = net_trial_f64(trial, values, &moved);
  values[i] = kept;
  *same = *same && moved.pattern == base.pattern;
  return loss;
}

// Central differences over |step| and twice that, combined so that the error
// is of the fourth order. False: a kink is too near.
static bool difference(size_t trial, size_t i, double step, double *slope) {
  bool same = true;
  double near =
      loss_at(trial, i, step, &same) - loss_at(trial, i, -step, &same);
  double far =
      loss_at(trial, i, 2 * step, &same) - loss_at(trial, i, -2 * step, &same);
  *slope = (8 * near - far) / (12 * step);
  return same;
}

static double relative(double a, double n) {
  return fabs(a - n) / fmax(fmax(fabs(a), fabs(n)), 1e-3);
}

// Steps, the largest first: rounding hurts the smaller ones more.
static const double steps[] = {1e-3, 3e-4, 1e-4};

// Whether a difference could be taken; if so it agrees.
static bool check_value(size_t trial, const char *part, size_t i) {
  for (size_t step = 0; step < sizeof steps / sizeof steps[0]; step++) {
    double numeric = 0;
    if (!difference(trial, i, steps[step], &numeric)) continue;
    double error = relative(base.slopes[i], numeric);
    if (!(error <= 1e-7))
      ck_abort_msg("%s: %s, value %zu: %.12g, by differences %.12g",
                   net_trial_name(trial), part, i, base.slopes[i], numeric);
    return true;
  }
  return false;
}

// Every value of the trial; at most one in fifty may be next to a kink.
static void check_trial(size_t trial) {
  net_trial_f64(trial, values, &base);
  size_t value = 0, left_out = 0;
  for (size_t part = 0; part < base.part_count; part++)
    for (size_t i = 0; i < base.parts[part].count; i++)
      left_out += !check_value(trial, base.parts[part].name, value++);
  require(value == base.count && value > 0);
  ck_assert_msg(left_out * 50 <= value, "%s: %zu of %zu next to a kink",
                net_trial_name(trial), left_out, value);
}

TEST(gradients_are_those_of_differences) {
  for (uint64_t seed = 1; seed <= 3; seed++) {
    draw_values(seed);
    for (size_t trial = 0; net_trial_name(trial) != NULL; trial++)
      check_trial(trial);
  }
}

// The largest slope: what rounding in float is measured by.
static double scale_of(const net_trial_run *run) {
  double largest = 0;
  for (size_t i = 0; i < run->count; i++)
    largest = fmax(largest, fabs(run->slopes[i]));
  return largest;
}

TEST(float_agrees_with_double) {
  draw_values(4);
  for (size_t trial = 0; net_trial_name(trial) != NULL; trial++) {
    double wide = net_trial_f64(trial, values, &base);
    double narrow = net_trial_f32(trial, values, &moved);
    ck_assert_uint_eq(moved.pattern, base.pattern);
    ck_assert_uint_eq(moved.count, base.count);
    require(relative(narrow, wide) < 1e-5);
    require(narrow != wide);  // they are two types
    for (size_t i = 0; i < base.count; i++)
      require(fabs(moved.slopes[i] - base.slopes[i]) < 1e-5 * scale_of(&base));
  }
}

#else

int main(void) {
  return skip_program("nets_gradients", "no OpenBLAS, or no examples built");
}

#endif
