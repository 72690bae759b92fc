// Which ranks of an engine's communicator share memory. They find out by
// trying.
//
//   1  All tell the name of their machine. Ranks of the same name are
//      candidates, those of different names are never tried.
//   2  Candidates try to meet in a folder that the first of them makes. If one
//      of them cannot, each is alone: that is no error.
//   3  All tell what came of it.
//
// An equal name proves nothing: containers of one machine have the same, and
// may have no folder in common.
#include <assert.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "comm/comm.h"
#include "comm/place.h"
#include "comm/rendezvous.h"

// --- candidates ------------------------------------------------------------

typedef struct host {
  char name[TARN__MACHINE];
  size_t count;   // of the first rank of a name: ranks so far,
  size_t leader;  // and the first of the last candidates
} host;

// |leaders[r]|: the lowest rank of the candidates that rank r is one of. Of a
// name there may be more ranks than can meet: then there are several.
static void find_leaders(host *hosts, size_t size, size_t *leaders) {
  for (size_t rank = 0; rank < size; rank++) {
    host *first = hosts;
    while (strncmp(first->name, hosts[rank].name, sizeof first->name) != 0)
      first++;
    if (first->count++ % TARN_COMM_MOST_RANKS == 0) first->leader = rank;
    leaders[rank] = first->leader;
  }
}

static tarn_status find_candidates(tarn_comm *comm, size_t *leaders) {
  host own = {0};
  tarn_status status = tarn__place_machine(own.name);
  host *hosts = tarn__host_array(comm->size, sizeof *hosts);
  if (hosts == NULL) status = TARN_E_NOMEM;
  status = tarn_comm_agree(comm, status);
  if (status == TARN_OK) {
    assert(hosts != NULL);
    status = tarn_comm_allgather(comm, &own, sizeof own, hosts);
  }
  if (status == TARN_OK) find_leaders(hosts, comm->size, leaders);
  tarn__host_free_array(hosts, comm->size, sizeof *hosts);
  return status;
}

// --- trying ----------------------------------------------------------------

static const char CALL[] = "tarn_comm_from_engine";

// The first of the candidates makes a place, which all of them must see: one
// that waits there for others must not wait in vain.
static tarn_status find_place(tarn_comm *candidates, tarn__comm_place *place) {
  tarn_status status = TARN_OK;
  if (candidates->rank == 0) status = tarn__place_make(CALL, place);
  TARN__TRY(tarn_comm_agree(candidates, status));
  TARN__TRY(tarn_comm_broadcast(candidates, 0, place, sizeof *place));
  if (!tarn__place_is_here(place)) {
    status =
        tarn__fail(TARN_E_UNSUPPORTED, "%s: the folder of '%.107s' is not here",
                   CALL, place->path);
  }
  return tarn_comm_agree(candidates, status);
}

// Whether it is a lack of means, and no loss of a rank.
static bool is_lack(tarn_status status) {
  return status == TARN_E_IO || status == TARN_E_UNSUPPORTED ||
         status == TARN_E_INVALID;
}

// Whether it may be what others see of one that has failed.
static bool is_loss(tarn_status status) {
  return status == TARN_OK || status == TARN_E_PEER_LOST ||
         status == TARN_E_TIMEOUT;
}

// What all have come to: if some have failed for want of something, that.
static tarn_status conclude(tarn_comm *candidates, tarn_status status) {
  int32_t all[TARN_COMM_MOST_RANKS];
  int32_t own = status;
  size_t i = 0;
  tarn__failure failure = {0};
  tarn__failure_note(&failure, status);
  TARN__TRY(tarn_comm_allgather(candidates, &own, sizeof own, all));
  (void)tarn__failure_tell(&failure);
  while (i < candidates->size && is_loss((tarn_status)all[i]))
    i++;
  if (i == candidates->size) return tarn_comm_agree(candidates, status);
  status = (tarn_status)all[i];
  return tarn__fail(is_lack(status) ? TARN_E_UNSUPPORTED : status,
                    "%s: rank %zu cannot meet the others: %s", CALL, i,
                    tarn_status_name(status));
}

