// share.h - which part of a batch is whose.
//
// A batch has SLICES slices, of which each rank has some that follow each
// other. What is added up over a batch, as gradients and losses are, is
// computed for each slice by itself, and the slices are added in their order.
// So the result is the same, to the last bit, with any number of ranks.
#ifndef TARN_EXAMPLES_TRAIN_SHARE_H_
#define TARN_EXAMPLES_TRAIN_SHARE_H_

#include <stddef.h>

enum { SLICES = 8 };  // and so the most ranks

typedef struct share {
  size_t first;  // slice
  size_t count;  // at least 1
} share;

static inline share share_of(size_t rank, size_t ranks) {
  size_t first = rank * SLICES / ranks;
  return (share){first, (rank + 1) * SLICES / ranks - first};
}

#endif  // TARN_EXAMPLES_TRAIN_SHARE_H_
