// The copies of NVIDIA's driver, without Tarn: what a copy of the device cuda
// cannot be faster than, by the driver's way for pinned memory, a queued copy
// and a wait, and for plain memory, one call.
//
// libcuda.so.1 is the one that the plug-in has loaded, and what it is asked for
// is declared here: the vendor's headers are not needed. The context is the
// device's primary one, which the plug-in uses too, and is retained while a
// figure is measured.
#include "device_cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int cu_result;  // 0: done
typedef unsigned long long device_addr;

typedef struct cuda {
  void *library;
  cu_result (*driver_version)(int *version);
  cu_result (*device_get)(int *device, int ordinal);
  cu_result (*retain)(void **context, int device);
  cu_result (*release)(int device);
  cu_result (*push)(void *context);
  cu_result (*pop)(void **context);
  cu_result (*htod)(device_addr to, const void *from, size_t size);  // or NULL
  cu_result (*htod_async)(device_addr to, const void *from, size_t size,
                          void *on);
  cu_result (*dtoh_async)(void *to, device_addr from, size_t size, void *on);
  cu_result (*wait)(void *stream);
  int device;
  void *context;  // retained and current; NULL: neither
  void *stream;
  unsigned char *pinned;
  cu_result error;  // of the copy that failed
} cuda;

// ---------------------------------------------------------------------------
// Beginning and end
// ---------------------------------------------------------------------------

// By the names that the library exports.
static bool find_functions(cuda *c) {
  const struct {
    const char *name;
    void *into;
  } wanted[] = {{"cuDriverGetVersion", &c->driver_version},
                {"cuDeviceGet", &c->device_get},
                {"cuDevicePrimaryCtxRetain", &c->retain},
                {"cuDevicePrimaryCtxRelease_v2", &c->release},
                {"cuCtxPushCurrent_v2", &c->push},
                {"cuCtxPopCurrent_v2", &c->pop},
                {"cuMemcpyHtoDAsync_v2", &c->htod_async},
                {"cuMemcpyDtoHAsync_v2", &c->dtoh_async},
                {"cuStreamSynchronize", &c->wait}};
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    void *found = dlsym(c->library, wanted[i].name);
    memcpy(wanted[i].into, &found, sizeof found);
    if (found == NULL) return false;
  }
  void *htod = dlsym(c->library, "cuMemcpyHtoD_v2");
  memcpy(&c->htod, &htod, sizeof htod);
  return true;
}

static void close_driver(cuda *c) {
  void *popped = NULL;
  if (c->context != NULL) {
    (void)c->pop(&popped);
    (void)c->release(c->device);
  }
  if (c->library != NULL) (void)dlclose(c->library);
  *c = (cuda){.library = NULL};
}

static bool enter_context(cuda *c, const probe *p) {
  const char *colon = strrchr(tarn_device_name(p->device), ':');
  int ordinal = colon != NULL ? (int)strtol(colon + 1, NULL, 10) : 0;
  void *context = NULL;
  if (c->device_get(&c->device, ordinal) != 0 ||
      c->retain(&context, c->device) != 0) {
    return false;
  }
  if (c->push(context) != 0) {
    (void)c->release(c->device);
    return false;
  }
  c->context = context;
  return true;
}

static bool open_driver(cuda *c, const probe *p) {
  *c = (cuda){.stream = tarn_stream_native(p->stream)};
  if (strcmp(tarn_device_type(p->device), "cuda") != 0 || c->stream == NULL)
    return false;
  c->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (c->library != NULL && find_functions(c) && enter_context(c, p))
    return true;
  close_driver(c);
  return false;
}

bool device_cuda_is_known(const probe *p) {
  cuda c;
  bool is_known = open_driver(&c, p);
  close_driver(&c);
  return is_known;
}

void device_cuda_version(const probe *p, char *out) {
  cuda c;
  int version = 0;
  *out = '\0';
  if (!open_driver(&c, p)) return;
  if (c.driver_version(&version) == 0)
    snprintf(out, BENCH_NAME_SIZE, "CUDA %d.%d", version / 1000,
             version % 1000 / 10);
  close_driver(&c);
}

// ---------------------------------------------------------------------------
// Copies
// ---------------------------------------------------------------------------

