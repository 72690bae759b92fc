// The list of all models, which tells their lists from a program's own, and the
// checks that calls begin with.
//
// A list is a head with two pointers. An empty head does not tell its owner, so
// its address is compared with the heads in each model and in each parameter,
// which has a list of its states. The first tensor of any other list tells its
// model.
//
// In a child of fork the parent's models stay until they are destroyed there.
#include <pthread.h>

#include "base/os.h"
#include "base/status.h"
#include "model/model.h"

static struct {
  pthread_mutex_t lock;  // guards the list, and links of parameters in their
                         // models' lists; taken around a fork
  tarn_list models;
} registry = {PTHREAD_MUTEX_INITIALIZER, {&registry.models, &registry.models}};

static void lock_registry(void) {
  pthread_mutex_lock(&registry.lock);
}

static void unlock_registry(void) {
  pthread_mutex_unlock(&registry.lock);
}

TARN__WATCH_FORKS_LAST static void watch_forks(void) {
  pthread_atfork(lock_registry, unlock_registry, unlock_registry);
}

void tarn__model_enlist(tarn_model *model) {
  lock_registry();
  tarn_list_add_tail(&registry.models, &model->all);
  unlock_registry();
}

void tarn__model_delist(tarn_model *model) {
  lock_registry();
  tarn_list_del(&model->all);
  unlock_registry();
}

void tarn__model_enlist_param(tarn_model *model, tarn_tensor *param) {
  lock_registry();
  tarn_list_add_tail(&model->kinds[TARN_PARAM], &param->node);
  unlock_registry();
}

static bool has(const tarn_model *model, const tarn_list *list,
                tarn_tensor_kind *out_kind) {
  for (int kind = 0; kind <= TARN_CACHE; kind++) {
    *out_kind = (tarn_tensor_kind)kind;
    if (list == &model->kinds[kind]) return true;
  }
  *out_kind = TARN_KIND_ALL;
  return list == &model->among;
}

static bool has_states(const tarn_model *model, const tarn_list *list,
                       tarn_tensor_kind *out_kind) {
  const tarn_list *params = &model->kinds[TARN_PARAM];
  *out_kind = TARN_STATE;
  for (tarn_list *node = params->next; node != params; node = node->next) {
    if (list == &tarn_list_entry(node, tarn_tensor, node)->states) return true;
  }
  return false;
}

typedef bool has_list(const tarn_model *model, const tarn_list *list,
                      tarn_tensor_kind *out_kind);

static tarn_model *find(has_list *is_its, const tarn_list *list,
                        tarn_tensor_kind *out_kind) {
  tarn_model *found = NULL;
  lock_registry();
  const tarn_list *node = registry.models.next;
  for (; node != &registry.models && found == NULL; node = node->next) {
    tarn_model *model = tarn_list_entry(node, tarn_model, all);
    if (is_its(model, list, out_kind)) found = model;
  }
  unlock_registry();
  return found;
}

tarn_model *tarn__model_of_list(const tarn_list *list,
                                tarn_tensor_kind *out_kind) {
  tarn_model *found = find(has, list, out_kind);
  if (found != NULL) return found;
  if (tarn_list_empty(list)) return find(has_states, list, out_kind);
  const tarn_tensor *first = tarn_list_entry(list->next, tarn_tensor, node);
  *out_kind = first->kind;
  return first->model;
}

// --- checks ------------------------------------------------------

tarn_status tarn__model_check(const tarn_model *model) {
  if (model == NULL) return tarn__fail(TARN_E_INVALID, "model: NULL");
  if (model->generation != tarn__os_generation()) {
    return tarn__fail(TARN_E_STATE, "%s: made before a fork", model->name);
  }
  return TARN_OK;
}

tarn_status tarn__model_check_open(const tarn_model *model) {
  tarn_status status = tarn__model_check(model);
  if (status != TARN_OK) return status;
  if (model->slots == NULL) return TARN_OK;
  return tarn__fail(TARN_E_STATE,
                    "%s: it is planned; forget the plan before more is added",
                    model->name);
}

tarn_status tarn__model_check_buffer(tarn_synced *buffer, const char *name,
                                     bool own_only) {
  if (buffer == NULL) return TARN_OK;
  tarn_synced_info info = {.struct_size = sizeof info};
  tarn_status status = tarn_synced_query(buffer, 0, TARN_ALL, TARN_HOST, &info);
  if (status != TARN_OK) return status;
  size_t open = info.own_accesses;
  if (!own_only) open += info.readers + info.writers;
  if (open == 0) return TARN_OK;
  return tarn__fail(TARN_E_STATE, "'%s': an access to it is open", name);
}
