// trainer.h - training and inference, measured.
#ifndef TARN_EXAMPLES_NETS_TRAINER_H_
#define TARN_EXAMPLES_NETS_TRAINER_H_

#include "meter.h"
#include "net.h"

typedef struct net_course {
  const net_dataset *images;
  net_sgd sgd;  // the rate falls evenly to 0 with the last step
  size_t steps;
  bool infer;
} net_course;

// NAN is what was not measured.
typedef struct net_result {
  double steps_per_s;  // of all steps but the first, which takes memory
  double loss_first;   // of the first batch, before the first step
  double loss;         // of the same after the last
  double accuracy;     // of held-out images: the share that is right
  double allocations_per_step;  // of the same steps
} net_result;

extern const net_result net_no_result;

// Runs a net that has its place and its parameters, on what |course| says.
TARN_MUST_CHECK tarn_status net_train(net *n, const net_course *course,
                                      const net_meter *meter,
                                      net_result *out_result);

#endif  // TARN_EXAMPLES_NETS_TRAINER_H_
