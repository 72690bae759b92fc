// natives.h - the streams and events of this room, by their handles in the
// driver.
//
// A handle is the driver's, and whoever made the object may have it besides
// Tarn. One object stands here for one handle, and is used as often as it was
// created or adopted and not given back.
#ifndef TARN_DEVICE_NATIVES_H_
#define TARN_DEVICE_NATIVES_H_

#include <pthread.h>

#include "device/buckets.h"
#include "tarn/device.h"

// Part of a stream or event.
typedef struct tarn__device_native {
  tarn__device_link link;
  const tarn_device *device;
  void *handle;         // NULL: none, and nothing finds it
  uint32_t generation;  // of the process; a parent's are not found
  size_t uses;          // guarded by the table's lock
} tarn__device_native;

typedef struct tarn__device_natives {
  pthread_mutex_t lock;  // guards all below
  tarn__device_buckets buckets;
} tarn__device_natives;

#define TARN__NATIVES(table)                  \
  {                                           \
    .lock = PTHREAD_MUTEX_INITIALIZER,        \
    .buckets = TARN__BUCKETS((table).buckets) \
  }

extern tarn__device_natives tarn__native_streams;
extern tarn__device_natives tarn__native_events;

// What stands for |handle| of |device|, used once more; NULL if nothing does.
tarn__device_native *tarn__natives_use(tarn__device_natives *natives,
                                       const tarn_device *device, void *handle);

// Makes |native|, whose device and handle are set, stand for its handle, used
// once. If something stands for it already, that is used once more and
// returned; |fresh| handles, which the driver has just made, are no others'.
tarn__device_native *tarn__natives_enter(tarn__device_natives *natives,
                                         tarn__device_native *native,
                                         bool fresh);

// Used once less. True for the last use: it is found no more.
bool tarn__natives_leave(tarn__device_natives *natives,
                         tarn__device_native *native);

// Both tables, around a fork.
void tarn__natives_lock(void);
void tarn__natives_unlock(void);

#endif  // TARN_DEVICE_NATIVES_H_
