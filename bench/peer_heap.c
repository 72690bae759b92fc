// malloc and its kind: that of the C library, and those of libraries that are
// loaded for it alone.
//
// All are called through pointers, as any library's are that a program links
// to. A library is loaded with its names kept to itself, so that the harness's
// own memory still is the C library's, and its functions are looked up in that
// library; where they come from is checked.
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "course.h"

typedef struct heap {
  void **slots;
  void *(*allocate)(size_t size);
  void (*release)(void *block);
  size_t others;  // bytes that were out before the first request
} heap;

COURSE_INLINE bool heap_alloc(void *state, const request *r) {
  heap *self = state;
  void *block = self->allocate(r->size);
  self->slots[r->slot] = block;
  return block != NULL;
}

COURSE_INLINE bool heap_free(void *state, const request *r) {
  heap *self = state;
  self->release(self->slots[r->slot]);
  return true;
}

static bool heap_touch(void *state, const request *r) {
  return course_touch(((heap *)state)->slots[r->slot], r->size);
}

static bool heap_pass(void *self, const peer_run *run) {
  return course_run(self, run, heap_alloc, heap_free, heap_touch);
}

static heap *heap_create(const peer_order *order) {
  heap *self = tool_array(1, sizeof *self);
  self->slots =
      tool_array_ready(order->requests->slot_count, sizeof *self->slots);
  return self;
}

static void heap_destroy(void *state) {
  heap *self = state;
  free(self->slots);
  free(self);
}

static const char *no_memory(void) {
  return "no memory";
}

// ---------------------------------------------------------------------------
// glibc
// ---------------------------------------------------------------------------

#if defined(__GLIBC__)
#if __GLIBC_PREREQ(2, 33)
#define HAS_MALLINFO2
#endif
#endif

#ifdef HAS_MALLINFO2
static size_t glibc_used(void) {
  struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

// Free memory of the parent's heap counts as held, which it is.
static size_t glibc_held(void *state) {
  struct mallinfo2 info = mallinfo2();
  return info.arena + info.hblkhd - ((heap *)state)->others;
}
#else
static size_t glibc_used(void) {
  return 0;
}

static size_t glibc_held(void *state) {
  (void)state;
  return 0;
}
#endif

static void *glibc_create(const peer_order *order, char *why) {
  (void)why;
  heap *self = heap_create(order);
  self->allocate = malloc;
  self->release = free;
  self->others = glibc_used();
  return self;
}

const peer_type peer_glibc = {
    .create = glibc_create,
    .destroy = heap_destroy,
    .alloc = heap_alloc,
    .free = heap_free,
    .pass = heap_pass,
    .held = glibc_held,
    .refusal = no_memory,
};

// ---------------------------------------------------------------------------
// Libraries
// ---------------------------------------------------------------------------

typedef struct library {
  const char *peer;
  const char *sonames[3];
  const char *package;  // Debian's
  const char *allocate;
  const char *release;
} library;

// jemalloc has no names of its own as Debian builds it.
static const library libraries[] = {
    {"mimalloc",
     {"libmimalloc.so.2", "libmimalloc.so.3"},
     "libmimalloc2.0",
     "mi_malloc",
     "mi_free"},
    {"jemalloc", {"libjemalloc.so.2"}, "libjemalloc2", "malloc", "free"},
    {"tcmalloc",
     {"libtcmalloc_minimal.so.4", "libtcmalloc.so.4"},
     "libtcmalloc-minimal4",
     "tc_malloc",
     "tc_free"},
};
enum { LIBRARIES = sizeof libraries / sizeof *libraries };

static const library *library_of(const char *name) {
  for (size_t i = 0; i < LIBRARIES; i++) {
    if (strcmp(libraries[i].peer, name) == 0) return &libraries[i];
  }
  return NULL;
}

static bool is_absence(const char *error) {
  return strstr(error, "No such file") != NULL;
}

void *peer_library(const char *const *sonames, const char *package, char *why) {
  *why = '\0';
  for (size_t i = 0; sonames[i] != NULL; i++) {
    void *handle = dlopen(sonames[i], RTLD_NOW | RTLD_LOCAL);
    if (handle != NULL) return handle;
    const char *error = dlerror();
    if (is_absence(error)) continue;
    snprintf(why, PEER_TEXT_SIZE, "cannot be loaded: %.200s", error);
    return NULL;
  }
  snprintf(why, PEER_TEXT_SIZE, PEER_MISSING "%s (package %s)", sonames[0],
           package);
  return NULL;
}

const char *peer_code_of(void *(*function)(size_t size)) {
  Dl_info info;
  void *address = NULL;
  memcpy(&address, &function, sizeof address);
  return dladdr(address, &info) != 0 && info.dli_fname != NULL ? info.dli_fname
                                                               : "";
}

static bool comes_from(const library *from, const char *file) {
  for (size_t i = 0; i < 3 && from->sonames[i] != NULL; i++) {
    if (strstr(file, from->sonames[i]) != NULL) return true;
  }
  return false;
}

// ISO C has no cast from an object's address to a function's.
static bool look_up(void *handle, const library *from, heap *out) {
  void *allocate = dlsym(handle, from->allocate);
  void *release = dlsym(handle, from->release);
  memcpy(&out->allocate, &allocate, sizeof allocate);
  memcpy(&out->release, &release, sizeof release);
  return allocate != NULL && release != NULL &&
         comes_from(from, peer_code_of(out->allocate));
}

// The library stays for as long as the process: none of them can be unloaded.
static bool load(const library *from, heap *out, char *why) {
  void *handle = peer_library(from->sonames, from->package, why);
  if (handle == NULL) return false;
  if (look_up(handle, from, out)) return true;
  snprintf(why, PEER_TEXT_SIZE, "%s has no %s of its own", from->sonames[0],
           from->allocate);
  return false;
}

const char *peer_file(const char *name) {
  char why[PEER_TEXT_SIZE];
  heap functions = {.allocate = malloc};
  const library *from = library_of(name);
  if (from != NULL && !load(from, &functions, why)) return "";
  return peer_code_of(functions.allocate);
}

static void *library_create(const peer_order *order, char *why) {
  heap *self = heap_create(order);
  if (load(library_of(order->name), self, why)) return self;
  heap_destroy(self);
  return NULL;
}

#define PEER_OF_LIBRARY(name)   \
  const peer_type name = {      \
      .create = library_create, \
      .destroy = heap_destroy,  \
      .alloc = heap_alloc,      \
      .free = heap_free,        \
      .pass = heap_pass,        \
      .refusal = no_memory,     \
  }

PEER_OF_LIBRARY(peer_mimalloc);
PEER_OF_LIBRARY(peer_jemalloc);
PEER_OF_LIBRARY(peer_tcmalloc);
