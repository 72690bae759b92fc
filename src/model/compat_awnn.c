// AWNN's lists of parameters and caches: a program's own, of tensors without a
// model, and those of models.
//
// A tensor without a model has a name and buffers that it owns, and no shape,
// dtype or slots. A parameter attached to a model is like any other, but has
// its buffers before the model is placed.
//
// A cache begins with a tensor of kind TARN_CACHE, so that every entry of a
// list tells its kind.
#include "tarn/compat_awnn.h"

#include <assert.h>
#include <stdio.h>
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

// Gives |tensor| its name, and adds it to |list|.
static tarn_status enter(tarn_list *list, const char *name,
                         tarn_tensor_kind kind, tarn_tensor *tensor) {
  tensor->name = tarn__host_text(name);
  if (tensor->name == NULL) return TARN_E_NOMEM;
  tensor->kind = kind;
  tarn_list_init(&tensor->among);
  tarn_list_init(&tensor->states);
  tarn_list_add_tail(list, &tensor->node);
  return TARN_OK;
}

static tarn_status check_new(tarn_list *list, const char *name) {
  const tarn_tensor *other = find(list, name);
  if (other == NULL) return TARN_OK;
  return tarn__fail(TARN_E_STATE, "there is a %s '%s' already",
                    other->kind == TARN_CACHE ? "cache" : "parameter", name);
}

static tarn_status attach_own(tarn_list *list, const char *name,
                              tarn_tensor **out_tensor) {
  TARN__TRY(check_new(list, name));
  tarn__model_tensor *tensor = tarn__tensor_make(0);
  if (tensor == NULL) return TARN_E_NOMEM;
  *out_tensor = &tensor->shown;
  tarn_status status = enter(list, name, TARN_PARAM, &tensor->shown);
  if (status != TARN_OK) tarn__tensor_free(tensor);
  return status;
}

static tarn_status refuse_list(const tarn_model *model, tarn_tensor_kind kind) {
  static const char *const instead[] = {
      [TARN_OUTPUT] = "of outputs, which are planned: use tarn_model_add",
      [TARN_INPUT] = "of inputs: use tarn_model_add_input",
      [TARN_CACHE] = "of caches: use tarn_step_caches",
      [TARN_STATE] = "of states: use tarn_model_add_state",
      [TARN_KIND_ALL] = "of all kinds: use that of parameters",
  };
  return tarn__fail(TARN_E_STATE, "%s: nothing can be attached to its list %s",
                    model->name, instead[kind]);
}

// A parameter attached to a model is a tensor of bytes.
static tarn_status attach_to_model(tarn_model *model, tarn_tensor_kind kind,
                                   const char *name, size_t size, size_t diff,
                                   tarn_tensor **out_tensor) {
  TARN__TRY(tarn__model_check_open(model));
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
  tarn_tensor_kind kind = TARN_KIND_ALL;
  tarn_tensor *tensor = NULL;
  TARN__TRY(check(list, name));
  TARN__TRY(check_buffers(name, data, diff));
  size_t size = tarn_synced_size(data);
  size_t other = diff != NULL ? tarn_synced_size(diff) : size;
  tarn_model *model = tarn__model_of_list(list, &kind);
  TARN__TRY(model == NULL
                ? attach_own(list, name, &tensor)
                : attach_to_model(model, kind, name, size, other, &tensor));
  assert(tensor != NULL);
  tensor->max_size = size;
  tensor->data = data;
  tensor->diff = diff;
  return TARN_OK;
}

// --- finding ---------------------------------------------------------------

tarn_tensor *tarn_awnn_get(tarn_list *list, const char *name) {
  tarn_tensor_kind kind = TARN_KIND_ALL;
  if (check(list, name) != TARN_OK) return NULL;
  tarn_model *model = tarn__model_of_list(list, &kind);
  if (model != NULL) return tarn_model_get(model, kind, name);
  tarn_tensor *tensor = find(list, name);
  if (tensor != NULL && tensor->kind != TARN_CACHE) return tensor;
  tarn__fail(TARN_E_INVALID, "no parameter '%s'", name);
  return NULL;
}

// --- freeing ---------------------------------------------------------------

static tarn_status check_all_idle(tarn_list *list) {
  tarn_list *node = NULL;
  tarn_list_for_each (node, list) {
    TARN__TRY(tarn__tensor_check_idle(tensor_at(node), true));
  }
  return TARN_OK;
}

static tarn_status free_tensor(tarn_tensor *tensor) {
  tarn_status status = tarn__tensor_end_buffers(tensor);
  tarn_list_del(&tensor->node);
  tarn__host_free_text((char *)(uintptr_t)tensor->name);
  tarn__tensor_free(tarn__tensor_own(tensor));
  return status;
}

// |caches|: whether the list must have caches; else parameters.
static tarn_status check_content(tarn_list *list, bool caches) {
  tarn_list *node = NULL;
  tarn_list_for_each (node, list) {
    const tarn_tensor *tensor = tensor_at(node);
    if ((tensor->kind == TARN_CACHE) == caches) continue;
    return tarn__fail(TARN_E_STATE, "'%s' is a %s: use %s", tensor->name,
                      caches ? "parameter" : "cache",
                      caches ? "net_free_params" : "net_free_cache");
  }
  return TARN_OK;
}

static tarn_status check_own(const tarn_list *list) {
  tarn_tensor_kind kind = TARN_KIND_ALL;
  if (list == NULL) return tarn__fail(TARN_E_INVALID, "parameters: no list");
  const tarn_model *model = tarn__model_of_list(list, &kind);
  if (model == NULL) return TARN_OK;
  return tarn__fail(TARN_E_STATE,
                    "parameters: the list belongs to %s: use "
                    "tarn_model_destroy",
                    model->name);
}

