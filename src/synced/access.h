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
} tarn__synced_request;

// Makes the bytes of a read request valid at its place, like
// tarn_synced_prefetch: no access is open afterwards. |*out_end|, if not NULL,
// is the memory at the place at the end of the call. Without the lock.
//
// Errors as of tarn_synced_begin.
TARN_MUST_CHECK tarn_status tarn__fetch(tarn__synced_core *core,
                                        const tarn__synced_request *request,
                                        tarn_event *event,
                                        tarn__synced_end *out_end);

// Begins an access of |buffer|, the general way. |access| is zero. Without the
// lock.
TARN_MUST_CHECK tarn_status
tarn__access_open(tarn_synced *buffer, const tarn__synced_request *request,
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

// Removes an access from the list, after the spans. With the lock.
static inline void tarn__access_unlink(tarn__synced_core *core,
                                       tarn_access *access) {
  access->node.prev->next = access->node.next;
  access->node.next->prev = access->node.prev;
  access->buffer->accesses--;
  if (access->side != TARN__NO_SIDE) core->sides[access->side].accesses--;
  access->buffer = NULL;
}

// Ends an open access; a write is committed or cancelled. |out_lost| may be
// NULL. Errors as for tarn_synced_end. Without the lock.
tarn_status tarn__access_close(tarn_access *access, bool commits,
                               size_t *out_lost);

// Makes all runs of spans that pass |test| for |side| valid at |place|. Other
// threads may make new ones. With the lock, which is left meanwhile.
//
// Errors as of tarn_synced_begin; those before are valid there then.
TARN_MUST_CHECK tarn_status tarn__core_fetch_runs(tarn__synced_core *core,
                                                  uint32_t side,
                                                  tarn__synced_span_test *test,
                                                  tarn_place place);

#endif  // TARN_SYNCED_ACCESS_H_
