// The present batch, within the plan, and a larger one, with a new plan.
#include <assert.h>

#include "base/status.h"
#include "model/placed.h"
#include "model/slots.h"

int64_t tarn_model_batch(const tarn_model *model) {
  return model == NULL ? 0 : model->batch;
}

tarn_status tarn_model_set_batch(tarn_model *model, int64_t batch) {
  TARN__TRY(tarn__model_check(model));
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
  for (tarn__model_tensor *t = NULL; (t = tarn__tensor_next(model, t));) {
    size_t size = 0;
    TARN__TRY(tarn__tensor_bytes(&t->shown, batch, &size));
    if (commit) t->shown.max_size = size;
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

// Plans for the new largest batch. On failure the model keeps its present plan.
static tarn_status exchange_plan(tarn_model *model) {
  tarn__model_slots *slots = NULL;
  tarn_status status = tarn__slots_plan(model, &model->slots->options, &slots);
  if (status == TARN_OK && model->placed != NULL) {
    status = tarn__placed_begin(model, slots);
  }
  if (status != TARN_OK) {
    tarn__slots_destroy(slots);
    restore_slots(model->slots);
    return status;
  }
  tarn__slots_destroy(model->slots);
  model->slots = slots;
  return TARN_OK;
}

tarn_status tarn_model_set_max_batch(tarn_model *model, int64_t batch) {
  TARN__TRY(tarn__model_check(model));
  if (batch < 1) {
    return tarn__fail(TARN_E_INVALID, "%s: a largest batch of %lld",
                      model->name, (long long)batch);
  }
  TARN__TRY(size_tensors(model, batch, false));
  if (model->placed != NULL) {
    TARN__TRY(tarn__placed_check_idle(model, false));
  }
  int64_t previous = model->max_batch;
  set_max(model, batch);
  tarn_status status = model->slots == NULL ? TARN_OK : exchange_plan(model);
  if (status != TARN_OK) {
    set_max(model, previous);
    return status;
  }
  model->batch = batch;
  return TARN_OK;
}
