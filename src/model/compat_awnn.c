// Lists of parameters as the document has them: a program's own, of tensors
// that belong to no model.
//
// Such a tensor has a name and buffers that it owns, and no shape, dtype or
// slots. A list is told from a model's by its first tensor.
#include "tarn/compat_awnn.h"

#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "model/model.h"

static tarn_tensor *tensor_at(tarn_list *node) {
  return tarn_list_entry(node, tarn_tensor, node);
}

// The model that has the list; NULL: a program's own, or an empty one.
static tarn_model *model_of(const tarn_list *list) {
  return tarn_list_empty(list) ? NULL : tensor_at(list->next)->model;
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

static tarn_status check_own(const tarn_list *list) {
  const tarn_model *model = model_of(list);
  if (model == NULL) return TARN_OK;
  return tarn__fail(TARN_E_STATE, "parameters: the list is that of %s",
                    model->name);
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

tarn_status tarn_awnn_attach(tarn_list *list, const char *name,
                             tarn_synced *data, tarn_synced *diff) {
  tarn_status status = check(list, name);
  if (status == TARN_OK) status = check_own(list);
  if (status != TARN_OK) return status;
  if (data == NULL) {
    return tarn__fail(TARN_E_INVALID, "parameter '%s': no data", name);
  }
  if (find(list, name) != NULL) {
    return tarn__fail(TARN_E_STATE, "there is a parameter '%s' already", name);
  }
  tarn__tensor *tensor = make(name);
  if (tensor == NULL) return TARN_E_NOMEM;
  tensor->shown.data = data;
  tensor->shown.diff = diff;
  tensor->shown.max_size = tarn_synced_size(data);
  tarn_list_add_tail(list, &tensor->shown.node);
  return TARN_OK;
}

// --- finding ---------------------------------------------------------------

tarn_tensor *tarn_awnn_get(tarn_list *list, const char *name) {
  if (check(list, name) != TARN_OK) return NULL;
  tarn_model *model = model_of(list);
  if (model != NULL) {
    return tarn_model_get(model, tensor_at(list->next)->kind, name);
  }
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

tarn_status tarn_awnn_free(tarn_list *list) {
  if (list == NULL) return tarn__fail(TARN_E_INVALID, "parameters: no list");
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
