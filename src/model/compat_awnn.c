// Lists of parameters as the document has them: a program's own, of tensors
// that belong to no model, and those of models.
//
// A tensor of no model has a name and buffers that it owns, and no shape, dtype
// or slots. One that is attached to a model is a parameter like others, which
// has its buffers before the model is placed.
#include "tarn/compat_awnn.h"

#include <assert.h>
#include <string.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "model/model.h"

static tarn_tensor *tensor_at(tarn_list *node) {
  return tarn_list_entry(node, tarn_tensor, node);
}

static tarn_tensor *find(tarn_list *list, const char *name) {
  tarn_list *node = NULL;
  tarn_list_for_each (node, list) {
    if (strcmp(tensor_at(node)->name, name) == 0) return tensor_at(node);
  }
  return NULL;
}

static tarn_status check(tarn_list *list, const char *name) {
  if (list == NULL || name == NULL || *name == '\0') {
    return tarn__fail(TARN_E_INVALID, "parameters: no list, or no name");
  }
  return TARN_OK;
}

// --- attaching -------------------------------------------------------------

static tarn__tensor *make(const char *name) {
  char *text = tarn__host_text(name);
  if (text == NULL) return NULL;
  tarn__tensor *tensor = tarn__host_alloc(sizeof *tensor);
  if (tensor == NULL) {
    tarn__host_free_text(text);
    return NULL;
  }
  tensor->name_length = strlen(name);
  tensor->slots[TARN_DATA] = tensor->slots[TARN_DIFF] = TARN__NO_SLOT;
  tensor->shown.kind = TARN_PARAM;
  tensor->shown.name = text;
  tarn_list_init(&tensor->shown.among);
  tarn_list_init(&tensor->shown.states);
  return tensor;
}

static tarn_status attach_own(tarn_list *list, const char *name,
                              tarn_tensor **out_tensor) {
  if (find(list, name) != NULL) {
    return tarn__fail(TARN_E_STATE, "there is a parameter '%s' already", name);
  }
  tarn__tensor *tensor = make(name);
  if (tensor == NULL) return TARN_E_NOMEM;
  *out_tensor = &tensor->shown;
  tarn_list_add_tail(list, &tensor->shown.node);
  return TARN_OK;
}

static tarn_status refuse_list(const tarn_model *model, tarn_tensor_kind kind) {
  static const char *const instead[] = {
      [TARN_OUTPUT] = "of outputs, which are planned: use tarn_model_add",
      [TARN_INPUT] = "of inputs: use tarn_model_add_input",
      [TARN_CACHE] = "of caches: use tarn_step_caches",
      [TARN_STATE] = "",
      [TARN_KIND_COUNT] = "of all kinds: use that of parameters",
  };
  return tarn__fail(TARN_E_STATE, "%s: nothing can be attached to its list %s",
                    model->name, instead[kind]);
}

// What is known of the parameter is how many bytes it has.
static tarn_status attach_to_model(tarn_model *model, tarn_tensor_kind kind,
                                   const char *name, size_t size, size_t diff,
                                   tarn_tensor **out_tensor) {
  tarn_status status = tarn__model_check_open(model);
  if (status != TARN_OK) return status;
  if (kind != TARN_PARAM) return refuse_list(model, kind);
  if (size != diff) {
    return tarn__fail(TARN_E_INVALID,
                      "parameter '%s': %zu bytes of data and %zu of diff", name,
                      size, diff);
  }
  const int64_t dims[] = {(int64_t)size};
  return tarn_model_add(model, TARN_PARAM, name, TARN_DTYPE_U8,
                        (tarn_shape){dims, 1}, out_tensor);
}

static tarn_status check_buffers(const char *name, const tarn_synced *data,
                                 const tarn_synced *diff) {
  if (data != NULL && data != diff) return TARN_OK;
  return tarn__fail(TARN_E_INVALID, "parameter '%s': %s", name,
                    data == NULL ? "no data" : "one buffer for data and diff");
}

