// The disjoint pool of the Unified Memory Framework over its own provider of
// the system's memory: with its defaults, which send every block over 2 MiB to
// the provider and keep 4 free slabs of a size, and told to keep all.
//
// libumf is loaded as the other libraries are. TARN_UMF in the environment is
// the path of another one: the wheel umf has it, and installs it where no
// loader looks. All that its functions take is opaque, so that their types are
// declared here.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "course.h"

typedef int umf_answer;  // 0: done
typedef struct umf_provider umf_provider;
typedef struct umf_pool umf_pool;
typedef struct umf_provider_params umf_provider_params;
typedef struct umf_pool_params umf_pool_params;

enum { UMF_POOL_OWNS_PROVIDER = 1 };

#define TUNED_MOST ((size_t)2 << 30)      // the largest block that is kept
#define TUNED_CAPACITY ((size_t)1 << 20)  // free slabs of a size

typedef struct umf_functions {
  umf_answer (*provider_params)(umf_provider_params **out);
  umf_answer (*end_provider_params)(umf_provider_params *params);
  const void *(*provider_type)(void);
  umf_answer (*provider_create)(const void *type, const void *params,
                                umf_provider **out);
  umf_answer (*provider_destroy)(umf_provider *provider);
  umf_answer (*pool_params)(umf_pool_params **out);
  umf_answer (*end_pool_params)(umf_pool_params *params);
  umf_answer (*set_most)(umf_pool_params *params, size_t most);
  umf_answer (*set_capacity)(umf_pool_params *params, size_t capacity);
  const void *(*pool_type)(void);
  umf_answer (*pool_create)(const void *type, umf_provider *provider,
                            const void *params, uint32_t flags, umf_pool **out);
  umf_answer (*pool_destroy)(umf_pool *pool);
  void *(*allocate)(umf_pool *pool, size_t size);
  umf_answer (*release)(umf_pool *pool, void *block);
  umf_answer (*tell)(const char *path, void *out, size_t size, ...);
} umf_functions;

static const struct umf_name {
  const char *name;
  size_t offset;
} names[] = {
    {"umfOsMemoryProviderParamsCreate",
     offsetof(umf_functions, provider_params)},
    {"umfOsMemoryProviderParamsDestroy",
     offsetof(umf_functions, end_provider_params)},
    {"umfOsMemoryProviderOps", offsetof(umf_functions, provider_type)},
    {"umfMemoryProviderCreate", offsetof(umf_functions, provider_create)},
    {"umfMemoryProviderDestroy", offsetof(umf_functions, provider_destroy)},
    {"umfDisjointPoolParamsCreate", offsetof(umf_functions, pool_params)},
    {"umfDisjointPoolParamsDestroy", offsetof(umf_functions, end_pool_params)},
    {"umfDisjointPoolParamsSetMaxPoolableSize",
     offsetof(umf_functions, set_most)},
    {"umfDisjointPoolParamsSetCapacity", offsetof(umf_functions, set_capacity)},
    {"umfDisjointPoolOps", offsetof(umf_functions, pool_type)},
    {"umfPoolCreate", offsetof(umf_functions, pool_create)},
    {"umfPoolDestroy", offsetof(umf_functions, pool_destroy)},
    {"umfPoolMalloc", offsetof(umf_functions, allocate)},
    {"umfPoolFree", offsetof(umf_functions, release)},
    {"umfCtlGet", offsetof(umf_functions, tell)},
};

typedef struct umf {
  void **slots;
  umf_pool *pool;
  umf_provider *provider;  // the pool's
  umf_functions call;
} umf;

// ---------------------------------------------------------------------------
// Requests
// ---------------------------------------------------------------------------

COURSE_INLINE bool umf_alloc(void *state, const request *r) {
  umf *self = state;
  void *block = self->call.allocate(self->pool, r->size);
  self->slots[r->slot] = block;
  return block != NULL;
}

COURSE_INLINE bool umf_free(void *state, const request *r) {
  umf *self = state;
  return self->call.release(self->pool, self->slots[r->slot]) == 0;
}

static bool umf_touch(void *state, const request *r) {
  return course_touch(((umf *)state)->slots[r->slot], r->size);
}

static bool umf_pass(void *self, const peer_run *run) {
  return course_run(self, run, umf_alloc, umf_free, umf_touch);
}

// ---------------------------------------------------------------------------
// From the first to the last
// ---------------------------------------------------------------------------

static bool load(umf *self, char *why) {
  const char *sonames[] = {getenv("TARN_UMF"), NULL};
  if (sonames[0] == NULL) sonames[0] = "libumf.so.1";
  void *handle = peer_library(sonames, "umf, by pip", why);
  if (handle == NULL) return false;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    void *found = dlsym(handle, names[i].name);
    memcpy((char *)&self->call + names[i].offset, &found, sizeof found);
    if (found != NULL) continue;
    snprintf(why, PEER_TEXT_SIZE, "%.128s has no %s", sonames[0],
             names[i].name);
    return false;
  }
  return true;
}

static bool make_provider(umf *self) {
  umf_provider_params *params = NULL;
  if (self->call.provider_params(&params) != 0) return false;
  bool made = self->call.provider_create(self->call.provider_type(), params,
                                         &self->provider) == 0;
  return self->call.end_provider_params(params) == 0 && made;
}

static bool tune(const umf *self, umf_pool_params *params) {
  return self->call.set_most(params, TUNED_MOST) == 0 &&
         self->call.set_capacity(params, TUNED_CAPACITY) == 0;
}

static bool make_pool(umf *self, bool tuned) {
  umf_pool_params *params = NULL;
  if (self->call.pool_params(&params) != 0) return false;
  bool made =
      (!tuned || tune(self, params)) &&
      self->call.pool_create(self->call.pool_type(), self->provider, params,
                             UMF_POOL_OWNS_PROVIDER, &self->pool) == 0;
  if (!made) (void)self->call.provider_destroy(self->provider);
  return self->call.end_pool_params(params) == 0 && made;
}

static void destroy(void *state) {
  umf *self = state;
  if (self->pool != NULL) (void)self->call.pool_destroy(self->pool);
  free(self->slots);
  free(self);
}

static void *create(const peer_order *order, bool tuned, char *why) {
  umf *self = tool_array(1, sizeof *self);
  *why = '\0';
  self->slots =
      tool_array_ready(order->requests->slot_count, sizeof *self->slots);
  if (load(self, why) && make_provider(self) && make_pool(self, tuned)) {
    return self;
  }
  if (*why == '\0') snprintf(why, PEER_TEXT_SIZE, "it makes no pool");
  destroy(self);
  return NULL;
}

static void *create_usual(const peer_order *order, char *why) {
  return create(order, false, why);
}

static void *create_tuned(const peer_order *order, char *why) {
  return create(order, true, why);
}

static size_t held(void *state) {
  umf *self = state;
  size_t bytes = 0;
  umf_answer answer =
      self->call.tell("umf.provider.by_handle.{}.stats.allocated_memory",
                      &bytes, sizeof bytes, self->provider);
  return answer == 0 ? bytes : 0;
}

static const char *no_memory(void) {
  return "no memory";
}

#define PEER_OF_UMF(name, create_) \
  const peer_type name = {         \
      .create = (create_),         \
      .destroy = destroy,          \
      .alloc = umf_alloc,          \
      .free = umf_free,            \
      .pass = umf_pass,            \
      .held = held,                \
      .refusal = no_memory,        \
  }

PEER_OF_UMF(peer_umf, create_usual);
PEER_OF_UMF(peer_umf_tuned, create_tuned);
