// on_devices.h - tests that run on each device of the list of places.h that has
// what they need.
//
//   TEST_ON(bytes_come_back, TEST_NEEDS_DISCRETE) {
//     ... tarn_place_on(device) ...
//   }
#ifndef TARN_TESTS_SUPPORT_ON_DEVICES_H_
#define TARN_TESTS_SUPPORT_ON_DEVICES_H_

#include <stdio.h>
#include <string.h>

#include "support/places.h"
#include "support/run.h"

// |device| is open until the test has ended.
#define TEST_ON(name, needs) TEST_SET_ON(name, needs, (void))

// The same, and set_up(device) comes first.
#define TEST_SET_ON(name, needs, set_up) TEST_LOOP_ON(name, 1, needs, set_up)

// The same for each _i below |count|, on each device.
#define TEST_LOOP_ON(name, count, needs, set_up) \
  TEST_LOOP_AMONG(name, count, TEST_DEVICES, needs, set_up)

// The same without the test doubles: for what takes long.
#define TEST_LOOP_ON_LIBRARY(name, count, needs, set_up) \
  TEST_LOOP_AMONG(name, count, LIBRARY_DEVICES, needs, set_up)

#define TEST_LOOP_AMONG(name, count, devices, needs, set_up)         \
  static void name##_on(tarn_device *device, int _i);                \
  TEST_LOOP(name, (int)(count) * (devices)) {                        \
    tarn_device *device = open_device_with(_i % devices, needs);     \
    if (device == NULL) return;                                      \
    set_up(device);                                                  \
    name##_on(device, _i / devices);                                 \
  }                                                                  \
  static void name##_on(__attribute__((unused)) tarn_device *device, \
                        __attribute__((unused)) int _i)

// Opens the first device of the list whose memory the host cannot touch.
static inline tarn_device *open_discrete(void) {
  tarn_device *device = NULL;
  for (int i = 0; device == NULL; i++)
    device = open_device_with(i, TEST_NEEDS_DISCRETE);
  return device;
}

// Opens the second device of the plug-in, which each discrete device of the
// list has beside it.
static inline tarn_device *open_second(const tarn_device *device) {
  char name[64];
  snprintf(name, sizeof name, "%s:1", tarn_device_type(device));
  return open_device(name);
}

// The last error has the name of |device| between |before| and |after|.
static inline void assert_error_names(const char *before,
                                      const tarn_device *device,
                                      const char *after) {
  char text[256];
  snprintf(text, sizeof text, "%s%s%s", before, tarn_device_name(device),
           after);
  assert_error_says(text);
}

#endif  // TARN_TESTS_SUPPORT_ON_DEVICES_H_
