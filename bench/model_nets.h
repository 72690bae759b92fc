// model_nets.h - nets that are described by tarn/model.h and never run: their
// memory.
//
// Each conv, norm, activation, add, pool, softmax, dropout and linear has an
// output of its own. ReLU, add, softmax and dropout can work in place where
// their input is not needed later; norms and GELU read their input backward,
// ReLU and softmax their output. Caches are masks of dropout, a byte each, and
// indices of max-pooling, 4 bytes each. The net's input gets no gradient.
#ifndef TARN_BENCH_MODEL_NETS_H_
#define TARN_BENCH_MODEL_NETS_H_

#include "tarn/tarn.h"

typedef tarn_status model_net_describe(tarn_model *model);

typedef struct model_net {
  const char *name;
  int64_t batch;
  model_net_describe *describe;
  // The results of an account by hand, in MiB; see bench/results/model.md.
  double params;
  double naive[2];  // by tarn_model_mode
  double bound[2];
} model_net;

// "mlp", "mlp-16", "resnet-14", "resnet-50", "bert-layer"; NULL beyond the
// last.
const model_net *model_net_at(size_t index);

// The net of that name, or NULL.
const model_net *model_net_find(const char *name);

#endif  // TARN_BENCH_MODEL_NETS_H_
