// Encoder layers of BERT-base: 12 heads of 64, and a feed-forward net of four
// times the width; 7,087,872 parameters each. One layer on sequences of 128 is
// a workload by itself.
//
// Heads are split and joined by copies, since a batched product wants each
// head's rows together.
#include <stdio.h>

#include "trace/workload.h"

enum {
  SEQUENCE = 128,
  NAME_SIZE = 32,
  HEADS = 12,
  HEAD = 64,
  HIDDEN = 768,
  INNER = 3072
};

// What a layer works on: |batch| sequences of |length|.
typedef struct texts {
  size_t batch;
  size_t length;
  tarn__trace_tape_tensor mask;
} texts;

static tarn__trace_tape_tensor project(tarn__trace_tape *tape, const char *name,
                                       const char *split,
                                       tarn__trace_tape_tensor x) {
  tarn__trace_tape_tensor flat =
      tarn__layer_linear(tape, name, x, HIDDEN, HIDDEN);
  return tarn__layer_unary(tape, TARN__LAYER_MAP, split, flat);
}

static tarn__trace_tape_tensor attention(tarn__trace_tape *tape,
                                         tarn__trace_tape_tensor x,
                                         const texts *on) {
  size_t scores_count =
      tarn__elements(on->batch, HEADS, on->length, on->length);
  tarn__trace_tape_tensor query =
      project(tape, "query", "query.split_heads", x);
  tarn__trace_tape_tensor key = project(tape, "key", "key.split_heads", x);
  tarn__trace_tape_tensor value =
      project(tape, "value", "value.split_heads", x);
  tarn__trace_tape_tensor scores = tarn__layer_binary(
      tape, TARN__LAYER_PRODUCT, "scores", query, key, scores_count);
  scores = tarn__layer_unary(tape, TARN__LAYER_MAP, "scale", scores);
  scores = tarn__layer_binary(tape, TARN__LAYER_ADD, "mask", scores, on->mask,
                              scores.count);
  tarn__trace_tape_tensor weights =
      tarn__layer_unary(tape, TARN__LAYER_SOFTMAX, "softmax", scores);
  weights = tarn__layer_dropout(tape, "dropout", weights);
  tarn__trace_tape_tensor context = tarn__layer_binary(
      tape, TARN__LAYER_PRODUCT, "context", weights, value, x.count);
  return tarn__layer_unary(tape, TARN__LAYER_MAP, "join_heads", context);
}

// Linear, dropout, the way around, norm: the end of either half.
static tarn__trace_tape_tensor finish_half(tarn__trace_tape *tape,
                                           tarn__trace_tape_tensor x,
                                           size_t width,
                                           tarn__trace_tape_tensor around) {
  tarn__trace_tape_tensor y =
      tarn__layer_linear(tape, "dense", x, width, HIDDEN);
  y = tarn__layer_dropout(tape, "dropout", y);
  y = tarn__layer_binary(tape, TARN__LAYER_ADD, "residual", y, around, y.count);
  return tarn__layer_norm(tape, "LayerNorm", y, y.count / HIDDEN, HIDDEN);
}

static tarn__trace_tape_tensor layer(tarn__trace_tape *tape, const char *name,
                                     tarn__trace_tape_tensor x,
                                     const texts *on) {
  tarn__tape_scope(tape, "%sattention.self", name);
  tarn__trace_tape_tensor context = attention(tape, x, on);
  tarn__tape_scope(tape, "%sattention.output", name);
  tarn__trace_tape_tensor middle = finish_half(tape, context, HIDDEN, x);
  tarn__tape_scope(tape, "%sintermediate", name);
  tarn__trace_tape_tensor inner =
      tarn__layer_linear(tape, "dense", middle, HIDDEN, INNER);
  inner = tarn__layer_unary(tape, TARN__LAYER_GELU, "gelu", inner);
  tarn__tape_scope(tape, "%soutput", name);
  return finish_half(tape, inner, INNER, middle);
}

tarn__trace_tape_tensor tarn__net_bert(tarn__trace_tape *tape, size_t batch,
                                       size_t length, size_t layers) {
  size_t count = tarn__elements(batch, length, HIDDEN, 1);
  texts on = {.batch = batch, .length = length};
  tarn__trace_tape_tensor x =
      tarn__tape_input(tape, "hidden_states", count, sizeof(float));
  on.mask =
      tarn__tape_input(tape, "attention_mask",
                       tarn__elements(batch, length, 1, 1), sizeof(float));
  for (size_t i = 0; i < layers; i++) {
    char name[NAME_SIZE] = "";
    if (layers > 1) snprintf(name, sizeof name, "layer.%zu.", i);
    x = layer(tape, name, x, &on);
  }
  return x;
}

tarn__trace_tape_tensor tarn__net_bert_layer(tarn__trace_tape *tape,
                                             size_t batch) {
  return tarn__net_bert(tape, batch, SEQUENCE, 1);
}
