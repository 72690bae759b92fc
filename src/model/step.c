// Steps: their names, and their uses of parts of tensors.
#include "base/hostmem.h"
#include "base/status.h"
#include "model/model.h"

static tarn_status check_name(const tarn_model *model, const char *name) {
  if (name == NULL || *name == '\0') {
    return tarn__fail(TARN_E_INVALID, "%s: a step without a name", model->name);
  }
  if (tarn__names_find(&model->step_names, name) == NULL) return TARN_OK;
  return tarn__fail(TARN_E_STATE, "%s: there is a step '%s' already",
                    model->name, name);
}

tarn_status tarn_model_step(tarn_model *model, const char *name,
                            tarn_step **out_step) {
  if (out_step == NULL) return tarn__fail(TARN_E_INVALID, "step: no output");
  *out_step = NULL;
  TARN__TRY(tarn__model_check_open(model));
  TARN__TRY(check_name(model, name));
  TARN__TRY(tarn__array_reserve(&model->budget, &model->steps, 1));
  tarn_step *step = tarn__host_alloc(sizeof *step);
  if (step == NULL) return TARN_E_NOMEM;
  tarn_status status = tarn__names_add(&model->step_names, name, step);
  step->index = model->steps.count;
  if (status == TARN_OK) {
    status = tarn__array_append(&model->budget, &model->steps, &step, 1);
  }
  if (status != TARN_OK) {
    tarn__host_free(step, sizeof *step);
    return status;
  }
  step->model = model;
  step->name = tarn__names_find(&model->step_names, name)->name;
  step->uses = TARN__ARRAY_OF(tarn__model_step_use);
  step->caches = TARN__ARRAY_OF(tarn__model_tensor *);
  *out_step = step;
  return TARN_OK;
}

void tarn__step_free(tarn_step *step) {
  tarn__budget *budget = &step->model->budget;
  tarn__array_free(budget, &step->uses);
  tarn__array_free(budget, &step->caches);
  tarn__array_free(budget, &step->stack);
  tarn__host_free(step, sizeof *step);
}

tarn_step *tarn_model_find_step(tarn_model *model, const char *name) {
  if (tarn__model_check(model) != TARN_OK) return NULL;
  tarn__name *found = tarn__names_find(&model->step_names, name);
  if (found != NULL) return found->value;
  tarn__fail(TARN_E_INVALID, "%s: no step '%s'", model->name,
             name == NULL ? "" : name);
  return NULL;
}

size_t tarn_model_step_count(const tarn_model *model) {
  return model == NULL ? 0 : model->steps.count;
}

tarn_step *tarn_model_step_at(const tarn_model *model, size_t index) {
  if (model == NULL || index >= model->steps.count) return NULL;
  return tarn__step_at(model, index);
}

const char *tarn_step_name(const tarn_step *step) {
  return step == NULL ? "" : step->name;
}

size_t tarn_step_index(const tarn_step *step) {
  return step == NULL ? 0 : step->index;
}

tarn_model *tarn_step_model(const tarn_step *step) {
  return step == NULL ? NULL : step->model;
}

// --- uses ------------------------------------------------------------------

static tarn_status check_step(const tarn_step *step, tarn_pass pass) {
  if (step == NULL) return tarn__fail(TARN_E_INVALID, "step: NULL");
  TARN__TRY(tarn__model_check_open(step->model));
  if (pass == TARN_FORWARD || pass == TARN_BACKWARD) return TARN_OK;
  return tarn__fail(TARN_E_INVALID, "step '%s': no pass %d", step->name,
                    (int)pass);
}

