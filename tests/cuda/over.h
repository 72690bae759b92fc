// over.h - the plug-in over the stand-in: a test on it says what the plug-in
// does, and nothing of any driver or card.
#ifndef TARN_TESTS_CUDA_OVER_H_
#define TARN_TESTS_CUDA_OVER_H_

#include <string.h>

#include "cuda/standin.h"
#include "support/places.h"
#include "support/run.h"
#include "tarn/device.h"

// A driver: settings of the stand-in, as "NAME=VALUE NAME=VALUE".
typedef struct over_kind {
  const char *name;  // in messages
  const char *settings;
} over_kind;

// One for each way in which drivers differ.
enum { OVER_KINDS = 4 };
extern const over_kind over_kinds[OVER_KINDS];

// Gives the stand-in its initial settings, with kernels, then these.
void over_set(const char *settings);

// Makes the devices "cuda:N" known. They are asked for, and the driver with
// them, when one is opened.
void over_register(void);

// Both, for over_kinds[i].
void over_begin(int i);

// Nothing lives in the driver, and it was not used wrongly. |what| is told if
// not.
void over_assert_clean(const char *what, size_t number);

#endif  // TARN_TESTS_CUDA_OVER_H_
