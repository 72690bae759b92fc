// net_trial.h - layers and small nets of examples/nets, each as one function
// from a vector to a number, with its gradient.
//
// net_trial.c is compiled for both types of the nets; outside all is double,
// so that the two can be compared and differences taken.
#ifndef TARN_TESTS_NETS_NET_TRIAL_H_
#define TARN_TESTS_NETS_NET_TRIAL_H_

#include <stddef.h>
#include <stdint.h>

// Values that a trial has; its largest vector.
enum { NET_TRIAL_PARTS = 40, NET_TRIAL_VALUES = 4096 };

typedef struct net_trial_part {
  const char *name;
  size_t count;
} net_trial_part;

// What a run says besides the loss.
typedef struct net_trial_run {
  double slopes[NET_TRIAL_VALUES];  // the gradient of the loss by each value
  uint64_t pattern;  // of which ReLUs were on: equal on one smooth piece
  size_t part_count;
  net_trial_part parts[NET_TRIAL_PARTS];  // of the vector, in order
  size_t count;                           // of all values
} net_trial_run;

// The trials' names; NULL from the end on.
const char *net_trial_name(size_t trial);

// The loss at |values|; of a vector of NET_TRIAL_VALUES the trial takes what
// it needs.
double net_trial_f32(size_t trial, const double *values, net_trial_run *run);
double net_trial_f64(size_t trial, const double *values, net_trial_run *run);

#endif  // TARN_TESTS_NETS_NET_TRIAL_H_
