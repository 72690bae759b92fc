// Tensors: adding, names, and sizes for a batch.
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "model/model.h"

// --- sizes -----------------------------------------------------------------

static tarn_status bytes_of(tarn_shape shape, tarn_dtype dtype, bool bits,
                            int64_t batch, size_t *out_size) {
  if (!bits) return tarn_shape_size(shape, dtype, batch, out_size);
  size_t count = 0;
  *out_size = 0;
  TARN__TRY(tarn_shape_count(shape, batch, &count));
  *out_size = count / 8 + (count % 8 != 0);
  return TARN_OK;
}

tarn_status tarn__tensor_bytes(const tarn_tensor *tensor, int64_t batch,
                               size_t *out_size) {
  return bytes_of(tensor->shape, tensor->dtype, tensor->bits, batch, out_size);
}

size_t tarn_tensor_size(const tarn_tensor *tensor) {
  if (tensor == NULL) return 0;
  if (tensor->model == NULL) return tensor->max_size;  // of compat_awnn.h
  size_t size = 0;
  tarn_status status = tarn__tensor_bytes(tensor, tensor->model->batch, &size);
  return status == TARN_OK ? size : 0;
}

size_t tarn_tensor_count(const tarn_tensor *tensor) {
  if (tensor == NULL || tensor->model == NULL) return 0;
  size_t count = 0;
  tarn_status status =
      tarn_shape_count(tensor->shape, tensor->model->batch, &count);
  return status == TARN_OK ? count : 0;
}

static bool has_batch(tarn_shape shape) {
  for (size_t i = 0; i < shape.rank; i++) {
    if (shape.dims[i] == TARN_DIM_BATCH) return true;
  }
  return false;
}

// --- adding ----------------------------------------------------------------

static tarn_status check_name(const tarn_model *model, const char *name) {
  if (name == NULL || *name == '\0') {
    return tarn__fail(TARN_E_INVALID, "%s: a tensor without a name",
                      model->name);
  }
  const tarn__name *other = tarn__names_find(&model->names, name);
  if (other == NULL) return TARN_OK;
  const tarn_tensor *tensor = other->value;
  return tarn__fail(TARN_E_STATE,
                    "%s: the name '%s' is that of a tensor of "
                    "kind %s",
                    model->name, name, tarn_tensor_kind_name(tensor->kind));
}

static tarn_status check_shape(const tarn_model *model, const char *name,
                               tarn_tensor_kind kind, tarn_dtype dtype,
                               tarn_shape shape, bool bits, size_t *out_size) {
  TARN__TRY(bytes_of(shape, dtype, bits, model->max_batch, out_size));
  bool may = kind == TARN_OUTPUT || kind == TARN_INPUT || kind == TARN_CACHE;
  if (may || !has_batch(shape)) return TARN_OK;
  return tarn__fail(TARN_E_INVALID,
                    "%s: '%s', a %s, cannot depend on the "
                    "batch",
                    model->name, name, tarn_tensor_kind_name(kind));
}

tarn__model_tensor *tarn__tensor_make(size_t rank) {
  tarn__model_tensor *tensor =
      tarn__host_alloc(sizeof *tensor + rank * sizeof *tensor->dims);
  if (tensor == NULL) return NULL;
  tensor->slots[TARN_DATA] = tensor->slots[TARN_DIFF] = TARN__NO_SLOT;
  tensor->shown.shape = (tarn_shape){tensor->dims, rank};
  tarn_list_init(&tensor->shown.states);
  return tensor;
}

static void enlist(tarn_model *model, tarn_tensor *tensor) {
  tarn_list *list = tensor->kind == TARN_STATE ? &tensor->of->states
                                               : &model->kinds[tensor->kind];
  if (tensor->kind == TARN_PARAM) {
    tarn__model_enlist(list, &tensor->node);
  } else {
    tarn_list_add_tail(list, &tensor->node);
  }
  tarn_list_add_tail(&model->among, &tensor->among);
  model->counts[tensor->kind]++;
}

