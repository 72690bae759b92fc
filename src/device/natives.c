// Which object stands for a driver's handle.
#include "device/natives.h"

#include "base/intern.h"
#include "base/os.h"

tarn__device_natives tarn__native_streams = TARN__NATIVES(tarn__native_streams);
tarn__device_natives tarn__native_events = TARN__NATIVES(tarn__native_events);

// The device is not in it: handles of several that are equal are few.
static uint64_t key_of(const void *handle) {
  return tarn__hash_fold((uint64_t)(uintptr_t)handle, 0x9e3779b97f4a7c15u);
}

// The lock is held.
static tarn__device_native *find(const tarn__device_natives *natives,
                                 uint64_t key, const tarn_device *device,
                                 const void *handle) {
  tarn__device_link *link = tarn__buckets_at(&natives->buckets, key);
  for (; link != NULL; link = link->next) {
    tarn__device_native *native = (tarn__device_native *)(void *)link;
    if (native->handle == handle && native->device == device &&
        native->generation == tarn__os_generation()) {
      return native;
    }
  }
  return NULL;
}

tarn__device_native *tarn__natives_use(tarn__device_natives *natives,
                                       const tarn_device *device,
                                       void *handle) {
  uint64_t key = key_of(handle);
  pthread_mutex_lock(&natives->lock);
  tarn__device_native *found = find(natives, key, device, handle);
  if (found != NULL) found->uses++;
  pthread_mutex_unlock(&natives->lock);
  return found;
}

tarn__device_native *tarn__natives_enter(tarn__device_natives *natives,
                                         tarn__device_native *native,
                                         bool fresh) {
  tarn__device_native *found = NULL;
  native->link.key = key_of(native->handle);
  native->generation = tarn__os_generation();
  pthread_mutex_lock(&natives->lock);
  if (!fresh) {
    found = find(natives, native->link.key, native->device, native->handle);
  }
  if (found == NULL) {
    found = native;
    if (native->handle != NULL) {
      tarn__buckets_put(&natives->buckets, &native->link);
    }
  }
  found->uses++;
  pthread_mutex_unlock(&natives->lock);
  return found;
}

bool tarn__natives_leave(tarn__device_natives *natives,
                         tarn__device_native *native) {
  pthread_mutex_lock(&natives->lock);
  bool last = --native->uses == 0;
  if (last && native->handle != NULL) {
    tarn__buckets_take(&natives->buckets, &native->link);
  }
  pthread_mutex_unlock(&natives->lock);
  return last;
}

void tarn__natives_lock(void) {
  pthread_mutex_lock(&tarn__native_streams.lock);
  pthread_mutex_lock(&tarn__native_events.lock);
}

void tarn__natives_unlock(void) {
  pthread_mutex_unlock(&tarn__native_events.lock);
  pthread_mutex_unlock(&tarn__native_streams.lock);
}
