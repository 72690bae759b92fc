// Objects: a table of all that live, by handle, and a few that do not any more.
//
//   not destroyed          the program may use the handle
//   destroyed, uses > 0    something of ours still needs the object
//   destroyed, uses == 0   it ends: what it holds is given back, and the struct
//                          lies in |graves| for a while, so that a handle of
//                          old is told from one that never was
#include "objects.h"

#include <stdlib.h>

#include "opencl/standin/table.h"
#include "report.h"

enum { GRAVES = 4096 };

static const char *const NAMES[STANDIN_KINDS] = {
    [STANDIN_CONTEXT] = "context",   [STANDIN_STREAM] = "stream",
    [STANDIN_EVENT] = "event",       [STANDIN_MODULE] = "module",
    [STANDIN_FUNCTION] = "function", [STANDIN_POOL] = "pool",
    [STANDIN_PHYSICAL] = "physical", [STANDIN_GRAPH] = "graph",
    [STANDIN_EXEC] = "exec",
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

// Guarded by |lock|.
static standin_table live;
static size_t counts[STANDIN_KINDS];
static void *graves[GRAVES];
static size_t next_grave;
static void (*ends[STANDIN_KINDS])(void *object);

void standin_lock(void) {
  pthread_mutex_lock(&lock);
}

void standin_unlock(void) {
  pthread_mutex_unlock(&lock);
}

void standin_wait_any(void) {
  pthread_cond_wait(&changed, &lock);
}

void standin_tell_all(void) {
  pthread_cond_broadcast(&changed);
}

static uint64_t key_of(const void *handle) {
  return (uint64_t)(uintptr_t)handle;
}

void *standin_new(standin_kind kind, size_t size) {
  standin_object *made = calloc(1, size);
  if (made == NULL) return NULL;
  *made = (standin_object){.kind = kind};
  if (!standin_table_add(&live, key_of(made), made)) {
    free(made);
    return NULL;
  }
  counts[kind]++;
  return made;
}

void standin_keep(void *object) {
  standin_object *one = object;
  one->is_own = true;
  counts[one->kind]--;
}

void standin_ends_with(standin_kind kind, void (*end)(void *object)) {
  ends[kind] = end;
}

const char *standin_kind_name(standin_kind kind) {
  return NAMES[kind];
}

// --- which handles are good ------------------------------------------------

static bool was(const void *handle, standin_kind kind) {
  for (size_t i = 0; i < GRAVES; i++) {
    const standin_object *object = graves[i];
    if (object == handle) return object != NULL && object->kind == kind;
  }
  return false;
}

static const standin_object *find(const void *handle) {
  return standin_table_find(&live, key_of(handle));
}

bool standin_is(const void *handle, standin_kind kind) {
  const standin_object *found = find(handle);
  return found != NULL && found->kind == kind && !found->is_destroyed;
}

tarn__cuda_result standin_check(const void *handle, standin_kind kind) {
  enum { ERROR = TARN__CU_ERROR_INVALID_HANDLE };
  if (standin_is(handle, kind)) return TARN__CU_SUCCESS;
  const standin_object *found = find(handle);
  const char *name = NAMES[kind];
  if (handle == NULL) return standin_wrong(ERROR, "no %s: NULL", name);
  if (found != NULL && found->kind != kind) {
    return standin_wrong(ERROR, "%p is no %s but a %s", handle, name,
                         NAMES[found->kind]);
  }
  if (found != NULL || was(handle, kind)) {
    return standin_wrong(ERROR, "%s %p was destroyed", name, handle);
  }
  return standin_wrong(ERROR, "%p was never a %s", handle, name);
}

// --- who needs them --------------------------------------------------------

static void end_if_unused(standin_object *object) {
  if (!object->is_destroyed || object->uses > 0) return;
  standin_table_remove(&live, key_of(object));
  if (ends[object->kind] != NULL) ends[object->kind](object);
  free(graves[next_grave]);
  graves[next_grave] = object;
  next_grave = (next_grave + 1) % GRAVES;
}

void standin_destroy(void *object) {
  standin_object *one = object;
  one->is_destroyed = true;
  if (!one->is_own) counts[one->kind]--;
  end_if_unused(one);
  standin_tell_all();
}

void standin_use(void *object) {
  ((standin_object *)object)->uses++;
}

void standin_unuse(void *object) {
  ((standin_object *)object)->uses--;
  end_if_unused(object);
}

// --- all of a kind ---------------------------------------------------------

void standin_each(standin_kind kind, void (*visit)(void *object, void *context),
                  void *context) {
  for (size_t i = 0; i < live.count; i++) {
    standin_object *object = live.entries[i].value;
    if (object->kind == kind) visit(object, context);
  }
}

size_t standin_count(standin_kind kind) {
  return counts[kind];
}
