// plan_models.h - large models to be planned, made and not recorded.
//
// A model is an iteration of training as a runtime without a garbage collector
// runs it: each operation is a step, its result is needed from that step to
// the last operation that reads it. In it are
//
//   weights in bfloat16, and a shard of master weights and both moments of
//   Adam in float32, all there throughout;
//   gradients, from the first micro-batch that makes them to the optimizer;
//   what the forward pass saves for the backward pass, which is freed in the
//   reverse order within a micro-batch, and first in, first out between those
//   that are in flight at once, as on a stage of a pipeline;
//   layers that are checkpointed: only their input is saved, and they are run
//   once more;
//   attention, fused (one tensor for queries, keys and values, no scores) or
//   not (scores, mask, probabilities and dropout of each sequence, in the
//   square of a length that varies from sequence to sequence);
//   feed-forward blocks, dense or of experts that each get another share of
//   the tokens;
//   temporaries, workspaces of sizes that fit nothing else, small statistics;
//   logits and their softmax, the largest of all, in between.
//
// Micro-batches have different numbers of tokens, so few sizes are equal. All
// are multiples of 256 bytes, as allocators round them. Names and sizes stay
// what they are: figures of different days can be compared.
#ifndef TARN_BENCH_PLAN_MODELS_H_
#define TARN_BENCH_PLAN_MODELS_H_

#include "tarn/plan.h"

typedef struct plan_model {
  tarn_plan_buffer *buffers;
  size_t count;
} plan_model;

// The name of each: "transformer-2k", "transformer-20k", "transformer-60k",
// "encoder-20k", "experts-20k" and more, about so many thousand buffers each;
// NULL at the end.
const char *plan_models_name(size_t index);

// Makes one, the same on all machines.
//
// Lifetime:       plan_model_free.
// TARN_E_INVALID  no model has this name.
// TARN_E_NOMEM    no memory.
tarn_status plan_model_make(const char *name, plan_model *out_model);

// Frees |model| and zero-fills it. A zero-filled one is allowed.
void plan_model_free(plan_model *model);

#endif  // TARN_BENCH_PLAN_MODELS_H_
