// adopt_kit.h - streams and events of a runtime that has the driver
// besides Tarn.
//
// They are made by the plug-in's own functions. The fake plug-in runs queued
// work when a caller waits for it: no work completes by chance.
#ifndef TARN_TESTS_DEVICE_ADOPT_KIT_H_
#define TARN_TESTS_DEVICE_ADOPT_KIT_H_

#include <string.h>

#include "device/device.h"
#include "kit.h"

static inline C_Stream native_stream(tarn_device *device) {
  C_Stream native = NULL;
  ck_assert_int_eq(device->abi->create_stream(&device->handle, &native),
                   C_SUCCESS);
  return native;
}

static inline void end_native_stream(tarn_device *device, C_Stream native) {
  ck_assert_int_eq(device->abi->destroy_stream(&device->handle, native),
                   C_SUCCESS);
}

static inline C_Event native_event(tarn_device *device) {
  C_Event native = NULL;
  ck_assert_int_eq(device->abi->create_event(&device->handle, &native),
                   C_SUCCESS);
  return native;
}

static inline void end_native_event(tarn_device *device, C_Event native) {
  ck_assert_int_eq(device->abi->destroy_event(&device->handle, native),
                   C_SUCCESS);
}

// Puts 1 into |*cell|, behind what is on |native|.
static inline void queue_native(tarn_device *device, C_Stream native,
                                int *cell) {
  ck_assert_int_eq(device->abi->async_memory_copy_h2d(&device->handle, native,
                                                      cell, &one, sizeof one),
                   C_SUCCESS);
}

static inline tarn_stream *adopt(tarn_device *device, void *native) {
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_adopt(device, native, &stream));
  ck_assert_ptr_nonnull(stream);
  return stream;
}

#endif  // TARN_TESTS_DEVICE_ADOPT_KIT_H_
