// stacks.h - call stacks as numbers, each defined once in the file.
#ifndef TARN_RECORD_STACKS_H_
#define TARN_RECORD_STACKS_H_

#include <stdbool.h>
#include <stdint.h>

#include "record/slots.h"

// Before main: finds the fastest way to walk stacks that there is.
void stacks_begin(void);

// The number of the stack of the recorder's caller; 0: none. A new one is
// defined in the page of |mine|.
uint64_t stacks_number(slot *mine);

// Whether |address| is of the library that walks: what that maps, it maps on
// behalf of the recorder.
bool stacks_is_walker(const void *address);

// Above 0: the thread is in a callback of the loader, which holds a lock that
// the fastest way to walk may need while it holds one of its own.
extern __thread unsigned stacks_in_callback;

// Code was unloaded: knowledge of it is wrong now. Stacks are numbered anew,
// since their addresses may mean other code.
void stacks_code_has_gone(void);

// In the child of a fork: no stack is defined, and from now on only the walk
// that needs no lock is used: a thread of the parent may have held one.
void stacks_forget(void);

#endif  // TARN_RECORD_STACKS_H_