tarn_status tarn_awnn_free(tarn_list *list) {
  TARN__TRY(check_own(list));
  TARN__TRY(check_content(list, false));
  TARN__TRY(check_all_idle(list));
  tarn_status first = TARN_OK;
  while (!tarn_list_empty(list))
    tarn__keep_first(&first, free_tensor(tensor_at(list->next)));
  return first;
}

// --- printing --------------------------------------------------------------

tarn_status tarn_awnn_print(tarn_list *list) {
  tarn_tensor_kind kind = TARN_PARAM;
  if (list == NULL) return tarn__fail(TARN_E_INVALID, "parameters: no list");
  const tarn_model *model = tarn__model_of_list(list, &kind);
  if (model != NULL && kind == TARN_KIND_ALL) return refuse_list(model, kind);
  tarn_list *node = NULL;
  tarn_list_for_each (node, list)
    printf("%s%s", tensor_at(node)->name, node->next != list ? ", " : "");
  printf("\n");
  return TARN_OK;
}

// --- caches ----------------------------------------------------------------

static tarn_awnn_cache *cache_of(tarn_tensor *tensor) {
  return tarn_list_entry(tensor, tarn_awnn_cache, tensor);
}

static tarn_status refuse_model(const tarn_model *model, const char *instead) {
  return tarn__fail(TARN_E_STATE,
                    "caches: the list belongs to %s, whose caches are those of "
                    "its steps: use %s",
                    model->name, instead);
}

tarn_status tarn_awnn_attach_cache(tarn_list *list, const char *name) {
  tarn_tensor_kind kind = TARN_KIND_ALL;
  TARN__TRY(check(list, name));
  const tarn_model *model = tarn__model_of_list(list, &kind);
  if (model != NULL) return refuse_model(model, "tarn_step_caches");
  TARN__TRY(check_new(list, name));
  tarn_awnn_cache *cache = tarn__host_alloc(sizeof *cache);
  if (cache == NULL) return TARN_E_NOMEM;
  tarn_status status = enter(list, name, TARN_CACHE, &cache->tensor);
  cache->name = cache->tensor.name;
  if (status != TARN_OK) tarn__host_free(cache, sizeof *cache);
  return status;
}

tarn_awnn_cache *tarn_awnn_get_cache(tarn_list *list, const char *name) {
  tarn_tensor_kind kind = TARN_KIND_ALL;
  if (check(list, name) != TARN_OK) return NULL;
  const tarn_model *model = tarn__model_of_list(list, &kind);
  if (model != NULL) {
    (void)refuse_model(model, "tarn_step_push and tarn_step_pop");
    return NULL;
  }
  tarn_tensor *tensor = find(list, name);
  if (tensor != NULL && tensor->kind == TARN_CACHE) return cache_of(tensor);
  tarn__fail(TARN_E_INVALID, "no cache '%s'", name);
  return NULL;
}

static tarn_status make_room(tarn_awnn_cache *cache) {
  enum { FIRST_ROOM = 4 };
  if (cache->count < cache->room) return TARN_OK;
  size_t room = cache->room == 0 ? FIRST_ROOM : cache->room * 2;
  tarn_synced **all =
      tarn__host_resize(cache->all_tensors, cache->room, room, sizeof *all);
  if (all == NULL) return TARN_E_NOMEM;
  cache->all_tensors = all;
  cache->room = room;
  return TARN_OK;
}

// An empty cache holds no memory, so that a cache outside of lists needs no
// end.
static void make_empty(tarn_awnn_cache *cache) {
  tarn__host_free_array(cache->all_tensors, cache->room, sizeof(tarn_synced *));
  cache->all_tensors = NULL;
  cache->count = cache->room = 0;
}

tarn_status tarn_awnn_push(tarn_awnn_cache *cache, tarn_synced *tensor) {
  if (cache == NULL || tensor == NULL) {
    return tarn__fail(TARN_E_INVALID, "cache: NULL");
  }
  TARN__TRY(make_room(cache));
  cache->all_tensors[cache->count++] = tensor;
  return TARN_OK;
}

static const char *name_of(const tarn_awnn_cache *cache) {
  return cache != NULL && cache->name != NULL ? cache->name : "";
}

tarn_synced *tarn_awnn_pop(tarn_awnn_cache *cache) {
  if (cache == NULL || cache->count == 0) {
    tarn__fail(cache == NULL ? TARN_E_INVALID : TARN_E_STATE,
               "cache '%s' is empty", name_of(cache));
    return NULL;
  }
  tarn_synced *tensor = cache->all_tensors[--cache->count];
  if (cache->count == 0) make_empty(cache);
  return tensor;
}

tarn_status tarn_awnn_cache_free_all(tarn_awnn_cache *cache) {
  if (cache == NULL) return TARN_OK;
  for (size_t i = 0; i < cache->count; i++) {
    TARN__TRY(
        tarn__model_check_buffer(cache->all_tensors[i], name_of(cache), true));
  }
  tarn_status first = TARN_OK;
  for (size_t i = 0; i < cache->count; i++)
    tarn__keep_first(&first, tarn_synced_destroy(cache->all_tensors[i]));
  make_empty(cache);
  return first;
}

static void free_cache(tarn_awnn_cache *cache) {
  make_empty(cache);
  tarn_list_del(&cache->tensor.node);
  tarn__host_free_text((char *)(uintptr_t)cache->name);
  tarn__host_free(cache, sizeof *cache);
}

tarn_status tarn_awnn_free_caches(tarn_list *list) {
  TARN__TRY(check_own(list));
  TARN__TRY(check_content(list, true));
  while (!tarn_list_empty(list))
    free_cache(cache_of(tensor_at(list->next)));
  return TARN_OK;
}
