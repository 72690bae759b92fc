// Extra caches as tensors in the lists of their model.
//
// The first push at a place of a step's stack adds a tensor, named after the
// step and the place: "fc1.cache2". It lives as long as the model and shows the
// entry that was pushed there last. While the model is not placed, its data is
// NULL.
//
//   step->listed   NULL, tensor, tensor, ...   by place; NULL: described before
//                                              the first push there
//
// If a cache is described for the place later, the tensor keeps its name and
// its data stays NULL.
#include <stdio.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "model/placed.h"

static tarn__model_tensor **listed_at(const tarn_step *step, size_t place) {
  return (tarn__model_tensor **)step->listed.items + place;
}

// Makes room up to |place|.
static tarn_status reach(tarn_step *step, size_t place) {
  size_t count = step->listed.count;
  void *at = NULL;
  if (place < count) return TARN_OK;
  if (step->listed.item_size == 0) {
    step->listed = TARN__ARRAY_OF(tarn__model_tensor *);
  }
  return tarn__array_grow(&step->model->budget, &step->listed,
                          place + 1 - count, &at);
}

// Writes "<step>.cache<place>", and from |attempt| 1 on a number behind it.
static void write_name(char *out, size_t size, const tarn_step *step,
                       size_t place, size_t attempt) {
  char suffix[24] = "";
  if (attempt > 0) snprintf(suffix, sizeof suffix, ".%zu", attempt);
  snprintf(out, size, "%s.cache%zu%s", step->name, place, suffix);
}

// A free name. Free it with its size.
static char *free_name(const tarn_step *step, size_t place, size_t *out_size) {
  enum { NUMBERS = 64 };  // bytes behind the step's name
  *out_size = 0;
  if (!tarn_size_add(strlen(step->name), NUMBERS, out_size)) return NULL;
  char *text = tarn__host_alloc(*out_size);
  if (text == NULL) return NULL;
  size_t attempt = 0;
  do {
    write_name(text, *out_size, step, place, attempt++);
  } while (tarn__names_find(&step->model->names, text) != NULL);
  return text;
}

static tarn_status add(tarn_step *step, size_t place, tarn_dtype dtype,
                       tarn_shape shape, bool bits, tarn__model_tensor **out) {
  size_t size = 0;
  char *name = free_name(step, place, &size);
  if (name == NULL) return TARN_E_NOMEM;
  tarn_tensor *tensor = NULL;
  tarn_status status = tarn__tensor_add(step->model, TARN_CACHE, name, dtype,
                                        shape, bits, NULL, &tensor);
  tarn__host_free(name, size);
  if (status != TARN_OK) return status;
  *out = (tarn__model_tensor *)(void *)tensor;
  (*out)->beyond = true;
  return TARN_OK;
}

tarn_status tarn__listed_make(tarn_step *step, size_t place, tarn_dtype dtype,
                              size_t count, bool bits) {
  tarn__model_tensor *tensor = NULL;
  tarn_status status = reach(step, place);
  if (status != TARN_OK || *listed_at(step, place) != NULL) return status;
  if (count > INT64_MAX) {
    return tarn__fail(TARN_E_INVALID, "step '%s': a cache of %zu elements",
                      step->name, count);
  }
  const int64_t dims[] = {(int64_t)count};
  status = add(step, place, dtype, (tarn_shape){dims, 1}, bits, &tensor);
  if (status == TARN_OK) *listed_at(step, place) = tensor;
  return status;
}

void tarn__listed_show(const tarn_step *step, size_t place, tarn_dtype dtype,
                       size_t count, bool bits, tarn_synced *buffer) {
  tarn__model_tensor *tensor = *listed_at(step, place);
  tensor->dims[0] = (int64_t)count;
  tensor->shown.dtype = dtype;
  tensor->shown.bits = bits;
  tensor->shown.max_size = tarn_synced_size(buffer);
  tensor->shown.data = buffer;
}

void tarn__listed_hide(const tarn_step *step) {
  for (size_t place = 0; place < step->listed.count; place++) {
    tarn__model_tensor *tensor = *listed_at(step, place);
    if (tensor != NULL) tensor->shown.data = NULL;
  }
}
