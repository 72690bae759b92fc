// driver.h - a driver under the tests over the list of places.h.
//
// TARN_TEST_DEVICE=opencl:0 makes a program run these tests, and no others, on
// that device alone. The drivers of cuda:0 and hip:0 are stand-ins. Where it
// cannot be opened the program is skipped by name. A driver that has listed its
// devices does not survive a fork, and each test is one: so the device is tried
// in a child, and the tests open it themselves.
#ifndef TARN_TESTS_SUPPORT_DRIVER_H_
#define TARN_TESTS_SUPPORT_DRIVER_H_

#include <stdbool.h>
#include <stddef.h>

#include "tarn/stream.h"

// The device that TARN_TEST_DEVICE names; NULL: none.
const char *driver_wanted(void);

// Makes the plug-in of the device |name| known; nothing if it has no driver.
void driver_add(const char *name);

// Limits the devices of that driver that this process opens later to |capacity|
// bytes. False: |name| is not a device of one.
bool driver_shrink(const char *name, size_t capacity);

// Holds up what is queued on |stream| from now on, until the gate is opened.
// NULL: a callback holds up this stream.
void *driver_close_gate(tarn_stream *stream);
void driver_open_gate(void *gate);

// Whether the device |name| can be opened here; else why not, in |out_reason|.
// Asks a child, and loads what all children need.
bool driver_is_there(const char *name, char *out_reason, size_t size);

#endif  // TARN_TESTS_SUPPORT_DRIVER_H_
