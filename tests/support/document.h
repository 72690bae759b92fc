// document.h - the devices on which the programs of the documents run.
//
// A program that follows one of the five documents that Tarn was built from
// runs on each device of places.h.
#ifndef TARN_TESTS_SUPPORT_DOCUMENT_H_
#define TARN_TESTS_SUPPORT_DOCUMENT_H_

#include "support/places.h"
#include "support/run.h"

#define DOCUMENT_DEVICES TEST_DEVICES

// Opens device |i| of them.
static inline tarn_device *document_open(int i) {
  tarn_device *device = NULL;
  add_device(test_devices[i]);
  assert_ok(tarn_device_open(test_devices[i], &device));
  return device;
}

#endif  // TARN_TESTS_SUPPORT_DOCUMENT_H_
