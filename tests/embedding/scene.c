#include "embedding/scene.h"

#include "base/convert.h"

const scene scenes[] = {
    {"sgd", TARN_OPTIMIZER_SGD, 0, 0, 0, 0, TARN_DTYPE_F32, TARN_DTYPE_F32, 64},
    {"sgd with momentum and decay", TARN_OPTIMIZER_SGD, 0, .9f, .01f, 0,
     TARN_DTYPE_F32, TARN_DTYPE_F32, 7},
    {"adam", TARN_OPTIMIZER_ADAM, 0, 0, 0, 0, TARN_DTYPE_F32, TARN_DTYPE_F32,
     64},
    {"adam with decay", TARN_OPTIMIZER_ADAM, 0, 0, .1f, 0, TARN_DTYPE_F32,
     TARN_DTYPE_F32, 1},
    {"adamw of halves", TARN_OPTIMIZER_ADAM, TARN_EMBEDDING_DECOUPLED, 0, .1f,
     0, TARN_DTYPE_F16, TARN_DTYPE_BF16, 33},
    {"rmsprop", TARN_OPTIMIZER_RMSPROP, 0, 0, 0, 0, TARN_DTYPE_F32,
     TARN_DTYPE_F32, 20},
    {"adagrad", TARN_OPTIMIZER_ADAGRAD, 0, 0, 0, .1f, TARN_DTYPE_F32,
     TARN_DTYPE_F16, 20},
    {"adagrad by rows", TARN_OPTIMIZER_ADAGRAD, TARN_EMBEDDING_ROW_WISE, 0, .1f,
     .5f, TARN_DTYPE_F32, TARN_DTYPE_F32, 19},
    {"wide rows", TARN_OPTIMIZER_ADAGRAD, TARN_EMBEDDING_ROW_WISE, 0, 0, 0,
     TARN_DTYPE_F32, TARN_DTYPE_F32, 2500},
    {"wide rows of adam", TARN_OPTIMIZER_ADAM, 0, 0, 0, 0, TARN_DTYPE_BF16,
     TARN_DTYPE_F32, 2049},
    {"stochastic bf16", TARN_OPTIMIZER_SGD, TARN_EMBEDDING_STOCHASTIC, 0, 0, 0,
     TARN_DTYPE_BF16, TARN_DTYPE_F32, 64},
    {"stochastic f16", TARN_OPTIMIZER_ADAM, TARN_EMBEDDING_STOCHASTIC, 0, 0, 0,
     TARN_DTYPE_F16, TARN_DTYPE_F32, 10},
};
const size_t scene_count = sizeof scenes / sizeof scenes[0];

tarn_embedding_options scene_options(const scene *s) {
  tarn_embedding_options o;
  if (tarn_embedding_defaults(s->optimizer, &o) != TARN_OK) return o;
  o.flags = s->flags;
  o.momentum = s->momentum;
  o.weight_decay = s->weight_decay;
  o.initial = s->initial;
  o.learning_rate = .05f;
  o.seed = 7;
  return o;
}

static uint32_t mix(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

// From -1 to 1.
static float value_of(uint32_t number) {
  return (float)(int32_t)mix(number) * 0x1p-31f;
}

void scene_row(const scene *s, size_t row, void *out) {
  unsigned char *bytes = out;
  for (size_t i = 0; i < s->width; i++) {
    float value = value_of((uint32_t)(row * s->width + i));
    tarn__convert(s->table, bytes + i * tarn_dtype_size(s->table),
                  TARN_DTYPE_F32, &value, 1);
  }
}

int64_t scene_index(size_t batch, size_t at) {
  uint32_t a = mix((uint32_t)(batch * SCENE_BATCH + at)) % SCENE_ROWS;
  uint32_t b = mix((uint32_t)(at * 977 + batch)) % SCENE_ROWS;
  return (int64_t)((uint64_t)a * b / SCENE_ROWS);
}

void scene_gradient(const scene *s, size_t batch, size_t at, void *out) {
  unsigned char *bytes = out;
  for (size_t i = 0; i < s->width; i++) {
    float value = value_of(
        (uint32_t)(1000000 + (batch * SCENE_BATCH + at) * s->width + i));
    tarn__convert(s->gradients, bytes + i * tarn_dtype_size(s->gradients),
                  TARN_DTYPE_F32, &value, 1);
  }
}
