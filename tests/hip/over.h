// over.h - the plug-in over the stand-in: a test on it says what the plug-in
// does, and nothing of any driver.
#ifndef TARN_TESTS_HIP_OVER_H_
#define TARN_TESTS_HIP_OVER_H_

#include <string.h>

#include "cuda/standin.h"
#include "support/places.h"
#include "support/run.h"
#include "tarn/device.h"

// A release of HIP with devices of a kind.
typedef struct over_kind {
  const char *name;  // in messages
  const char *library;
  const char *settings;  // of the stand-in, as "NAME=VALUE NAME=VALUE"
} over_kind;

enum { OVER_KINDS = 4 };
extern const over_kind over_kinds[OVER_KINDS];

// The stand-in is over_kinds[i] now, and the devices "hip:N" are known. They
// are asked for, and the driver with them, when one is opened.
void over_begin(int i);

// Ends what is left in the driver, as the end of the process would.
void over_end_all(void);

// Nothing but its devices' contexts lives in the driver, and it was not used
// wrongly. |what| is told if not.
void over_assert_clean(const char *what, size_t number);

#endif  // TARN_TESTS_HIP_OVER_H_
