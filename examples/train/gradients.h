// gradients.h - sums of gradients over the ranks.
//
// Each rank has a gradient for each of its slices (share.h). To add them up,
// rank r is sent part r of the gradients of all slices, adds them in the order
// of slices, and sends the sum to all:
//
//             part 0  part 1
//   slice 0     |       |          each column goes to a rank, which adds it
//   slice 1     |       |          from top to bottom
//     ...       v       v
//   sum      rank 0   rank 1
#ifndef TARN_EXAMPLES_TRAIN_GRADIENTS_H_
#define TARN_EXAMPLES_TRAIN_GRADIENTS_H_

#include <tarn/tarn.h>

#include "share.h"

typedef struct gradients {
  tarn_comm *comm;
  size_t part;    // numbers that a rank adds
  size_t stride;  // from one slice to the next: all parts
  tarn_block slices;
  tarn_block received;
  tarn_block sum;
} gradients;

// Of |count| numbers for each slice.
//
// Lifetime: until gradients_end, also if it fails.
TARN_MUST_CHECK tarn_status gradients_init(gradients *g, tarn_comm *comm,
                                           size_t count);
tarn_status gradients_end(gradients *g);

// The gradient of this rank's first slice; the others follow at |g->stride|.
float *gradients_slices(const gradients *g);

// The mean over all slices of all ranks; collective. It stays until the next.
TARN_MUST_CHECK tarn_status gradients_mean(gradients *g,
                                           const float **out_mean);

#endif  // TARN_EXAMPLES_TRAIN_GRADIENTS_H_
