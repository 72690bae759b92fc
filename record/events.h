// events.h - writes down what the program does.
//
// Order is by number, from one counter for all threads. An end of a block takes
// its number before the real function is called, a beginning after: so an
// address is free again, by number, before another block has it.
//
// Threads: any; in signal handlers too. Cost: no memory of the heap, no system
// call but when a page or a stack is new. Nothing here changes errno.
#ifndef TARN_RECORD_EVENTS_H_
#define TARN_RECORD_EVENTS_H_

#include <stddef.h>
#include <stdint.h>

#include "record/slots.h"

// What happened, without what the recorder adds: number, time and stack.
typedef struct happening {
  tarn__trace_log_kind kind;
  uint64_t number;  // from file_number, or 0: now
  const void *address;
  size_t size;
  uint32_t device;  // 0: the host
  // Defines |device| in the page of |mine|, unless the file has it; NULL: it
  // needs no definition.
  void (*define)(slot *mine, uint32_t device);
} happening;

// Writes |what|; births have the stack of the caller.
void events_note(const happening *what);

static inline void events_alloc(const void *address, size_t size) {
  events_note(
      &(happening){.kind = TARN__LOG_ALLOC, .address = address, .size = size});
}

static inline void events_free(const void *address) {
  events_note(&(happening){.kind = TARN__LOG_FREE, .address = address});
}

static inline void events_oom(size_t size) {
  events_note(&(happening){.kind = TARN__LOG_OOM, .size = size});
}

// Around calls of the real allocator: what that maps for itself is its own
// business. Calls nest.
extern __thread unsigned events_inside;

// At exit: see file_finish.
void events_finish(void);

// In the child of a fork: forgets the recording, which is the parent's.
void events_forget(void);

#endif  // TARN_RECORD_EVENTS_H_
