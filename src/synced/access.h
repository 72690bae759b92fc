// access.h - accesses for the other files of this room.
#ifndef TARN_SYNCED_ACCESS_H_
#define TARN_SYNCED_ACCESS_H_

#include "synced/work.h"

// The arguments of an access.
typedef struct tarn__synced_request {
  size_t start;  // in the whole buffer; start <= end <= size
  size_t end;
  tarn_place place;
  uint32_t mode;  // TARN_READ, ..., with TARN_ACCESS_WAIT or without
  tarn_stream *stream;
  tarn_synced *buffer;  // of the access
} tarn__synced_request;

// Begins |access|, which is zero, the general way. |access| NULL: makes the
// bytes of a read valid at the place, like tarn_synced_prefetch. With the lock,
// which is released.
//
// Errors as for tarn_synced_begin.
TARN_MUST_CHECK tarn_status
tarn__transfer_run(tarn__synced_core *core, const tarn__synced_request *request,
                   tarn_access *access);

// Sets the public fields and the range of an access to memory |at| its place.
static inline void tarn__access_fill(tarn_access *access,
                                     const tarn__synced_end *at,
                                     const tarn__synced_request *request) {
  access->address = at->address + request->start;
  access->pointer =
      at->pointer != NULL ? (char *)at->pointer + request->start : NULL;
  access->size = request->end - request->start;
  access->offset = request->start;
  access->stream = request->stream;
  access->mode = request->mode;
}

// Makes all runs behind |*io_run| of spans that pass |test| for |side| valid at
// |place|. Other threads may make new ones. The caller holds the lock, which is
// released.
//
// Errors as for tarn_synced_begin. |*io_run| is then the run that failed; the
// runs before it are valid at the place.
TARN_MUST_CHECK tarn_status tarn__core_fetch_runs(tarn__synced_core *core,
                                                  tarn__synced_run *io_run,
                                                  uint32_t side,
                                                  tarn__synced_span_test *test,
                                                  tarn_place place);

#endif  // TARN_SYNCED_ACCESS_H_
