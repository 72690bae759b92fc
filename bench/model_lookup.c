// Looking up names: each round asks for all of them, in a shuffled order.
#include "model_lookup.h"

#include <stdio.h>
#include <stdlib.h>

#include "kit/stopwatch.h"
#include "probe.h"

enum { ROUNDS = 101, NAME_SIZE = 64 };

static void name_of(size_t index, char name[NAME_SIZE]) {
  static const char *const parts[] = {"query", "key", "value", "output"};
  static const char *const kinds[] = {"weight", "bias"};
  snprintf(name, NAME_SIZE, "layer%zu.attention.%s.%s", index / 8,
           parts[index / 2 % 4], kinds[index % 2]);
}

static tarn_status fill(tarn_model *model, char (*names)[NAME_SIZE],
                        size_t count) {
  const int64_t length = 4;
  for (size_t i = 0; i < count; i++) {
    tarn_tensor *tensor = NULL;
    name_of(i, names[i]);
    tarn_status status =
        tarn_model_add(model, TARN_PARAM, names[i], TARN_DTYPE_F32,
                       (tarn_shape){&length, 1}, &tensor);
    if (status != TARN_OK) return status;
  }
  return TARN_OK;
}

// Order by a multiplication, which visits each once if it is prime to |count|.
static size_t shuffled(size_t i, size_t count) {
  return i * 7919 % count;
}

static tarn_status ask_all(tarn_model *model, char (*names)[NAME_SIZE],
                           size_t count, double *out_ns) {
  double before = stopwatch_cpu_ns();
  for (size_t i = 0; i < count; i++) {
    if (tarn_model_param(model, names[shuffled(i, count)]) == NULL) {
      return TARN_E_INVALID;
    }
  }
  *out_ns = (stopwatch_cpu_ns() - before) / (double)count;
  return TARN_OK;
}

static tarn_status measure(tarn_model *model, char (*names)[NAME_SIZE],
                           size_t count, double *out_ns) {
  double rounds[ROUNDS];
  tarn_status status = fill(model, names, count);
  for (size_t i = 0; status == TARN_OK && i < ROUNDS; i++)
    status = ask_all(model, names, count, &rounds[i]);
  if (status != TARN_OK) return status;
  *out_ns = probe_median(rounds, ROUNDS);
  return TARN_OK;
}

tarn_status model_lookup_measure(size_t names, double *out_ns) {
  tarn_model *model = NULL;
  tarn_status status = tarn_model_create(NULL, &model);
  if (status != TARN_OK) return status;
  char(*texts)[NAME_SIZE] = calloc(names, NAME_SIZE);
  status = texts == NULL ? TARN_E_NOMEM : measure(model, texts, names, out_ns);
  free(texts);
  tarn_model_destroy(model);
  return status;
}
