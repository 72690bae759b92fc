// plugins.h - memory of devices: what plug-ins of the ABI allocate.
//
// A program that asks dlsym for "InitPlugin" gets a function of the recorder,
// which calls the plug-in's and then puts its own in front of the functions
// of the table that allocate.
#ifndef TARN_RECORD_PLUGINS_H_
#define TARN_RECORD_PLUGINS_H_

#include <stdint.h>

#include "record/slots.h"

// Defines device |number| in the page of |mine|, unless the file has it.
void plugins_define(slot *mine, uint32_t number);

#endif  // TARN_RECORD_PLUGINS_H_