tarn_status tarn__tensor_add(tarn_model *model, tarn_tensor_kind kind,
                             const char *name, tarn_dtype dtype,
                             tarn_shape shape, bool bits, tarn_tensor *of,
                             tarn_tensor **out_tensor) {
  size_t bytes = 0;
  TARN__TRY(check_name(model, name));
  TARN__TRY(check_shape(model, name, kind, dtype, shape, bits, &bytes));
  tarn__model_tensor *made = tarn__tensor_make(shape.rank);
  if (made == NULL) return TARN_E_NOMEM;
  tarn_status status = tarn__names_add(&model->names, name, made);
  if (status != TARN_OK) {
    tarn__tensor_free(made);
    return status;
  }
  if (shape.rank != 0) {
    memcpy(made->dims, shape.dims, shape.rank * sizeof *shape.dims);
  }
  tarn_tensor *tensor = &made->shown;
  tensor->model = model;
  tensor->kind = kind;
  tensor->dtype = dtype;
  tensor->name = tarn__names_find(&model->names, name)->name;
  tensor->max_size = bytes;
  tensor->bits = bits;
  tensor->of = of;
  enlist(model, tensor);
  *out_tensor = tensor;
  return TARN_OK;
}

tarn_status tarn__tensor_end_buffers(tarn_tensor *tensor) {
  tarn_status first = tarn_synced_destroy(tensor->data);
  tarn__keep_first(&first, tarn_synced_destroy(tensor->diff));
  tensor->data = tensor->diff = NULL;
  return first;
}

void tarn__tensor_free(tarn__model_tensor *tensor) {
  size_t dims = tensor->shown.shape.rank * sizeof(int64_t);
  tarn__host_free(tensor, sizeof *tensor + dims);
}

static tarn_status begin(tarn_model *model, const char *name,
                         tarn_tensor **out_tensor) {
  if (out_tensor == NULL) {
    return tarn__fail(TARN_E_INVALID, "tensor '%s': no output",
                      name == NULL ? "" : name);
  }
  *out_tensor = NULL;
  return tarn__model_check_open(model);
}

// Checks that |of| is a tensor of |model| and |kind|.
static tarn_status check_other(const tarn_model *model, const tarn_tensor *of,
                               tarn_tensor_kind kind) {
  if (of == NULL || of->model != model || of->kind != kind) {
    return tarn__fail(TARN_E_INVALID, "%s: not an own tensor of kind %s",
                      model->name, tarn_tensor_kind_name(kind));
  }
  return TARN_OK;
}

tarn_status tarn_model_add(tarn_model *model, tarn_tensor_kind kind,
                           const char *name, tarn_dtype dtype, tarn_shape shape,
                           tarn_tensor **out_tensor) {
  TARN__TRY(begin(model, name, out_tensor));
  if (kind != TARN_PARAM && kind != TARN_OUTPUT) {
    const char *text = tarn_tensor_kind_name(kind);
    return tarn__fail(TARN_E_INVALID,
                      "%s: tensors of kind %s have a call of "
                      "their own",
                      model->name, text == NULL ? "?" : text);
  }
  return tarn__tensor_add(model, kind, name, dtype, shape, false, NULL,
                          out_tensor);
}

tarn_status tarn_model_add_input(tarn_model *model, const char *name,
                                 tarn_tensor *output,
                                 tarn_tensor **out_tensor) {
  TARN__TRY(begin(model, name, out_tensor));
  TARN__TRY(check_other(model, output, TARN_OUTPUT));
  return tarn__tensor_add(model, TARN_INPUT, name, output->dtype, output->shape,
                          false, output, out_tensor);
}

tarn_status tarn_model_tie(tarn_model *model, const char *name,
                           tarn_tensor *param, tarn_tensor **out_tensor) {
  TARN__TRY(begin(model, name, out_tensor));
  TARN__TRY(check_other(model, param, TARN_PARAM));
  return tarn__tensor_add(model, TARN_PARAM, name, param->dtype, param->shape,
                          false, &tarn__tensor_root(param)->shown, out_tensor);
}

tarn_status tarn_model_add_state(tarn_model *model, tarn_tensor *param,
                                 const char *name, tarn_dtype dtype,
                                 tarn_tensor **out_tensor) {
  TARN__TRY(begin(model, name, out_tensor));
  TARN__TRY(check_other(model, param, TARN_PARAM));
  if (name == NULL || *name == '\0') {
    return tarn__fail(TARN_E_INVALID, "'%s': a state without a name",
                      param->name);
  }
  tarn_tensor *root = &tarn__tensor_root(param)->shown;
  char *text = tarn__host_format("%s.%s", root->name, name);
  if (text == NULL) return TARN_E_NOMEM;
  tarn_status status = tarn__tensor_add(model, TARN_STATE, text, dtype,
                                        root->shape, false, root, out_tensor);
  tarn__host_free_text(text);
  return status;
}
