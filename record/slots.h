// slots.h - where a thread writes: a page of the file, and its place in it.
//
// A slot belongs to one thread, until it ends; then to the next one that
// writes, page and thread's number included, so that a program of many short
// threads needs no page for each.
#ifndef TARN_RECORD_SLOTS_H_
#define TARN_RECORD_SLOTS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/log.h"

typedef struct slot {
  tarn__trace_log_writer writer;  // page NULL: none yet
  _Atomic uint32_t taken;
  uint32_t thread;  // from 1 on
} slot;

// The calling thread's; NULL: more threads write than there are slots.
slot *slots_mine(void);

// Before main: what gives slots back when threads end.
void slots_begin(void);

// In the child of a fork: no thread has one.
void slots_forget(void);

// Whether |bytes| fit in the page of |mine|, in a new one if need be, which
// begins at |first|, or where the last one ended if that is NULL. False: the
// file has no page for it.
bool slots_have_room(slot *mine, size_t bytes,
                     const tarn__trace_log_event *first);

#endif  // TARN_RECORD_SLOTS_H_
