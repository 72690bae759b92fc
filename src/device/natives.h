// natives.h - streams and events, found by their handles in the driver.
//
// Tarn has one object for each handle of a driver, however often the handle is
// adopted. The object counts its creation and adoptions as uses.
#ifndef TARN_DEVICE_NATIVES_H_
#define TARN_DEVICE_NATIVES_H_

#include "base/range_map.h"
#include "tarn/device.h"

typedef enum tarn__device_native_kind {
  TARN__NATIVE_STREAM,
  TARN__NATIVE_EVENT,
} tarn__device_native_kind;

// Part of a stream or event.
typedef struct tarn__device_native {
  tarn__range_map_node node;  // |start|: the handle; 0: none, nothing finds it
  const tarn_device *device;
  tarn__device_native_kind kind;
  uint32_t generation;  // of the process; a parent's are not found
  size_t uses;          // guarded by the lock of natives.c
} tarn__device_native;

// The object of |handle| of |device|, with one more use; NULL if there is none.
tarn__device_native *tarn__native_use(tarn__device_native_kind kind,
                                      const tarn_device *device, void *handle);

// Enters |native|, whose device and kind are set, as that of |handle|, with one
// use. If the handle has an object already, that gets one more use and is
// returned. A |fresh| handle, which the driver has just made, has none.
tarn__device_native *tarn__native_enter(tarn__device_native *native,
                                        void *handle, bool fresh);

// Removes one use. True for the last: the object is no longer found.
bool tarn__native_leave(tarn__device_native *native);

#endif  // TARN_DEVICE_NATIVES_H_
