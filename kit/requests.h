// requests.h - the requests of a trace as a list that a loop runs through.
//
// Everything is prepared beforehand, so that a timed loop does nothing but
// allocate and free. Segments and other events of the trace are left out.
#ifndef TARN_KIT_REQUESTS_H_
#define TARN_KIT_REQUESTS_H_

#include <tarn/tarn.h>

typedef struct request {
  uint32_t slot;       // where to keep the block: its index in the trace
  uint32_t size_rank;  // its size is the so-manieth smallest of the trace
  size_t size;         // bytes to take; 0: give the block back
} request;

typedef struct request_list {
  request *items;
  size_t count;
  size_t slot_count;  // slots are below this
  size_t rank_count;  // how many different sizes there are
  uint32_t *threads;  // of each item, as the trace names them; NULL: it names
                      // no more than one
} request_list;

// The ALLOC and FREE events of |trace|, in order.
request_list requests_make(const tarn_trace *trace);

// Those of |count| traces, from 1 on, behind each other. Each has slots of its
// own.
request_list requests_join(const tarn_trace *const *traces, size_t count);
void requests_deinit(request_list *list);

#endif  // TARN_KIT_REQUESTS_H_
