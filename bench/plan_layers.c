// Each block has a forward and a backward pass, which read alike: what the
// forward pass pushes last the backward pass pops first.
#include "plan_layers.h"

enum {
  HALF = 2,  // bytes of a bfloat16
  FULL = 4,  // of a float32
};

static uint64_t wide(const batch *b, uint64_t width) {
  return b->tokens * width * HALF;
}

void weight_gradient(program *p, uint64_t numbers, size_t *gradient) {
  size_t made = program_make(p, numbers * HALF);
  if (*gradient == SIZE_MAX) {
    *gradient = made;
    program_product(p);
    return;
  }
  program_product(p);
  program_drop(p, made);
  program_op(p);
}

// --- normalisation -----------------------------------------------------------

static size_t norm_forward(program *p, batch *b, uint64_t width, size_t input) {
  program_push(p, &b->saved, input);
  program_push(p, &b->saved, program_make(p, b->tokens * 2 * FULL));
  size_t out = program_make(p, wide(b, width));
  program_op(p);
  program_push(p, &b->saved, out);
  return out;
}

// |gradient| is of the normalised, |around| of what went past the block.
static size_t norm_backward(program *p, batch *b, uint64_t width,
                            size_t gradient, size_t around) {
  size_t stats = program_pop(p, &b->saved);
  size_t input = program_pop(p, &b->saved);
  size_t partial = program_make(p, width * 148 * FULL);
  size_t out = program_make(p, wide(b, width));
  program_drop(p, gradient);
  program_drop(p, stats);
  program_drop(p, input);
  program_op(p);
  program_drop(p, program_turn(p, partial, width * FULL));
  program_op(p);
  size_t sum = program_make(p, wide(b, width));
  program_drop(p, out);
  program_drop(p, around);
  program_op(p);
  return sum;
}

// --- attention ---------------------------------------------------------------

// Queries, keys and values, turned by their positions: one to three tensors.
static void project_forward(program *p, const layer *l, batch *b) {
  uint64_t size = wide(b, l->hidden);
  size_t parts[3] = {0};
  if (l->fused) {
    size_t all = program_make(p, 3 * size);
    program_product(p);
    program_push(p, &b->saved, program_turn(p, all, 3 * size));
    return;
  }
  for (int i = 0; i < 3; i++) {
    parts[i] = program_make(p, i == 0 ? size : size / 4);
    program_product(p);
  }
  for (int i = 0; i < 2; i++) {
    parts[i] = program_turn(p, parts[i], i == 0 ? size : size / 4);
  }
  for (int i = 0; i < 3; i++)
    program_push(p, &b->saved, parts[i]);
}

static void scores_forward(program *p, const layer *l, batch *b, uint64_t len) {
  uint64_t square = l->heads * len * len;
  size_t scores = program_make(p, square * HALF);
  program_product(p);
  size_t mask = program_make(p, len * len);
  program_op(p);
  size_t probabilities = program_make(p, square * HALF);
  program_drop(p, scores);
  program_drop(p, mask);
  program_op(p);
  size_t kept = program_make(p, square);
  size_t dropped = program_make(p, square * HALF);
  program_op(p);
  program_drop(p, dropped);
  program_product(p);
  program_push(p, &b->saved, probabilities);
  program_push(p, &b->saved, kept);
}

static void scores_backward(program *p, const layer *l, batch *b,
                            uint64_t len) {
  uint64_t square = l->heads * len * len;
  size_t kept = program_pop(p, &b->saved);
  size_t probabilities = program_pop(p, &b->saved);
  size_t first = program_make(p, square * HALF);
  program_product(p);
  size_t undropped = program_make(p, square * HALF);
  program_drop(p, first);
  program_drop(p, kept);
  program_op(p);
  size_t scores = program_make(p, square * HALF);
  program_drop(p, undropped);
  program_drop(p, probabilities);
  program_op(p);
  program_product(p);
  program_drop(p, scores);
  program_product(p);
}

