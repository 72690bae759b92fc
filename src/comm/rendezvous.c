// Where ranks of a machine meet: an inbox for each, and the memory that they
// will share, made before the processes are, so that they inherit it all.
//
// Nothing has a name. Who can receive at an inbox is decided by who still has
// its receiving end: a process that joins closes those of the others, a program
// that a place was handed over to gets none but its own. So the last of them is
// closed when the rank's process ends, and that tells the others.
#include "comm/rendezvous.h"

#include <errno.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/os_peer.h"
#include "base/status.h"
#include "comm/comm.h"
#include "comm/environment.h"
#include "comm/join.h"

// --- beginning and end -----------------------------------------------------

static void close_one(int *fd) {
  if (*fd >= 0) tarn__os_close(*fd);
  *fd = -1;
}

static tarn_status allocate(size_t size, tarn_rendezvous **out) {
  tarn_rendezvous *rendezvous = tarn__host_alloc(sizeof *rendezvous);
  if (rendezvous == NULL) return TARN_E_NOMEM;
  int *ends = tarn__host_array(2 * size, sizeof *ends);
  if (ends == NULL) {
    tarn__host_free(rendezvous, sizeof *rendezvous);
    return TARN_E_NOMEM;
  }
  for (size_t i = 0; i < 2 * size; i++)
    ends[i] = -1;
  *rendezvous = (tarn_rendezvous){
      .size = size, .fd = -1, .receives = ends, .sends = ends + size};
  *out = rendezvous;
  return TARN_OK;
}

static tarn_status make_inboxes(tarn_rendezvous *rendezvous) {
  for (size_t rank = 0; rank < rendezvous->size; rank++) {
    tarn__comm_member *member = &rendezvous->area.members[rank];
    if (!tarn__os_inbox(&rendezvous->receives[rank],
                        &rendezvous->sends[rank])) {
      return tarn__fail(TARN_E_IO,
                        "tarn_rendezvous_create: no sockets for rank %zu: %s",
                        rank, strerror(errno));
    }
    member->receive = rendezvous->receives[rank];
    member->send = rendezvous->sends[rank];
  }
  return TARN_OK;
}

tarn_status tarn_rendezvous_create(size_t size,
                                   tarn_rendezvous **out_rendezvous) {
  tarn_rendezvous *rendezvous = NULL;
  if (out_rendezvous == NULL) {
    return tarn__fail(TARN_E_INVALID, "tarn_rendezvous_create: NULL");
  }
  *out_rendezvous = NULL;
  if (size == 0 || size > TARN_COMM_MOST_RANKS) {
    return tarn__fail(TARN_E_INVALID,
                      "tarn_rendezvous_create: %zu ranks, not 1 to %d", size,
                      TARN_COMM_MOST_RANKS);
  }
  tarn_status status = allocate(size, &rendezvous);
  if (status != TARN_OK) return status;
  status = tarn__area_create(size, &rendezvous->fd, &rendezvous->area);
  if (status == TARN_OK) status = make_inboxes(rendezvous);
  if (status != TARN_OK) {
    tarn_rendezvous_destroy(rendezvous);
    return status;
  }
  *out_rendezvous = rendezvous;
  return TARN_OK;
}

void tarn_rendezvous_destroy(tarn_rendezvous *rendezvous) {
  if (rendezvous == NULL) return;
  tarn__os_close_all(rendezvous->receives, 2 * rendezvous->size);
  close_one(&rendezvous->fd);
  tarn__area_unmap(&rendezvous->area);
  tarn__host_free_array(rendezvous->receives, 2 * rendezvous->size,
                        sizeof *rendezvous->receives);
  tarn__host_free(rendezvous, sizeof *rendezvous);
}

// --- places ----------------------------------------------------------------

static tarn_status check_place(const char *what,
                               const tarn_rendezvous *rendezvous, size_t rank) {
  if (rendezvous == NULL) return tarn__fail(TARN_E_INVALID, "%s: NULL", what);
  if (rank >= rendezvous->size) {
    return tarn__fail(TARN_E_INVALID, "%s: rank %zu of %zu", what, rank,
                      rendezvous->size);
  }
  if (rendezvous->area.head == NULL) {
    return tarn__fail(TARN_E_STATE, "%s: this process has taken a place", what);
  }
  return TARN_OK;
}

// What the joined one has is no longer the rendezvous's.
static void let_go(tarn_rendezvous *rendezvous) {
  for (size_t i = 0; i < rendezvous->size; i++)
    rendezvous->sends[i] = -1;
  rendezvous->area = (tarn__comm_area){0};
  close_one(&rendezvous->fd);
}

tarn_status tarn_comm_join(tarn_rendezvous *rendezvous, size_t rank,
                           const tarn_comm_options *options,
                           tarn_comm **out_comm) {
  tarn_comm_options known;
  bool taken = false;
  if (out_comm == NULL) return tarn__fail(TARN_E_INVALID, "comm: NULL");
  *out_comm = NULL;
  tarn_status status = check_place("tarn_comm_join", rendezvous, rank);
  if (status == TARN_OK) status = tarn__comm_options(options, 0, &known);
  if (status != TARN_OK) return status;
  tarn__comm_sockets sockets = {rendezvous->sends, rendezvous->receives};
  status = tarn__join(rendezvous->area, sockets, rank, known.timeout_ms, &taken,
                      out_comm);
  if (taken) let_go(rendezvous);
  return status;
}

// --- for launchers ---------------------------------------------------------

static bool let_inherit(const tarn_rendezvous *rendezvous, size_t rank) {
  for (size_t i = 0; i < rendezvous->size; i++) {
    if (!tarn__os_keep_on_exec(rendezvous->sends[i])) return false;
  }
  return tarn__os_keep_on_exec(rendezvous->receives[rank]) &&
         tarn__os_keep_on_exec(rendezvous->fd);
}

tarn_status tarn_rendezvous_hand_over(tarn_rendezvous *rendezvous, size_t rank,
                                      char *out_variable, size_t out_size) {
  tarn_status status =
      check_place("tarn_rendezvous_hand_over", rendezvous, rank);
  if (status != TARN_OK) return status;
  if (out_variable == NULL || out_size < TARN_RENDEZVOUS_VARIABLE) {
    return tarn__fail(
        TARN_E_INVALID, "tarn_rendezvous_hand_over: room for %zu bytes, not %d",
        out_variable == NULL ? 0 : out_size, TARN_RENDEZVOUS_VARIABLE);
  }
  tarn__environment_write(
      (tarn__comm_place){rank, rendezvous->size, rendezvous->fd},
      rendezvous->area.head->token, out_variable);
  if (let_inherit(rendezvous, rank)) return TARN_OK;
  memset(out_variable, 0, out_size);
  return tarn__fail(TARN_E_IO, "tarn_rendezvous_hand_over: %s",
                    strerror(errno));
}