// Those who have come wait for one that cannot, which waits for them in the
// messages: therefore not for as long.
static tarn_status meet_there(const tarn__comm_place *place,
                              tarn_comm *candidates, tarn_comm **out_near) {
  uint64_t ms = candidates->timeout_ms;
  uint64_t come_ms = ms > 1 ? ms / 2 : 1;
  tarn_status status = tarn__place_meet(
      place, candidates->rank, candidates->size, come_ms, ms, out_near);
  return conclude(candidates, status);
}

static tarn_status try_to_meet(tarn_comm *candidates, tarn_comm **out_near) {
  tarn__comm_place place = {.path = ""};
  tarn_status status = find_place(candidates, &place);
  if (status == TARN_OK) status = meet_there(&place, candidates, out_near);
  if (candidates->rank == 0) tarn__place_remove(&place);
  if (status != TARN_OK) {
    (void)tarn_comm_destroy(*out_near);
    *out_near = NULL;
  }
  return status;
}

// With the candidates, or alone.
static tarn_status meet_candidates(tarn_comm *candidates,
                                   tarn_comm **out_near) {
  if (candidates->size > 1) {
    tarn_status status = try_to_meet(candidates, out_near);
    if (!is_lack(status)) return status;
    tarn__log(TARN_LOG_WARN,
              "comm: ranks that may be on one machine share no memory: %s",
              tarn_last_error());
  }
  return tarn__join_alone(candidates->timeout_ms, out_near);
}

static tarn_status meet_near(tarn_comm *comm, const size_t *leaders,
                             tarn_comm **out_near) {
  tarn_comm *candidates = comm;
  bool is_whole = true;
  for (size_t rank = 0; rank < comm->size; rank++)
    is_whole = is_whole && leaders[rank] == leaders[0];
  if (!is_whole) {
    int64_t color = (int64_t)leaders[comm->rank];
    TARN__TRY(tarn_comm_split(comm, color, 0, &candidates));
  }
  tarn_status status = meet_candidates(candidates, out_near);
  if (!is_whole) (void)tarn_comm_destroy(candidates);
  return tarn_comm_agree(comm, status);
}

// --- what came of it -------------------------------------------------------

// |machines| has the leaders of candidates; the ranks begin at |size|.
static tarn_status list_machines(tarn_comm *comm, const tarn_comm *near,
                                 size_t *machines) {
  size_t own = near->size > 1 ? machines[comm->rank] : comm->rank;
  size_t *ranks = machines + comm->size;
  TARN__TRY(tarn_comm_allgather(comm, &own, sizeof own, machines));
  for (size_t rank = 0; rank < comm->size; rank++) {
    if (machines[rank] == own) *ranks++ = rank;
  }
  return TARN_OK;
}

static tarn_status find(tarn_comm *comm, size_t *machines,
                        tarn_comm **out_near) {
  TARN__TRY(find_candidates(comm, machines));
  TARN__TRY(meet_near(comm, machines, out_near));
  tarn_comm *near = *out_near;
  assert(near != NULL);
  return near->size == comm->size ? TARN_OK
                                  : list_machines(comm, near, machines);
}

tarn_status tarn__near_find(tarn_comm *comm, tarn__comm_near *out_near) {
  *out_near = (tarn__comm_near){0};
  size_t *machines = tarn__near_array(comm->size);
  tarn_status status =
      tarn_comm_agree(comm, machines != NULL ? TARN_OK : TARN_E_NOMEM);
  if (status == TARN_OK) {
    assert(machines != NULL);
    status = find(comm, machines, &out_near->comm);
  }
  if (status == TARN_OK && out_near->comm->size != comm->size) {
    out_near->machines = machines;
    out_near->ranks = machines + comm->size;
    return TARN_OK;
  }
  tarn__near_free(machines, comm->size);
  if (status == TARN_OK) return TARN_OK;
  (void)tarn_comm_destroy(out_near->comm);
  out_near->comm = NULL;
  return status;
}
