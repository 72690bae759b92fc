// The present batch, within the plan, and a larger one, with a new plan.
#include <assert.h>

#include "base/status.h"
#include "model/placed.h"
#include "model/slots.h"

int64_t tarn_model_batch(const tarn_model *model) {
  return model == NULL ? 0 : model->batch;
}

tarn_status tarn_model_set_batch(tarn_model *model, int64_t batch) {
  tarn_status status = tarn__model_check(model);
  if (status != TARN_OK) return status;
  if (batch >= 0 && batch <= model->max_batch) {
    model->batch = batch;
    return TARN_OK;
  }
  return tarn__fail(TARN_E_INVALID,
                    "%s: a batch of %lld, where 0 to %lld are planned for",
                    model->name, (long long)batch, (long long)model->max_batch);
}

// --- a larger one ----------------------------------------------------------

// Sizes of all tensors at |batch|; with |commit| false only whether they fit.
static tarn_status size_tensors(tarn_model *model, int64_t batch, bool commit) {
  tarn_list *node = NULL;
  tarn_list_for_each (node, &model->among) {
    tarn_tensor *tensor = tarn_list_entry(node, tarn_tensor, among);
    size_t size = 0;
    tarn_status status = tarn__tensor_bytes(tensor, batch, &size);
    if (status != TARN_OK) return status;
    if (commit) tensor->max_size = size;
  }
  return TARN_OK;
}

static void set_max(tarn_model *model, int64_t batch) {
  model->max_batch = batch;
  tarn_status status = size_tensors(model, batch, true);
  assert(status == TARN_OK);  // checked before
  (void)status;
}

// Restores the tensors' slots after a failed plan.
static void restore_slots(tarn__model_slots *slots) {
  for (size_t i = 0; i < slots->slots.count; i++) {
    const tarn__model_slot *slot = tarn__slot_at(slots, i);
    slot->tensor->slots[slot->part] = i;
  }
}

static tarn_status plan_anew(tarn_model *model, tarn__model_slots **out_slots) {
  const tarn__model_slots *old = model->slots;
  tarn__model_slots *slots = NULL;
  *out_slots = NULL;
  tarn_status status = tarn__slots_find(model, old->options.mode, &slots);
  if (status != TARN_OK) return status;
  assert(slots != NULL);
  slots->options = old->options;
  slots->solver = old->solver;
  slots->options.solver = &slots->solver;
  status = tarn__slots_plan(model, slots);
  if (status == TARN_OK && model->placed != NULL) {
    status = tarn__placed_begin(model, slots);
  }
  if (status != TARN_OK) {
    tarn__slots_destroy(slots);
    return status;
  }
  *out_slots = slots;
  return TARN_OK;
}

static tarn_status exchange_plan(tarn_model *model) {
  tarn__model_slots *slots = NULL;
  tarn_status status = plan_anew(model, &slots);
  if (status != TARN_OK) {
    restore_slots(model->slots);
    return status;
  }
  tarn__slots_destroy(model->slots);
  model->slots = slots;
  return TARN_OK;
}

tarn_status tarn_model_set_max_batch(tarn_model *model, int64_t batch) {
  tarn_status status = tarn__model_check(model);
  if (status != TARN_OK) return status;
  if (batch < 1) {
    return tarn__fail(TARN_E_INVALID, "%s: a largest batch of %lld",
                      model->name, (long long)batch);
  }
  status = size_tensors(model, batch, false);
  if (status != TARN_OK) return status;
  if (model->placed != NULL) status = tarn__placed_check_idle(model, false);
  if (status != TARN_OK) return status;
  int64_t previous = model->max_batch;
  set_max(model, batch);
  if (model->slots != NULL) status = exchange_plan(model);
  if (status != TARN_OK) {
    set_max(model, previous);
    return status;
  }
  model->batch = batch;
  return TARN_OK;
}
