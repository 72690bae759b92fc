// access.h - accesses for the rest of this room: without a buffer's handle, and
// those that are begun and ended in one.
#ifndef TARN_SYNCED_ACCESS_H_
#define TARN_SYNCED_ACCESS_H_

#include "synced/work.h"

// What is asked for.
typedef struct tarn__synced_request {
  size_t start;  // in the whole buffer; start <= end <= size
  size_t end;
  tarn_place place;
  uint32_t mode;  // TARN_READ, ..., with TARN_ACCESS_WAIT or without
  tarn_stream *stream;
} tarn__synced_request;

// Makes the bytes of the request, which is to read them, valid at its place, as
// tarn_synced_prefetch: nothing is open afterwards. |*out_end|, if not NULL, is
// the memory at the place, as of the end of the call. Without the lock.
//
// Errors as of tarn_synced_begin.
TARN_MUST_CHECK tarn_status tarn__fetch(tarn__synced_core *core,
                                        const tarn__synced_request *request,
                                        tarn_event *event,
                                        tarn__synced_end *out_end);

// Begins an access that counts for |buffer|; the way that can do all. Without
// the lock. |access| is zero.
TARN_MUST_CHECK tarn_status
tarn__access_open(tarn_synced *buffer, const tarn__synced_request *request,
                  tarn_access *access);

// Takes an access, which has left the spans, out of the list. With the lock.
static inline void tarn__access_unlink(tarn__synced_core *core,
                                       tarn_access *access) {
  access->node.prev->next = access->node.next;
  access->node.next->prev = access->node.prev;
  access->buffer->accesses--;
  if (access->side != TARN__NO_SIDE) core->sides[access->side].accesses--;
  access->buffer = NULL;
}

// Ends an open access, be it that a write has happened or not; |out_lost| may
// be NULL. Errors as of tarn_synced_end. Without the lock.
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
