// stored.h - which tensors of a model are kept in files, and where they are.
#ifndef TARN_MODEL_STORED_H_
#define TARN_MODEL_STORED_H_

#include "model/slots.h"

// Parameters, each once whatever its names, and states where they are asked
// for.
static inline bool tarn__is_stored(const tarn_tensor *tensor, bool states) {
  if (tensor->kind == TARN_STATE) return states;
  return tensor->kind == TARN_PARAM && tensor->of == NULL;
}

static inline size_t tarn__stored_count(const tarn_model *model, bool states) {
  size_t count = 0;
  const tarn_list *node = NULL;
  tarn_list_for_each (node, &model->among) {
    const tarn_tensor *tensor = tarn_list_entry(node, tarn_tensor, among);
    if (tarn__is_stored(tensor, states)) count++;
  }
  return count;
}

// Where everything is; of a model without a plan, the host.
static inline tarn_place tarn__model_home(const tarn_model *model) {
  return model->slots == NULL ? TARN_HOST : model->slots->options.home;
}

// TARN_E_STATE  it has no buffer for its data.
TARN_MUST_CHECK tarn_status tarn__stored_check(const tarn_tensor *tensor);

#endif  // TARN_MODEL_STORED_H_
