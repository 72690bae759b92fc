// mlp.h - a perceptron of FEATURES, three hidden layers and CLASSES, whose
// memory is a tarn_model:
//
//   rows ─► fc1 ─► relu1 ─► fc2 ─► relu2 ─► fc3 ─► relu3 ─► scores ─► loss
//
// Outputs, their gradients, labels and the workspace of the backward passes lie
// in one planned block. Parameters, their gradients and speeds have memory of
// their own; gradients of slices (share.h) are the caller's.
#ifndef TARN_EXAMPLES_TRAIN_MLP_H_
#define TARN_EXAMPLES_TRAIN_MLP_H_

#include <tarn/tarn.h>

#include "nodes.h"
#include "share.h"

enum { LAYERS = 4 };

typedef struct mlp_layer {
  size_t inputs;
  size_t outputs;
  size_t first;  // of this layer's weights among all; its biases follow
  tarn_tensor *w, *b;
  tarn_tensor *w_speed, *b_speed;
  tarn_tensor *turned;  // w, rows for columns, which its backward pass needs;
                        // NULL for the first layer, whose input has no gradient
  tarn_tensor *y;
  tarn_step *linear;
  tarn_tensor *out;  // |y|, or what relu makes of it
  tarn_step *relu;   // NULL: none
} mlp_layer;

typedef struct mlp {
  tarn_model *model;
  tarn_place home;
  size_t slices;  // of this rank
  size_t slice;   // rows of one
  size_t params;  // numbers that are learned
  mlp_layer layers[LAYERS];
  tarn_tensor *labels;
  tarn_step *loss;
} mlp;

typedef struct mlp_options {
  size_t width;  // of hidden layers
  size_t slices;
  size_t slice;
  uint64_t seed;    // of the weights
  tarn_place home;  // where it is
} mlp_options;

// What came out of this rank's slices.
typedef struct mlp_outcome {
  double loss[SLICES];  // means over each slice
  size_t correct;
  size_t labels[CLASSES];  // how often each was there
} mlp_outcome;

// Describes, plans and places it, and draws its weights, the same at each rank.
//
// Lifetime: until mlp_end, also if it fails.
TARN_MUST_CHECK tarn_status mlp_init(mlp *m, const mlp_options *options);
tarn_status mlp_end(mlp *m);

// |rows| are the rows of all slices, with their labels.
TARN_MUST_CHECK tarn_status mlp_forward(mlp *m, tarn_synced *rows,
                                        mlp_outcome *out);

// Writes the gradient of slice i to |gradients| + i * |stride|.
TARN_MUST_CHECK tarn_status mlp_backward(mlp *m, tarn_synced *rows,
                                         float *gradients, size_t stride);

// A step of gradient descent down |mean|, the mean of all slices' gradients.
TARN_MUST_CHECK tarn_status mlp_descend(mlp *m, const float *mean, double rate);

#endif  // TARN_EXAMPLES_TRAIN_MLP_H_
