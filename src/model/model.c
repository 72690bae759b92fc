// Models: create and destroy, and lookup of tensors by list and by name.
#include "model/model.h"

#include <string.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/status.h"
#include "model/placed.h"
#include "model/slots.h"

static tarn_status read_options(const tarn_model_options *given,
                                tarn_model_options *out) {
  *out = (tarn_model_options){.max_batch = 1, .name = "model"};
  if (given == NULL) return TARN_OK;
  size_t known = 0;
  if (!tarn__struct_size(given->struct_size,
                         TARN__SIZE_UP_TO(tarn_model_options, max_batch),
                         sizeof *given, &known)) {
    return tarn__fail(TARN_E_INVALID, "model options: a struct_size of %zu",
                      given->struct_size);
  }
  if (given->max_batch < 0) {
    return tarn__fail(TARN_E_INVALID, "model: a largest batch of %lld",
                      (long long)given->max_batch);
  }
  if (given->name != NULL) out->name = given->name;
  if (given->max_batch > 0) out->max_batch = given->max_batch;
  return TARN_OK;
}

static void init_lists(tarn_model *model) {
  for (size_t i = 0; i <= TARN_CACHE; i++)
    tarn_list_init(&model->kinds[i]);
  tarn_list_init(&model->among);
}

tarn_status tarn_model_create(const tarn_model_options *options,
                              tarn_model **out_model) {
  if (out_model == NULL) return tarn__fail(TARN_E_INVALID, "model: no output");
  *out_model = NULL;
  tarn_model_options wanted;
  TARN__TRY(read_options(options, &wanted));
  tarn_model *model = tarn__host_alloc(sizeof *model);
  if (model == NULL) return TARN_E_NOMEM;
  model->name = tarn__host_text(wanted.name);
  if (model->name == NULL) {
    tarn__host_free(model, sizeof *model);
    return TARN_E_NOMEM;
  }
  model->generation = tarn__os_generation();
  model->max_batch = model->batch = wanted.max_batch;
  model->budget = tarn__budget_unlimited("model");
  model->steps = TARN__ARRAY_OF(tarn_step *);
  init_lists(model);
  tarn__model_enlist(NULL, &model->all);
  *out_model = model;
  return TARN_OK;
}

static void free_tensors(tarn_model *model) {
  tarn__model_tensor *next = tarn__tensor_next(model, NULL);
  for (tarn__model_tensor *tensor = next; tensor != NULL; tensor = next) {
    next = tarn__tensor_next(model, tensor);
    tarn__tensor_free(tensor);
  }
}

static void free_model(tarn_model *model) {
  tarn__model_delist(model);
  for (size_t i = 0; i < model->steps.count; i++)
    tarn__step_free(tarn__step_at(model, i));
  tarn__array_free(&model->budget, &model->steps);
  free_tensors(model);
  tarn__names_deinit(&model->names);
  tarn__names_deinit(&model->step_names);
  tarn__slots_destroy(model->slots);
  tarn__host_free_text(model->name);
  tarn__host_free(model, sizeof *model);
}

tarn_status tarn_model_destroy(tarn_model *model) {
  if (model == NULL) return TARN_OK;
  // In a child of fork open accesses do not count.
  if (model->generation == tarn__os_generation()) {
    TARN__TRY(tarn__placed_check_idle(model, true));
  }
  tarn_status status = tarn__placed_end(model);
  free_model(model);
  return status;
}

// --- lists and names -------------------------------------------------------

tarn_list *tarn_model_list(tarn_model *model, tarn_tensor_kind kind) {
  if (tarn__model_check(model) != TARN_OK) return NULL;
  if (kind == TARN_KIND_ALL) return &model->among;
  if ((unsigned)kind <= TARN_CACHE) return &model->kinds[kind];
  tarn__fail(TARN_E_INVALID, "%s: no list of tensors of kind %d", model->name,
             (int)kind);
  return NULL;
}

size_t tarn_model_count(const tarn_model *model, tarn_tensor_kind kind) {
  if (model == NULL) return 0;
  if (kind == TARN_KIND_ALL) return model->names.count;
  return (unsigned)kind < TARN_KIND_ALL ? model->counts[kind] : 0;
}

tarn_tensor *tarn_model_get(tarn_model *model, tarn_tensor_kind kind,
                            const char *name) {
  if (tarn__model_check(model) != TARN_OK) return NULL;
  if (name == NULL) {
    tarn__fail(TARN_E_INVALID, "%s: a tensor's name is NULL", model->name);
    return NULL;
  }
  tarn__name *found = tarn__names_find(&model->names, name);
  tarn_tensor *tensor = found == NULL ? NULL : found->value;
  if (tensor != NULL && (tensor->kind == kind || kind == TARN_KIND_ALL)) {
    return tensor;
  }
  const char *wanted = tarn_tensor_kind_name(kind);
  if (tensor == NULL) {
    tarn__fail(TARN_E_INVALID, "%s: no tensor '%s'", model->name, name);
  } else {
    tarn__fail(TARN_E_INVALID, "%s: '%s' is of kind %s, not %s", model->name,
               name, tarn_tensor_kind_name(tensor->kind),
               wanted == NULL ? "?" : wanted);
  }
  return NULL;
}

tarn_tensor *tarn_model_param(tarn_model *model, const char *name) {
  return tarn_model_get(model, TARN_PARAM, name);
}

tarn_status tarn_model_each(tarn_model *model, tarn_tensor_kind kind,
                            const char *prefix, tarn_tensor_visit *visit,
                            void *context) {
  TARN__TRY(tarn__model_check(model));
  bool is_kind = kind == TARN_KIND_ALL || tarn_tensor_kind_name(kind) != NULL;
  if (visit == NULL || !is_kind) {
    return tarn__fail(TARN_E_INVALID, "%s: each: kind %d, or no function",
                      model->name, (int)kind);
  }
  if (prefix == NULL) prefix = "";
  size_t length = strlen(prefix);
  for (tarn__model_tensor *t = NULL; (t = tarn__tensor_next(model, t));) {
    bool fits = (kind == TARN_KIND_ALL || t->shown.kind == kind) &&
                strncmp(t->shown.name, prefix, length) == 0;
    if (!fits) continue;
    TARN__TRY(visit(context, &t->shown));
  }
  return TARN_OK;
}
