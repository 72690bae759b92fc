// An allocator out of a file: a shared object that defines the functions of
// peer_abi.h. Its name is its path, which has a '/', and after a ':' what it is
// told.
//
// All are called through pointers, as those of peer_heap.c are.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "course.h"
#include "peer_abi.h"

typedef struct file_peer {
  void **slots;
  __typeof__(&tarn_peer_open) open;
  __typeof__(&tarn_peer_alloc) allocate;
  __typeof__(&tarn_peer_free) release;
  __typeof__(&tarn_peer_held) held;
} file_peer;

_Static_assert((int)TARN_PEER_WHY_SIZE <= (int)PEER_TEXT_SIZE, "a reason fits");

COURSE_INLINE bool file_alloc(void *state, const request *r) {
  file_peer *self = state;
  void *block = self->allocate(r->size);
  self->slots[r->slot] = block;
  return block != NULL;
}

COURSE_INLINE bool file_free(void *state, const request *r) {
  file_peer *self = state;
  self->release(self->slots[r->slot]);
  return true;
}

static bool file_touch(void *state, const request *r) {
  return course_touch(((file_peer *)state)->slots[r->slot], r->size);
}

static bool file_pass(void *self, const peer_run *run) {
  return course_run(self, run, file_alloc, file_free, file_touch);
}

// ---------------------------------------------------------------------------
// From the first to the last
// ---------------------------------------------------------------------------

// ISO C has no cast from an object's address to a function's.
static bool look_up(void *handle, file_peer *self, char *why) {
  const struct {
    const char *name;
    void *into;
  } wanted[] = {{"tarn_peer_open", &self->open},
                {"tarn_peer_alloc", &self->allocate},
                {"tarn_peer_free", &self->release},
                {"tarn_peer_held", &self->held}};
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    void *found = dlsym(handle, wanted[i].name);
    memcpy(wanted[i].into, &found, sizeof found);
    if (found != NULL) continue;
    snprintf(why, PEER_TEXT_SIZE, "it defines no %s", wanted[i].name);
    return false;
  }
  return true;
}

// It stays for as long as the process.
static bool load(file_peer *self, const char *path, char *why) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle != NULL) return look_up(handle, self, why);
  snprintf(why, PEER_TEXT_SIZE, "cannot be loaded: %.200s", dlerror());
  return false;
}

static void file_destroy(void *state) {
  file_peer *self = state;
  free(self->slots);
  free(self);
}

static void *file_create(const peer_order *order, char *why) {
  file_peer *self = tool_array(1, sizeof *self);
  char *path = tool_text(order->name);
  char *options = strchr(path, ':');
  if (options != NULL) *options++ = '\0';
  self->slots =
      tool_array_ready(order->requests->slot_count, sizeof *self->slots);
  *why = '\0';
  bool opened = load(self, path, why) &&
                self->open(order->device, options != NULL ? options : "", why);
  free(path);
  if (opened) return self;
  file_destroy(self);
  return NULL;
}

static size_t file_held(void *state) {
  return ((file_peer *)state)->held();
}

static const char *refused(void) {
  return "it returned NULL";
}

const peer_type peer_file_type = {
    .create = file_create,
    .destroy = file_destroy,
    .alloc = file_alloc,
    .free = file_free,
    .pass = file_pass,
    .held = file_held,
    .refusal = refused,
};
