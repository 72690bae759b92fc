// matching.h - what a file has for a model, checked, before anything changes.
#ifndef TARN_MODEL_MATCHING_H_
#define TARN_MODEL_MATCHING_H_

#include "model/stored.h"
#include "tarn/model_file.h"

// A tensor of the model, and the one of the file that it is to be given.
typedef struct tarn__model_match {
  tarn_tensor *tensor;
  const tarn_safetensor *source;
  bool is_copied;      // into memory of the model's own
  tarn_access access;  // to that
} tarn__model_match;

typedef struct tarn__model_matches {
  tarn_model *model;
  const char *path;  // for texts
  const tarn_safetensors *file;
  uint32_t flags;
  tarn__model_match *items;  // |room| of them, of which |count| are there
  size_t room;
  size_t count;
  size_t missing;
  size_t unused;
} tarn__model_matches;

// Fills all but the first four fields.
//
// TARN_E_INVALID, TARN_E_STATE  as tarn_model_load.
// TARN_E_NOMEM                  end it as well, like after all others.
TARN_MUST_CHECK tarn_status tarn__matches_find(tarn__model_matches *matches);
void tarn__matches_end(tarn__model_matches *matches);

#endif  // TARN_MODEL_MATCHING_H_
