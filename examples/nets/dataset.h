// dataset.h - images of ten classes, made by a procedure.
//
// An image is a wave under noise. Its class says which way the wave runs (one
// of five directions, 36 degrees apart) and how long it is (one of two); all
// else is drawn anew for each image:
//
//   the phase                    so an image is as likely as its negative, and
//                                a linear classifier that is right about the
//                                one is wrong about the other
//   each channel's strength      so colour tells nothing
//   a turn and a stretch         a little, so no image comes twice
//   noise at each pixel          half as strong as the wave
//
// Image |index| of a part is always the same one, whatever batch it is made
// for, and on every machine but for the rounding of its last bit. Training and
// held-out images are drawn from seeds that are never the same.
#ifndef TARN_EXAMPLES_NETS_DATASET_H_
#define TARN_EXAMPLES_NETS_DATASET_H_

#include <stddef.h>
#include <stdint.h>

#include "real.h"

enum { NET_CLASSES = 10 };

typedef enum net_part {
  NET_TRAINING,
  NET_HELD_OUT,
} net_part;

// What the images are like. An MLP takes 1 x 28 x 28 for 784 numbers.
typedef struct net_dataset {
  size_t channels;
  size_t height;
  size_t width;
} net_dataset;

// Makes the |count| images of |part| from number |first| on (below 2^63):
// x [count, channels, height, width], labels [count]. Cost: one draw for each
// value.
void net_batch_make(const net_dataset *dataset, net_part part, uint64_t first,
                    size_t count, net_real *x, int32_t *labels);

#endif  // TARN_EXAMPLES_NETS_DATASET_H_
