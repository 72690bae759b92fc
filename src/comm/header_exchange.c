// The header exchange with which every collective begins.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "comm/comm.h"

// --- what differs ----------------------------------------------------------

tarn_status tarn__comm_hear_both(tarn_comm *comm, size_t rank, const char *own,
                                 tarn__comm_half_text *out_texts) {
  memset(out_texts, 0, 2 * sizeof *out_texts);
  for (int i = 0; i < 2; i++) {
    char *text = out_texts[i];
    size_t root = i == 0 ? 0 : rank;
    if (comm->rank == root) snprintf(text, sizeof *out_texts, "%s", own);
    TARN__TRY(tarn__comm_note(
        comm, comm->ops.broadcast(comm->self, root, text, sizeof *out_texts)));
    text[sizeof *out_texts - 1] = '\0';
  }
  return TARN_OK;
}

static tarn_status tell_calls(tarn_comm *comm, size_t rank) {
  tarn__comm_half_text own;
  tarn__comm_half_text texts[2];
  tarn__comm_say_call(comm, own, sizeof own);
  TARN__TRY(tarn__comm_hear_both(comm, rank, own, texts));
  return tarn__fail(TARN_E_INVALID, "comm: rank 0 calls %s, rank %zu %s",
                    texts[0], rank, texts[1]);
}

static tarn_status tell_difference(tarn_comm *comm, size_t rank) {
  const tarn__comm_header *first = &comm->headers[0];
  const tarn__comm_header *other = &comm->headers[rank];
  if (first->call != other->call || first->caller != other->caller) {
    return tell_calls(comm, rank);
  }
  bool roots = first->root != other->root;
  return tarn__fail(TARN_E_INVALID,
                    "%s: the %s is %" PRIu64 " at rank 0, %" PRIu64
                    " at rank %zu",
                    tarn__comm_call_name(first->call), roots ? "root" : "size",
                    roots ? first->root : first->size,
                    roots ? other->root : other->size, rank);
}

static bool differ(const tarn__comm_header *a, const tarn__comm_header *b) {
  return a->call != b->call || a->caller != b->caller || a->root != b->root ||
         a->size != b->size;
}

static size_t find_different(const tarn_comm *comm) {
  size_t rank = 1;
  while (rank < comm->size && !differ(&comm->headers[0], &comm->headers[rank]))
    rank++;
  return rank;
}

// --- ranks that failed -----------------------------------------------------

static size_t find_failed(const tarn_comm *comm) {
  size_t rank = 0;
  while (rank < comm->size && comm->headers[rank].status == TARN_OK)
    rank++;
  return rank;
}

static tarn_status tell_failure(tarn_comm *comm, size_t rank, char *text) {
  tarn_status failure = (tarn_status)comm->headers[rank].status;
  TARN__TRY(tarn__comm_note(
      comm, comm->ops.broadcast(comm->self, rank, text, TARN__ERROR_TEXT)));
  text[TARN__ERROR_TEXT - 1] = '\0';
  return tarn__fail(failure, "rank %zu: %s", rank, text);
}

// --- the header exchange ---------------------------------------------------

static tarn_status decide(tarn_comm *comm, char *text) {
  size_t different = find_different(comm);
  if (different < comm->size) return tell_difference(comm, different);
  size_t failed = find_failed(comm);
  if (failed < comm->size) return tell_failure(comm, failed, text);
  return TARN_OK;
}

uint64_t tarn__comm_meetings(const tarn_comm *comm) {
  return comm->meetings;
}

tarn_status tarn__comm_exchange_headers(tarn_comm *comm,
                                        tarn__comm_collective call,
                                        tarn_status status) {
  char text[TARN__ERROR_TEXT] = "";
  if (status != TARN_OK) {
    snprintf(text, sizeof text, "%s", tarn_last_error());
  }
  comm->meetings++;
  comm->call = call;
  comm->own.call = (uint32_t)call;
  comm->own.status = status;
  comm->own.caller = comm->caller != NULL ? comm->caller->number : 0;
  tarn_status met = tarn__comm_note(
      comm, comm->ops.allgather(comm->self, &comm->own, sizeof comm->own,
                                comm->headers));
  memset(&comm->own, 0, sizeof comm->own);
  return met == TARN_OK ? decide(comm, text) : met;
}
