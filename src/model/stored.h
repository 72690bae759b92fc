// stored.h - the tensors of a model that files keep, and the file's tensors for
// them.
#ifndef TARN_MODEL_STORED_H_
#define TARN_MODEL_STORED_H_

#include "model/slots.h"
#include "tarn/model_file.h"

// Parameters, tied ones once, and with |states| also states.
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

// The home of |model|; without a plan, the host.
static inline tarn_place tarn__model_home(const tarn_model *model) {
  return model->slots == NULL ? TARN_HOST : model->slots->options.home;
}

// TARN_E_STATE  |tensor| has no buffer for its data.
TARN_MUST_CHECK tarn_status tarn__stored_check(const tarn_tensor *tensor);

// --- matching.c: the tensors of a file, checked before anything changes ---

// A tensor of the model, and the file's tensor for it.
typedef struct tarn__model_match {
  tarn_tensor *tensor;
  const tarn_safetensor *source;
  bool is_copied;      // into memory of the model's own, not mapped
  tarn_access access;  // to that memory
} tarn__model_match;

typedef struct tarn__model_matches {
  tarn_model *model;
  const char *path;  // for texts
  const tarn_safetensors *file;
  uint32_t flags;
  tarn__model_match *items;  // |count| of at most |room|
  size_t room;
  size_t count;
  size_t missing;
  size_t unused;
} tarn__model_matches;

// Fills all but the first four fields.
//
// Call tarn__matches_end afterwards, also on failure.
//
// TARN_E_INVALID, TARN_E_STATE, TARN_E_NOMEM  as tarn_model_load.
TARN_MUST_CHECK tarn_status tarn__matches_find(tarn__model_matches *matches);
void tarn__matches_end(tarn__model_matches *matches);

#endif  // TARN_MODEL_STORED_H_
