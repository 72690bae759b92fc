// scene.h - a table, an optimizer, and batches of gradients, which are the same
// whatever ranks, types and places there are.
#ifndef TARN_TESTS_EMBEDDING_SCENE_H_
#define TARN_TESTS_EMBEDDING_SCENE_H_

#include "tarn/embedding.h"

enum {
  SCENE_ROWS = 300,
  SCENE_BATCH = 900,  // gradients of all ranks together
  SCENE_BATCHES = 3
};

typedef struct scene {
  const char *name;
  tarn_optimizer optimizer;
  uint32_t flags;
  float momentum;
  float weight_decay;
  float initial;
  tarn_dtype table;
  tarn_dtype gradients;
  size_t width;
} scene;

extern const scene scenes[];
extern const size_t scene_count;

tarn_embedding_options scene_options(const scene *s);

// Row |row| of the table as it begins, in its dtype.
void scene_row(const scene *s, size_t row, void *out);

// Which row gradient |at| of batch |batch| is of; some come up often.
int64_t scene_index(size_t batch, size_t at);

// That gradient, in its dtype.
void scene_gradient(const scene *s, size_t batch, size_t at, void *out);

#endif  // TARN_TESTS_EMBEDDING_SCENE_H_
