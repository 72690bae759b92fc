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

TARN__LOCK_AROUND_FORKS(LAST, registry, &registry.lock, unlock_registry)

void tarn__model_enlist(tarn_list *list, tarn_list *node) {
  lock_registry();
  tarn_list_add_tail(list != NULL ? list : &registry.models, node);
  unlock_registry();
}

void tarn__model_delist(tarn_model *model) {
  lock_registry();
  tarn_list_del(&model->all);
  unlock_registry();
}

// A list with tensors tells its model itself: of lists of states only an empty
// one is looked for.
static bool has(const tarn_model *model, const tarn_list *list,
                tarn_tensor_kind *out_kind) {
  const tarn_list *params = &model->kinds[TARN_PARAM];
  for (int kind = 0; kind <= TARN_CACHE; kind++) {
    *out_kind = (tarn_tensor_kind)kind;
    if (list == &model->kinds[kind]) return true;
  }
  *out_kind = TARN_KIND_ALL;
  if (list == &model->among) return true;
  *out_kind = TARN_STATE;
  for (tarn_list *node = params->next; node != params && tarn_list_empty(list);
       node = node->next) {
    if (list == &tarn_list_entry(node, tarn_tensor, node)->states) return true;
  }
  return false;
}

tarn_model *tarn__model_of_list(const tarn_list *list,
                                tarn_tensor_kind *out_kind) {
  tarn_model *found = NULL;
  lock_registry();
  const tarn_list *node = registry.models.next;
  for (; node != &registry.models && found == NULL; node = node->next) {
    tarn_model *model = tarn_list_entry(node, tarn_model, all);
    if (has(model, list, out_kind)) found = model;
  }
  unlock_registry();
  if (found != NULL || tarn_list_empty(list)) return found;
  const tarn_tensor *first = tarn_list_entry(list->next, tarn_tensor, node);
  *out_kind = first->kind;
  return first->model;
}

// --- checks ----------------------------------------------------------------

static const char *const kind_names[TARN_KIND_ALL] = {
    [TARN_PARAM] = "param", [TARN_OUTPUT] = "output", [TARN_INPUT] = "input",
    [TARN_CACHE] = "cache", [TARN_STATE] = "state",
};

const char *tarn_tensor_kind_name(tarn_tensor_kind kind) {
  return (unsigned)kind < TARN_KIND_ALL ? kind_names[kind] : NULL;
}

tarn_status tarn__model_check(const tarn_model *model) {
  if (model == NULL) return tarn__fail(TARN_E_INVALID, "model: NULL");
  if (model->generation != tarn__os_generation()) {
    return tarn__fail(TARN_E_STATE, "%s: made before a fork", model->name);
  }
  return TARN_OK;
}

tarn_status tarn__model_check_open(const tarn_model *model) {
  TARN__TRY(tarn__model_check(model));
  if (model->slots == NULL) return TARN_OK;
  return tarn__fail(TARN_E_STATE,
                    "%s: it is planned; forget the plan before more is added",
                    model->name);
}

tarn_status tarn__model_check_buffer(tarn_synced *buffer, const char *name,
                                     bool own_only) {
  if (buffer == NULL) return TARN_OK;
  tarn_synced_info info = {.struct_size = sizeof info};
  TARN__TRY(tarn_synced_query(buffer, 0, TARN_ALL, TARN_HOST, &info));
  size_t open = info.own_accesses;
  if (!own_only) open += info.readers + info.writers;
  if (open == 0) return TARN_OK;
  return tarn__fail(TARN_E_STATE, "'%s': an access to it is open", name);
}

tarn_status tarn__tensor_check_idle(const tarn_tensor *tensor, bool own_only) {
  TARN__TRY(tarn__model_check_buffer(tensor->data, tensor->name, own_only));
  return tarn__model_check_buffer(tensor->diff, tensor->name, own_only);
}

tarn_status tarn__tensor_check_placed(const tarn_tensor *tensor) {
  if (tensor->data != NULL) return TARN_OK;
  return tarn__fail(TARN_E_STATE, "%s: %s '%.80s' was never placed",
                    tensor->model->name, tarn_tensor_kind_name(tensor->kind),
                    tensor->name);
}

tarn_status tarn__model_check_file(const tarn_model *model, const char *what,
                                   const char *path, uint32_t flags,
                                   uint32_t known) {
  TARN__TRY(tarn__model_check(model));
  if (path == NULL) return tarn__fail(TARN_E_INVALID, "%s: no path", what);
  if ((flags & ~known) == 0) return TARN_OK;
  return tarn__fail(TARN_E_INVALID, "%s: %s: flags 0x%x", model->name, what,
                    (unsigned)flags);
}
