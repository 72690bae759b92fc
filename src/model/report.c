// Reports: the memory that a net needs, with or without a plan.
#include <assert.h>

#include "base/status.h"
#include "model/slots.h"

// --- bytes by kind ---------------------------------------------------------

static tarn_status add(const tarn_model *model, size_t *sum, size_t size) {
  if (tarn_size_add(*sum, size, sum)) return TARN_OK;
  return tarn__fail(TARN_E_INVALID, "%s: the sum of its sizes overflows",
                    model->name);
}

static bool has_diff(const tarn_tensor *tensor, tarn_model_mode mode) {
  if (mode != TARN_TRAIN || !tarn__tensor_has_diff(tensor)) return false;
  if (tensor->kind == TARN_PARAM) return true;
  const tarn__model_tensor *own =
      (const tarn__model_tensor *)(const void *)tensor;
  return own->slots[TARN_DIFF] != TARN__NO_SLOT;
}

static bool is_fed(const tarn_tensor *tensor) {
  const tarn__model_tensor *own =
      (const tarn__model_tensor *)(const void *)tensor;
  return tensor->kind == TARN_OUTPUT && own->slots[TARN_DATA] == TARN__NO_SLOT;
}

// What is pushed beyond the description has counts of its own.
static bool counts(const tarn_tensor *tensor, tarn_model_mode mode) {
  if (((const tarn__model_tensor *)(const void *)tensor)->beyond) return false;
  bool another_name = tensor->of != NULL && tensor->kind != TARN_STATE;
  bool of_training = tensor->kind == TARN_CACHE || tensor->kind == TARN_STATE;
  return !another_name && !(of_training && mode == TARN_INFER);
}

static tarn_status add_tensor(const tarn_model *model,
                              const tarn_tensor *tensor,
                              tarn_model_needs *report) {
  size_t size = tensor->max_size;
  tarn_status status = add(model, &report->kinds[tensor->kind], size);
  if (status == TARN_OK && is_fed(tensor)) {
    status = add(model, &report->fed, size);
  }
  if (status == TARN_OK && has_diff(tensor, report->mode)) {
    status = add(model, &report->diffs[tensor->kind], size);
  }
  return status;
}

static tarn_status add_tensors(tarn_model *model, tarn_model_needs *report) {
  tarn_list *node = NULL;
  tarn_list_for_each (node, &model->among) {
    const tarn_tensor *tensor = tarn_list_entry(node, tarn_tensor, among);
    if (!counts(tensor, report->mode)) continue;
    tarn_status status = add_tensor(model, tensor, report);
    if (status != TARN_OK) return status;
  }
  return TARN_OK;
}

// --- in all ----------------------------------------------------------------

static tarn_status add_total(const tarn_model *model,
                             tarn_model_needs *report) {
  size_t parts[] = {report->planned, report->fed, report->kinds[TARN_PARAM],
                    report->diffs[TARN_PARAM], report->kinds[TARN_STATE]};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    tarn_status status = add(model, &report->total, parts[i]);
    if (status != TARN_OK) return status;
  }
  return TARN_OK;
}

static void ask_device(tarn_place home, tarn_model_needs *report) {
  tarn_device *device = home.device;
  bool opened = false;
  report->fits = true;
  if (device == NULL) {
    opened = tarn_device_open("cpu:0", &device) == TARN_OK;
    if (!opened) return;
  }
  size_t total = 0;
  if (tarn_device_memory(device, &total, &report->free) == TARN_OK &&
      report->free != 0) {
    report->fits = report->total <= report->free;
  }
  if (opened) tarn_device_close(device);
}

static void take_slots(const tarn_model *model, const tarn__model_slots *slots,
                       tarn_model_needs *report) {
  report->naive = slots->naive;
  report->planned = slots->planned;
  report->bound = slots->bound;
  report->answer = slots->answer;
  report->in_place = slots->in_place;
  if (model->steps.count == 0) return;
  report->peak_step =
      tarn__step_of_time(model, slots->peak, &report->peak_pass)->index;
}

static tarn_status fill(tarn_model *model, const tarn__model_slots *slots,
                        tarn_model_needs *report) {
  report->mode = slots->options.mode;
  report->max_batch = model->max_batch;
  report->extra_pushes = model->extra_pushes;
  report->extra_bytes = model->extra_bytes;
  take_slots(model, slots, report);
  tarn_status status = add_tensors(model, report);
  if (status == TARN_OK) status = add_total(model, report);
  if (status == TARN_OK) ask_device(slots->options.home, report);
  return status;
}

tarn_status tarn_model_report(tarn_model *model, tarn_model_needs *out_report) {
  tarn_status status = tarn__model_check(model);
  if (status != TARN_OK) return status;
  size_t known = 0;
  if (out_report == NULL ||
      !tarn__struct_size(out_report->struct_size,
                         TARN__SIZE_UP_TO(tarn_model_needs, extra_bytes),
                         sizeof *out_report, &known)) {
    return tarn__fail(TARN_E_INVALID, "%s: report: NULL, or a bad struct_size",
                      model->name);
  }
  tarn__model_slots *found = NULL;  // without a plan
  if (model->slots == NULL) {
    status = tarn__slots_find(model, TARN_TRAIN, &found);
    if (status != TARN_OK) return status;
  }
  const tarn__model_slots *slots = found != NULL ? found : model->slots;
  assert(slots != NULL);
  tarn_model_needs report = {.struct_size = known};
  status = fill(model, slots, &report);
  tarn__slots_destroy(found);
  *out_report =
      status == TARN_OK ? report : (tarn_model_needs){.struct_size = known};
  return status;
}
