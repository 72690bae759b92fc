// plan_layers.h - the layers of a made transformer.
#ifndef TARN_BENCH_PLAN_LAYERS_H_
#define TARN_BENCH_PLAN_LAYERS_H_

#include "plan_program.h"

enum {
  LAYER_WEIGHTS = 4,  // into attention, out of it, and of feed-forward two
  LAYER_HELD = LAYER_WEIGHTS * 4 + 1,  // with the optimizer's, and norms
  MOST_SEQUENCES = 6,
};

typedef struct layer {
  uint64_t hidden;
  uint64_t heads;
  uint64_t inner;    // width of the feed-forward block
  uint64_t experts;  // 0: dense
  bool fused;        // attention
  bool gated;        // feed-forward of two products and one
  bool checkpointed;
  uint64_t weights[LAYER_WEIGHTS];  // how many numbers each has
  size_t gradients[LAYER_WEIGHTS];  // SIZE_MAX: none yet
  size_t held[LAYER_HELD];          // there throughout
} layer;

typedef struct batch {
  uint64_t tokens;
  uint64_t sequences[MOST_SEQUENCES];  // lengths that sum to |tokens|
  size_t sequence_count;
  program_stack saved;
} batch;

// The forward pass of one layer, from its input to the result; the input is
// saved.
size_t layer_forward(program *p, const layer *l, batch *b, size_t input);

// The backward pass of what was saved last, from the gradient of its result to
// that of its input.
size_t layer_backward(program *p, layer *l, batch *b, size_t gradient);

// The gradient of one weight out of |from| and what else is there: the first
// is kept, later ones are added to it.
void weight_gradient(program *p, uint64_t numbers, size_t *gradient);

#endif  // TARN_BENCH_PLAN_LAYERS_H_