// A stand-in for the driver may have no calls but those that the plug-in makes:
// then a queued copy, which is waited for below.
static cu_result copy_plain(const cuda *c, const probe *p) {
  return c->htod != NULL
             ? c->htod(p->here, p->source, p->size)
             : c->htod_async(p->here, p->source, p->size, c->stream);
}

// |count| times one copy of |p->size| bytes, and a wait for it.
#define REPEATED(name, copy)                              \
  static bool name(probe *p, size_t count) {              \
    cuda *c = p->scene;                                   \
    for (size_t i = 0; i < count && c->error == 0; i++) { \
      c->error = copy;                                    \
      if (c->error == 0) c->error = c->wait(c->stream);   \
    }                                                     \
    return c->error == 0;                                 \
  }

REPEATED(driver_h2d, c->htod_async(p->here, c->pinned, p->size, c->stream))
REPEATED(driver_d2h, c->dtoh_async(c->pinned, p->here, p->size, c->stream))
REPEATED(driver_pageable, copy_plain(c, p))
REPEATED(driver_queued, c->htod_async(p->here, p->source, p->size, c->stream))

static bool own_copies(probe *p, size_t count, bool to_device) {
  const cuda *c = p->scene;
  for (size_t i = 0; i < count; i++) {
    tarn_status status =
        to_device
            ? tarn_copy_h2d(p->device, p->here, c->pinned, p->size, p->stream)
            : tarn_copy_d2h(p->device, c->pinned, p->here, p->size, p->stream);
    if (status != TARN_OK || tarn_stream_synchronize(p->stream) != TARN_OK)
      return false;
  }
  return true;
}

static bool own_h2d(probe *p, size_t count) {
  return own_copies(p, count, true);
}

static bool own_d2h(probe *p, size_t count) {
  return own_copies(p, count, false);
}

static bool time_beside(probe *p, cuda *c, probe_batch *own,
                        probe_batch *driver, probe_times *out, char *why) {
  p->scene = c;
  bool timed = probe_time_beside(p, own, driver, out, why);
  if (c->error != 0)
    snprintf(why, PROBE_TEXT_SIZE, "the driver's own copy: error %d", c->error);
  p->scene = NULL;
  return timed;
}

static bool measure(probe *p, probe_batch *own, probe_batch *driver,
                    probe_times *out, char *why) {
  cuda c;
  if (!open_driver(&c, p)) {
    snprintf(why, PROBE_TEXT_SIZE, "the driver cannot be asked");
    return false;
  }
  bool timed = time_beside(p, &c, own, driver, out, why);
  close_driver(&c);
  return timed;
}

// Both copy from or to the same memory, which Tarn has had the driver pin.
static bool measure_pinned(probe *p, probe_batch *own, probe_batch *driver,
                           probe_times *out, char *why) {
  cuda c;
  tarn_addr pinned = 0;
  tarn_place place = {p->device, TARN_PLACE_HOST};
  if (tarn_device_allocate(place, p->size, &pinned) != TARN_OK)
    return probe_refused(why);
  bool opened = open_driver(&c, p);
  c.pinned = (unsigned char *)(uintptr_t)pinned;
  if (!opened) snprintf(why, PROBE_TEXT_SIZE, "the driver cannot be asked");
  if (opened) memset(c.pinned, 0x5a, p->size);
  bool timed = opened && time_beside(p, &c, own, driver, out, why);
  close_driver(&c);
  (void)tarn_device_deallocate(place, pinned, p->size);
  return timed;
}

bool device_cuda_copy(probe *p, probe_times *out, char *why) {
  return measure(p, device_h2d_on_stream, driver_queued, out, why);
}

bool device_cuda_pinned_h2d(probe *p, probe_times *out, char *why) {
  return measure_pinned(p, own_h2d, driver_h2d, out, why);
}

bool device_cuda_pinned_d2h(probe *p, probe_times *out, char *why) {
  return measure_pinned(p, own_d2h, driver_d2h, out, why);
}

bool device_cuda_pageable_h2d(probe *p, probe_times *out, char *why) {
  return measure(p, device_h2d, driver_pageable, out, why);
}
