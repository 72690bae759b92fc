// document.h - the devices on which the programs of the documents run.
//
// A program that follows one of the five documents that Tarn was built from
// runs on each of them: the host, a simulated accelerator, and a plug-in with
// the 22 functions of PaddlePaddle's document and nothing else. It links
// tarn_plain.
#ifndef TARN_TESTS_SUPPORT_DOCUMENT_H_
#define TARN_TESTS_SUPPORT_DOCUMENT_H_

#include <check.h>
#include <string.h>

#include "tarn/device.h"

enum { DOCUMENT_DEVICES = 3 };

static const char *const document_devices[DOCUMENT_DEVICES] = {"cpu:0", "sim:0",
                                                               "plain:0"};

// Opens device |i| of them.
static inline tarn_device *document_open(int i) {
  const char *name = document_devices[i];
  tarn_device *device = NULL;
  if (strcmp(name, "plain:0") == 0) {
    tarn_status status = tarn_plugin_load(TARN_PLAIN_PLUGIN);
    ck_assert(status == TARN_OK || status == TARN_E_STATE);  // loaded before
  }
  ck_assert_msg(tarn_device_open(name, &device) == TARN_OK, "%s",
                tarn_last_error());
  return device;
}

#endif  // TARN_TESTS_SUPPORT_DOCUMENT_H_