static void attend_forward(program *p, const layer *l, batch *b) {
  size_t out = program_make(p, wide(b, l->hidden));
  if (l->fused) {
    program_push(p, &b->saved, program_make(p, b->tokens * l->heads * FULL));
    program_product(p);
  }
  for (size_t i = 0; !l->fused && i < b->sequence_count; i++) {
    scores_forward(p, l, b, b->sequences[i]);
  }
  program_push(p, &b->saved, out);
}

// Leaves the gradient of queries, keys and values together.
static size_t attend_backward(program *p, const layer *l, batch *b,
                              size_t gradient) {
  uint64_t size = wide(b, l->hidden);
  size_t turned = program_make(p, l->fused ? 3 * size : size / 2 * 3);
  if (l->fused) {
    program_drop(p, program_pop(p, &b->saved));
    program_drop(p, program_make(p, size * 2));  // sums in float32
    program_product(p);
  }
  for (size_t i = b->sequence_count; !l->fused && i-- > 0;) {
    scores_backward(p, l, b, b->sequences[i]);
  }
  for (int i = l->fused ? 1 : 3; i-- > 0;) {
    program_drop(p, program_pop(p, &b->saved));
  }
  program_drop(p, gradient);
  program_op(p);
  return program_turn(p, turned, l->fused ? 3 * size : size / 2 * 3);
}

// The end of a block: dropout, and the sum with what went past it.
static size_t join_forward(program *p, batch *b, uint64_t width, size_t out) {
  program_push(p, &b->saved, program_make(p, b->tokens * width));
  out = program_turn(p, out, wide(b, width));
  return program_turn(p, out, wide(b, width));
}

static size_t join_backward(program *p, batch *b, uint64_t width) {
  size_t out = program_make(p, wide(b, width));
  program_drop(p, program_pop(p, &b->saved));
  program_op(p);
  return out;
}

static size_t attention_forward(program *p, const layer *l, batch *b,
                                size_t input) {
  norm_forward(p, b, l->hidden, input);
  project_forward(p, l, b);
  attend_forward(p, l, b);
  size_t out = program_make(p, wide(b, l->hidden));
  program_product(p);
  return join_forward(p, b, l->hidden, out);
}

static size_t attention_backward(program *p, layer *l, batch *b,
                                 size_t around) {
  size_t gradient = join_backward(p, b, l->hidden);
  size_t attended = program_pop(p, &b->saved);
  size_t inner = program_make(p, wide(b, l->hidden));
  program_product(p);
  program_drop(p, gradient);
  program_drop(p, attended);
  weight_gradient(p, l->weights[1], &l->gradients[1]);
  gradient = attend_backward(p, l, b, inner);
  size_t normed = program_pop(p, &b->saved);
  size_t out = program_make(p, wide(b, l->hidden));
  program_product(p);
  program_drop(p, gradient);
  program_drop(p, normed);
  weight_gradient(p, l->weights[0], &l->gradients[0]);
  return norm_backward(p, b, l->hidden, out, around);
}

// --- feed-forward ------------------------------------------------------------

// |tokens| through one set of weights; saves the two or three wide tensors.
static void wide_forward(program *p, const layer *l, batch *b,
                         uint64_t tokens) {
  uint64_t size = tokens * l->inner * HALF;
  for (int i = 0; i < 1 + l->gated; i++) {
    program_push(p, &b->saved, program_make(p, size));
    program_product(p);
  }
  program_push(p, &b->saved, program_make(p, size));
  program_op(p);
}

static void wide_backward(program *p, layer *l, batch *b, uint64_t tokens) {
  uint64_t size = tokens * l->inner * HALF;
  size_t active = program_pop(p, &b->saved);
  size_t gradient = program_make(p, size);
  program_product(p);
  program_drop(p, active);
  weight_gradient(p, l->weights[3], &l->gradients[3]);
  size_t outs[2] = {0};
  for (int i = 0; i < 1 + l->gated; i++) {
    program_drop(p, program_pop(p, &b->saved));
    outs[i] = program_make(p, size);
    if (i == l->gated) program_drop(p, gradient);
    program_op(p);
  }
  for (int i = 0; i < 1 + l->gated; i++) {
    program_drop(p, outs[i]);
    program_product(p);
  }
}