tarn_status tarn_awnn_attach(tarn_list *list, const char *name,
                             tarn_synced *data, tarn_synced *diff) {
  tarn_tensor_kind kind = TARN_KIND_COUNT;
  tarn_tensor *tensor = NULL;
  tarn_status status = check(list, name);
  if (status == TARN_OK) status = check_buffers(name, data, diff);
  if (status != TARN_OK) return status;
  size_t size = tarn_synced_size(data);
  tarn_model *model = tarn__model_of_list(list, &kind);
  if (model == NULL) {
    status = attach_own(list, name, &tensor);
  } else {
    size_t other = diff != NULL ? tarn_synced_size(diff) : size;
    status = attach_to_model(model, kind, name, size, other, &tensor);
  }
  if (status != TARN_OK) return status;
  assert(tensor != NULL);
  tensor->max_size = size;
  tensor->data = data;
  tensor->diff = diff;
  return TARN_OK;
}

// --- finding ---------------------------------------------------------------

tarn_tensor *tarn_awnn_get(tarn_list *list, const char *name) {
  tarn_tensor_kind kind = TARN_KIND_COUNT;
  if (check(list, name) != TARN_OK) return NULL;
  tarn_model *model = tarn__model_of_list(list, &kind);
  if (model != NULL) return tarn_model_get(model, kind, name);
  tarn_tensor *tensor = find(list, name);
  if (tensor == NULL) {
    tarn__fail(TARN_E_INVALID, "no parameter '%s'", name);
  }
  return tensor;
}

// --- freeing ---------------------------------------------------------------

static tarn_status check_idle(tarn_synced *buffer, const char *name) {
  if (buffer == NULL) return TARN_OK;
  tarn_synced_info info = {.struct_size = sizeof info};
  tarn_status status = tarn_synced_query(buffer, 0, TARN_ALL, TARN_HOST, &info);
  if (status != TARN_OK) return status;
  if (info.own_accesses == 0) return TARN_OK;
  return tarn__fail(TARN_E_STATE, "parameter '%s': an access is open", name);
}

static tarn_status check_all_idle(tarn_list *list) {
  tarn_list *node = NULL;
  tarn_list_for_each (node, list) {
    const tarn_tensor *tensor = tensor_at(node);
    tarn_status status = check_idle(tensor->data, tensor->name);
    if (status == TARN_OK) status = check_idle(tensor->diff, tensor->name);
    if (status != TARN_OK) return status;
  }
  return TARN_OK;
}

static tarn_status free_tensor(tarn_tensor *tensor) {
  tarn_status status = tarn_synced_destroy(tensor->data);
  tarn_status other = tarn_synced_destroy(tensor->diff);
  tarn_list_del(&tensor->node);
  tarn__host_free_text((char *)(uintptr_t)tensor->name);
  tarn__host_free(tensor, sizeof(tarn__tensor));
  return status != TARN_OK ? status : other;
}

static tarn_status check_own(const tarn_list *list) {
  tarn_tensor_kind kind = TARN_KIND_COUNT;
  if (list == NULL) return tarn__fail(TARN_E_INVALID, "parameters: no list");
  const tarn_model *model = tarn__model_of_list(list, &kind);
  if (model == NULL) return TARN_OK;
  return tarn__fail(TARN_E_STATE,
                    "parameters: the list belongs to %s: use "
                    "tarn_model_destroy",
                    model->name);
}

tarn_status tarn_awnn_free(tarn_list *list) {
  tarn_status status = check_own(list);
  if (status == TARN_OK) status = check_all_idle(list);
  if (status != TARN_OK) return status;
  tarn_status first = TARN_OK;
  while (!tarn_list_empty(list)) {
    status = free_tensor(tensor_at(list->next));
    if (first == TARN_OK) first = status;
  }
  return first;
}
