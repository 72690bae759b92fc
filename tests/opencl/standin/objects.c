// Objects: a table of all that live, by handle, and a few that do not any more.
//
//   refs > 0               the program may use the handle
//   refs == 0, uses > 0    something of ours still needs the object
//   both 0                 it ends: what it holds is given back, and the empty
//                          struct lies in |graves| for a while, so that a
//                          handle of old is told from one that never was
#include "objects.h"

#include <pthread.h>
#include <stdlib.h>

#include "report.h"
#include "table.h"

enum { GRAVES = 4096 };

static const struct {
  const char *name;
  cl_int error;
} KINDS[STANDIN_KINDS] = {
    [STANDIN_PLATFORM] = {"platform", CL_INVALID_PLATFORM},
    [STANDIN_DEVICE] = {"device", CL_INVALID_DEVICE},
    [STANDIN_CONTEXT] = {"context", CL_INVALID_CONTEXT},
    [STANDIN_QUEUE] = {"queue", CL_INVALID_COMMAND_QUEUE},
    [STANDIN_BUFFER] = {"buffer", CL_INVALID_MEM_OBJECT},
    [STANDIN_EVENT] = {"event", CL_INVALID_EVENT},
    [STANDIN_PROGRAM] = {"program", CL_INVALID_PROGRAM},
    [STANDIN_KERNEL] = {"kernel", CL_INVALID_KERNEL},
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
  *made = (standin_object){.kind = kind, .refs = 1};
  if (!standin_table_add(&live, key_of(made), made)) {
    free(made);
    return NULL;
  }
  counts[kind]++;
  return made;
}

void standin_ends_with(standin_kind kind, void (*end)(void *object)) {
  ends[kind] = end;
}

const char *standin_kind_name(standin_kind kind) {
  return KINDS[kind].name;
}

// --- which handles are good ------------------------------------------------

bool standin_was(const void *handle, standin_kind kind) {
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
  return found != NULL && found->kind == kind && found->refs > 0;
}

cl_int standin_check(const void *handle, standin_kind kind) {
  if (standin_is(handle, kind)) return CL_SUCCESS;
  const standin_object *found = find(handle);
  const char *name = KINDS[kind].name;
  cl_int error = KINDS[kind].error;
  if (handle == NULL) return standin_wrong(error, "no %s: NULL", name);
  if (found != NULL && found->kind != kind) {
    return standin_wrong(error, "%p is no %s but a %s", handle, name,
                         KINDS[found->kind].name);
  }
  if (found != NULL || standin_was(handle, kind)) {
    return standin_wrong(error, "%s %p was released", name, handle);
  }
  return standin_wrong(error, "%p was never a %s", handle, name);
}

// --- who holds them --------------------------------------------------------

static void end_if_unheld(standin_object *object) {
  if (object->refs > 0 || object->uses > 0) return;
  counts[object->kind]--;
  standin_table_remove(&live, key_of(object));
  if (ends[object->kind] != NULL) ends[object->kind](object);
  free(graves[next_grave]);
  graves[next_grave] = object;
  next_grave = (next_grave + 1) % GRAVES;
}

void standin_use(void *object) {
  ((standin_object *)object)->uses++;
}

void standin_unuse(void *object) {
  ((standin_object *)object)->uses--;
  end_if_unheld(object);
}

cl_int standin_retain(void *handle, standin_kind kind) {
  standin_lock();
  cl_int error = standin_check(handle, kind);
  if (error == CL_SUCCESS) ((standin_object *)handle)->refs++;
  standin_unlock();
  return error;
}

cl_int standin_release(void *handle, standin_kind kind) {
  standin_lock();
  cl_int error = standin_check(handle, kind);
  if (error == CL_SUCCESS) {
    ((standin_object *)handle)->refs--;
    end_if_unheld(handle);
    standin_tell_all();
  }
  standin_unlock();
  return error;
}

cl_uint standin_references(const void *handle) {
  const standin_object *object = handle;
  return object->refs + object->uses;
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