static tarn_status check_part(const tarn_step *step, const tarn_tensor *tensor,
                              tarn_part part) {
  if (tensor == NULL || tensor->model != step->model) {
    return tarn__fail(TARN_E_INVALID, "step '%s': not a tensor of its model",
                      step->name);
  }
  if (tarn__tensor_root((tarn_tensor *)(uintptr_t)tensor)->beyond) {
    return tarn__fail(TARN_E_INVALID,
                      "step '%s': '%s' was pushed without a description: only "
                      "pushes and pops use it",
                      step->name, tensor->name);
  }
  bool has =
      part == TARN_DATA || (part == TARN_DIFF && tarn__tensor_has_diff(tensor));
  if (has) return TARN_OK;
  return tarn__fail(TARN_E_INVALID, "step '%s': '%s', a %s, has no part %d",
                    step->name, tensor->name,
                    tarn_tensor_kind_name(tensor->kind), (int)part);
}

static tarn_status add_use(tarn_step *step, tarn__model_step_use use) {
  return tarn__array_append(&step->model->budget, &step->uses, &use, 1);
}

static tarn_status use_part(tarn_step *step, tarn__model_use_kind kind,
                            tarn_pass pass, tarn_tensor *tensor,
                            tarn_part part) {
  TARN__TRY(check_step(step, pass));
  TARN__TRY(check_part(step, tensor, part));
  return add_use(step,
                 (tarn__model_step_use){.kind = kind,
                                        .pass = pass,
                                        .tensor = tarn__tensor_root(tensor),
                                        .part = part});
}

tarn_status tarn_step_reads(tarn_step *step, tarn_pass pass,
                            tarn_tensor *tensor, tarn_part part) {
  return use_part(step, TARN__READS, pass, tensor, part);
}

tarn_status tarn_step_writes(tarn_step *step, tarn_pass pass,
                             tarn_tensor *tensor, tarn_part part) {
  return use_part(step, TARN__WRITES, pass, tensor, part);
}

tarn_status tarn_step_replaces(tarn_step *step, tarn_pass pass,
                               tarn_tensor *giver, tarn_part giver_part,
                               tarn_tensor *taker, tarn_part taker_part) {
  TARN__TRY(check_step(step, pass));
  TARN__TRY(check_part(step, giver, giver_part));
  TARN__TRY(check_part(step, taker, taker_part));
  return add_use(step,
                 (tarn__model_step_use){.kind = TARN__REPLACES,
                                        .pass = pass,
                                        .tensor = tarn__tensor_root(taker),
                                        .part = taker_part,
                                        .giver = tarn__tensor_root(giver),
                                        .giver_part = giver_part});
}

// --- caches ----------------------------------------------------------------

static tarn_status note_cache(tarn_step *step, tarn_tensor *tensor) {
  // There is room, as for the two uses.
  TARN__TRY(
      tarn__array_append(&step->model->budget, &step->caches, &tensor, 1));
  TARN__TRY(tarn_step_writes(step, TARN_FORWARD, tensor, TARN_DATA));
  return tarn_step_reads(step, TARN_BACKWARD, tensor, TARN_DATA);
}

tarn_status tarn_step_caches(tarn_step *step, const char *name,
                             tarn_dtype dtype, tarn_shape shape, bool bits,
                             tarn_tensor **out_tensor) {
  if (out_tensor == NULL) return tarn__fail(TARN_E_INVALID, "cache: no output");
  *out_tensor = NULL;
  TARN__TRY(check_step(step, TARN_FORWARD));
  if (bits && dtype != TARN_DTYPE_BOOL) {
    return tarn__fail(TARN_E_INVALID,
                      "step '%s': a mask of bits of type %s, "
                      "not bool",
                      step->name, tarn_dtype_name(dtype));
  }
  tarn__budget *budget = &step->model->budget;
  TARN__TRY(tarn__array_reserve(budget, &step->caches, 1));
  TARN__TRY(tarn__array_reserve(budget, &step->uses, 2));
  TARN__TRY(tarn__tensor_add(step->model, TARN_CACHE, name, dtype, shape, bits,
                             NULL, out_tensor));
  return note_cache(step, *out_tensor);
}
