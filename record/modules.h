// modules.h - what code stands where, so that addresses of stacks can be named
// when the process is no more.
#ifndef TARN_RECORD_MODULES_H_
#define TARN_RECORD_MODULES_H_

#include "record/slots.h"

// Defines in the page of |mine| what was loaded since the last look. Cheap
// where nothing was. In the child of a fork, where the C library can tell
// without a lock, only what the |count| |addresses| are in.
void modules_look(slot *mine, void *const *addresses, int count);

// In the child of a fork: nothing is defined.
void modules_forget(void);

#endif  // TARN_RECORD_MODULES_H_
