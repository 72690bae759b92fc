// The driver's own stream-ordered pool, which cudaMallocAsync and cudaFreeAsync
// are, for `tarn bench pool` (bench/peer_abi.h).
//
// The pool keeps what it has: the release threshold is the most there is, as
// one that gives back at every wait would be measured at that. One stream; the
// pool is one of its own, so that what it holds can be asked for.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/peer_abi.h"

// As the driver's header declares them; what it has after these is reserved.
typedef struct location {
  unsigned type;  // 1: a device
  int id;
} location;

typedef struct pool_props {
  unsigned alloc_type;    // 1: pinned
  unsigned handle_types;  // 0: none
  location where;
  void *win32;
  size_t max_size;
  unsigned short usage;
  unsigned char reserved[54];
} pool_props;

_Static_assert(sizeof(pool_props) == 88, "the size of CUmemPoolProps");

enum { RELEASE_THRESHOLD = 4, RESERVED_NOW = 5 };  // attributes

static struct {
  int (*init)(unsigned flags);
  int (*device_get)(int *device, int ordinal);
  int (*retain)(void **context, int device);
  int (*set_current)(void *context);
  int (*stream_create)(void **stream, unsigned flags);
  int (*pool_create)(void **pool, const pool_props *props);
  int (*pool_set)(void *pool, int attribute, void *value);
  int (*pool_get)(void *pool, int attribute, void *value);
  int (*alloc)(unsigned long long *block, size_t size, void *pool, void *on);
  int (*release)(unsigned long long block, void *stream);
  void *stream;
  void *pool;
} driver;

static bool find_functions(void *library, char *why) {
  const struct {
    const char *name;
    void *into;
  } wanted[] = {{"cuInit", &driver.init},
                {"cuDeviceGet", &driver.device_get},
                {"cuDevicePrimaryCtxRetain", &driver.retain},
                {"cuCtxSetCurrent", &driver.set_current},
                {"cuStreamCreate", &driver.stream_create},
                {"cuMemPoolCreate", &driver.pool_create},
                {"cuMemPoolSetAttribute", &driver.pool_set},
                {"cuMemPoolGetAttribute", &driver.pool_get},
                {"cuMemAllocFromPoolAsync", &driver.alloc},
                {"cuMemFreeAsync", &driver.release}};
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    void *found = dlsym(library, wanted[i].name);
    memcpy(wanted[i].into, &found, sizeof found);
    if (found != NULL) continue;
    snprintf(why, TARN_PEER_WHY_SIZE, "the driver has no %s", wanted[i].name);
    return false;
  }
  return true;
}

static bool did(int error, const char *what, char *why) {
  if (error == 0) return true;
  snprintf(why, TARN_PEER_WHY_SIZE, "%s: error %d", what, error);
  return false;
}

static bool make_pool(int ordinal, char *why) {
  uint64_t everything = UINT64_MAX;
  pool_props props = {.alloc_type = 1, .where = {1, ordinal}};
  return did(driver.stream_create(&driver.stream, 1), "cuStreamCreate", why) &&
         did(driver.pool_create(&driver.pool, &props), "cuMemPoolCreate",
             why) &&
         did(driver.pool_set(driver.pool, RELEASE_THRESHOLD, &everything),
             "cuMemPoolSetAttribute", why);
}

bool tarn_peer_open(const char *device, const char *options, char *why) {
  int handle = 0;
  void *context = NULL;
  const char *colon = strrchr(device, ':');
  int ordinal = colon != NULL ? (int)strtol(colon + 1, NULL, 10) : 0;
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  (void)options;
  if (library == NULL) {
    snprintf(why, TARN_PEER_WHY_SIZE, "no libcuda.so.1: %.200s", dlerror());
    return false;
  }
  return find_functions(library, why) && did(driver.init(0), "cuInit", why) &&
         did(driver.device_get(&handle, ordinal), "cuDeviceGet", why) &&
         did(driver.retain(&context, handle), "cuDevicePrimaryCtxRetain",
             why) &&
         did(driver.set_current(context), "cuCtxSetCurrent", why) &&
         make_pool(ordinal, why);
}

void *tarn_peer_alloc(size_t size) {
  unsigned long long block = 0;
  int error = driver.alloc(&block, size, driver.pool, driver.stream);
  return error == 0 ? (void *)(uintptr_t)block : NULL;
}

void tarn_peer_free(void *block) {
  (void)driver.release((unsigned long long)(uintptr_t)block, driver.stream);
}

size_t tarn_peer_held(void) {
  uint64_t held = 0;
  (void)driver.pool_get(driver.pool, RESERVED_NOW, &held);
  return (size_t)held;
}
