// places.h - the devices and places that every machine has, for tests to loop
// over: a test that is not about one device runs on each of them.
//
//   TEST_LOOP(bytes_come_back, TEST_DEVICES) {
//     tarn_device *device = open_device(test_devices[_i]);
//     ...
//   }
//
// A new device is a new line in places.c. The list is fixed when a program is
// built: no driver is asked for its devices before the fork of a test, since
// few drivers survive one.
#ifndef TARN_TESTS_SUPPORT_PLACES_H_
#define TARN_TESTS_SUPPORT_PLACES_H_

#include "tarn/device.h"

// "cpu:0" and "sim:0", the devices of the library, then two test doubles:
// "plain:0" (plain_plugin.c) and "fake:0" (fake_plugin.h).
enum { LIBRARY_DEVICES = 2, TEST_DEVICES = 4 };
extern const char *const test_devices[TEST_DEVICES];

// Places: plain host memory, and each kind of memory of each device. Those of
// the devices of the library come first.
typedef struct test_place {
  const char *device;  // NULL: plain host memory
  tarn_place_kind kind;
  const char *text;  // "sim:0/host"
} test_place;

enum { LIBRARY_PLACES = 7, TEST_PLACES = 13 };
extern const test_place test_places[TEST_PLACES];

// Makes a test double known whose device |name| is; nothing for others.
void add_device(const char *name);

// Opens the device |name|, of a test double too. It is closed after the test
// (after_test of run.h), or by close_device. After the test, no memory of
// "fake" may be left, and no call may have been for the wrong device or of the
// wrong size.
tarn_device *open_device(const char *name);
void close_device(tarn_device *device);

// What a test may need of a device.
enum {
  TEST_NEEDS_STREAMS = 1 << 0,   // streams of its own: not each is synchronous
  TEST_NEEDS_RANGES = 1 << 1,    // range.h
  TEST_NEEDS_DISCRETE = 1 << 2,  // memory that the host cannot touch
};

// Asks the device itself.
bool device_has(tarn_device *device, unsigned needs);

// Opens test_devices[i]. NULL if it lacks one of |needs|: there the test ends,
// and counts as passed.
tarn_device *open_device_with(int i, unsigned needs);

// Opens test_devices[i] with |capacity| bytes in all, of which each process can
// have one only. NULL if the device has no way to be small.
tarn_device *open_small_device(int i, size_t capacity);

// The same for test_places[i] as open_device.
tarn_place open_place(int i);

#endif  // TARN_TESTS_SUPPORT_PLACES_H_
