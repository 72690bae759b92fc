// Which object stands for a driver's handle. Many maps of a few handles each,
// so that adopting a stream again takes a step or two. Handles of several
// devices, or of a stream and an event, may be equal: these are neighbours in a
// map.
#include "device/natives.h"

#include <pthread.h>

#include "base/os.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tarn__range_map natives[1024];  // guarded by |lock|

TARN__LOCK_AROUND_FORKS(LAST, natives, &lock, unlock_natives)

static tarn__range_map *map_of(uint64_t handle) {
  return &natives[handle * 0x9e3779b97f4a7c15 >> (64 - 10)];
}

// The lock is held.
static tarn__device_native *find(tarn__device_native_kind kind,
                                 const tarn_device *device, uint64_t handle) {
  tarn__range_map_node *node = tarn__range_map_at(map_of(handle), handle);
  for (; node != NULL && node->start == handle;
       node = tarn__range_map_previous(node)) {
    tarn__device_native *native = (tarn__device_native *)node;
    if (native->device == device && native->kind == kind &&
        native->generation == tarn__os_generation()) {
      return native;
    }
  }
  return NULL;
}

tarn__device_native *tarn__native_use(tarn__device_native_kind kind,
                                      const tarn_device *device, void *handle) {
  lock_natives();
  tarn__device_native *found = find(kind, device, (uintptr_t)handle);
  if (found != NULL) found->uses++;
  unlock_natives();
  return found;
}

tarn__device_native *tarn__native_enter(tarn__device_native *native,
                                        void *handle, bool fresh) {
  tarn__device_native *found = NULL;
  native->node.start = (uintptr_t)handle;
  native->generation = tarn__os_generation();
  lock_natives();
  if (!fresh) found = find(native->kind, native->device, native->node.start);
  if (found == NULL) {
    found = native;
    if (handle != NULL) {
      tarn__range_map_insert(map_of(native->node.start), &native->node);
    }
  }
  found->uses++;
  unlock_natives();
  return found;
}

bool tarn__native_leave(tarn__device_native *native) {
  lock_natives();
  bool last = --native->uses == 0;
  if (last && native->node.start != 0) {
    tarn__range_map_remove(map_of(native->node.start), &native->node);
  }
  unlock_natives();
  return last;
}