static uint64_t share_of(const layer *l, const batch *b, uint64_t expert) {
  // Two experts for each token, the first ones more in demand; the same in
  // each pass of a batch.
  uint64_t mean = 2 * b->tokens / l->experts;
  uint64_t odd = (expert * 2654435761u + b->tokens * 40503u) % 1000;
  return mean * (300 + odd + 600 / (expert + 1)) / 1000 + 1;
}

static void experts_forward(program *p, const layer *l, batch *b) {
  size_t logits = program_make(p, b->tokens * l->experts * FULL);
  program_op(p);
  program_push(p, &b->saved,
               program_turn(p, logits, b->tokens * l->experts * FULL));
  for (uint64_t i = 0; i < l->experts; i++) {
    uint64_t tokens = share_of(l, b, i);
    program_push(p, &b->saved, program_make(p, tokens * l->hidden * HALF));
    program_op(p);
    wide_forward(p, l, b, tokens);
    size_t result = program_make(p, tokens * l->hidden * HALF);
    program_product(p);
    program_drop(p, result);
    program_op(p);
  }
}

static void experts_backward(program *p, layer *l, batch *b) {
  for (uint64_t i = l->experts; i-- > 0;) {
    uint64_t tokens = share_of(l, b, i);
    size_t gathered = program_make(p, tokens * l->hidden * HALF);
    program_op(p);
    wide_backward(p, l, b, tokens);
    program_drop(p, gathered);
    program_drop(p, program_pop(p, &b->saved));
    program_op(p);
  }
  size_t logits = program_make(p, b->tokens * l->experts * FULL);
  program_drop(p, program_pop(p, &b->saved));
  program_op(p);
  program_drop(p, logits);
  program_product(p);
}

static size_t feed_forward(program *p, const layer *l, batch *b, size_t input) {
  norm_forward(p, b, l->hidden, input);
  size_t out = program_make(p, wide(b, l->hidden));
  if (l->experts > 0) {
    experts_forward(p, l, b);
  } else {
    wide_forward(p, l, b, b->tokens);
    program_product(p);
  }
  return join_forward(p, b, l->hidden, out);
}

static size_t feed_backward(program *p, layer *l, batch *b, size_t around) {
  size_t gradient = join_backward(p, b, l->hidden);
  if (l->experts > 0) {
    experts_backward(p, l, b);
  } else {
    wide_backward(p, l, b, b->tokens);
  }
  size_t normed = program_pop(p, &b->saved);
  size_t out = program_make(p, wide(b, l->hidden));
  program_product(p);
  program_drop(p, gradient);
  program_drop(p, normed);
  weight_gradient(p, l->weights[2], &l->gradients[2]);
  return norm_backward(p, b, l->hidden, out, around);
}

// --- layers ------------------------------------------------------------------

static size_t run_forward(program *p, const layer *l, batch *b, size_t input) {
  size_t middle = attention_forward(p, l, b, input);
  return feed_forward(p, l, b, middle);
}

size_t layer_forward(program *p, const layer *l, batch *b, size_t input) {
  if (!l->checkpointed) return run_forward(p, l, b, input);
  size_t before = b->saved.count;
  size_t out = run_forward(p, l, b, input);
  while (!p->failed && b->saved.count > before + 1) {
    program_drop(p, program_pop(p, &b->saved));
  }
  program_op(p);
  return out;
}

size_t layer_backward(program *p, layer *l, batch *b, size_t gradient) {
  if (l->checkpointed) {
    size_t again = run_forward(p, l, b, program_pop(p, &b->saved));
    program_drop(p, again);
  }
  gradient = feed_backward(p, l, b, gradient);
  return attention_backward(p, l, b, gradient);
}
