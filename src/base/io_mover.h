// io_mover.h - what moves the bytes of a queue (io.h): io_uring, or threads.
#ifndef TARN_BASE_IO_MOVER_H_
#define TARN_BASE_IO_MOVER_H_

#include "base/io.h"

// The first member of each mover.
typedef struct tarn__io_mover {
  const char *name;
  size_t depth;  // most requests under way
  // Sends the requests of |batch|, which is empty then, to the system, and puts
  // those whose part is done, with its result, behind those in |done|. |wait|:
  // until there is one; then at least one is under way.
  void (*turn)(struct tarn__io_mover *mover, tarn_list *batch, bool wait,
               tarn_list *done);
  // Nothing is under way, or this is a child of a fork.
  void (*end)(struct tarn__io_mover *mover, bool after_fork);
} tarn__io_mover;

// Either may allow less than |depth|.
//
// TARN_E_UNSUPPORTED  the system has no io_uring, or forbids it.
// TARN_E_NOMEM.
TARN_MUST_CHECK tarn_status tarn__io_ring_begin(size_t depth,
                                                tarn__io_mover **out_mover);

// TARN_E_NOMEM.
TARN_MUST_CHECK tarn_status tarn__io_threads_begin(size_t depth, size_t workers,
                                                   tarn__io_mover **out_mover);

// Moves the part of |request| on this thread, and sets its result.
void tarn__io_call(tarn__io_request *request);

// The first request of |list|, which is not empty, taken out of it.
static inline tarn__io_request *tarn__io_first(tarn_list *list) {
  tarn__io_request *request =
      tarn_list_entry(list->next, tarn__io_request, node);
  tarn_list_del(&request->node);
  return request;
}

// Moves all of |from| behind what is in |to|.
static inline void tarn__io_append(tarn_list *to, tarn_list *from) {
  if (tarn_list_empty(from)) return;
  from->next->prev = to->prev;
  to->prev->next = from->next;
  from->prev->next = to;
  to->prev = from->prev;
  tarn_list_init(from);
}

#endif  // TARN_BASE_IO_MOVER_H_
