// faulty_ranges.h - ranges of the faulty plug-in.
#ifndef TARN_TESTS_TOOL_FAULTY_RANGES_H_
#define TARN_TESTS_TOOL_FAULTY_RANGES_H_

#include <stdbool.h>

#include "tarn/device_ext.h"

// Adds them, if the fault that was chosen is one of theirs.
void faulty_add_ranges(tarn_device_ext *ext);

#endif  // TARN_TESTS_TOOL_FAULTY_RANGES_H_
