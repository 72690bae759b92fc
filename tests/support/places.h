// places.h - the devices that every machine has, for tests to loop over: a test
// that is not about one device runs on each of them.
//
//   TEST_LOOP(bytes_come_back, TEST_DEVICES) {
//     tarn_device *device = open_device(test_devices[_i]);
//     ...
//   }
//
// The list is fixed when a program is built: no driver is asked for its devices
// before the fork of a test, since few drivers survive one. A real driver takes
// the place of the list in a run of its own: where TARN_TEST_DEVICE names a
// device, say opencl:0, it is the only one, and the program runs the tests over
// the list alone (driver.h).
#ifndef TARN_TESTS_SUPPORT_PLACES_H_
#define TARN_TESTS_SUPPORT_PLACES_H_

#include "tarn/device.h"

// "cpu:0" and "sim:0", the devices of the library, then two test doubles:
// "plain:0" (plain_plugin.c) and "fake:0" (fake_plugin.h). Or one real device.
extern const char *test_devices[4];

// How many these are, and how many of them are no doubles. A test of which the
// count has one of them in it is a test over the list.
#define TEST_DEVICES (test_device_count())
#define LIBRARY_DEVICES (test_library_count())
int test_device_count(void);
int test_library_count(void);

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
  TEST_NEEDS_FREE_GROWTH = 1 << 3,  // names no sizes for pools to grow by
  TEST_NEEDS_POINTERS = 1 << 4,     // tells what an address belongs to
};

// Asks the device itself.
bool device_has(tarn_device *device, unsigned needs);

// Whether it has memory of that kind: a driver may have the function, and say
// that this device has none. Takes a bit of it.
bool device_has_memory(tarn_device *device, tarn_place_kind kind);

// Opens test_devices[i]. NULL if it lacks one of |needs|: there the test ends,
// and counts as passed.
tarn_device *open_device_with(int i, unsigned needs);

// Opens test_devices[i] with |capacity| bytes in all, of which each process can
// have one only. NULL if the device has no way to be small.
tarn_device *open_small_device(int i, size_t capacity);

#endif  // TARN_TESTS_SUPPORT_PLACES_H_
