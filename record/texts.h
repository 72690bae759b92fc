// texts.h - texts of the file: names of modules, devices, sources, functions.
#ifndef TARN_RECORD_TEXTS_H_
#define TARN_RECORD_TEXTS_H_

#include "record/slots.h"

// Before main.
void texts_begin(void);

// The number of the TEXT of |length| bytes, none of them zero; what is beyond
// TARN__LOG_MOST_TEXT is cut. A new one is defined in the page of |mine|. 0:
// there is no room for it.
uint64_t texts_number(slot *mine, const char *text, size_t length);

// In the child of a fork: nothing is defined.
void texts_forget(void);

#endif  // TARN_RECORD_TEXTS_H_
