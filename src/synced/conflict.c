// Who is in the way of an access, and how that is told.
#include <stdio.h>

#include "base/status.h"
#include "synced/transfer.h"

static bool meets(const tarn_access *access, uint32_t side, size_t start,
                  size_t end) {
  bool there = side == TARN__NO_SIDE || access->side == side;
  return there && tarn__access_meets(access, start, end);
}

// Whether anybody reads or writes there, be it without an access.
static bool is_entered(const tarn__synced_core *core, size_t start,
                       size_t end) {
  if (start == end) return false;
  const tarn__synced_span *span = tarn__spans_find(&core->spans, start);
  while (span != NULL && span->node.start < end) {
    if (span->writer != NULL || span->readers > 0) return true;
    span = span->next;
  }
  return false;
}

// The list is of all that is open, wherever: the spans know first.
const tarn_access *tarn__access_in(const tarn__synced_core *core, uint32_t side,
                                   size_t start, size_t end) {
  const tarn_list *node = NULL;
  if (!is_entered(core, start, end)) return NULL;
  tarn_list_for_each (node, &core->accesses) {
    const tarn_access *access = tarn_list_entry(node, tarn_access, node);
    if (meets(access, side, start, end)) return access;
  }
  return NULL;
}

static const char *purpose(uint32_t mode) {
  return mode == TARN_READ ? "reading" : "writing";
}

tarn_status tarn__access_is_in_the_way(const tarn__synced_core *core,
                                       const tarn_access *access,
                                       const char *what) {
  char text[TARN__CORE_TEXT];
  char place[TARN__SIDE_TEXT] = "no place";
  if (access->side != TARN__NO_SIDE) {
    tarn__side_text(core, access->side, place);
  }
  return tarn__fail(TARN_E_STATE,
                    "%s is open for %s at %s (bytes %zu to %zu): %s",
                    tarn__core_text(core, text), purpose(access->mode), place,
                    access->offset, access->offset + access->size, what);
}

// --- conflicts of accesses ---------------------------------------------------

static tarn_status refuse(const tarn__synced_transfer *transfer,
                          const tarn_access *other) {
  char what[128];
  char place[TARN__SIDE_TEXT];
  const tarn__synced_request *request = &transfer->request;
  snprintf(what, sizeof what,
           "an access for %s at %s (bytes %zu to %zu) has to wait",
           transfer->writes ? "writing" : "reading",
           tarn__side_text(transfer->core, transfer->side, place),
           request->start, request->end);
  return tarn__access_is_in_the_way(transfer->core, other, what);
}

// Readers that are in no list are a prefetch, which is over soon.
tarn_status tarn__transfer_conflict(const tarn__synced_transfer *transfer,
                                    const tarn__synced_span *span) {
  const tarn_access *other = span->writer;
  if (other == NULL) {
    other = tarn__access_in(transfer->core, TARN__NO_SIDE, span->node.start,
                            span->end);
  }
  bool patient = (transfer->request.mode & TARN_ACCESS_WAIT) != 0;
  return other == NULL || patient ? TARN_PENDING : refuse(transfer, other);
}
