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

static bool has_diff(const tarn__model_tensor *tensor, tarn_model_mode mode) {
  if (mode != TARN_TRAIN || !tarn__tensor_has_diff(&tensor->shown)) {
    return false;
  }
  return tensor->shown.kind == TARN_PARAM ||
         tensor->slots[TARN_DIFF] != TARN__NO_SLOT;
}

static bool is_fed(const tarn__model_tensor *tensor) {
  return tensor->shown.kind == TARN_OUTPUT &&
         tensor->slots[TARN_DATA] == TARN__NO_SLOT;
}

// Caches that are pushed beyond the description have counts of their own.
static bool counts(tarn__model_tensor *tensor, tarn_model_mode mode) {
  tarn_tensor_kind kind = tensor->shown.kind;
  bool another_name = tarn__tensor_root(&tensor->shown) != tensor;
  bool of_training = kind == TARN_CACHE || kind == TARN_STATE;
  return !tensor->beyond && !another_name &&
         !(of_training && mode == TARN_INFER);
}

static tarn_status add_tensors(tarn_model *model, tarn_model_needs *report) {
  for (tarn__model_tensor *t = NULL; (t = tarn__tensor_next(model, t));) {
    tarn_tensor_kind kind = t->shown.kind;
    size_t size = t->shown.max_size;
    if (!counts(t, report->mode)) continue;
    TARN__TRY(add(model, &report->kinds[kind], size));
    TARN__TRY(add(model, &report->fed, is_fed(t) ? size : 0));
    TARN__TRY(
        add(model, &report->diffs[kind], has_diff(t, report->mode) ? size : 0));
  }
  return TARN_OK;
}

// --- in all ----------------------------------------------------------------

static tarn_status add_total(const tarn_model *model,
                             tarn_model_needs *report) {
  size_t parts[] = {report->planned, report->fed, report->kinds[TARN_PARAM],
                    report->diffs[TARN_PARAM], report->kinds[TARN_STATE]};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    TARN__TRY(add(model, &report->total, parts[i]));
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

static tarn_status fill(tarn_model *model, const tarn__model_slots *slots,
                        tarn_model_needs *report) {
  report->mode = slots->options.mode;
  report->max_batch = model->max_batch;
  report->extra_pushes = model->extra_pushes;
  report->extra_bytes = model->extra_bytes;
  report->naive = slots->naive;
  report->planned = slots->planned;
  report->bound = slots->bound;
  report->answer = slots->answer;
  report->in_place = slots->in_place;
  if (model->steps.count != 0) {
    report->peak_step =
        tarn__step_of_time(model, slots->peak, &report->peak_pass)->index;
  }
  TARN__TRY(add_tensors(model, report));
  TARN__TRY(add_total(model, report));
  ask_device(slots->options.home, report);
  return TARN_OK;
}

tarn_status tarn_model_report(tarn_model *model, tarn_model_needs *out_report) {
  TARN__TRY(tarn__model_check(model));
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
    TARN__TRY(tarn__slots_estimate(model, TARN_TRAIN, &found));
  }
  const tarn__model_slots *slots = found != NULL ? found : model->slots;
  assert(slots != NULL);
  tarn_model_needs report = {.struct_size = known};
  tarn_status status = fill(model, slots, &report);
  tarn__slots_destroy(found);
  *out_report =
      status == TARN_OK ? report : (tarn_model_needs){.struct_size = known};
  return status;
}
